/* SPDX-License-Identifier: MIT */
#include "manager/builtin.h"

#include <string.h>

#include "base/clock.h"
#include "manager/builtin_reader.h"
#include "manager/internal.h"

#define SLICE_MS 1000 /* a stop of berthd is noticed so often */
#define CANCEL_GRACE_MS 1000
#define CANCEL_WAIT_MS \
	3000 /* until its place may be another's, whether it is free in the agent's table or not */
/* What a job may say while it is still written to: a whole report. */
#define EARLY_MAX ((BUILTIN_REPORT_MAX + 2) * (size_t)(BUILTIN_ENTRY_MAX + PROTO_FIELD_HEADER))

struct builtin_job {
	struct session *session;        /* a reference */
	struct channel *channel;        /* likewise */
	TAILQ_ENTRY(builtin_job) entry; /* in session->builtins, under its lock */
	char id[ID_SIZE];
	const char *name; /* a constant of the caller's */
	bool raw, transfer, slow, closed;
	int client_fd, patience_ms;
	struct job *job;
	struct builtin_reader out, aside;
	bool has_entry; /* of raw: bytes follow */
	bool ended, early_taken;
	struct buf early;
	const char *at; /* what is not looked at yet of the last piece */
	size_t left;
	int stream;
	struct err why; /* once it has failed */
};

/* ---- the table of those that run ---- */

static bool has_desk(const struct session *s)
{
	return s->desks.taken < BUILTIN_SHORT;
}

static bool has_transfer(const struct session *s)
{
	return s->transfers.taken < BUILTIN_TRANSFERS;
}

static int refuse_desk(int taken, struct err *e)
{
	return err_set(e, ERR_LIMIT, "%d requests for files of this session are at work already", taken);
}

static int refuse_transfer(int taken, struct err *e)
{
	return err_set(e, ERR_LIMIT, "%d transfers of this session are under way already", taken);
}

static struct line *line_of(struct session *s, bool transfer)
{
	return transfer ? &s->transfers : &s->desks;
}

void builtin_session_init(struct session *s)
{
	TAILQ_INIT(&s->builtins);
	line_init(&s->desks, has_desk, refuse_desk);
	line_init(&s->transfers, has_transfer, refuse_transfer);
}

bool builtin_is_live(struct session *s, const struct channel *c, const char *tag)
{
	bool found = false;
	const struct builtin_job *b;
	pthread_mutex_lock(&s->lock);
	TAILQ_FOREACH (b, &s->builtins, entry)
		found = found || (b->channel == c && !strcmp(b->id, tag));
	pthread_mutex_unlock(&s->lock);
	return found;
}

static void enter(struct builtin_job *b)
{
	pthread_mutex_lock(&b->session->lock);
	TAILQ_INSERT_TAIL(&b->session->builtins, b, entry);
	pthread_mutex_unlock(&b->session->lock);
}

static void leave(struct builtin_job *b)
{
	pthread_mutex_lock(&b->session->lock);
	TAILQ_REMOVE(&b->session->builtins, b, entry);
	line_give_locked(b->session, line_of(b->session, b->transfer), 1);
	pthread_mutex_unlock(&b->session->lock);
}

/* ---- life ---- */

static int send_start(struct builtin_job *b, const struct builtin_ask *ask, struct err *e)
{
	const struct job_spec spec = {
		.tag = b->id,
		.argv = ask->args,
		.builtin = ask->name,
		.cwd = b->session->manager->settings->workspace,
		.keep = PROTO_KEEP_BLOCK,
		.tail_bytes = 2 * PROTO_JOB_WINDOW,
		.has_stdin = ask->has_stdin,
		.split = ask->split,
	};
	int r = job_start(b->channel, &spec, &b->job, e);
	if (r == 0)
		job_go(b->job); /* it is no command: no row has to be there before */
	return r;
}

/* Its link was lost before it began, or while it ran. */
static int lost(struct builtin_job *b, struct err *e)
{
	enum session_state state = session_get_state(b->session);
	if (state != SESSION_READY && state != SESSION_PAUSED)
		return err_set(e, ERR_GONE, "session %s has ended", b->session->id);
	err_set(e, ERR_SANDBOX, "the link to the sandbox was lost while %s was at work", b->name);
	e->retry_after_s = 1;
	return -ERR_SANDBOX;
}

