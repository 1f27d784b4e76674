/* SPDX-License-Identifier: MIT */
#include "runtime/channel.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "runtime/channel_internal.h"

#define READ_CHUNK (64 * 1024)
#define READ_BUDGET (1024 * 1024) /* bytes of one link before the others get their turn */
#define CONTROL_MAX (4 * PROTO_SPEC_MAX)
#define EVENTS 64

struct channels {
	int epoll_fd, wake_fd;
	pthread_t thread;
	atomic_bool stop;
	pthread_mutex_t lock;
	LIST_HEAD(, channel) open;
	/* Leaf lock: nothing is taken while it is held. */
	pthread_mutex_t leaf;
	SLIST_HEAD(, job) pending;
	SLIST_HEAD(, channel) graves; /* freed by the epoll thread only, whose batch of events may name them */
	uint8_t chunk[READ_CHUNK];    /* epoll thread */
};

static void wake(int fd)
{
	uint64_t one = 1;
	(void)!write(fd, &one, sizeof(one)); /* full means that it is awake already */
}

/* ---- sending ---- */

static void want_out_locked(struct channel *c, bool wanted)
{
	if (c->wants_out == wanted || !c->stream)
		return;
	struct epoll_event ev = { .events = EPOLLIN | EPOLLRDHUP | (wanted ? EPOLLOUT : 0u), .data.ptr = c };
	if (epoll_ctl(c->all->epoll_fd, EPOLL_CTL_MOD, c->stream->fd, &ev) == 0)
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

bool channel_send_locked(struct channel *c, enum proto_type type, uint8_t aux, uint32_t job, const void *payload,
			 size_t len)
{
	uint8_t head[PROTO_HEADER];
	struct err e;
	if (c->state == CHANNEL_CLOSED)
		return false;
	proto_header(head, type, aux, job, (uint16_t)len);
	struct buf *b = type == PROTO_DATA || type == PROTO_EOF ? &c->data : &c->control;
	if (buf_add(b, head, sizeof(head), &e) < 0 || buf_add(b, payload, len, &e) < 0) {
		channel_fail_locked(c, ERR_SANDBOX, "the link stalls: its queue is full");
		return false;
	}
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
	epoll_ctl(c->all->epoll_fd, EPOLL_CTL_DEL, c->stream->fd, NULL);
	stream_close(STEAL_PTR(c->stream));
	struct job *j;
	LIST_FOREACH(j, &c->jobs, entry)
		job_on_lost_locked(j);
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
	struct channels *cs = c->all;
	channel_close(c);
	pthread_mutex_lock(&cs->lock);
	LIST_REMOVE(c, entry);
	pthread_mutex_unlock(&cs->lock);
	pthread_mutex_lock(&cs->leaf);
	SLIST_INSERT_HEAD(&cs->graves, c, grave);
	pthread_mutex_unlock(&cs->leaf);
	wake(cs->wake_fd);
}

static void channel_destroy(struct channel *c)
{
	buf_clear(&c->in);
	buf_clear(&c->control);
	buf_clear(&c->data);
	pthread_mutex_destroy(&c->lock);
	pthread_cond_destroy(&c->changed);
	free(c);
}

/* ---- receiving ---- */

struct job *channel_find_job_locked(struct channel *c, uint32_t id)
{
	struct job *j;
	LIST_FOREACH(j, &c->jobs, entry)
		if (j->id == id)
			return j;
	return NULL;
}

static bool on_hello(struct channel *c, const struct proto_frame *f)
{
	struct err e;
	if (c->state != CHANNEL_GREETING || hello_decode(f, &c->hello, &e) < 0) {
		channel_fail_locked(c, ERR_SANDBOX, "%s", c->state == CHANNEL_GREETING ? e.msg : "a second hello");
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
		_cleanup_free_ char *text = utf8_escape((const char *)field.value, field.len, PROTO_DETAIL_MAX);
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
	LIST_FOREACH(j, &c->jobs, entry)
		if (j->tx_starved)
			job_signal_locked(j);
	return true;
}

static bool list_entry(const struct proto_frame *f, struct channel_job_info *ret)
{
	uint64_t state = 0, pid = 0, age = 0, taken = 0;
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
	ret->state = (enum proto_state)state;
	ret->pid = (int)(pid & 0x7fffffff);
	ret->age_ms = (int64_t)(age & INT64_MAX);
	ret->stdin_bytes = (int64_t)(taken & INT64_MAX);
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
	if (c->list_count == PROTO_JOBS_MAX)
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
					    c->state == CHANNEL_GREETING ? "the other side does not speak the protocol" :
									   "the agent broke the protocol");
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
}

static void on_readable(struct channels *cs, struct channel *c)
{
	for (size_t got = 0; got < READ_BUDGET && c->stream;) {
		ssize_t n = c->stream->ops->read(c->stream, cs->chunk, sizeof(cs->chunk));
		if (n == -EAGAIN)
			return;
		if (n <= 0) {
			channel_fail_locked(c, ERR_SANDBOX, n ? "the link broke: %s" : "the link was closed by the other side",
					    n ? strerrorname_np((int)-n) : "");
			return;
		}
		on_bytes(c, cs->chunk, (size_t)n);
		got += (size_t)n;
	}
	/* Some kinds of stream buffer what epoll cannot see: come back at once. */
	if (c->stream)
		wake(cs->wake_fd);
}

/* ---- the thread ---- */

void channels_notify_later(struct channels *cs, struct job *j)
{
	pthread_mutex_lock(&cs->leaf);
	if (!j->is_pending) {
		j->is_pending = true;
		atomic_fetch_add(&j->refs, 1);
		SLIST_INSERT_HEAD(&cs->pending, j, pending);
	}
	pthread_mutex_unlock(&cs->leaf);
	if (!pthread_equal(pthread_self(), cs->thread))
		wake(cs->wake_fd);
}

static struct job *take_pending(struct channels *cs)
{
	pthread_mutex_lock(&cs->leaf);
	struct job *j = SLIST_FIRST(&cs->pending);
	if (j) {
		SLIST_REMOVE_HEAD(&cs->pending, pending);
		j->is_pending = false;
	}
	pthread_mutex_unlock(&cs->leaf);
	return j;
}

static void run_pending(struct channels *cs)
{
	struct job *j;
	while ((j = take_pending(cs))) {
		job_notify(j);
		job_unref(j);
	}
}

static struct channel *take_grave(struct channels *cs)
{
	pthread_mutex_lock(&cs->leaf);
	struct channel *c = SLIST_FIRST(&cs->graves);
	if (c)
		SLIST_REMOVE_HEAD(&cs->graves, grave);
	pthread_mutex_unlock(&cs->leaf);
	return c;
}

static void bury(struct channels *cs)
{
	struct channel *c;
	while ((c = take_grave(cs)))
		channel_destroy(c);
}

/* A tick is at most a second, so that time in the freezer does not count as silence. */
static void tick_channel(struct channel *c)
{
	pthread_mutex_lock(&c->lock);
	if (c->state != CHANNEL_CLOSED) {
		if (++c->silent_ticks >= PROTO_BEAT_S * PROTO_BEATS_LOST)
			channel_fail_locked(c, ERR_SANDBOX, "the agent is silent");
		else if (++c->idle_ticks >= PROTO_BEAT_S && c->state == CHANNEL_OPEN)
			channel_send_u64_locked(c, PROTO_PING, 0, 0, PROTO_F_COOKIE, ++c->cookie);
	}
	pthread_mutex_unlock(&c->lock);
}

static void tick(struct channels *cs)
{
	struct channel *c;
	pthread_mutex_lock(&cs->lock);
	LIST_FOREACH(c, &cs->open, entry)
		tick_channel(c);
	pthread_mutex_unlock(&cs->lock);
}

static void on_event(struct channels *cs, const struct epoll_event *ev)
{
	struct channel *c = ev->data.ptr;
	if (!c) {
		uint64_t count;
		(void)!read(cs->wake_fd, &count, sizeof(count));
		return;
	}
	pthread_mutex_lock(&c->lock);
	if (c->stream && ev->events & EPOLLOUT)
		channel_flush_locked(c);
	if (c->stream && ev->events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR))
		on_readable(cs, c);
	pthread_mutex_unlock(&c->lock);
}

