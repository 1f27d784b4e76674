/* SPDX-License-Identifier: MIT */
/* Reading a command's output until its end: by its starter, or by the collector when that one is gone. */
#include <poll.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "manager/builtin.h"
#include "manager/internal.h"

#define SLICE_MS 1000     /* a stop of berthd is noticed so often */
#define COLLECT_STEPS 64  /* of one exec before the others have their turn */
#define UNKNOWN "unknown" /* the reason of an end that nobody saw */

static const char *const forgotten = "the sandbox does not know the command any more";
static const char *const never_sent = "the link was lost before the command was started: nothing of it ran";

/* ---- steps of the owner ---- */

void exec_push_stdin(struct exec *x)
{
	struct err e;
	size_t taken = 0;
	if (!x->stdin_data || !x->job)
		return;
	/* A command that has closed its stdin or has ended gets no more: both is its own business. */
	if (job_write(x->job, x->stdin_data + x->stdin_at, x->stdin_len - x->stdin_at, &taken, &e) < 0)
		return;
	x->stdin_at += taken;
	if (x->stdin_at < x->stdin_len)
		return;
	/* The text stays until the end: what is under way to the agent is sent again when the link is lost.
	 */
	job_close_stdin(x->job);
}

static void finish_by_end(struct exec *x)
{
	const struct job_end *end = job_get_end(x->job);
	_cleanup_free_ char *detail =
		end->sys ? xasprintf("%s: %s", end->detail, strerrordesc_np(end->sys)) : xstrdup(end->detail);
	exec_finish(x, end, proto_reason_name(end->reason), detail);
}

static void wake_watchers(struct exec *x)
{
	pthread_mutex_lock(&x->lock);
	pthread_cond_broadcast(&x->changed);
	pthread_mutex_unlock(&x->lock);
}

static void set_pid(struct exec *x, int pid)
{
	pthread_mutex_lock(&x->lock);
	bool news = pid > 0 && x->pid != pid;
	if (news)
		x->pid = pid;
	pthread_cond_broadcast(&x->changed);
	pthread_mutex_unlock(&x->lock);
	if (news)
		store_exec_started(x->session->manager->store, x->id, pid);
}

/* The reference moves in. */
static void set_job(struct exec *x, struct job *j)
{
	if (x->job)
		job_set_notify(x->job, NULL, NULL);
	pthread_mutex_lock(&x->lock);
	struct job *old = x->job;
	x->job = j;
	pthread_mutex_unlock(&x->lock);
	job_unref(old);
}

void exec_set_number(struct exec *x, struct channel *c, uint32_t number)
{
	pthread_mutex_lock(&x->lock);
	struct channel *old = x->known_on;
	x->known_on = channel_ref(c);
	x->job_number = number;
	pthread_mutex_unlock(&x->lock);
	channel_unref(old);
}

/* One thing from the job, kept for the reply. JOB_TIMEOUT: nothing in time. */
static enum job_event step(struct exec *x, int timeout_ms, int client_fd)
{
	enum job_event ev = job_next(x->job, timeout_ms, client_fd, &x->output);
	switch (ev) {
	case JOB_OUTPUT:
		x->seen[x->output.stream] += x->output.len;
		capture_add(&x->capture, x->output.bytes, x->output.len);
		break;
	case JOB_GAP:
		x->seen[x->output.stream] += x->output.gap_bytes;
		capture_lose(&x->capture, x->output.gap_bytes);
		break;
	case JOB_WRITABLE:
		exec_push_stdin(x);
		wake_watchers(x); /* a process's stdin is written by others */
		break;
	case JOB_STARTED:
		set_pid(x, job_get_pid(x->job));
		break;
	case JOB_END:
		finish_by_end(x);
		break;
	default:
		break;
	}
	return ev;
}

/* An earlier berthd took the rest of a command's input with it. It must not take a piece for the whole. */
static bool is_cut_off(const struct exec *x, const struct channel_job_info *info)
{
	return !x->stdin_data && info->state != PROTO_JOB_ENDED && (uint64_t)info->stdin_bytes < x->stdin_len;
}

static void attach_stdin(struct exec *x, const struct channel_job_info *info)
{
	if (x->stdin_data) {
		x->stdin_at = MIN((size_t)info->stdin_bytes, x->stdin_len);
		exec_push_stdin(x);
	} else {
		job_close_stdin(x->job);
	}
}

