/* SPDX-License-Identifier: MIT */
/* The manager's side of a link against an agent that is honest, silent or hostile; the test plays the agent
 * over a socketpair. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "tests/unit/link_help.h"
#include "tests/unit/rows.h"

static const struct refusal_row {
	const char *name;
	int what;
	enum err_code code;
} refusals[] = {
	{ "a link without an answer times out", 0, ERR_TIMEOUT },
	{ "a link that is closed at once is refused", 1, ERR_SANDBOX },
	{ "another magic is refused", 2, ERR_SANDBOX },
	{ "bytes that are no frame are refused", 3, ERR_SANDBOX },
	{ "a frame before the hello is refused", 4, ERR_SANDBOX },
	{ "a hello without facts is refused", 5, ERR_SANDBOX },
	{ "the agent's own refusal is told", 6, ERR_SANDBOX },
};

static void refuse_test(void **state)
{
	const struct refusal_row *row = *state;
	struct link l;
	struct opening o;
	pthread_t thread;
	begin_link(&l, &o, &thread, row->what ? WAIT_MS : 100);
	uint8_t room[64];
	struct proto_writer w = { .out = room, .size = sizeof(room) };
	switch (row->what) {
	case 1:
		shutdown(l.fd, SHUT_RDWR);
		break;
	case 2:
		say_hello(l.fd, PROTO_MAGIC + 1);
		break;
	case 3:
		assert_true(send(l.fd, "OCI runtime exec failed", 23, MSG_NOSIGNAL) == 23);
		break;
	case 4:
		say_frame(l.fd, PROTO_LIST, 0, PROTO_LIST_END, NULL, 0);
		break;
	case 5:
		say_u64(l.fd, PROTO_HELLO, 0, 0, PROTO_F_MAGIC, PROTO_MAGIC);
		break;
	case 6:
		proto_put_text(&w, PROTO_F_DETAIL, "older \x1b[2J generation");
		say_frame(l.fd, PROTO_ERROR, 0, 0, room, w.used);
		break;
	default:
		break;
	}
	pthread_join(thread, NULL);
	assert_int_equal(o.r, -(int)row->code);
	assert_null(strchr(o.e.msg, '\x1b'));
	if (row->what == 6)
		assert_non_null(strstr(o.e.msg, "generation"));
	end_link(&l);
}

/* ---- a running job ---- */

static struct job *start(struct link *l, bool has_stdin)
{
	static const char *const argv[] = { "true", NULL };
	const struct job_spec spec = {
		.tag = "e_x", .argv = argv, .cwd = "/", .has_stdin = has_stdin, .split = true
	};
	struct job *j = NULL;
	struct err e;
	assert_int_equal(job_start(l->channel, &spec, &j, &e), 0);
	job_go(j);
	return j;
}

static void output_comes_in_order(void **state)
{
	(void)state;
	struct link l;
	static struct job_output out;
	open_link(&l);
	struct job *j = start(&l, false);
	say_frame(l.fd, PROTO_DATA, PROTO_STDOUT, 1, "one", 3);
	say_u64(l.fd, PROTO_GAP, PROTO_STDOUT, 1, PROTO_F_BYTES, 99);
	say_frame(l.fd, PROTO_DATA, PROTO_STDERR, 1, "two", 3);
	say_exit(l.fd, 1);
	assert_int_equal(job_next(j, WAIT_MS, -1, &out), JOB_OUTPUT);
	assert_true(out.stream == PROTO_STDOUT && out.len == 3 && !memcmp(out.bytes, "one", 3));
	assert_int_equal(job_next(j, WAIT_MS, -1, &out), JOB_GAP);
	assert_int_equal(out.gap_bytes, 99);
	assert_int_equal(job_next(j, WAIT_MS, -1, &out), JOB_OUTPUT);
	assert_true(out.stream == PROTO_STDERR && !memcmp(out.bytes, "two", 3));
	assert_int_equal(job_next(j, WAIT_MS, -1, &out), JOB_END);
	assert_int_equal(job_next(j, WAIT_MS, -1, &out), JOB_END);
	assert_int_equal(job_get_end(j)->code, 5);
	assert_string_equal(job_get_end(j)->detail, "fine");
	job_unref(j);
	end_link(&l);
}

