/* SPDX-License-Identifier: MIT */
/*
 * Pieces of a job's ring. A reader waits with a place on its own stack, which the epoll thread fills; so an
 * agent can make nothing grow. A READ cannot be taken back: that of a reader which left keeps its row until
 * it is answered, and the rows are as many as the agent takes.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>

#include "base/clock.h"
#include "runtime/channel_internal.h"

#define READERS_MAX (PROTO_READS_MAX - 16)

struct channel_reader {
	int wake_fd; /* an eventfd */
	struct channel_chunk *chunk;
	bool answered, known;
};

static void wake(const struct channel_reader *r)
{
	uint64_t one = 1;
	(void)!write(r->wake_fd, &one, sizeof(one));
}

void channel_wake_readers_locked(struct channel *c)
{
	for (size_t i = 0; i < PROTO_READS_MAX; i++)
		if (c->readings[i].reader)
			wake(c->readings[i].reader);
}

static struct channel_reading *find_reading(struct channel *c, uint64_t cookie)
{
	for (size_t i = 0; i < PROTO_READS_MAX; i++)
		if (c->readings[i].cookie == cookie)
			return &c->readings[i];
	return NULL;
}

static void deliver(struct channel_reader *r, const struct proto_chunk *from)
{
	r->answered = true;
	r->known = from->known;
	r->chunk->offset = from->offset;
	r->chunk->total = from->total;
	r->chunk->state = from->state;
	r->chunk->len = from->len;
	if (from->len)
		memcpy(r->chunk->bytes, from->bytes, from->len);
	wake(r);
}

bool channel_on_chunk_locked(struct channel *c, const struct proto_frame *frame)
{
	struct proto_chunk chunk;
	if (proto_chunk_decode(frame, &chunk) < 0 || !chunk.cookie || chunk.len > c->rx_window)
		return false;
	c->rx_window -= chunk.len;
	c->rx_returned += chunk.len;
	struct channel_reading *g = find_reading(c, chunk.cookie);
	if (!g || g->job != frame->job || (chunk.known && chunk.offset < g->offset))
		return false;
	if (g->reader)
		deliver(g->reader, &chunk);
	*g = (struct channel_reading){ 0 };
	pthread_cond_broadcast(&c->changed); /* there is a place for another READ */
	return true;
}

/* ---- readers ---- */

struct wish {
	uint32_t job;
	uint64_t offset;
	bool wait;
};

static void send_read_locked(struct channel *c, const struct wish *w, uint64_t cookie)
{
	uint8_t room[3 * (PROTO_FIELD_HEADER + sizeof(uint64_t))];
	struct proto_writer out = { .out = room, .size = sizeof(room) };
	proto_put_u64(&out, PROTO_F_COOKIE, cookie);
	proto_put_u64(&out, PROTO_F_OFFSET, w->offset);
	proto_put_u64(&out, PROTO_F_WAIT, w->wait);
	channel_send_locked(c, PROTO_READ, 0, w->job, room, out.used);
}

static int lost_locked(const struct channel *c, struct err *e)
{
	*e = c->why;
	return -(int)e->code;
}

/* Takes a row and asks. The agent answers the oldest when its places get few, so there is soon a row. */
static int ask_locked(struct channel *c, const struct wish *w, struct channel_reader *r, int64_t deadline,
		      struct err *e)
{
	struct channel_reading *g;
	if (c->readers >= READERS_MAX)
		return err_set(e, ERR_LIMIT, "%d readers wait for output of this session already",
			       READERS_MAX);
	while (!(g = find_reading(c, 0)) && c->state != CHANNEL_CLOSED) {
		struct timespec until = { .tv_sec = deadline / 1000, .tv_nsec = deadline % 1000 * 1000000l };
		if (pthread_cond_timedwait(&c->changed, &c->lock, &until) == ETIMEDOUT && !find_reading(c, 0))
			return err_set(e, ERR_TIMEOUT, "the agent did not answer in time");
	}
	if (c->state == CHANNEL_CLOSED)
		return lost_locked(c, e);
	*g = (struct channel_reading){ ++c->cookie, w->job, w->offset, r };
	c->readers++;
	send_read_locked(c, w, g->cookie);
	return 0;
}

/* 1 when the answer is there, 0 when it may still come. */
static int look(struct channel *c, const struct channel_reader *r, struct err *e)
{
	int rc = 0;
	pthread_mutex_lock(&c->lock);
	if (r->answered)
		rc = r->known ? 1 : err_set(e, ERR_NOT_FOUND, "the agent has no such job");
	else if (c->state == CHANNEL_CLOSED)
		rc = lost_locked(c, e);
	pthread_mutex_unlock(&c->lock);
	return rc;
}

static int await(struct channel *c, struct channel_reader *r, int64_t deadline, int client_fd, struct err *e)
{
	for (;;) {
		int rc = look(c, r, e);
		if (rc != 0)
			return rc < 0 ? rc : 0;
		struct pollfd fds[2] = { { .fd = r->wake_fd, .events = POLLIN },
					 { .fd = client_fd, .events = POLLRDHUP } };
		int64_t left = clock_left_ms(deadline);
		if (poll(fds, 2, (int)left) == 0 && left == 0)
			return err_set(e, ERR_TIMEOUT, "no output in time");
		if (fds[1].revents)
			return err_set(e, ERR_CONFLICT, "the client has gone");
		uint64_t count;
		if (fds[0].revents)
			(void)!read(r->wake_fd, &count, sizeof(count));
	}
}

static void leave(struct channel *c, const struct channel_reader *r)
{
	pthread_mutex_lock(&c->lock);
	c->readers--;
	for (size_t i = 0; i < PROTO_READS_MAX; i++)
		if (c->readings[i].reader == r)
			c->readings[i].reader = NULL;
	pthread_mutex_unlock(&c->lock);
}

/* NOLINTNEXTLINE(readability-function-size): the parameters are those of channel.h */
int channel_read(struct channel *c, uint32_t job, uint64_t offset, bool wait, int timeout_ms, int client_fd,
		 struct channel_chunk *ret, struct err *e)
{
	const struct wish wish = { job, MIN(offset, (uint64_t)INT64_MAX), wait };
	int64_t deadline = clock_mono_ms() + timeout_ms;
	_cleanup_close_ int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (fd < 0)
		return err_sys(e, ERR_INTERNAL, errno, "no descriptor for a reader");
	struct channel_reader r = { .wake_fd = fd, .chunk = ret };
	pthread_mutex_lock(&c->lock);
	int rc = ask_locked(c, &wish, &r, deadline, e);
	pthread_mutex_unlock(&c->lock);
	if (rc < 0)
		return rc;
	rc = await(c, &r, deadline, client_fd, e);
	leave(c, &r);
	/* it may have come between the last look and now */
	return rc == -(int)ERR_TIMEOUT && r.known ? 0 : rc;
}