/* Writers go on from where the agent is. */
static void attach_writers(struct exec *x, const struct channel_job_info *info)
{
	pthread_mutex_lock(&x->lock);
	x->input.open = info->stdin_open;
	x->input.taken = (uint64_t)info->stdin_bytes;
	x->input.attached++;
	pthread_mutex_unlock(&x->lock);
}

static int attach(struct exec *x, struct channel *c, const struct channel_job_info *info, struct err *e)
{
	struct job *j = NULL;
	int r = x->kind == EXEC_PROCESS
			? job_adopt(c, info, &j, e)
			: job_attach(c, info, x->split, x->seen[PROTO_STDOUT], x->seen[PROTO_STDERR], &j, e);
	if (r < 0)
		return r;
	/* A writer borrows the job as soon as it sees it: it must know by then where to go on. */
	if (x->kind == EXEC_PROCESS)
		attach_writers(x, info);
	exec_set_number(x, c, info->job);
	set_job(x, j);
	if (info->state == PROTO_JOB_STARTING)
		job_go(j); /* its row is durable; the first go may have been lost */
	bool cut_off = is_cut_off(x, info);
	pthread_mutex_lock(&x->lock);
	if (cut_off && x->cancel_grace_ms < 0)
		x->cancel_grace_ms = MANAGER_CANCEL_GRACE_MS;
	int grace_ms = x->cancel_grace_ms;
	pthread_mutex_unlock(&x->lock);
	if (grace_ms >= 0)
		job_cancel(j, grace_ms);
	if (x->kind == EXEC_PROCESS)
		set_pid(x, info->pid); /* and wakes who waits for the job */
	else if (!cut_off)
		attach_stdin(x, info);
	return 0;
}

const struct channel_job_info *exec_find_tag(const struct channel_job_info *jobs, size_t count,
					     const char *tag)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(jobs[i].tag, tag) == 0)
			return &jobs[i];
	return NULL;
}

/* The starter's: a new link, and the job on it. Finishes the exec when there is none any more. */
static void attach_again(struct exec *x, int timeout_ms)
{
	struct channel_job_info jobs[PROTO_JOBS_MAX];
	size_t count = 0;
	struct err e;
	_cleanup_(channel_unref_cleanup_) struct channel *c = NULL;
	int r = session_channel(x->session, timeout_ms, &c, &e);
	if (r == 0)
		r = channel_list(c, jobs, &count, EXEC_LIST_TIMEOUT_MS, &e);
	if (r == -ERR_GONE) {
		exec_finish(x, NULL, proto_reason_name(PROTO_SANDBOX_LOST), e.msg);
		return;
	}
	if (r < 0)
		return; /* tried again by the caller, within its time */
	const struct channel_job_info *info = exec_find_tag(jobs, count, x->id);
	if (!info && x->started) /* it is another agent: the container was started again */
		exec_finish(x, NULL, proto_reason_name(PROTO_SANDBOX_LOST), forgotten);
	else if (!info && x->agent == channel_get_agent(c)) /* it forgets no job by itself: it never got it */
		exec_finish(x, NULL, proto_reason_name(PROTO_START_FAILED), never_sent);
	else if (!info) /* its start was lost on the way, or so was the word of it: nobody can tell */
		exec_finish(x, NULL, UNKNOWN, forgotten);
	else
		(void)!attach(x, c, info, &e);
}

/* ---- the starter ---- */

void exec_hand_over(struct exec *x)
{
	bool had_job = x->job != NULL; /* the collector's from the unlock on */
	pthread_mutex_lock(&x->lock);
	x->owner = EXEC_OF_COLLECTOR;
	pthread_mutex_unlock(&x->lock);
	/* The link may have been opened already, and its jobs given out, while this exec was not the
	 * collector's. */
	if (!had_job) {
		pthread_mutex_lock(&x->session->lock);
		x->session->resume_wanted = true;
		pthread_mutex_unlock(&x->session->lock);
		janitor_wake(x->session->manager->janitor, false);
	}
	collector_wake(x->session->manager->collector, x);
}

static void cancel(struct exec *x, int grace_ms)
{
	pthread_mutex_lock(&x->lock);
	x->cancel_grace_ms = grace_ms;
	pthread_mutex_unlock(&x->lock);
	if (x->job)
		job_cancel(x->job, grace_ms);
}

/* The client has gone. Its command ends with it, unless it can be asked for again by its key, or it is berthd
 * that stops. */