/* Sends n frames, as far as the link takes them. */
static void flood(int fd, enum proto_type type, const void *payload, size_t len, size_t n)
{
	static uint8_t frame[PROTO_HEADER + PROTO_PAYLOAD_MAX];
	proto_header(frame, type, PROTO_STDOUT, 1, (uint16_t)len);
	memcpy(frame + PROTO_HEADER, payload, len);
	for (size_t i = 0; i < n; i++)
		if (send(fd, frame, PROTO_HEADER + len, MSG_NOSIGNAL) < 0)
			return;
}

static const char block[PROTO_PAYLOAD_MAX];

static const struct breach_row {
	const char *name;
	int what;
} breaches[] = {
	{ "data without credit ends the link", 0 },
	{ "data for stdin ends the link", 1 },
	{ "an exit of no reason ends the link", 2 },
	{ "credit beyond the window ends the link", 3 },
	{ "link credit beyond the window ends the link", 4 },
	{ "a second hello ends the link", 5 },
	{ "an unasked list ends the link", 6 },
	{ "a flood of gaps ends the link", 7 },
	{ "output after the end ends the link", 8 },
	{ "a start from the agent ends the link", 9 },
	{ "an empty gap ends the link", 10 },
};

static void breach_test(void **state)
{
	const struct breach_row *row = *state;
	struct link l;
	static struct job_output out;
	uint8_t room[32];
	struct proto_writer w = { .out = room, .size = sizeof(room) };
	open_link(&l);
	struct job *j = start(&l, true);
	switch (row->what) {
	case 0:
		flood(l.fd, PROTO_DATA, block, sizeof(block), PROTO_JOB_WINDOW / PROTO_PAYLOAD_MAX + 1);
		break;
	case 1:
		say_frame(l.fd, PROTO_DATA, PROTO_STDIN, 1, "x", 1);
		break;
	case 2:
		say_u64(l.fd, PROTO_EXIT, 0, 1, PROTO_F_REASON, 200);
		break;
	case 3:
		say_u64(l.fd, PROTO_WINDOW, PROTO_STDIN, 1, PROTO_F_BYTES, 1);
		break;
	case 4:
		say_u64(l.fd, PROTO_WINDOW, 0, 0, PROTO_F_BYTES, UINT64_MAX);
		break;
	case 5:
		say_hello(l.fd, PROTO_MAGIC);
		break;
	case 6:
		say_frame(l.fd, PROTO_LIST, 0, PROTO_LIST_END, NULL, 0);
		break;
	case 7:
		proto_put_u64(&w, PROTO_F_BYTES, 1);
		flood(l.fd, PROTO_GAP, room, w.used, 300);
		break;
	case 8:
		say_exit(l.fd, 1);
		say_frame(l.fd, PROTO_DATA, PROTO_STDOUT, 1, "x", 1);
		break;
	case 9:
		say_u64(l.fd, PROTO_START, 0, 9, PROTO_F_BYTES, 1);
		break;
	case 10:
		say_u64(l.fd, PROTO_GAP, PROTO_STDOUT, 1, PROTO_F_BYTES, 0);
		break;
	default:
		break;
	}
	int64_t deadline = clock_mono_ms() + WAIT_MS;
	while (channel_is_open(l.channel) && clock_left_ms(deadline))
		sched_yield();
	assert_false(channel_is_open(l.channel));
	/* What came before is still there; then the reader learns of the loss, unless the end had come. */
	enum job_event ev;
	do
		ev = job_next(j, WAIT_MS, -1, &out);
	while (ev == JOB_OUTPUT || ev == JOB_GAP);
	assert_int_equal(ev, row->what == 8 ? JOB_END : JOB_LOST);
	job_unref(j);
	end_link(&l);
}

