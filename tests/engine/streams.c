/* SPDX-License-Identifier: MIT */
/* Execs and events. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>

#include "base/clock.h"
#include "tests/engine/box.h"

/* ---- exec ---- */

static void test_exec_echo(void **state)
{
	static const char *const argv[] = { "/inside", "echo", NULL };
	static char sent[1 << 20], got[1 << 20];
	struct box b;
	struct stream *s = NULL;
	(void)state;
	box_init(&b);
	box_start(&b);
	for (size_t i = 0; i < sizeof(sent); i++)
		sent[i] = (char)(i * 7);
	OK(engine_exec_open(g, b.id, argv, 10002, 10002, &s, &e));
	int64_t deadline = clock_mono_ms() + 20000;
	for (size_t in = 0, out = 0; out < sizeof(got);) {
		assert_true(clock_left_ms(deadline) > 0);
		ssize_t w = in < sizeof(sent) ? s->ops->write(s, sent + in, MIN(sizeof(sent) - in, 50000))
					      : -EAGAIN;
		assert_true(w > 0 || w == -EAGAIN);
		in += w > 0 ? (size_t)w : 0;
		ssize_t r = s->ops->read(s, got + out, sizeof(got) - out);
		assert_true(r > 0 || r == -EAGAIN);
		out += r > 0 ? (size_t)r : 0;
		struct pollfd p = { .fd = s->fd,
				    .events = (short)(POLLIN | (in < sizeof(sent) ? POLLOUT : 0)) };
		if (r < 0 && w < 0)
			poll(&p, 1, 1000);
	}
	assert_memory_equal(got, sent, sizeof(sent));
	assert_string_equal(s->ops->complaint(s), "");
	stream_close(s);
	box_clear(&b);
}

static void test_exec_both(void **state)
{
	static const char *const argv[] = { "/inside", "both", NULL };
	_cleanup_buf_ struct buf out = BUF_INIT(1000);
	struct box b;
	struct stream *s = NULL;
	(void)state;
	box_init(&b);
	box_start(&b);
	OK(engine_exec_open(g, b.id, argv, 10002, 10002, &s, &e));
	assert_int_equal(read_all(s, &out), 0);
	assert_string_equal(out.data, "out");
	assert_string_equal(s->ops->complaint(s), "trouble in here");
	assert_int_equal(s->ops->read(s, &(char){ 0 }, 1), 0); /* the end stays the end */
	stream_close(s);
	box_clear(&b);
}

static void test_exec_missing(void **state)
{
	static const char *const argv[] = { "/no/such/program", NULL };
	_cleanup_buf_ struct buf out = BUF_INIT(100000);
	struct box b;
	struct stream *s = NULL;
	(void)state;
	box_init(&b);
	box_start(&b);
	OK(engine_exec_open(g, b.id, argv, 10002, 10002, &s, &e));
	assert_int_equal(read_all(s, &out), 0);
	print_message("complaint: %s\n", s->ops->complaint(s));
	assert_non_null(strstr(s->ops->complaint(s), "no such file"));
	stream_close(s);
	box_clear(&b);
}

static void test_exec_paused(void **state)
{
	struct box b;
	struct err e = { 0 };
	struct stream *s = NULL;
	(void)state;
	box_init(&b);
	box_start(&b);
	OK(engine_container_pause(g, b.id, true, &e));
	FAILS(ERR_CONFLICT, engine_exec_open(g, b.id, b.argv, 10002, 10002, &s, &e));
	box_clear(&b);
}

static void test_exec_killed(void **state)
{
	static const char *const argv[] = { "/inside", "echo", NULL };
	_cleanup_buf_ struct buf out = BUF_INIT(1000);
	struct box b;
	struct stream *s = NULL;
	(void)state;
	box_init(&b);
	box_start(&b);
	OK(engine_exec_open(g, b.id, argv, 10002, 10002, &s, &e));
	OK(engine_container_kill(g, b.id, &e));
	assert_int_not_equal(read_all(s, &out), -ETIMEDOUT);
	stream_close(s);
	box_clear(&b);
}