static void *channels_main(void *arg)
{
	struct channels *cs = arg;
	struct epoll_event events[EVENTS];
	int64_t next_tick = clock_mono_ms() + 1000;
	while (!atomic_load(&cs->stop)) {
		int n = epoll_wait(cs->epoll_fd, events, EVENTS, (int)clock_left_ms(next_tick));
		for (int i = 0; i < n; i++)
			on_event(cs, &events[i]);
		if (clock_mono_ms() >= next_tick) {
			tick(cs);
			next_tick = clock_mono_ms() + 1000;
		}
		run_pending(cs);
		bury(cs);
	}
	run_pending(cs);
	bury(cs);
	return NULL;
}

int channels_new(struct channels **ret, struct err *e)
{
	struct channels *cs = xcalloc(1, sizeof(*cs));
	pthread_mutex_init(&cs->lock, NULL);
	pthread_mutex_init(&cs->leaf, NULL);
	cs->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	cs->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = NULL };
	if (cs->epoll_fd < 0 || cs->wake_fd < 0 || epoll_ctl(cs->epoll_fd, EPOLL_CTL_ADD, cs->wake_fd, &ev) < 0 ||
	    pthread_create(&cs->thread, NULL, channels_main, cs) != 0) {
		int sys = errno;
		cleanup_close_(&cs->epoll_fd);
		cleanup_close_(&cs->wake_fd);
		free(cs);
		return err_sys(e, ERR_INTERNAL, sys, "cannot start the channels' thread");
	}
	*ret = cs;
	return 0;
}

