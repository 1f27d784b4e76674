/* SPDX-License-Identifier: MIT */
#include "runtime/channel.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "runtime/channel_internal.h"

#define READ_BUDGET (1024 * 1024) /* bytes of one link before the others get their turn */
#define CONTROL_MAX (4 * PROTO_SPEC_MAX)

/* ---- sending ---- */

static void want_out_locked(struct channel *c, bool wanted)
{
	if (c->wants_out != wanted && c->stream && channels_watch(c, EPOLL_CTL_MOD, wanted) == 0)
		c->wants_out = wanted;
}

/* Sends from the front of b; at most `limit` bytes. False when the link does not take more now. */
static bool push_locked(struct channel *c, struct buf *b, size_t limit, size_t *ret_sent)
{
	ssize_t n = c->stream->ops->write(c->stream, b->data, MIN(b->len, limit));
	if (n == -EAGAIN)
		return false;
	if (n < 0) {
		channel_fail_locked(c, ERR_SANDBOX, "the link broke: %s", strerrorname_np((int)-n));
		return false;
	}
	buf_consume(b, (size_t)n);
	*ret_sent = (size_t)n;
	return true;
}

static size_t first_frame_len(const struct buf *b)
{
	struct proto_frame f;
	ssize_t n = proto_parse((const uint8_t *)b->data, b->len, &f);
	return n > 0 ? (size_t)n : b->len;
}

/* Control frames overtake data, but never cut into a frame that has begun. */
void channel_flush_locked(struct channel *c)
{
	size_t sent = 0;
	bool open = true;
	while (c->stream && open && (c->control.len || c->data.len)) {
		if (c->control.len && !c->data_cut) {
			open = push_locked(c, &c->control, c->control.len, &sent);
			continue;
		}
		size_t frame = c->data_cut ? c->data_cut : first_frame_len(&c->data);
		open = push_locked(c, &c->data, frame, &sent);
		if (open)
			c->data_cut = frame - sent;
	}
	c->idle_ticks = 0;
	want_out_locked(c, c->control.len || c->data.len);
}

/* LIST tells how much stdin was taken: it counts what was written before. */
static bool is_in_order(enum proto_type type)
{
	return type == PROTO_DATA || type == PROTO_EOF || type == PROTO_LIST;
}

bool channel_queue_locked(struct channel *c, enum proto_type type, uint8_t aux, uint32_t job,
			  const void *payload, size_t len)
{
	uint8_t head[PROTO_HEADER];
	struct err e;
	if (c->state == CHANNEL_CLOSED)
		return false;
	proto_header(head, type, aux, job, (uint16_t)len);
	struct buf *b = is_in_order(type) ? &c->data : &c->control;
	if (buf_add(b, head, sizeof(head), &e) < 0 || buf_add(b, payload, len, &e) < 0) {
		channel_fail_locked(c, ERR_SANDBOX, "the link stalls: its queue is full");
		return false;
	}
	return true;
}

bool channel_send_locked(struct channel *c, enum proto_type type, uint8_t aux, uint32_t job,
			 const void *payload, size_t len)
{
	if (!channel_queue_locked(c, type, aux, job, payload, len))
		return false;
	channel_flush_locked(c);
	return c->state != CHANNEL_CLOSED;
}

bool channel_send_u64_locked(struct channel *c, enum proto_type type, uint8_t aux, uint32_t job, uint16_t tag,
			     uint64_t value)
{
	uint8_t room[16];
	struct proto_writer w = { .out = room, .size = sizeof(room) };
	proto_put_u64(&w, tag, value);
	return channel_send_locked(c, type, aux, job, room, w.used);
}

/* ---- the end of a link ---- */

void channel_fail_locked(struct channel *c, enum err_code code, const char *fmt, ...)
{
	if (c->state == CHANNEL_CLOSED)
		return;
	va_list ap;
	va_start(ap, fmt);
	c->why = (struct err){ .code = code };
	vsnprintf(c->why.msg, sizeof(c->why.msg), fmt, ap);
	va_end(ap);
	const char *said = c->stream->ops->complaint(c->stream);
	if (*said) {
		size_t used = strlen(c->why.msg);
		snprintf(c->why.msg + used, sizeof(c->why.msg) - used, " (%s)", said);
	}
	c->state = CHANNEL_CLOSED;
	(void)channels_watch(c, EPOLL_CTL_DEL, false);
	stream_close(STEAL_PTR(c->stream));
	struct job *j;
	LIST_FOREACH (j, &c->jobs, entry)
		job_on_lost_locked(j);
	channel_wake_readers_locked(c);
	pthread_cond_broadcast(&c->changed);
}