static void reading_gives_credit_back(void **state)
{
	(void)state;
	struct link l;
	static struct job_output out;
	static struct ear ear;
	open_link(&l);
	struct job *j = start(&l, false);
	ear = (struct ear){ .fd = l.fd };
	/* Ten windows through one: each read makes room for more. */
	size_t sent = 0, got = 0, total = 10 * PROTO_JOB_WINDOW, credit = PROTO_JOB_WINDOW;
	while (got < total) {
		for (; credit >= PROTO_PAYLOAD_MAX && sent < total;
		     credit -= PROTO_PAYLOAD_MAX, sent += PROTO_PAYLOAD_MAX)
			flood(l.fd, PROTO_DATA, block, sizeof(block), 1);
		assert_int_equal(job_next(j, WAIT_MS, -1, &out), JOB_OUTPUT);
		got += out.len;
		if (got % (PROTO_JOB_WINDOW / 4))
			continue;
		do
			assert_true(hear(&ear, PROTO_WINDOW));
		while (ear.frame.job == 0);
		uint64_t more = 0;
		assert_int_equal(proto_find_u64(&ear.frame, PROTO_F_BYTES, &more), 0);
		credit += more;
	}
	job_unref(j);
	end_link(&l);
}

static void stdin_stops_at_the_window(void **state)
{
	(void)state;
	struct link l;
	static struct job_output out;
	static char bytes[2 * PROTO_JOB_WINDOW];
	struct err e;
	size_t taken = 0;
	open_link(&l);
	struct job *j = start(&l, true);
	assert_int_equal(job_write(j, bytes, sizeof(bytes), &taken, &e), 0);
	assert_int_equal(taken, PROTO_JOB_WINDOW);
	assert_int_equal(job_next(j, 10, -1, &out), JOB_TIMEOUT);
	static struct ear ear;
	ear = (struct ear){ .fd = l.fd };
	assert_true(hear(&ear, PROTO_DATA));
	say_u64(l.fd, PROTO_WINDOW, PROTO_STDIN, 1, PROTO_F_BYTES, 10);
	assert_int_equal(job_next(j, WAIT_MS, -1, &out), JOB_WRITABLE);
	assert_int_equal(job_write(j, bytes, 100, &taken, &e), 0);
	assert_int_equal(taken, 10);
	job_close_stdin(j);
	assert_int_equal(job_write(j, bytes, 1, &taken, &e), -ERR_CONFLICT);
	job_unref(j);
	end_link(&l);
}

static void a_client_that_hangs_up_wakes_the_reader(void **state)
{
	(void)state;
	struct link l;
	static struct job_output out;
	int client[2];
	open_link(&l);
	struct job *j = start(&l, false);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, client), 0);
	close(client[1]);
	assert_int_equal(job_next(j, WAIT_MS, client[0], &out), JOB_HANGUP);
	close(client[0]);
	job_unref(j);
	end_link(&l);
}

static void a_lost_link_wakes_the_reader(void **state)
{
	(void)state;
	struct link l;
	static struct job_output out;
	struct err e;
	open_link(&l);
	struct job *j = start(&l, false);
	say_frame(l.fd, PROTO_DATA, PROTO_STDOUT, 1, "last", 4);
	shutdown(l.fd, SHUT_RDWR);
	assert_int_equal(job_next(j, WAIT_MS, -1, &out), JOB_OUTPUT);
	assert_int_equal(job_next(j, WAIT_MS, -1, &out), JOB_LOST);
	assert_int_equal(channel_ping(l.channel, WAIT_MS, &e), -ERR_SANDBOX);
	job_unref(j);
	end_link(&l);
}

int main(void)
{
	struct rows r = { 0 };
	ROWS(&r, refuse_test, refusals);
	ROWS(&r, breach_test, breaches);
	rows_one(&r, "output, gaps and the end come in the order in which they were sent",
		 output_comes_in_order);
	rows_one(&r, "reading gives credit back", reading_gives_credit_back);
	rows_one(&r, "stdin stops at the window and goes on with credit", stdin_stops_at_the_window);
	rows_one(&r, "a client that hangs up wakes the reader", a_client_that_hangs_up_wakes_the_reader);
	rows_one(&r, "a lost link wakes the reader after the last output", a_lost_link_wakes_the_reader);
	return rows_run(&r, "channel");
}