int builtin_start(struct session *s, const struct builtin_ask *ask, struct builtin_job **ret, struct err *e)
{
	int line_ms = ask->patience_ms ? ask->patience_ms : BUILTIN_LINE_MS;
	int link_ms = ask->patience_ms ? ask->patience_ms : MANAGER_CONNECT_TIMEOUT_MS;
	bool transfer = ask->raw || ask->has_stdin;
	int r = line_take(s, line_of(s, transfer), line_ms, ask->client_fd, e);
	if (r < 0)
		return r;
	struct builtin_job *b = xcalloc(1, sizeof(*b));
	b->session = session_ref(s);
	b->name = ask->name;
	b->raw = ask->raw;
	b->transfer = transfer;
	b->slow = ask->slow;
	b->client_fd = ask->client_fd;
	b->patience_ms = ask->patience_ms;
	b->out = b->aside = BUILTIN_READER_INIT;
	b->early = BUF_INIT(EARLY_MAX);
	id_new(BUILTIN_TAG_PREFIX, b->id);
	r = session_channel(s, link_ms, &b->channel, e);
	/* In the table before the agent has it, so that a reconnect does not take the job for a stranger's.
	 */
	enter(b);
	session_touch(s);
	if (r == 0)
		r = send_start(b, ask, e);
	if (r < 0) {
		b->ended = true;
		builtin_free(b);
		return r;
	}
	*ret = b;
	return 0;
}

/* Its place in the agent's table is free when it has ended. */
static void cancel(struct builtin_job *b)
{
	struct job_output ignored;
	int64_t deadline = clock_mono_ms() + CANCEL_WAIT_MS;
	enum job_event ev = JOB_TIMEOUT;
	job_cancel(b->job, CANCEL_GRACE_MS);
	while (ev != JOB_END && ev != JOB_LOST && clock_left_ms(deadline) > 0)
		ev = job_next(b->job, (int)clock_left_ms(deadline), -1, &ignored);
}

void builtin_free(struct builtin_job *b)
{
	if (!b)
		return;
	if (b->job && !b->ended)
		cancel(b);
	if (b->job)
		job_forget(b->job);
	leave(b);
	session_touch(b->session);
	job_unref(b->job);
	channel_unref(b->channel);
	session_unref(b->session);
	builtin_reader_clear(&b->out);
	builtin_reader_clear(&b->aside);
	buf_clear(&b->early);
	free(b);
}

/* ---- waiting ---- */

static int fail(struct builtin_job *b, struct err *e)
{
	b->why = *e;
	return -(int)e->code;
}

/* The agent's word of its end. What it said counts only when it came to its own end. */
static int judge_end(struct builtin_job *b, struct err *e)
{
	const struct job_end *end = job_get_end(b->job);
	b->ended = true;
	if (end->survivors)
		session_doom(b->session, "sandbox_lost", "processes of a built-in could not be killed");
	if (end->reason == PROTO_EXITED && end->code == 0)
		return 0;
	if (exec_found_no_room(end->detail))
		return exec_no_room(e);
	const char *why = *end->detail ? end->detail : proto_reason_name(end->reason);
	if (end->sys)
		return err_sys(e, ERR_SANDBOX, end->sys, "%s did not come to its end in the sandbox: %s",
			       b->name, why);
	return err_set(e, ERR_SANDBOX, "%s did not come to its end in the sandbox: %s", b->name, why);
}

static int stall_ms(const struct builtin_job *b)
{
	bool silent = b->slow && (b->closed || b->raw || !b->has_entry);
	if (b->patience_ms)
		return b->patience_ms;
	return silent ? BUILTIN_LONG_STALL_MS : BUILTIN_STALL_MS;
}

/* One event that is no time-out. Before JOB_END is returned it was judged to be a good one. */
static int wait_event(struct builtin_job *b, enum job_event *ret, struct job_output *out, struct err *e)
{
	int64_t deadline = clock_mono_ms() + stall_ms(b);
	do {
		*ret = job_next(b->job, (int)MIN(clock_left_ms(deadline), SLICE_MS), b->client_fd, out);
		if (*ret == JOB_LOST) {
			b->ended = true;
			return lost(b, e);
		}
		if (*ret == JOB_HANGUP)
			return err_set(e, ERR_CONFLICT, "the client has gone");
		if (*ret == JOB_GAP)
			return err_set(e, ERR_SANDBOX, "bytes of %s are lost", b->name);
		if (*ret == JOB_END)
			return judge_end(b, e);
		if (*ret != JOB_TIMEOUT)
			return 0;
		if (atomic_load(&b->session->manager->quiet))
			return err_set(e, ERR_STOPPING, "berthd is stopping");
	} while (clock_left_ms(deadline) > 0);
	return err_set(e, ERR_TIMEOUT, "%s does not get on in the sandbox", b->name);
}