void channel_close(struct channel *c)
{
	pthread_mutex_lock(&c->lock);
	channel_fail_locked(c, ERR_SANDBOX, "the link was closed");
	pthread_mutex_unlock(&c->lock);
}

struct channel *channel_ref(struct channel *c)
{
	atomic_fetch_add(&c->refs, 1);
	return c;
}

void channel_unref(struct channel *c)
{
	if (!c || atomic_fetch_sub(&c->refs, 1) > 1)
		return;
	channel_close(c);
	channels_bury(c);
}

void channel_destroy(struct channel *c)
{
	buf_clear(&c->in);
	buf_clear(&c->control);
	buf_clear(&c->data);
	free(c->hello);
	pthread_mutex_destroy(&c->lock);
	pthread_cond_destroy(&c->changed);
	free(c);
}

/* ---- receiving ---- */

struct job *channel_find_job_locked(struct channel *c, uint32_t id)
{
	struct job *j;
	LIST_FOREACH (j, &c->jobs, entry)
		if (j->id == id)
			return j;
	return NULL;
}

static bool on_hello(struct channel *c, const struct proto_frame *f)
{
	struct err e;
	if (c->state != CHANNEL_GREETING || hello_decode(f, c->hello, &e) < 0) {
		channel_fail_locked(c, ERR_SANDBOX, "%s",
				    c->state == CHANNEL_GREETING ? e.msg : "a second hello");
		return true;
	}
	c->state = CHANNEL_OPEN;
	pthread_cond_broadcast(&c->changed);
	return true;
}

static bool on_error(struct channel *c, const struct proto_frame *f)
{
	struct proto_cursor cur = { f->payload, f->length };
	struct proto_field field;
	while (proto_next(&cur, &field) > 0) {
		if (field.tag != PROTO_F_DETAIL)
			continue;
		_cleanup_free_ char *text =
			utf8_escape((const char *)field.value, field.len, PROTO_DETAIL_MAX);
		channel_fail_locked(c, ERR_SANDBOX, "the agent refused the link: %s", text);
		return true;
	}
	return false;
}

static bool on_ping(struct channel *c, const struct proto_frame *f)
{
	uint64_t cookie = 0;
	if (proto_find_u64(f, PROTO_F_COOKIE, &cookie) < 0)
		return false;
	if (f->type == PROTO_PING)
		return channel_send_u64_locked(c, PROTO_PONG, 0, 0, PROTO_F_COOKIE, cookie);
	c->pong = MAX(c->pong, cookie);
	pthread_cond_broadcast(&c->changed);
	return true;
}

static bool on_link_window(struct channel *c, const struct proto_frame *f)
{
	uint64_t more = 0;
	if (proto_find_u64(f, PROTO_F_BYTES, &more) < 0 || more > PROTO_LINK_WINDOW - c->tx_window)
		return false;
	c->tx_window += more;
	struct job *j;
	LIST_FOREACH (j, &c->jobs, entry)
		if (j->tx_starved)
			job_signal_locked(j);
	return true;
}

static bool list_entry(const struct proto_frame *f, struct channel_job_info *ret)
{
	uint64_t state = 0, pid = 0, age = 0, taken = 0, open = 1;
	struct proto_cursor cur = { f->payload, f->length };
	struct proto_field field;
	int more;
	*ret = (struct channel_job_info){ .job = f->job };
	while ((more = proto_next(&cur, &field)) > 0) {
		if (field.tag != PROTO_F_TAG)
			continue;
		if (field.len > PROTO_TAG_MAX)
			return false;
		memcpy(ret->tag, field.value, field.len);
	}
	if (more < 0 || proto_find_u64(f, PROTO_F_STATE, &state) < 0 || state > PROTO_JOB_ENDED ||
	    proto_find_u64(f, PROTO_F_AGE_MS, &age) < 0)
		return false;
	(void)proto_find_u64(f, PROTO_F_PID, &pid); /* a job that did not start has none */
	(void)proto_find_u64(f, PROTO_F_STDIN_BYTES, &taken);
	(void)proto_find_u64(f, PROTO_F_STDIN_OPEN, &open); /* the agents of before do not tell */
	ret->state = (enum proto_state)state;
	ret->pid = (int)(pid & 0x7fffffff);
	ret->age_ms = (int64_t)(age & INT64_MAX);
	ret->stdin_bytes = (int64_t)(taken & INT64_MAX);
	ret->stdin_open = open != 0;
	return true;
}

