/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "runtime/channel_internal.h"

#define GAPS_MAX 256 /* unread gaps of one job */

/* ---- what the agent sends ---- */

void job_signal_locked(struct job *j)
{
	if (j->waiting) {
		uint64_t one = 1;
		j->waiting = false;
		(void)!write(j->wake_fd, &one, sizeof(one));
	}
	if (j->notify)
		channels_notify_later(j->channel->all, j);
}

void job_on_lost_locked(struct job *j)
{
	j->lost = true;
	job_signal_locked(j);
}

/* Small frames join the item before them: each costs memory beyond the credit that bounds its bytes. */
static bool join_last(struct job *j, int stream, const uint8_t *bytes, size_t len)
{
	struct job_item *last = TAILQ_LAST(&j->items, job_items);
	if (!last || last->stream != stream || last->gap_bytes || last->len + len > PROTO_PAYLOAD_MAX)
		return false;
	TAILQ_REMOVE(&j->items, last, next);
	struct job_item *longer = realloc(last, sizeof(*last) + last->len + len);
	if (!longer)
		abort();
	memcpy(longer->bytes + longer->len, bytes, len);
	longer->len += len;
	TAILQ_INSERT_TAIL(&j->items, longer, next);
	return true;
}

static void add_item(struct job *j, int stream, const uint8_t *bytes, size_t len, uint64_t gap_bytes)
{
	if (gap_bytes || !join_last(j, stream, bytes, len)) {
		struct job_item *item = xcalloc(1, sizeof(*item) + len);
		item->stream = stream;
		item->gap_bytes = gap_bytes;
		item->len = len;
		if (len)
			memcpy(item->bytes, bytes, len);
		TAILQ_INSERT_TAIL(&j->items, item, next);
	}
	job_signal_locked(j);
}

static bool on_data(struct job *j, const struct proto_frame *f)
{
	if (f->aux == PROTO_STDIN || f->length > j->rx_window[f->aux] || j->ended)
		return false;
	j->rx_window[f->aux] -= f->length;
	add_item(j, f->aux, f->payload, f->length, 0);
	return true;
}

static bool on_gap(struct job *j, const struct proto_frame *f)
{
	uint64_t bytes = 0;
	if (f->aux == PROTO_STDIN || proto_find_u64(f, PROTO_F_BYTES, &bytes) < 0 || !bytes ||
	    bytes > INT64_MAX || j->ended)
		return false;
	/* A gap costs no credit, so their number is what bounds the memory that a hostile agent can take. */
	if (++j->gaps_queued > GAPS_MAX)
		return false;
	add_item(j, f->aux, NULL, 0, bytes);
	return true;
}

static bool on_window(struct job *j, const struct proto_frame *f)
{
	uint64_t more = 0;
	if (f->aux != PROTO_STDIN || proto_find_u64(f, PROTO_F_BYTES, &more) < 0 ||
	    more > PROTO_JOB_WINDOW - j->tx_window)
		return false;
	j->tx_window += more;
	if (j->tx_starved)
		job_signal_locked(j);
	return true;
}

static int64_t bounded(uint64_t n)
{
	return (int64_t)MIN(n, (uint64_t)INT64_MAX);
}

static bool on_end(struct job *j, const struct proto_frame *f)
{
	struct proto_exit x;
	if (proto_exit_decode(f, &x) < 0)
		return false;
	_cleanup_free_ char *detail =
		utf8_escape(x.detail.at ? x.detail.at : "", x.detail.len, PROTO_DETAIL_MAX - 4);
	j->end = (struct job_end){
		.reason = x.reason,
		.code = x.code,
		.signal = x.signal,
		.sys = x.sys,
		.wall_us = bounded(x.wall_us),
		.user_us = bounded(x.user_us),
		.sys_us = bounded(x.sys_us),
		.peak_bytes = bounded(x.peak_bytes),
		.dropped_bytes = bounded(x.dropped_bytes),
		.lingering = x.lingering,
		.survivors = x.survivors,
	};
	snprintf(j->end.detail, sizeof(j->end.detail), "%s", detail);
	j->ended = true;
	job_signal_locked(j);
	return true;
}