void exec_abandon(struct exec *x)
{
	if (!x->key && !atomic_load(&x->session->manager->quiet))
		cancel(x, MANAGER_CANCEL_GRACE_MS);
	exec_hand_over(x);
}

static enum exec_event hang_up(struct exec *x)
{
	exec_abandon(x);
	return EXEC_HANGUP;
}

/* Makes text of what has arrived. False: it is no whole character yet. */
static bool hand_out(struct exec *x, struct exec_output *ret)
{
	struct err e;
	int stream = x->output.stream;
	*ret = (struct exec_output){ .stream = stream, .dropped = x->output.gap_bytes };
	if (x->base64) {
		ret->data = x->output.bytes;
		ret->len = x->output.len;
		return true;
	}
	buf_reset(&x->text);
	if (utf8_feed(&x->utf8[stream], x->output.bytes, x->output.len, &x->text, &e) < 0)
		return false; /* cannot be: text holds three bytes for each of a frame */
	ret->data = x->text.data ? x->text.data : "";
	ret->len = x->text.len;
	return x->text.len || ret->dropped;
}

/* The ends of the streams: a character that was cut off there. */
static bool hand_out_rest(struct exec *x, struct exec_output *ret)
{
	struct err e;
	buf_reset(&x->text);
	for (int stream = PROTO_STDOUT; stream <= PROTO_STDERR; stream++) {
		if (!x->utf8[stream].held_len || utf8_finish(&x->utf8[stream], &x->text, &e) < 0)
			continue;
		*ret = (struct exec_output){ .stream = stream, .data = x->text.data, .len = x->text.len };
		return true;
	}
	return false;
}

bool exec_is_mine(struct exec *x)
{
	pthread_mutex_lock(&x->lock);
	bool mine = x->owner == EXEC_OF_STARTER && pthread_equal(x->starter, pthread_self());
	pthread_mutex_unlock(&x->lock);
	return mine;
}

/* One slice of waiting. EXEC_QUIET: go on. */
static enum exec_event next_slice(struct exec *x, int slice_ms, int client_fd, struct exec_output *ret)
{
	if (!x->job) {
		attach_again(x, slice_ms);
		struct pollfd fd = { .fd = client_fd, .events = POLLRDHUP };
		return client_fd >= 0 && poll(&fd, 1, 0) > 0 ? hang_up(x) : EXEC_QUIET;
	}
	switch (step(x, slice_ms, client_fd)) {
	case JOB_OUTPUT:
	case JOB_GAP:
		return x->stream && hand_out(x, ret) ? EXEC_OUTPUT : EXEC_QUIET;
	case JOB_LOST:
		x->started = x->started || job_is_started(x->job);
		set_job(x, NULL);
		return EXEC_QUIET;
	case JOB_HANGUP:
		return hang_up(x);
	default:
		return EXEC_QUIET;
	}
}

static enum exec_event at_end(struct exec *x, struct exec_output *ret)
{
	return x->stream && !x->base64 && hand_out_rest(x, ret) ? EXEC_OUTPUT : EXEC_END;
}

enum exec_event exec_next(struct exec *x, int timeout_ms, int client_fd, struct exec_output *ret)
{
	int64_t deadline = clock_mono_ms() + timeout_ms;
	struct manager *m = x->session->manager;
	bool mine = exec_is_mine(x);
	do {
		if (exec_has_ended(x))
			return mine ? at_end(x, ret) : EXEC_END;
		int slice = (int)MIN(clock_left_ms(deadline), SLICE_MS);
		if (atomic_load(&m->quiet)) {
			if (mine)
				exec_hand_over(x);
			return EXEC_SHUTDOWN;
		}
		enum exec_event ev = EXEC_QUIET;
		if (mine)
			ev = next_slice(x, slice, client_fd, ret);
		else
			(void)exec_wait(x, slice, client_fd);
		if (ev != EXEC_QUIET)
			return ev;
	} while (clock_left_ms(deadline) > 0);
	return exec_has_ended(x) ? (mine ? at_end(x, ret) : EXEC_END) : EXEC_QUIET;
}

void exec_cancel(struct exec *x, int grace_ms)
{
	pthread_mutex_lock(&x->lock);
	x->cancel_grace_ms = grace_ms;
	uint32_t number = x->job_number;
	_cleanup_(channel_unref_cleanup_) struct channel *c = x->known_on ? channel_ref(x->known_on) : NULL;
	pthread_mutex_unlock(&x->lock);
	/* After the grace was set: a link that is opened from now on tells it by itself. */
	if (c && number)
		channel_cancel_job(c, number, grace_ms);
}