static bool on_list(struct channel *c, const struct proto_frame *f)
{
	if (!c->listing)
		return false;
	if (f->job == PROTO_LIST_END) {
		c->listing = false;
		pthread_cond_broadcast(&c->changed);
		return true;
	}
	if (c->list_count == PROTO_JOBS_MAX || f->job > INT32_MAX)
		return false;
	c->next_job = MAX(c->next_job, f->job + 1);
	return list_entry(f, &c->list[c->list_count++]);
}

/* Gives link credit back once a quarter of it was used: the bytes are in a job's queue by then. */
static bool return_link_credit(struct channel *c)
{
	if (c->rx_returned < PROTO_LINK_WINDOW / 4)
		return true;
	uint64_t more = c->rx_returned;
	c->rx_returned = 0;
	c->rx_window += more;
	return channel_send_u64_locked(c, PROTO_WINDOW, 0, 0, PROTO_F_BYTES, more);
}

static bool on_job_frame(struct channel *c, const struct proto_frame *f)
{
	if (f->type == PROTO_DATA) {
		if (f->length > c->rx_window)
			return false;
		c->rx_window -= f->length;
		c->rx_returned += f->length;
	}
	struct job *j = channel_find_job_locked(c, f->job);
	/* A job that nobody here holds any more: its frames were under way. */
	return (!j || job_on_frame_locked(j, f)) && return_link_credit(c);
}

/* False: the frame breaks the protocol. */
static bool on_frame(struct channel *c, const struct proto_frame *f)
{
	if (c->state == CHANNEL_GREETING && f->type != PROTO_HELLO && f->type != PROTO_ERROR)
		return false;
	switch (f->type) {
	case PROTO_HELLO:
		return on_hello(c, f);
	case PROTO_ERROR:
		return on_error(c, f);
	case PROTO_PING:
	case PROTO_PONG:
		return on_ping(c, f);
	case PROTO_LIST:
		return on_list(c, f);
	case PROTO_WINDOW:
		return f->job ? on_job_frame(c, f) : on_link_window(c, f);
	case PROTO_STARTED:
	case PROTO_DATA:
	case PROTO_EOF:
	case PROTO_GAP:
	case PROTO_EXIT:
		return on_job_frame(c, f);
	case PROTO_CHUNK:
		return channel_on_chunk_locked(c, f) && return_link_credit(c);
	default:
		return false;
	}
}

/* Takes the whole frames at the front of data; returns the bytes used. */
static size_t take_frames(struct channel *c, const uint8_t *data, size_t len)
{
	size_t used = 0;
	while (c->state != CHANNEL_CLOSED) {
		struct proto_frame f;
		ssize_t n = proto_parse(data + used, len - used, &f);
		if (n == 0)
			break;
		if (n < 0 || !on_frame(c, &f)) {
			/* An engine's complaint arrives where a hello should: show it instead. */
			channel_fail_locked(c, ERR_SANDBOX, "%s",
					    c->state == CHANNEL_GREETING
						    ? "the other side does not speak the protocol"
						    : "the agent broke the protocol");
			break;
		}
		used += (size_t)n;
	}
	return used;
}