static bool on_started(struct job *j, const struct proto_frame *f)
{
	uint64_t pid = 0;
	if (proto_find_u64(f, PROTO_F_PID, &pid) < 0)
		return false;
	j->started = true;
	j->pid = (int)(pid & INT32_MAX);
	j->start_news = j->tells_start;
	if (j->start_news)
		job_signal_locked(j);
	return true;
}

bool job_on_frame_locked(struct job *j, const struct proto_frame *f)
{
	switch (f->type) {
	case PROTO_DATA:
		return on_data(j, f);
	case PROTO_GAP:
		return on_gap(j, f);
	case PROTO_WINDOW:
		return on_window(j, f);
	case PROTO_EXIT:
		return on_end(j, f);
	case PROTO_STARTED:
		return on_started(j, f);
	default:
		return true; /* EOF: the exit says it all */
	}
}

void job_notify(struct job *j)
{
	pthread_mutex_lock(&j->notify_lock);
	if (j->notify)
		j->notify(j->notify_ctx);
	pthread_mutex_unlock(&j->notify_lock);
}

void job_set_notify(struct job *j, job_notify_fn fn, void *ctx)
{
	pthread_mutex_lock(&j->notify_lock);
	pthread_mutex_lock(&j->channel->lock);
	j->notify = fn;
	j->notify_ctx = ctx;
	/* What came before the callback was set must be told, too. */
	if (fn)
		channels_notify_later(j->channel->all, j);
	pthread_mutex_unlock(&j->channel->lock);
	pthread_mutex_unlock(&j->notify_lock);
}

/* ---- life ---- */

static int job_make(struct channel *c, struct job **ret, struct err *e)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (fd < 0)
		return err_sys(e, ERR_INTERNAL, errno, "no descriptor for a job");
	struct job *j = xcalloc(1, sizeof(*j));
	j->channel = channel_ref(c);
	atomic_init(&j->refs, 1);
	j->wake_fd = fd;
	TAILQ_INIT(&j->items);
	pthread_mutex_init(&j->notify_lock, NULL);
	for (size_t i = 0; i < ARRAY_LEN(j->rx_window); i++)
		j->rx_window[i] = PROTO_JOB_WINDOW;
	j->tx_window = PROTO_JOB_WINDOW;
	*ret = j;
	return 0;
}

bool job_is_on(struct job *j, const struct channel *c)
{
	pthread_mutex_lock(&j->channel->lock);
	bool is = j->channel == c && !j->lost;
	pthread_mutex_unlock(&j->channel->lock);
	return is;
}

bool job_is_started(struct job *j)
{
	pthread_mutex_lock(&j->channel->lock);
	bool started = j->started;
	pthread_mutex_unlock(&j->channel->lock);
	return started;
}

struct job *job_ref(struct job *j)
{
	atomic_fetch_add(&j->refs, 1);
	return j;
}

int job_get_pid(struct job *j)
{
	pthread_mutex_lock(&j->channel->lock);
	int pid = j->pid;
	pthread_mutex_unlock(&j->channel->lock);
	return pid;
}

void job_unref(struct job *j)
{
	if (!j)
		return;
	/* Under the lock, since the epoll thread takes references from the channel's list. */
	pthread_mutex_lock(&j->channel->lock);
	bool last = atomic_fetch_sub(&j->refs, 1) == 1;
	if (last && j->linked) {
		LIST_REMOVE(j, entry);
		j->linked = false;
	}
	pthread_mutex_unlock(&j->channel->lock);
	if (!last)
		return;
	struct job_item *item;
	while ((item = TAILQ_FIRST(&j->items))) {
		TAILQ_REMOVE(&j->items, item, next);
		free(item);
	}
	free(j->taken);
	close(j->wake_fd);
	pthread_mutex_destroy(&j->notify_lock);
	channel_unref(j->channel);
	free(j);
}