/* ---- what it says ---- */

static int take_bytes(struct builtin_job *b, struct builtin_piece *ret)
{
	*ret = (struct builtin_piece){ .bytes = b->at, .len = b->left };
	b->left = 0;
	return BUILTIN_BYTES;
}

/* A record out of the piece at hand. -1: there is none yet, which is no error of the enum's range. */
static int take_record(struct builtin_job *b, struct builtin_piece *ret, bool *ret_there, struct err *e)
{
	struct builtin_record record;
	bool aside = b->stream == PROTO_STDERR;
	int r = builtin_reader_take(aside ? &b->aside : &b->out, &b->at, &b->left, &record, e);
	*ret_there = r == 1;
	if (r <= 0)
		return r;
	*ret = (struct builtin_piece){ .aside = aside, .entry = record.entry, .done = record.done };
	b->has_entry = b->has_entry || !aside;
	return record.is_done ? BUILTIN_DONE : BUILTIN_ENTRY;
}

static void take_early(struct builtin_job *b)
{
	b->early_taken = true;
	b->at = b->early.data;
	b->left = b->early.len;
	b->stream = PROTO_STDOUT;
}

static int at_end(struct builtin_job *b, struct err *e)
{
	if (builtin_reader_is_between(&b->out) && builtin_reader_is_between(&b->aside))
		return BUILTIN_END;
	return err_set(e, ERR_SANDBOX, "the sandbox's agent sent half a record");
}

static int next(struct builtin_job *b, struct builtin_piece *ret, struct err *e)
{
	for (;;) {
		bool there = false;
		if (b->left && b->raw && b->has_entry && b->stream == PROTO_STDOUT)
			return take_bytes(b, ret);
		int r = b->left ? take_record(b, ret, &there, e) : 0;
		if (there || r < 0)
			return r;
		if (!b->early_taken && b->early.len) {
			take_early(b);
			continue;
		}
		if (b->ended)
			return at_end(b, e);
		enum job_event ev;
		struct job_output out;
		r = wait_event(b, &ev, &out, e);
		if (r < 0)
			return r;
		if (ev == JOB_OUTPUT) {
			b->at = out.bytes;
			b->left = out.len;
			b->stream = out.stream;
		}
	}
}

int builtin_next(struct builtin_job *b, struct builtin_piece *ret, struct err *e)
{
	if (b->why.code) {
		*e = b->why;
		return -(int)e->code;
	}
	int r = next(b, ret, e);
	return r < 0 ? fail(b, e) : r;
}

/* ---- what it is given ---- */

/* Until there is credit. What it says meanwhile is kept: it would stand still if nobody took it. */
static int wait_writable(struct builtin_job *b, struct err *e)
{
	enum job_event ev;
	struct job_output out;
	do {
		int r = wait_event(b, &ev, &out, e);
		if (r == 0 && ev == JOB_OUTPUT)
			r = buf_add(&b->early, out.bytes, out.len, e) < 0
				    ? err_set(e, ERR_SANDBOX, "the sandbox's agent says too much")
				    : 0;
		if (r < 0)
			return fail(b, e);
	} while (ev != JOB_WRITABLE && ev != JOB_END);
	return ev == JOB_END ? err_set(e, ERR_CONFLICT, "%s takes no more", b->name) : 0;
}

int builtin_write(struct builtin_job *b, const void *bytes, size_t len, struct err *e)
{
	for (size_t at = 0, taken; at < len; at += taken) {
		if (b->why.code) {
			*e = b->why;
			return -(int)e->code;
		}
		if (b->ended)
			return err_set(e, ERR_CONFLICT, "%s takes no more", b->name);
		int r = job_write(b->job, (const char *)bytes + at, len - at, &taken, e);
		if (r == -ERR_CONFLICT)
			return r;
		if (r < 0) {
			b->ended = true;
			lost(b, e);
			return fail(b, e);
		}
		if (taken < len - at) {
			r = wait_writable(b, e);
			if (r < 0)
				return r;
		}
	}
	return 0;
}

void builtin_close(struct builtin_job *b)
{
	b->closed = true;
	b->client_fd = -1;
	job_close_stdin(b->job);
}