void channels_free(struct channels *cs)
{
	if (!cs)
		return;
	atomic_store(&cs->stop, true);
	wake(cs->wake_fd);
	pthread_join(cs->thread, NULL);
	close(cs->epoll_fd);
	close(cs->wake_fd);
	pthread_mutex_destroy(&cs->lock);
	pthread_mutex_destroy(&cs->leaf);
	free(cs);
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
	c->in = BUF_INIT(READ_CHUNK + PROTO_HEADER + PROTO_PAYLOAD_MAX);
	c->control = BUF_INIT(CONTROL_MAX);
	c->data = BUF_INIT(2 * PROTO_LINK_WINDOW);
	c->tx_window = c->rx_window = PROTO_LINK_WINDOW;
	c->next_job = 1;
	LIST_INIT(&c->jobs);
	pthread_mutex_lock(&cs->lock);
	LIST_INSERT_HEAD(&cs->open, c, entry);
	pthread_mutex_unlock(&cs->lock);
	return c;
}

static int greet(struct channel *c, uint64_t generation, const struct timespec *deadline, struct err *e)
{
	uint8_t room[64];
	struct proto_writer w = { .out = room, .size = sizeof(room) };
	proto_put_u64(&w, PROTO_F_MAGIC, PROTO_MAGIC);
	proto_put_u64(&w, PROTO_F_VERSION, PROTO_VERSION);
	proto_put_u64(&w, PROTO_F_GENERATION, generation);
	struct epoll_event ev = { .events = EPOLLIN | EPOLLRDHUP, .data.ptr = c };
	if (epoll_ctl(c->all->epoll_fd, EPOLL_CTL_ADD, c->stream->fd, &ev) < 0)
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

int channel_open(struct channels *cs, struct stream *s, uint64_t generation, int timeout_ms, struct channel **ret,
		 struct hello *ret_hello, struct err *e)
{
	struct timespec deadline;
	deadline_of(timeout_ms, &deadline);
	_cleanup_(channel_unref_cleanup_) struct channel *c = channel_make(cs, s);
	pthread_mutex_lock(&c->lock);
	int r = greet(c, generation, &deadline, e);
	/* The list tells which job numbers are taken. */
	if (r == 0)
		r = list_locked(c, &deadline, e);
	if (r == 0)
		*ret_hello = c->hello;
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