/* Room for a field with a text; NULL takes none. */
static size_t text_size(const char *text)
{
	return text ? PROTO_FIELD_HEADER + strlen(text) : 0;
}

static size_t list_size(const char *const *list)
{
	size_t size = 0;
	for (; list && *list; list++)
		size += text_size(*list);
	return size;
}

static size_t spec_size(const struct job_spec *s)
{
	const size_t numbers = 5 * (PROTO_FIELD_HEADER + sizeof(uint64_t));
	return numbers + text_size(s->tag) + text_size(s->cwd) + text_size(s->shell) + text_size(s->script) +
	       text_size(s->builtin) + list_size(s->argv) + list_size(s->env);
}

static void put_text(struct proto_writer *w, uint16_t tag, const char *text)
{
	if (text)
		proto_put_text(w, tag, text);
}

static void put_list(struct proto_writer *w, uint16_t tag, const char *const *list)
{
	for (; list && *list; list++)
		proto_put_text(w, tag, *list);
}

static void encode_spec(const struct job_spec *s, uint8_t *out, size_t size)
{
	struct proto_writer w = { .out = out, .size = size };
	put_text(&w, PROTO_F_TAG, s->tag);
	proto_put_u64(&w, PROTO_F_TIMEOUT_MS, (uint64_t)s->timeout_ms);
	proto_put_u64(&w, PROTO_F_KEEP, s->keep);
	proto_put_u64(&w, PROTO_F_HEAD, s->head_bytes);
	proto_put_u64(&w, PROTO_F_TAIL, s->tail_bytes);
	proto_put_u64(&w, PROTO_F_JOB_FLAGS,
		      (s->has_stdin ? PROTO_JOB_STDIN : 0) | (s->split ? PROTO_JOB_SPLIT : 0));
	put_text(&w, PROTO_F_CWD, s->cwd);
	put_text(&w, PROTO_F_BUILTIN, s->builtin);
	put_text(&w, PROTO_F_SHELL, s->shell);
	put_text(&w, PROTO_F_SCRIPT, s->script);
	put_list(&w, PROTO_F_ARG, s->argv);
	put_list(&w, PROTO_F_ENV, s->env);
	assert(!w.failed && w.used == size);
}

static bool send_spec_locked(struct channel *c, uint32_t id, const uint8_t *spec, size_t len)
{
	for (size_t at = 0; at < len;) {
		size_t piece = MIN(len - at, (size_t)PROTO_PAYLOAD_MAX);
		uint8_t aux = at + piece < len ? PROTO_MORE : 0;
		if (!channel_send_locked(c, PROTO_START, aux, id, spec + at, piece))
			return false;
		at += piece;
	}
	return true;
}

/* Says why the link is not there; called with the lock held. */
static int lost(const struct channel *c, struct err *e)
{
	*e = c->why;
	return -(int)(e->code ? e->code : ERR_SANDBOX);
}

int job_start(struct channel *c, const struct job_spec *spec, struct job **ret, struct err *e)
{
	size_t len = spec_size(spec);
	if (len > PROTO_SPEC_MAX)
		return err_set(e, ERR_TOO_LARGE, "command, arguments and environment are over %d bytes",
			       PROTO_SPEC_MAX);
	_cleanup_free_ uint8_t *room = xcalloc(1, len);
	encode_spec(spec, room, len);
	struct job *j = NULL;
	int r = job_make(c, &j, e);
	if (r < 0)
		return r;
	pthread_mutex_lock(&c->lock);
	j->id = c->next_job++;
	j->stdin_closed = !spec->has_stdin;
	j->tells_start = spec->keep == PROTO_KEEP_RING;
	j->linked = true;
	LIST_INSERT_HEAD(&c->jobs, j, entry);
	if (!send_spec_locked(c, j->id, room, len))
		r = lost(c, e);
	pthread_mutex_unlock(&c->lock);
	if (r < 0) {
		job_unref(j);
		return r;
	}
	*ret = j;
	return 0;
}