static void test_throughput(void **state)
{
	static const char *const argv[] = { "/inside", "flood", "209715200", NULL };
	static char piece[65536];
	struct box b;
	struct stream *s = NULL;
	size_t total = 0;
	(void)state;
	box_init(&b);
	box_start(&b);
	int64_t before = clock_mono_us();
	OK(engine_exec_open(g, b.id, argv, 10002, 10002, &s, &e));
	int64_t opened = clock_mono_us();
	for (int64_t deadline = clock_mono_ms() + 60000; clock_left_ms(deadline);) {
		ssize_t n = s->ops->read(s, piece, sizeof(piece));
		struct pollfd p = { .fd = s->fd, .events = POLLIN };
		if (n == -EAGAIN)
			poll(&p, 1, 1000);
		if (!n)
			break;
		assert_true(n > 0 || n == -EAGAIN);
		for (ssize_t i = 0; i < n && total + (size_t)i < 1 << 20; i += 977)
			assert_int_equal((unsigned char)piece[i], (total + (size_t)i) % 251);
		total += n > 0 ? (size_t)n : 0;
	}
	int64_t us = clock_mono_us() - opened;
	print_message("exec opened in %.1f ms; 200 MiB out: %.0f MB/s\n", (double)(opened - before) / 1000,
		      (double)total / (double)us);
	assert_int_equal(total, 209715200);
	stream_close(s);
	box_clear(&b);
}

/* ---- events ---- */

struct seen {
	pthread_mutex_t lock;
	char actions[512][32];
	size_t count;
	atomic_bool stop;
	int result;
	struct err e;
};

static void on_event(void *ctx, const char *id, const char *action)
{
	struct seen *seen = ctx;
	pthread_mutex_lock(&seen->lock);
	if (strlen(id) == 64 && seen->count < ARRAY_LEN(seen->actions))
		snprintf(seen->actions[seen->count++], 32, "%s", action);
	pthread_mutex_unlock(&seen->lock);
}

static void *watch(void *ctx)
{
	struct seen *seen = ctx;
	seen->result = engine_events(g, LABEL, run, &seen->stop, on_event, seen, &seen->e);
	return NULL;
}

static bool was_seen(struct seen *seen, const char *action)
{
	bool there = false;
	for (int i = 0; i < 500 && !there; i++) {
		pthread_mutex_lock(&seen->lock);
		for (size_t k = 0; k < seen->count; k++)
			there = there || !strcmp(seen->actions[k], action);
		pthread_mutex_unlock(&seen->lock);
		if (!there)
			poll(NULL, 0, 10);
	}
	return there;
}

static size_t seen_count(struct seen *seen)
{
	pthread_mutex_lock(&seen->lock);
	size_t n = seen->count;
	pthread_mutex_unlock(&seen->lock);
	return n;
}

static void test_events(void **state)
{
	static const char *const wanted[] = { "create", "start", "pause", "unpause", "die", "destroy" };
	static struct seen seen = { .lock = PTHREAD_MUTEX_INITIALIZER };
	struct box b;
	pthread_t t;
	(void)state;
	assert_int_equal(pthread_create(&t, NULL, watch, &seen), 0);
	/* The stream is there when an event of a box made for it comes through. */
	for (int i = 0; i < 20 && !seen_count(&seen); i++) {
		box_init(&b);
		OK(engine_container_create(g, &b.spec, b.id, &e));
		box_clear(&b);
	}
	box_init(&b);
	box_start(&b);
	OK(engine_container_pause(g, b.id, true, &e));
	OK(engine_container_pause(g, b.id, false, &e));
	OK(engine_container_kill(g, b.id, &e));
	assert_true(was_seen(&seen, "die"));
	box_clear(&b);
	for (size_t i = 0; i < ARRAY_LEN(wanted); i++)
		if (!was_seen(&seen, wanted[i])) {
			print_error("not seen: %s\n", wanted[i]);
			fail();
		}
	int64_t before = clock_mono_ms();
	atomic_store(&seen.stop, true);
	pthread_join(t, NULL);
	assert_in_range(clock_mono_ms() - before, 0, 1500);
	assert_int_equal(seen.result, 0);
}

const struct CMUnitTest stream_tests[] = {
	cmocka_unit_test(test_exec_echo),    cmocka_unit_test(test_exec_both),
	cmocka_unit_test(test_exec_missing), cmocka_unit_test(test_exec_paused),
	cmocka_unit_test(test_exec_killed),  cmocka_unit_test(test_throughput),
	cmocka_unit_test(test_events),
};
const size_t stream_tests_count = ARRAY_LEN(stream_tests);
