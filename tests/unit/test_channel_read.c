/* SPDX-License-Identifier: MIT */
/* Readers of a job's ring: the manager's side against an agent that is honest, silent or hostile. */
#include <sys/socket.h>

#include "base/clock.h"
#include "tests/unit/link_help.h"
#include "tests/unit/rows.h"

struct reading {
	struct channel *channel;
	uint64_t offset;
	int timeout_ms, client_fd, r;
	struct err e;
	pthread_t thread;
	struct channel_chunk chunk;
};

static void *read_main(void *arg)
{
	struct reading *g = arg;
	g->r = channel_read(g->channel, 1, g->offset, true, g->timeout_ms, g->client_fd, &g->chunk, &g->e);
	return NULL;
}

static void begin_reading(struct reading *g, struct link *l, uint64_t offset, int timeout_ms, int client_fd)
{
	g->channel = l->channel;
	g->offset = offset;
	g->timeout_ms = timeout_ms;
	g->client_fd = client_fd;
	assert_int_equal(pthread_create(&g->thread, NULL, read_main, g), 0);
}

/* Waits for the next READ; its cookie and offset. */
static uint64_t hear_read(struct ear *ear, uint64_t *ret_offset)
{
	uint64_t cookie = 0;
	assert_true(hear(ear, PROTO_READ));
	assert_int_equal(ear->frame.job, 1);
	assert_int_equal(proto_find_u64(&ear->frame, PROTO_F_COOKIE, &cookie), 0);
	assert_int_equal(proto_find_u64(&ear->frame, PROTO_F_OFFSET, ret_offset), 0);
	return cookie;
}

static void say_chunk(int fd, uint32_t job, struct proto_chunk chunk)
{
	uint8_t room[PROTO_PAYLOAD_MAX];
	struct proto_writer w = { .out = room, .size = sizeof(room) };
	proto_chunk_encode(&w, &chunk);
	say_frame(fd, PROTO_CHUNK, 0, job, room, w.used);
}

static void say_bytes(int fd, uint64_t cookie, uint64_t offset, uint64_t total, const char *bytes)
{
	say_chunk(fd, 1,
		  (struct proto_chunk){ .cookie = cookie,
					.known = true,
					.state = PROTO_JOB_RUNNING,
					.offset = offset,
					.total = total,
					.bytes = (const uint8_t *)bytes,
					.len = strlen(bytes) });
}

static void two_readers_get_their_own_pieces(void **state)
{
	(void)state;
	struct link l;
	static struct ear ear;
	static struct reading a, b;
	uint64_t offset = 0;
	open_link(&l);
	ear = (struct ear){ .fd = l.fd };
	begin_reading(&a, &l, 5, WAIT_MS, -1);
	uint64_t first = hear_read(&ear, &offset);
	assert_int_equal(offset, 5);
	begin_reading(&b, &l, 70, WAIT_MS, -1);
	uint64_t second = hear_read(&ear, &offset);
	assert_int_equal(offset, 70);
	say_bytes(l.fd, second, 70, 80, "late");
	say_bytes(l.fd, first, 20, 80, "early"); /* 15 bytes have left the ring */
	pthread_join(a.thread, NULL);
	pthread_join(b.thread, NULL);
	assert_int_equal(a.r, 0);
	assert_true(a.chunk.offset == 20 && a.chunk.total == 80 && a.chunk.state == PROTO_JOB_RUNNING);
	assert_true(a.chunk.len == 5 && !memcmp(a.chunk.bytes, "early", 5));
	assert_int_equal(b.r, 0);
	assert_true(b.chunk.offset == 70 && b.chunk.len == 4 && !memcmp(b.chunk.bytes, "late", 4));
	end_link(&l);
}

static void a_job_that_is_not_there_cannot_be_read(void **state)
{
	(void)state;
	struct link l;
	static struct ear ear;
	static struct reading a;
	uint64_t offset;
	open_link(&l);
	ear = (struct ear){ .fd = l.fd };
	begin_reading(&a, &l, 0, WAIT_MS, -1);
	say_chunk(l.fd, 1, (struct proto_chunk){ .cookie = hear_read(&ear, &offset) });
	pthread_join(a.thread, NULL);
	assert_int_equal(a.r, -ERR_NOT_FOUND);
	end_link(&l);
}

