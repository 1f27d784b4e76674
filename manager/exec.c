/* SPDX-License-Identifier: MIT */
/* A command of a session: its life, its reply, its end in the store. */
#include <poll.h>
#include <string.h>
#include <time.h>

#include "base/base64.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/metrics.h"
#include "manager/internal.h"

#define SLICE_MS 1000 /* a client that has gone, and a stop of berthd, is noticed so often */

const struct exec_kind_info exec_kinds[] = {
	[EXEC_COMMAND] = { "e_", "exec.start", "exec.end", "exec" },
	[EXEC_PROCESS] = { "p_", "process.start", "process.end", "process" },
};

struct exec *exec_new(struct session *s, const char *id)
{
	struct exec *x = xcalloc(1, sizeof(*x));
	x->session = session_ref(s);
	atomic_init(&x->refs, 1);
	x->id = xstrdup(id);
	x->kind = id_is(exec_kinds[EXEC_PROCESS].prefix, id) ? EXEC_PROCESS : EXEC_COMMAND;
	x->cancel_grace_ms = -1;
	TAILQ_INIT(&x->input.writers);
	x->text = BUF_INIT(4 * PROTO_PAYLOAD_MAX);
	pthread_mutex_init(&x->lock, NULL);
	pthread_condattr_t attr;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&x->changed, &attr);
	pthread_condattr_destroy(&attr);
	return x;
}

struct exec *exec_ref(struct exec *x)
{
	atomic_fetch_add(&x->refs, 1);
	return x;
}

static void drop_stdin(struct exec *x)
{
	free(STEAL_PTR(x->stdin_data));
	atomic_fetch_sub(&x->session->manager->stdin_bytes, (int64_t)x->stdin_held);
	x->stdin_held = 0;
}

static void drop(struct exec *x)
{
	if (x->job)
		job_set_notify(x->job, NULL, NULL);
	drop_stdin(x);
	job_unref(x->job);
	channel_unref(x->resume);
	channel_unref(x->known_on);
	session_unref(x->session);
	capture_clear(&x->capture);
	buf_clear(&x->text);
	json_decref(x->reply);
	char *texts[] = { x->id,    x->command, x->name,        x->key,   x->request_hash,
			  x->actor, x->address, x->lost_detail, x->reason };
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		free(texts[i]);
	pthread_mutex_destroy(&x->lock);
	pthread_cond_destroy(&x->changed);
	free(x);
}

/* Its starter gives it up while it runs. */
static bool is_abandoned(struct exec *x)
{
	pthread_mutex_lock(&x->lock);
	bool yes = x->owner == EXEC_OF_STARTER && !x->reply && pthread_equal(x->starter, pthread_self());
	pthread_mutex_unlock(&x->lock);
	return yes;
}

void exec_put(struct exec *x)
{
	if (x && atomic_fetch_sub(&x->refs, 1) == 1)
		drop(x);
}

void exec_unref(struct exec *x)
{
	if (x && is_abandoned(x))
		exec_abandon(x);
	exec_put(x);
}

const char *exec_get_id(const struct exec *x)
{
	return x->id;
}

static atomic_int_least64_t *running_of(struct exec *x)
{
	struct manager *m = x->session->manager;
	return x->kind == EXEC_PROCESS ? &m->processes_running : &m->execs_running;
}

void exec_list_add(struct exec *x)
{
	pthread_mutex_lock(&x->session->lock);
	x->listed = true;
	atomic_fetch_add(&x->refs, 1);
	TAILQ_INSERT_TAIL(&x->session->execs, x, entry);
	pthread_mutex_unlock(&x->session->lock);
	if (!x->ended_ms)
		atomic_fetch_add(running_of(x), 1);
}

void exec_unlist(struct exec *x)
{
	pthread_mutex_lock(&x->session->lock);
	bool was = x->listed;
	if (was)
		TAILQ_REMOVE(&x->session->execs, x, entry);
	x->listed = false;
	pthread_mutex_unlock(&x->session->lock);
	if (was)
		exec_put(x);
}

void exec_unlist_unstarted(struct exec *x)
{
	atomic_fetch_sub(running_of(x), 1);
	exec_unlist(x);
}

