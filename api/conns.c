/* SPDX-License-Identifier: MIT */
#include "api/conns.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"

struct conn {
	struct conns *owner;
	struct conn *prev, *next; /* owner's lock */
	int fd;
	char address[64];
	bool crowded;
	bool busy;                        /* owner's lock */
	int64_t body_started_ms;          /* the connection's thread */
	_Atomic int64_t deadline_mono_ms; /* 0: none */
};

struct conns {
	struct conns_limits limits;
	pthread_mutex_t lock;
	pthread_cond_t changed; /* the last busy one ended while draining, or ending was set */
	struct conn *head;
	int count, busy_count;
	bool draining, ending;
	pthread_t reaper;
};

static void set_deadline(struct conn *c, int64_t in_ms)
{
	atomic_store_explicit(&c->deadline_mono_ms, in_ms ? clock_mono_ms() + in_ms : 0,
			      memory_order_relaxed);
}

/* The connection's thread sees the end of its socket and does the rest. Called with the lock held. */
static void shut_locked(struct conn *c)
{
	set_deadline(c, 0);
	(void)shutdown(c->fd, SHUT_RDWR);
}

static void reap_locked(struct conns *cs)
{
	int64_t now = clock_mono_ms();

	for (struct conn *c = cs->head; c; c = c->next) {
		int64_t deadline = atomic_load_explicit(&c->deadline_mono_ms, memory_order_relaxed);

		if (!deadline || deadline > now)
			continue;
		LOG(LOG_DEBUG, "connection is too slow", F("client", c->address));
		shut_locked(c);
	}
}

static void wait_locked(struct conns *cs, int ms)
{
	struct timespec until;
	int64_t at_ms = clock_mono_ms() + ms;

	until = (struct timespec){ .tv_sec = at_ms / 1000, .tv_nsec = at_ms % 1000 * 1000000 };
	(void)pthread_cond_timedwait(&cs->changed, &cs->lock, &until);
}

static void *reaper_main(void *ctx)
{
	struct conns *cs = ctx;

	pthread_mutex_lock(&cs->lock);
	while (!cs->ending) {
		wait_locked(cs, cs->limits.tick_ms);
		reap_locked(cs);
	}
	pthread_mutex_unlock(&cs->lock);
	return NULL;
}

static void fill_default(int *value, int otherwise)
{
	if (!*value)
		*value = otherwise;
}

struct conns *conns_new(const struct conns_limits *limits)
{
	struct conns *cs = xcalloc(1, sizeof(*cs));
	pthread_condattr_t attr;

	cs->limits = *limits;
	fill_default(&cs->limits.headers_ms, 15000);
	fill_default(&cs->limits.crowded_ms, 2000);
	fill_default(&cs->limits.idle_ms, 60000);
	fill_default(&cs->limits.body_ms, 15000);
	fill_default(&cs->limits.reply_ms, 60000);
	fill_default(&cs->limits.min_rate, 16384);
	fill_default(&cs->limits.tick_ms, 1000);
	pthread_mutex_init(&cs->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&cs->changed, &attr);
	pthread_condattr_destroy(&attr);
	if (pthread_create(&cs->reaper, NULL, reaper_main, cs))
		abort(); /* as when memory is gone: nothing works without threads */
	return cs;
}

void conns_free(struct conns *cs)
{
	if (!cs)
		return;
	pthread_mutex_lock(&cs->lock);
	cs->ending = true;
	pthread_cond_broadcast(&cs->changed);
	pthread_mutex_unlock(&cs->lock);
	pthread_join(cs->reaper, NULL);
	pthread_cond_destroy(&cs->changed);
	pthread_mutex_destroy(&cs->lock);
	free(cs);
}

static bool is_crowded_locked(const struct conns *cs, const char *address, bool loopback)
{
	int same = 0;

	for (const struct conn *c = cs->head; c && !loopback; c = c->next)
		same += !strcmp(c->address, address);
	return cs->count >= cs->limits.total || same >= cs->limits.per_address;
}

struct conn *conns_add(struct conns *cs, int fd, const char *address, bool loopback)
{
	struct conn *c = xcalloc(1, sizeof(*c));