/* ---- the collector ---- */

/* What others have asked for: the end, or a new link. False: it has ended. */
static bool take_orders(struct exec *x)
{
	pthread_mutex_lock(&x->lock);
	bool mine = x->owner == EXEC_OF_COLLECTOR && !x->reply;
	struct channel *c = mine ? STEAL_PTR(x->resume) : NULL;
	struct channel_job_info info = x->resume_info;
	const char *lost = x->lost_reason;
	_cleanup_free_ char *detail = mine && lost ? STEAL_PTR(x->lost_detail) : NULL;
	pthread_mutex_unlock(&x->lock);
	if (!mine)
		return false;
	if (lost) {
		exec_finish(x, NULL, lost, detail);
		return false;
	}
	struct err e;                                     /* a link that broke again: the next one comes */
	bool there = c && x->job && job_is_on(x->job, c); /* attached before it was handed over */
	if (c && !there && attach(x, c, &info, &e) == 0)
		job_set_notify(x->job, collector_notify, x);
	channel_unref(c);
	return true;
}

/* Without a job: a link will bring it one, unless the session has ended, whose execs_lost() has passed
 * already. */
static void rest(struct exec *x)
{
	enum session_state state = session_get_state(x->session);
	if (state == SESSION_READY || state == SESSION_PAUSED)
		janitor_wake(x->session->manager->janitor, false);
	else
		exec_finish(x, NULL, proto_reason_name(PROTO_SANDBOX_LOST), "the session has ended");
}

void exec_collect(struct exec *x)
{
	if (!take_orders(x))
		return;
	if (!x->job) {
		rest(x);
		return;
	}
	job_set_notify(x->job, collector_notify, x);
	for (int i = 0; i < COLLECT_STEPS; i++) {
		switch (step(x, 0, -1)) {
		case JOB_TIMEOUT:
		case JOB_END:
			return;
		case JOB_LOST:
			set_job(x, NULL);
			/* A link may have come meanwhile; otherwise the janitor opens one. */
			if (!take_orders(x))
				return;
			if (x->job)
				continue;
			rest(x);
			return;
		default:
			break;
		}
	}
	collector_wake(x->session->manager->collector, x);
}

static void end_by_collector(struct exec *x, const char *reason, const char *detail)
{
	pthread_mutex_lock(&x->lock);
	bool mine = x->owner == EXEC_OF_COLLECTOR && !x->reply && !x->lost_reason;
	if (mine) {
		x->lost_reason = reason;
		x->lost_detail = xstrdup(detail);
	}
	pthread_mutex_unlock(&x->lock);
	if (mine)
		collector_wake(x->session->manager->collector, x);
}

void execs_lost(struct session *s, const char *detail)
{
	size_t count = 0;
	_cleanup_free_ struct exec **all = execs_all(s, &count);
	for (size_t i = 0; i < count; i++) {
		end_by_collector(all[i], proto_reason_name(PROTO_SANDBOX_LOST), detail);
		exec_put(all[i]);
	}
}

static void resume_one(struct exec *x, struct channel *c, const struct channel_job_info *info)
{
	if (x->kind == EXEC_PROCESS) /* also one that has ended: its output is read by the number */
		exec_set_number(x, c, info ? info->job : 0);
	pthread_mutex_lock(&x->lock);
	bool mine = x->owner == EXEC_OF_COLLECTOR && !x->reply;
	bool same_agent = x->agent == channel_get_agent(c);
	if (mine && info) {
		channel_unref(x->resume);
		x->resume = channel_ref(c);
		x->resume_info = *info;
	}
	pthread_mutex_unlock(&x->lock);
	if (mine && !info && same_agent)
		end_by_collector(x, proto_reason_name(PROTO_START_FAILED), never_sent);
	else if (mine && !info)
		end_by_collector(x, UNKNOWN, forgotten);
	else if (mine)
		collector_wake(x->session->manager->collector, x);
}

static bool is_ours(const char *tag)
{
	return id_is(exec_kinds[EXEC_COMMAND].prefix, tag) || id_is(exec_kinds[EXEC_PROCESS].prefix, tag) ||
	       id_is(BUILTIN_TAG_PREFIX, tag);
}