static void a_reader_that_left_is_answered_in_vain(void **state)
{
	(void)state;
	struct link l;
	static struct ear ear;
	static struct reading a;
	uint64_t offset;
	int client[2];
	open_link(&l);
	ear = (struct ear){ .fd = l.fd };
	begin_reading(&a, &l, 0, 10, -1);
	uint64_t late = hear_read(&ear, &offset);
	pthread_join(a.thread, NULL);
	assert_int_equal(a.r, -ERR_TIMEOUT);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, client), 0);
	close(client[1]);
	begin_reading(&a, &l, 0, WAIT_MS, client[0]);
	uint64_t gone = hear_read(&ear, &offset);
	pthread_join(a.thread, NULL);
	assert_int_equal(a.r, -ERR_CONFLICT);
	close(client[0]);
	say_bytes(l.fd, late, 0, 1, "x");
	say_bytes(l.fd, gone, 0, 1, "x");
	begin_reading(&a, &l, 0, WAIT_MS, -1);
	say_bytes(l.fd, hear_read(&ear, &offset), 0, 1, "x");
	pthread_join(a.thread, NULL);
	assert_int_equal(a.r, 0);
	end_link(&l);
}

static void a_lost_link_ends_a_reader(void **state)
{
	(void)state;
	struct link l;
	static struct ear ear;
	static struct reading a;
	uint64_t offset;
	open_link(&l);
	ear = (struct ear){ .fd = l.fd };
	begin_reading(&a, &l, 0, WAIT_MS, -1);
	(void)hear_read(&ear, &offset);
	shutdown(l.fd, SHUT_RDWR);
	pthread_join(a.thread, NULL);
	assert_int_equal(a.r, -ERR_SANDBOX);
	assert_int_equal(channel_read(l.channel, 1, 0, true, WAIT_MS, -1, &a.chunk, &a.e), -ERR_SANDBOX);
	end_link(&l);
}

/* READs that were left fill the rows; the one beyond waits for an answer. */
static void what_is_asked_stays_below_what_the_agent_takes(void **state)
{
	(void)state;
	struct link l;
	static struct ear ear;
	static struct reading a;
	struct err e;
	uint64_t offset, cookies[PROTO_READS_MAX];
	open_link(&l);
	ear = (struct ear){ .fd = l.fd };
	for (int i = 0; i < PROTO_READS_MAX; i++) {
		assert_int_equal(channel_read(l.channel, 1, 0, true, 0, -1, &a.chunk, &e), -ERR_TIMEOUT);
		cookies[i] = hear_read(&ear, &offset);
	}
	assert_int_equal(channel_read(l.channel, 1, 0, true, 10, -1, &a.chunk, &e), -ERR_TIMEOUT);
	begin_reading(&a, &l, 0, WAIT_MS, -1);
	say_bytes(l.fd, cookies[3], 0, 0, "");
	say_bytes(l.fd, hear_read(&ear, &offset), 0, 1, "y");
	pthread_join(a.thread, NULL);
	assert_int_equal(a.r, 0);
	assert_int_equal(a.chunk.len, 1);
	end_link(&l);
}

static void readers_are_bounded(void **state)
{
	(void)state;
	struct link l;
	static struct ear ear;
	static struct reading all[PROTO_READS_MAX - 16], more;
	uint64_t offset;
	open_link(&l);
	ear = (struct ear){ .fd = l.fd };
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		begin_reading(&all[i], &l, i, WAIT_MS, -1);
		(void)hear_read(&ear, &offset);
	}
	begin_reading(&more, &l, 0, WAIT_MS, -1);
	pthread_join(more.thread, NULL);
	assert_int_equal(more.r, -ERR_LIMIT);
	shutdown(l.fd, SHUT_RDWR);
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		pthread_join(all[i].thread, NULL);
	end_link(&l);
}

