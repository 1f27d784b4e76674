/* SPDX-License-Identifier: MIT */
/* Many at once: threads that stand ready and are let go together. */
#include <pthread.h>
#include <string.h>

#include "base/clock.h"
#include "tests/bench/bench.h"

#define STACK_BYTES (512 * 1024)

struct crowd {
	pthread_barrier_t begin, end;
	const struct work *work; /* written while all stand before begin */
	bool stop;
};

struct runner {
	struct crowd *crowd;
	struct lane lane;
	pthread_t thread;
	int64_t took_us; /* written before end, read after it */
};

static void *run(void *arg)
{
	struct runner *r = arg;
	for (;;) {
		pthread_barrier_wait(&r->crowd->begin);
		if (r->crowd->stop)
			return NULL;
		int64_t start = clock_mono_us();
		r->crowd->work->run(&r->lane);
		r->took_us = clock_mono_us() - start;
		pthread_barrier_wait(&r->crowd->end);
	}
}

static void assemble(struct crowd *c, struct runner *all, size_t count, const struct setup *s)
{
	pthread_attr_t attr;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	pthread_barrier_init(&c->begin, NULL, (unsigned)count + 1);
	pthread_barrier_init(&c->end, NULL, (unsigned)count + 1);
	for (size_t i = 0; i < count; i++) {
		all[i].crowd = c;
		lane_init(&all[i].lane, s, i);
		if (pthread_create(&all[i].thread, &attr, run, &all[i]))
			die("cannot start thread %zu", i);
	}
	pthread_attr_destroy(&attr);
}

static void dismiss(struct crowd *c, struct runner *all, size_t count)
{
	c->stop = true;
	pthread_barrier_wait(&c->begin);
	for (size_t i = 0; i < count; i++) {
		pthread_join(all[i].thread, NULL);
		lane_clear(&all[i].lane);
	}
	pthread_barrier_destroy(&c->begin);
	pthread_barrier_destroy(&c->end);
}

/* Microseconds until the last one is done. */
static int64_t let_go(struct crowd *c, const struct work *w)
{
	c->work = w;
	int64_t start = clock_mono_us();
	pthread_barrier_wait(&c->begin);
	pthread_barrier_wait(&c->end);
	return clock_mono_us() - start;
}

void burst(const struct setup *s, const struct work *const *works, size_t count, int rounds, size_t lanes)
{
	struct crowd crowd = { 0 };
	_cleanup_free_ struct runner *all = xcalloc(lanes, sizeof(*all));
	_cleanup_free_ int64_t *whole = xcalloc(count * (size_t)rounds, sizeof(*whole));
	_cleanup_free_ int64_t *each = xcalloc(count * (size_t)rounds * lanes, sizeof(*each));
	assemble(&crowd, all, lanes, s);
	for (size_t w = 0; w < count; w++) /* connections are opened here */
		(void)let_go(&crowd, works[w]);
	for (size_t round = 0; round < (size_t)rounds; round++)
		for (size_t w = 0; w < count; w++) {
			size_t at = w * (size_t)rounds + round;
			whole[at] = let_go(&crowd, works[w]);
			for (size_t i = 0; i < lanes; i++)
				each[at * lanes + i] = all[i].took_us;
		}
	dismiss(&crowd, all, lanes);
	for (size_t w = 0; w < count; w++) {
		print_series(works[w]->name, ".all", whole + w * (size_t)rounds, (size_t)rounds);
		print_series(works[w]->name, ".each", each + w * (size_t)rounds * lanes,
			     (size_t)rounds * lanes);
	}
}