/* One read's worth. The common case parses in place; only a cut frame is kept. */
static void on_bytes(struct channel *c, const uint8_t *bytes, size_t len)
{
	struct err e;
	c->silent_ticks = 0;
	if (!c->in.len) {
		size_t used = take_frames(c, bytes, len);
		bytes += used;
		len -= used;
	}
	if (!len || c->state == CHANNEL_CLOSED)
		return;
	if (buf_add(&c->in, bytes, len, &e) < 0) {
		channel_fail_locked(c, ERR_SANDBOX, "the agent broke the protocol");
		return;
	}
	buf_consume(&c->in, take_frames(c, (const uint8_t *)c->in.data, c->in.len));
	if (!c->in.len)
		buf_clear(&c->in);
}

static void on_readable(struct channel *c, uint8_t *chunk, size_t size)
{
	c->hungry = false;
	for (size_t got = 0; got < READ_BUDGET && c->stream;) {
		ssize_t n = c->stream->ops->read(c->stream, chunk, size);
		if (n == -EAGAIN)
			return;
		if (n <= 0) {
			channel_fail_locked(c, ERR_SANDBOX,
					    n ? "the link broke: %s"
					      : "the link was closed by the other side",
					    n ? strerrorname_np((int)-n) : "");
			return;
		}
		on_bytes(c, chunk, (size_t)n);
		got += (size_t)n;
	}
	c->hungry = c->stream != NULL;
}

bool channel_on_ready(struct channel *c, uint32_t events, uint8_t *chunk, size_t size)
{
	pthread_mutex_lock(&c->lock);
	if (c->stream && events & EPOLLOUT)
		channel_flush_locked(c);
	if (c->stream && events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR))
		on_readable(c, chunk, size);
	bool hungry = c->hungry;
	pthread_mutex_unlock(&c->lock);
	return hungry;
}

void channel_tick(struct channel *c)
{
	pthread_mutex_lock(&c->lock);
	if (c->state != CHANNEL_CLOSED) {
		if (++c->silent_ticks >= PROTO_BEAT_S * PROTO_BEATS_LOST)
			channel_fail_locked(c, ERR_SANDBOX, "the agent is silent");
		else if (++c->idle_ticks >= PROTO_BEAT_S && c->state == CHANNEL_OPEN)
			channel_send_u64_locked(c, PROTO_PING, 0, 0, PROTO_F_COOKIE, ++c->cookie);
		else if (c->control.len) /* what no other frame has taken along */
			channel_flush_locked(c);
	}
	pthread_mutex_unlock(&c->lock);
}

/* ---- calls of other threads ---- */

static void deadline_of(int timeout_ms, struct timespec *ret)
{
	clock_gettime(CLOCK_MONOTONIC, ret);
	ret->tv_sec += timeout_ms / 1000;
	ret->tv_nsec += timeout_ms % 1000 * 1000000l;
	if (ret->tv_nsec >= 1000000000l) {
		ret->tv_sec++;
		ret->tv_nsec -= 1000000000l;
	}
}

/* Waits with c->lock held. False when the time is over. */
static bool wait_locked(struct channel *c, const struct timespec *deadline)
{
	return pthread_cond_timedwait(&c->changed, &c->lock, deadline) == 0;
}

static struct channel *channel_make(struct channels *cs, struct stream *s)
{
	struct channel *c = xcalloc(1, sizeof(*c));
	c->all = cs;
	atomic_init(&c->refs, 1);
	pthread_mutex_init(&c->lock, NULL);
	pthread_condattr_t attr;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&c->changed, &attr);
	pthread_condattr_destroy(&attr);
	c->stream = s;
	c->hello = xcalloc(1, sizeof(*c->hello));
	c->in = BUF_INIT(CHANNEL_CHUNK + PROTO_HEADER + PROTO_PAYLOAD_MAX);
	c->control = BUF_INIT(CONTROL_MAX);
	c->data = BUF_INIT(2 * PROTO_LINK_WINDOW);
	c->tx_window = c->rx_window = PROTO_LINK_WINDOW;
	c->next_job = 1;
	LIST_INIT(&c->jobs);
	channels_enter(c);
	return c;
}