static void pieces_give_link_credit_back(void **state)
{
	(void)state;
	struct link l;
	static struct ear ear;
	static struct reading a;
	static char block_text[PROTO_CHUNK_MAX + 1];
	uint64_t offset;
	open_link(&l);
	ear = (struct ear){ .fd = l.fd };
	memset(block_text, 'x', PROTO_CHUNK_MAX);
	for (int i = 0; i < 2 * PROTO_LINK_WINDOW / PROTO_CHUNK_MAX; i++) {
		begin_reading(&a, &l, 0, WAIT_MS, -1);
		say_bytes(l.fd, hear_read(&ear, &offset), 0, PROTO_CHUNK_MAX, block_text);
		pthread_join(a.thread, NULL);
		assert_int_equal(a.r, 0);
		assert_int_equal(a.chunk.len, PROTO_CHUNK_MAX);
	}
	assert_true(channel_is_open(l.channel));
	end_link(&l);
}

static const struct chunk_breach_row {
	const char *name;
	int what;
} chunk_breaches[] = {
	{ "a piece that nobody asked for ends the link", 0 },
	{ "a piece twice ends the link", 1 },
	{ "a piece of another job ends the link", 2 },
	{ "a piece from before the offset ends the link", 3 },
	{ "a piece of no known state ends the link", 4 },
};

static void chunk_breach_test(void **state)
{
	const struct chunk_breach_row *row = *state;
	struct link l;
	static struct ear ear;
	static struct reading a;
	uint64_t offset;
	open_link(&l);
	ear = (struct ear){ .fd = l.fd };
	begin_reading(&a, &l, 100, WAIT_MS, -1);
	uint64_t cookie = hear_read(&ear, &offset);
	switch (row->what) {
	case 0:
		say_bytes(l.fd, cookie + 1, 100, 101, "x");
		break;
	case 1:
		say_bytes(l.fd, cookie, 100, 101, "x");
		say_bytes(l.fd, cookie, 100, 101, "x");
		break;
	case 2:
		say_chunk(l.fd, 2, (struct proto_chunk){ .cookie = cookie });
		break;
	case 3:
		say_bytes(l.fd, cookie, 99, 101, "x");
		break;
	default:
		say_chunk(l.fd, 1, (struct proto_chunk){ .cookie = cookie, .known = true, .state = 3 });
		break;
	}
	int64_t deadline = clock_mono_ms() + WAIT_MS;
	while (channel_is_open(l.channel) && clock_left_ms(deadline))
		sched_yield();
	assert_false(channel_is_open(l.channel));
	pthread_join(a.thread, NULL);
	assert_int_equal(a.r, row->what == 1 ? 0 : -ERR_SANDBOX);
	end_link(&l);
}

static void an_adopted_job_is_attached_without_its_output(void **state)
{
	(void)state;
	struct link l;
	static struct ear ear;
	struct err e;
	struct job *j = NULL;
	static struct job_output out;
	open_link(&l);
	ear = (struct ear){ .fd = l.fd };
	assert_int_equal(job_adopt(l.channel, &(struct channel_job_info){ .job = 7 }, &j, &e), 0);
	job_close_stdin(j);
	assert_true(hear(&ear, PROTO_ATTACH) && ear.frame.aux == PROTO_STDIN && ear.frame.job == 7);
	assert_true(hear(&ear, PROTO_EOF)); /* no ATTACH between them would have been skipped by hear() */
	say_exit(l.fd, 7);
	assert_int_equal(job_next(j, WAIT_MS, -1, &out), JOB_END);
	job_unref(j);
	end_link(&l);
}

int main(void)
{
	struct rows r = { 0 };
	rows_one(&r, "two readers of a ring get their own pieces", two_readers_get_their_own_pieces);
	rows_one(&r, "a job that is not there cannot be read", a_job_that_is_not_there_cannot_be_read);
	rows_one(&r, "a reader that left is answered in vain", a_reader_that_left_is_answered_in_vain);
	rows_one(&r, "a lost link ends a reader", a_lost_link_ends_a_reader);
	rows_one(&r, "what is asked stays below what the agent takes",
		 what_is_asked_stays_below_what_the_agent_takes);
	rows_one(&r, "more readers than there are places are refused", readers_are_bounded);
	rows_one(&r, "pieces of a ring give link credit back", pieces_give_link_credit_back);
	ROWS(&r, chunk_breach_test, chunk_breaches);
	rows_one(&r, "an adopted job is attached without its output",
		 an_adopted_job_is_attached_without_its_output);
	return rows_run(&r, "channel_read");
}