struct exec **execs_all(struct session *s, size_t *ret_count)
{
	size_t count = 0;
	struct exec *x;
	pthread_mutex_lock(&s->lock);
	TAILQ_FOREACH (x, &s->execs, entry)
		count++;
	struct exec **all = xcalloc(count + 1, sizeof(struct exec *));
	count = 0;
	TAILQ_FOREACH (x, &s->execs, entry)
		all[count++] = exec_ref(x);
	pthread_mutex_unlock(&s->lock);
	*ret_count = count;
	return all;
}

bool exec_has_ended(struct exec *x)
{
	pthread_mutex_lock(&x->lock);
	bool ended = x->reply != NULL;
	pthread_mutex_unlock(&x->lock);
	return ended;
}

/* ---- the end ---- */

static json_t *int_or_null(bool there, int64_t n)
{
	return there ? json_integer(n) : json_null();
}

static json_t *output_of(const struct exec *x, const struct capture_result *got)
{
	if (!x->base64)
		return json_string_lossy(got->text, got->len);
	_cleanup_free_ char *text = base64_encode(got->text, got->len);
	return json_string(text);
}

/* Only of a command: a process's output stays with the agent. */
static void add_output(struct exec *x, json_t *reply)
{
	struct capture_result got;
	capture_finish(&x->capture, &got);
	json_object_set_new(reply, "output", output_of(x, &got));
	json_object_set_new(reply, "truncated", json_boolean(got.truncated));
	json_object_set_new(reply, "dropped_bytes", json_integer((json_int_t)got.dropped_bytes));
	if (x->base64)
		json_object_set_new(reply, "encoding", json_string("base64"));
	free(got.text);
}

/* The reply to POST /exec. An exit code is never made up: it is null unless the command exited. */
static json_t *make_reply(struct exec *x, const struct job_end *end, const char *reason, const char *detail)
{
	static const struct job_end nothing = { .reason = PROTO_SANDBOX_LOST };
	const struct job_end *n = end ? end : &nothing;
	int64_t wall_ms = end ? end->wall_us / 1000 : clock_wall_ms() - x->started_ms;
	json_t *reply = json_object();
	json_object_set_new(reply, "id", json_string(x->id));
	if (x->kind == EXEC_COMMAND)
		add_output(x, reply);
	json_object_set_new(reply, "exit_code", int_or_null(end && n->reason == PROTO_EXITED, n->code));
	json_object_set_new(reply, "timed_out", json_boolean(end && n->reason == PROTO_TIMEOUT));
	json_object_set_new(reply, "duration_ms", json_integer(wall_ms));
	json_object_set_new(reply, "reason", json_string(reason));
	json_object_set_new(reply, "signal", int_or_null(n->signal > 0, n->signal));
	json_object_set_new(reply, "peak_memory", int_or_null(end != NULL, n->peak_bytes));
	json_object_set_new(reply, "cpu_ms", int_or_null(end != NULL, (n->user_us + n->sys_us) / 1000));
	if (detail && *detail)
		json_object_set_new(reply, "detail", json_string_lossy(detail, strlen(detail)));
	if (n->sys)
		json_object_set_new(reply, "errno", json_integer(n->sys));
	if (n->lingering)
		json_object_set_new(reply, "lingering", json_integer(n->lingering));
	return reply;
}

static void log_end(struct exec *x, const struct job_end *end)
{
	const char *code = end && end->reason == PROTO_EXITED ? "exit_code" : "signal";
	int64_t number = !end ? 0 : end->reason == PROTO_EXITED ? end->code : end->signal;
	LOG(LOG_INFO, exec_kinds[x->kind].event, F("session", x->session->id), F("exec", x->id),
	    F("actor", x->actor), log_field_shown("command", x->command), F("reason", x->reason),
	    F(code, number), F("duration_ms", x->ended_ms - x->started_ms));
}