static int greet(struct channel *c, uint64_t generation, const struct timespec *deadline, struct err *e)
{
	uint8_t room[64];
	struct proto_writer w = { .out = room, .size = sizeof(room) };
	proto_put_u64(&w, PROTO_F_MAGIC, PROTO_MAGIC);
	proto_put_u64(&w, PROTO_F_VERSION, PROTO_VERSION);
	proto_put_u64(&w, PROTO_F_GENERATION, generation);
	if (channels_watch(c, EPOLL_CTL_ADD, false) < 0)
		return err_sys(e, ERR_INTERNAL, errno, "cannot watch the link");
	channel_send_locked(c, PROTO_HELLO, 0, 0, room, w.used);
	while (c->state == CHANNEL_GREETING)
		if (!wait_locked(c, deadline) && c->state == CHANNEL_GREETING)
			return err_set(e, ERR_TIMEOUT, "the agent did not answer in time");
	if (c->state == CHANNEL_CLOSED) {
		*e = c->why;
		return -(int)e->code;
	}
	return 0;
}

static int list_locked(struct channel *c, const struct timespec *deadline, struct err *e)
{
	while (c->listing && c->state != CHANNEL_CLOSED)
		if (!wait_locked(c, deadline))
			return err_set(e, ERR_TIMEOUT, "the agent did not list its jobs in time");
	c->listing = true;
	c->list_count = 0;
	channel_send_locked(c, PROTO_LIST, 0, 0, NULL, 0);
	while (c->listing && c->state != CHANNEL_CLOSED)
		if (!wait_locked(c, deadline) && c->listing)
			channel_fail_locked(c, ERR_TIMEOUT, "the agent did not list its jobs in time");
	if (c->state == CHANNEL_CLOSED) {
		*e = c->why;
		return -(int)e->code;
	}
	return 0;
}

int channel_open(struct channels *cs, struct stream *s, uint64_t generation, int timeout_ms,
		 struct channel **ret, struct hello *ret_hello, struct err *e)
{
	struct timespec deadline;
	deadline_of(timeout_ms, &deadline);
	_cleanup_(channel_unref_cleanup_) struct channel *c = channel_make(cs, s);
	pthread_mutex_lock(&c->lock);
	int r = greet(c, generation, &deadline, e);
	/* The list tells which job numbers are taken. */
	if (r == 0)
		r = list_locked(c, &deadline, e);
	if (r == 0) {
		*ret_hello = *c->hello;
		c->agent = c->hello->start_ns;
	}
	if (r < 0)
		channel_fail_locked(c, e->code, "%s", e->msg); /* a late hello has nowhere to go any more */
	free(STEAL_PTR(c->hello));                             /* large, and there are many channels */
	pthread_mutex_unlock(&c->lock);
	if (r < 0)
		return r;
	*ret = STEAL_PTR(c);
	return 0;
}

bool channel_is_open(struct channel *c)
{
	pthread_mutex_lock(&c->lock);
	bool open = c->state == CHANNEL_OPEN;
	pthread_mutex_unlock(&c->lock);
	return open;
}

int channel_ping(struct channel *c, int timeout_ms, struct err *e)
{
	struct timespec deadline;
	deadline_of(timeout_ms, &deadline);
	pthread_mutex_lock(&c->lock);
	uint64_t mine = ++c->cookie;
	channel_send_u64_locked(c, PROTO_PING, 0, 0, PROTO_F_COOKIE, mine);
	int r = 0;
	while (r == 0 && c->state != CHANNEL_CLOSED && c->pong < mine)
		if (!wait_locked(c, &deadline) && c->pong < mine)
			r = err_set(e, ERR_TIMEOUT, "the agent did not answer in time");
	if (r == 0 && c->state == CHANNEL_CLOSED) {
		*e = c->why;
		r = -(int)e->code;
	}
	pthread_mutex_unlock(&c->lock);
	return r;
}

int channel_list(struct channel *c, struct channel_job_info *ret_jobs, size_t *ret_count, int timeout_ms,
		 struct err *e)
{
	struct timespec deadline;
	deadline_of(timeout_ms, &deadline);
	pthread_mutex_lock(&c->lock);
	int r = list_locked(c, &deadline, e);
	if (r == 0) {
		memcpy(ret_jobs, c->list, c->list_count * sizeof(*ret_jobs));
		*ret_count = c->list_count;
	}
	pthread_mutex_unlock(&c->lock);
	return r;
}

uint64_t channel_get_agent(const struct channel *c)
{
	return c->agent; /* set before anybody but channel_open() had it */
}