/* Jobs of an earlier berthd that got no row, or whose end is stored already. */
static void drop_unknown(struct session *s, struct channel *c, const struct channel_job_info *jobs,
			 size_t count, struct exec **all, size_t exec_count)
{
	for (size_t i = 0; i < count; i++) {
		bool known = false;
		for (size_t k = 0; k < exec_count; k++)
			known = known || strcmp(all[k]->id, jobs[i].tag) == 0;
		if (known || !is_ours(jobs[i].tag) || builtin_is_live(s, c, jobs[i].tag))
			continue;
		/* What a command that has ended well has left running stays. */
		if (jobs[i].state == PROTO_JOB_ENDED)
			channel_forget_job(c, jobs[i].job);
		else
			channel_drop_job(c, jobs[i].job);
	}
}

void execs_resume(struct session *s, struct channel *c)
{
	struct channel_job_info jobs[PROTO_JOBS_MAX];
	size_t count = 0, exec_count = 0;
	struct err e;
	if (channel_list(c, jobs, &count, EXEC_LIST_TIMEOUT_MS, &e) < 0)
		return; /* the link broke again: the next one comes here, too */
	/* After the list: an exec is in our list before its job is in the agent's. */
	_cleanup_free_ struct exec **all = execs_all(s, &exec_count);
	drop_unknown(s, c, jobs, count, all, exec_count);
	for (size_t i = 0; i < exec_count; i++) {
		resume_one(all[i], c, exec_find_tag(jobs, count, all[i]->id));
		exec_put(all[i]);
	}
}

/* ---- after a restart ---- */

static void close_row(struct manager *m, const struct exec_row *row)
{
	if (row->ended_ms)
		return;
	struct audit_row audit =
		audit_of(NULL, exec_kinds[row->kind].end, row->session, row->command, UNKNOWN, NULL);
	audit.exec = row->id;
	store_exec_end(m->store, row->id, UNKNOWN, "{}", clock_wall_ms(), &audit, NULL, NULL);
}

static void load_options(struct exec *x, const struct exec_row *row)
{
	struct err e;
	_cleanup_json_ json_t *options = NULL;
	int64_t limit = x->session->manager->settings->max_output;
	if (row->options && json_text_parse(row->options, strlen(row->options), &options, &e) == 0) {
		limit = json_integer_value(json_object_get(options, "limit"));
		x->stdin_len = (size_t)json_integer_value(json_object_get(options, "stdin"));
		x->base64 = json_is_true(json_object_get(options, "base64"));
		x->split = json_is_true(json_object_get(options, "split"));
	}
	capture_init(&x->capture, (size_t)limit, x->base64);
}

/* A process that had ended: the agent has its output. */
static void load_end(struct exec *x, struct exec_row *row)
{
	struct err e;
	x->ended_ms = row->ended_ms;
	x->reason = STEAL_PTR(row->reason);
	if (!row->reply || json_text_parse(row->reply, strlen(row->reply), &x->reply, &e) < 0)
		x->reply = json_object();
	x->saving = true; /* was saved */
}

static void load_one(struct manager *m, struct exec_row *row)
{
	_cleanup_(session_unref_cleanup_) struct session *s = sessions_peek(m, row->session);
	if (!s) {
		close_row(m, row);
		return;
	}
	struct exec *x = exec_new(s, row->id);
	x->command = STEAL_PTR(row->command);
	x->name = STEAL_PTR(row->name);
	x->key = STEAL_PTR(row->key);
	x->request_hash = STEAL_PTR(row->request_hash);
	x->started_ms = row->started_ms;
	x->pid = (int)row->pid;
	x->kept = row->kept;
	x->owner = EXEC_OF_COLLECTOR;
	load_options(x, row);
	if (row->ended_ms)
		load_end(x, row);
	x->has_slot = !row->ended_ms;
	pthread_mutex_lock(&s->lock);
	s->slots.taken += x->has_slot && x->kind == EXEC_COMMAND;
	s->processes += x->has_slot && x->kind == EXEC_PROCESS;
	s->process_jobs += x->kept;
	pthread_mutex_unlock(&s->lock);
	exec_list_add(x);
	exec_put(x);
}

int execs_load(struct manager *m, struct err *e)
{
	struct exec_row *rows = NULL;
	size_t count = 0;
	int r = store_exec_live(m->store, &rows, &count, e);
	if (r < 0)
		return r;
	for (size_t i = 0; i < count; i++)
		load_one(m, &rows[i]);
	exec_rows_free(rows, count);
	return 0;
}