/* On the writer thread. */
static void on_saved(void *ctx, bool ok)
{
	_cleanup_(exec_put_cleanup_) struct exec *x = ctx;
	if (!ok) { /* stays listed: the janitor tries again */
		pthread_mutex_lock(&x->lock);
		x->saving = false;
		pthread_mutex_unlock(&x->lock);
		return;
	}
	if (x->kind == EXEC_PROCESS && process_saved(x)) /* its record and output stay with the agent */
		return;
	/* Nobody changes x->job after the end. */
	if (x->job)
		job_forget(x->job);
	if (x->ending)
		exec_slot_saved(x->session);
	exec_unlist(x);
}

static void save_end(struct exec *x)
{
	pthread_mutex_lock(&x->lock);
	bool go = x->reply && !x->saving;
	x->saving = x->saving || go;
	_cleanup_free_ char *reply = go ? json_text(x->reply) : NULL;
	pthread_mutex_unlock(&x->lock);
	if (!go)
		return;
	const struct caller who = { x->actor ? x->actor : "manager", x->address };
	struct audit_row audit =
		audit_of(&who, exec_kinds[x->kind].end, x->session->id, x->command, x->reason, NULL);
	audit.exec = x->id;
	store_exec_end(x->session->manager->store, x->id, x->reason, reply, x->ended_ms, &audit, on_saved,
		       exec_ref(x));
}

static void count_end(const struct exec *x, const struct job_end *end)
{
	if (x->kind == EXEC_PROCESS) /* which may run for days, and is no command that somebody waits for */
		return;
	metrics_add(METRIC_COMMANDS, x->reason, NULL, 1);
	metrics_observe_us(METRIC_EXEC_SECONDS, end ? end->wall_us : (x->ended_ms - x->started_ms) * 1000);
}

void exec_finish(struct exec *x, const struct job_end *end, const char *reason, const char *detail)
{
	json_t *reply = make_reply(x, end, reason, detail);
	if (x->job)
		job_set_notify(x->job, NULL, NULL); /* nobody may wake it up any more: it may be freed soon */
	drop_stdin(x);
	/* Before the reply is there: from then on the janitor may save the end, too. */
	x->ending = x->has_slot && x->kind == EXEC_COMMAND;
	if (x->ending)
		exec_slot_end(x->session);
	else if (x->has_slot)
		process_slot_end(x->session);
	x->has_slot = false;
	pthread_mutex_lock(&x->lock);
	x->reason = xstrdup(reason);
	x->ended_ms = clock_wall_ms();
	x->reply = reply;
	pthread_cond_broadcast(&x->changed);
	pthread_mutex_unlock(&x->lock);
	if (x->kind == EXEC_COMMAND) /* one that ends by itself is nobody's use */
		session_touch(x->session);
	atomic_fetch_sub(running_of(x), 1);
	log_end(x, end);
	count_end(x, end);
	if (end && end->survivors)
		session_doom(x->session, "sandbox_lost", "processes of a command could not be killed");
	save_end(x);
}

void execs_save_again(struct session *s)
{
	size_t count = 0;
	_cleanup_free_ struct exec **all = execs_all(s, &count);
	for (size_t i = 0; i < count; i++) {
		save_end(all[i]);
		exec_put(all[i]);
	}
}

/* ---- watching ---- */

static bool wait_until(struct exec *x, int64_t mono_ms)
{
	struct timespec t = { .tv_sec = mono_ms / 1000, .tv_nsec = mono_ms % 1000 * 1000000 };
	pthread_mutex_lock(&x->lock);
	while (!x->reply && clock_mono_ms() < mono_ms)
		pthread_cond_timedwait(&x->changed, &x->lock, &t);
	bool ended = x->reply != NULL;
	pthread_mutex_unlock(&x->lock);
	return ended;
}

bool exec_wait(struct exec *x, int timeout_ms, int client_fd)
{
	int64_t deadline = clock_mono_ms() + timeout_ms;
	struct pollfd client = { .fd = client_fd, .events = POLLRDHUP };
	bool ended, over;
	do {
		ended = wait_until(x, MIN(deadline, clock_mono_ms() + SLICE_MS));
		over = clock_left_ms(deadline) == 0 || atomic_load(&x->session->manager->quiet) ||
		       (client_fd >= 0 && poll(&client, 1, 0) > 0);
	} while (!ended && !over);
	return ended;
}