	c->owner = cs;
	c->fd = fd;
	(void)snprintf(c->address, sizeof(c->address), "%s", address);
	pthread_mutex_lock(&cs->lock);
	c->crowded = is_crowded_locked(cs, address, loopback);
	c->next = cs->head;
	if (c->next)
		c->next->prev = c;
	cs->head = c;
	cs->count++;
	pthread_mutex_unlock(&cs->lock);
	metrics_add(METRIC_CONNECTIONS, NULL, NULL, 1);
	conn_expect_headers(c);
	return c;
}

void conns_remove(struct conn *c)
{
	struct conns *cs = c->owner;

	conn_end(c);
	pthread_mutex_lock(&cs->lock);
	if (c->next)
		c->next->prev = c->prev;
	*(c->prev ? &c->prev->next : &cs->head) = c->next;
	cs->count--;
	pthread_mutex_unlock(&cs->lock);
	metrics_add(METRIC_CONNECTIONS, NULL, NULL, -1);
	free(c);
}

int conn_get_fd(const struct conn *c)
{
	return c->fd;
}

const char *conn_get_address(const struct conn *c)
{
	return c->address;
}

bool conn_is_crowded(const struct conn *c)
{
	return c->crowded;
}

void conn_expect_headers(struct conn *c)
{
	const struct conns_limits *l = &c->owner->limits;

	set_deadline(c, c->crowded ? l->crowded_ms : l->headers_ms);
}

void conn_begin(struct conn *c)
{
	pthread_mutex_lock(&c->owner->lock);
	c->owner->busy_count += !c->busy;
	c->busy = true;
	pthread_mutex_unlock(&c->owner->lock);
	c->body_started_ms = clock_mono_ms();
	conn_expect_body(c, 0);
}

/* However the bytes are spread: at each moment there must have come as many as min_rate asks for, but for
 * body_ms. */
void conn_expect_body(struct conn *c, uint64_t so_far)
{
	const struct conns_limits *l = &c->owner->limits;
	int64_t earned_ms = (int64_t)(so_far * 1000 / (uint64_t)l->min_rate);

	atomic_store_explicit(&c->deadline_mono_ms, c->body_started_ms + l->body_ms + earned_ms,
			      memory_order_relaxed);
}

void conn_expect_more(struct conn *c, uint64_t so_far, int64_t busy_ms)
{
	const struct conns_limits *l = &c->owner->limits;
	int64_t earned_ms = (int64_t)(MIN(so_far, UINT64_MAX / 1000) * 1000 / (uint64_t)l->min_rate);

	c->body_started_ms += busy_ms;
	atomic_store_explicit(&c->deadline_mono_ms,
			      MIN(c->body_started_ms + l->body_ms + earned_ms, clock_mono_ms() + l->idle_ms),
			      memory_order_relaxed);
}

void conn_work(struct conn *c)
{
	set_deadline(c, 0);
}

void conn_expect_reader(struct conn *c, uint64_t bytes, int64_t more_ms)
{
	const struct conns_limits *l = &c->owner->limits;

	set_deadline(c, more_ms + l->reply_ms + (int64_t)(bytes * 1000 / (uint64_t)l->min_rate));
}

void conn_end(struct conn *c)
{
	struct conns *cs = c->owner;

	set_deadline(c, cs->limits.idle_ms);
	pthread_mutex_lock(&cs->lock);
	if (c->busy && --cs->busy_count == 0 && cs->draining)
		pthread_cond_broadcast(&cs->changed);
	c->busy = false;
	if (cs->draining)
		shut_locked(c);
	pthread_mutex_unlock(&cs->lock);
}

void conns_drain(struct conns *cs)
{
	pthread_mutex_lock(&cs->lock);
	cs->draining = true;
	for (struct conn *c = cs->head; c; c = c->next)
		if (!c->busy)
			shut_locked(c);
	pthread_mutex_unlock(&cs->lock);
}

bool conns_wait_quiet(struct conns *cs, int timeout_ms)
{
	int64_t deadline = clock_mono_ms() + timeout_ms;
	bool quiet;

	pthread_mutex_lock(&cs->lock);
	while (cs->busy_count && clock_left_ms(deadline) > 0)
		wait_locked(cs, (int)clock_left_ms(deadline));
	quiet = cs->busy_count == 0;
	pthread_mutex_unlock(&cs->lock);
	return quiet;
}