struct offsets {
	bool out, err; /* is it read? */
	uint64_t stdout_at, stderr_at;
};

static bool send_attach_locked(struct job *j, const struct offsets *at)
{
	struct channel *c = j->channel;
	return channel_send_u64_locked(c, PROTO_ATTACH, PROTO_STDIN, j->id, PROTO_F_BYTES, 0) &&
	       (!at->err || channel_send_u64_locked(c, PROTO_ATTACH, PROTO_STDERR, j->id, PROTO_F_BYTES,
						    at->stderr_at)) &&
	       (!at->out ||
		channel_send_u64_locked(c, PROTO_ATTACH, PROTO_STDOUT, j->id, PROTO_F_BYTES, at->stdout_at));
}

static int attach(struct channel *c, const struct channel_job_info *info, const struct offsets *at,
		  struct job **ret, struct err *e)
{
	struct job *j = NULL;
	int r = job_make(c, &j, e);
	if (r < 0)
		return r;
	pthread_mutex_lock(&c->lock);
	j->id = info->job;
	j->tells_start = !at->out;
	j->linked = true;
	LIST_INSERT_HEAD(&c->jobs, j, entry);
	if (!send_attach_locked(j, at))
		r = lost(c, e);
	pthread_mutex_unlock(&c->lock);
	if (r < 0) {
		job_unref(j);
		return r;
	}
	*ret = j;
	return 0;
}

int job_attach(struct channel *c, const struct channel_job_info *info, bool split, uint64_t stdout_offset,
	       uint64_t stderr_offset, struct job **ret, struct err *e)
{
	const struct offsets at = { true, split, stdout_offset, stderr_offset };
	return attach(c, info, &at, ret, e);
}

int job_adopt(struct channel *c, const struct channel_job_info *info, struct job **ret, struct err *e)
{
	const struct offsets none = { 0 };
	return attach(c, info, &none, ret, e);
}

/* ---- the reader ---- */

static void return_credit_locked(struct job *j, int stream, size_t len)
{
	j->rx_consumed[stream] += len;
	if (j->rx_consumed[stream] < PROTO_JOB_WINDOW / 4 || j->ended)
		return;
	uint64_t more = j->rx_consumed[stream];
	j->rx_consumed[stream] = 0;
	j->rx_window[stream] += more;
	channel_send_u64_locked(j->channel, PROTO_WINDOW, (uint8_t)stream, j->id, PROTO_F_BYTES, more);
}

static enum job_event take_item_locked(struct job *j, struct job_output *ret)
{
	struct job_item *item = TAILQ_FIRST(&j->items);
	TAILQ_REMOVE(&j->items, item, next);
	free(j->taken);
	j->taken = item;
	ret->stream = item->stream;
	ret->len = item->len;
	ret->gap_bytes = item->gap_bytes;
	ret->bytes = item->bytes;
	if (item->gap_bytes) {
		j->gaps_queued--;
		return JOB_GAP;
	}
	return_credit_locked(j, item->stream, item->len);
	return JOB_OUTPUT;
}

/* JOB_TIMEOUT: there is nothing now. */
static enum job_event look(struct job *j, struct job_output *ret)
{
	pthread_mutex_lock(&j->channel->lock);
	enum job_event ev = JOB_TIMEOUT;
	if (!TAILQ_EMPTY(&j->items)) {
		ev = take_item_locked(j, ret);
	} else if (j->start_news) {
		j->start_news = false;
		ev = JOB_STARTED;
	} else if (j->ended) {
		ev = JOB_END;
	} else if (j->lost) {
		ev = JOB_LOST;
	} else if (j->tx_starved && j->tx_window && j->channel->tx_window) {
		j->tx_starved = false;
		ev = JOB_WRITABLE;
	}
	j->waiting = ev == JOB_TIMEOUT;
	pthread_mutex_unlock(&j->channel->lock);
	return ev;
}