json_t *exec_get_reply(struct exec *x)
{
	pthread_mutex_lock(&x->lock);
	/* The reply does not change any more, but reference counts are not for several threads: a copy is. */
	json_t *reply = x->reply ? json_deep_copy(x->reply) : NULL;
	pthread_mutex_unlock(&x->lock);
	return reply;
}

json_t *exec_time_json(int64_t wall_ms)
{
	char text[CLOCK_TEXT_SIZE];
	if (!wall_ms)
		return json_null();
	clock_format(wall_ms, text);
	return json_string(text);
}

static json_t *state_json(const char *id, const char *command, int64_t started_ms, int64_t ended_ms,
			  const char *reason)
{
	json_t *state = json_object();
	json_object_set_new(state, "id", json_string(id));
	json_object_set_new(state, "state", json_string(ended_ms ? "ended" : "running"));
	json_object_set_new(state, "command",
			    json_string_lossy(command ? command : "", strlen(command ? command : "")));
	json_object_set_new(state, "started_at", exec_time_json(started_ms));
	json_object_set_new(state, "ended_at", exec_time_json(ended_ms));
	json_object_set_new(state, "reason", reason ? json_string(reason) : json_null());
	return state;
}

json_t *exec_get_state(struct exec *x)
{
	pthread_mutex_lock(&x->lock);
	json_t *state = state_json(x->id, x->command, x->started_ms, x->ended_ms, x->reason);
	pthread_mutex_unlock(&x->lock);
	return state;
}

struct exec *exec_find_listed(struct session *s, const char *id)
{
	struct exec *x, *found = NULL;
	pthread_mutex_lock(&s->lock);
	TAILQ_FOREACH (x, &s->execs, entry)
		if (strcmp(x->id, id) == 0)
			found = exec_ref(x);
	pthread_mutex_unlock(&s->lock);
	return found;
}

int exec_find(struct session *s, const char *id, struct exec **ret, struct err *e)
{
	return id_is(exec_kinds[EXEC_COMMAND].prefix, id)
		       ? exec_lookup(s, id, ret, e)
		       : err_set(e, ERR_NOT_FOUND, "there is no such exec");
}

int exec_lookup(struct session *s, const char *id, struct exec **ret, struct err *e)
{
	struct exec *x = exec_find_listed(s, id);
	if (x) {
		*ret = x;
		return 0;
	}
	struct exec_row row = { 0 };
	int r = store_exec_get(s->manager->store, s->id, id, &row, e);
	if (r < 0)
		return r == -ERR_NOT_FOUND
			       ? err_set(e, ERR_NOT_FOUND, "there is no exec %s, or it ended long ago", id)
			       : r;
	x = exec_new(s, id);
	x->command = STEAL_PTR(row.command);
	x->request_hash = STEAL_PTR(row.request_hash);
	x->started_ms = row.started_ms;
	x->ended_ms = row.ended_ms;
	x->reason = STEAL_PTR(row.reason);
	x->name = STEAL_PTR(row.name);
	x->pid = (int)row.pid;
	if (row.reply)
		r = json_text_parse(row.reply, strlen(row.reply), &x->reply, e);
	exec_row_clear(&row);
	if (r < 0) {
		exec_put(x);
		return err_set(e, ERR_INTERNAL, "the stored reply of exec %s is broken", id);
	}
	*ret = x;
	return 0;
}

int exec_list(struct session *s, int limit, json_t **ret, struct err *e)
{
	struct exec_row *rows = NULL;
	size_t count = 0;
	int r = store_exec_list(s->manager->store, s->id, limit, &rows, &count, e);
	if (r < 0)
		return r;
	json_t *list = json_array();
	for (size_t i = 0; i < count; i++) {
		struct exec *x = rows[i].ended_ms ? NULL : exec_find_listed(s, rows[i].id);
		json_array_append_new(list, x ? exec_get_state(x)
					      : state_json(rows[i].id, rows[i].command, rows[i].started_ms,
							   rows[i].ended_ms, rows[i].reason));
		exec_put(x);
	}
	exec_rows_free(rows, count);
	*ret = list;
	return 0;
}