enum job_event job_next(struct job *j, int timeout_ms, int client_fd, struct job_output *ret)
{
	int64_t deadline = clock_mono_ms() + timeout_ms;
	for (;;) {
		enum job_event ev = look(j, ret);
		if (ev != JOB_TIMEOUT || timeout_ms == 0)
			return ev;
		struct pollfd fds[2] = { { .fd = j->wake_fd, .events = POLLIN },
					 { .fd = client_fd, .events = POLLRDHUP } };
		int64_t left = clock_left_ms(deadline);
		if (poll(fds, 2, (int)left) == 0 && left == 0)
			return JOB_TIMEOUT;
		if (fds[1].revents)
			return JOB_HANGUP;
		uint64_t count;
		(void)!read(j->wake_fd, &count, sizeof(count));
	}
}

const struct job_end *job_get_end(struct job *j)
{
	return &j->end;
}

/* ---- orders ---- */

uint32_t job_get_id(const struct job *j)
{
	return j->id;
}

void job_go(struct job *j)
{
	pthread_mutex_lock(&j->channel->lock);
	channel_send_locked(j->channel, PROTO_GO, 0, j->id, NULL, 0);
	pthread_mutex_unlock(&j->channel->lock);
}

int job_write(struct job *j, const void *bytes, size_t len, size_t *ret_taken, struct err *e)
{
	struct channel *c = j->channel;
	size_t taken = 0;
	int r = 0;
	pthread_mutex_lock(&c->lock);
	if (j->lost)
		r = lost(c, e);
	else if (j->stdin_closed || j->ended)
		r = err_set(e, ERR_CONFLICT, "the command's stdin is closed");
	while (r == 0 && taken < len && j->tx_window && c->tx_window) {
		size_t piece =
			MIN(MIN(len - taken, (size_t)PROTO_PAYLOAD_MAX), MIN(j->tx_window, c->tx_window));
		j->tx_window -= piece;
		c->tx_window -= piece;
		if (!channel_send_locked(c, PROTO_DATA, PROTO_STDIN, j->id, (const char *)bytes + taken,
					 piece))
			r = lost(c, e);
		else
			taken += piece;
	}
	if (r == 0) {
		j->tx_starved = taken < len;
		*ret_taken = taken;
	}
	pthread_mutex_unlock(&c->lock);
	return r;
}

void job_close_stdin(struct job *j)
{
	pthread_mutex_lock(&j->channel->lock);
	if (!j->stdin_closed) {
		j->stdin_closed = true;
		channel_send_locked(j->channel, PROTO_EOF, PROTO_STDIN, j->id, NULL, 0);
	}
	pthread_mutex_unlock(&j->channel->lock);
}

void channel_cancel_job(struct channel *c, uint32_t id, int grace_ms)
{
	pthread_mutex_lock(&c->lock);
	channel_send_u64_locked(c, PROTO_CANCEL, 0, id, PROTO_F_GRACE_MS, (uint64_t)grace_ms);
	pthread_mutex_unlock(&c->lock);
}

void job_cancel(struct job *j, int grace_ms)
{
	channel_cancel_job(j->channel, j->id, grace_ms);
}

/* Nobody waits for it, and each write is a pass through the engine's relay: a START that needs the place
 * takes it along. */
void job_forget(struct job *j)
{
	pthread_mutex_lock(&j->channel->lock);
	channel_queue_locked(j->channel, PROTO_FORGET, 0, j->id, NULL, 0);
	pthread_mutex_unlock(&j->channel->lock);
}

void channel_forget_job(struct channel *c, uint32_t id)
{
	pthread_mutex_lock(&c->lock);
	channel_send_locked(c, PROTO_FORGET, 0, id, NULL, 0);
	pthread_mutex_unlock(&c->lock);
}

void channel_drop_job(struct channel *c, uint32_t id)
{
	pthread_mutex_lock(&c->lock);
	channel_send_u64_locked(c, PROTO_CANCEL, 0, id, PROTO_F_GRACE_MS, 0);
	channel_send_locked(c, PROTO_FORGET, 0, id, NULL, 0);
	pthread_mutex_unlock(&c->lock);
}
