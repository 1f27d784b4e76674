/* SPDX-License-Identifier: MIT */
/* Background processes: start, list, end. They are execs without a timeout that the collector owns from the
 * start. */
#include "manager/process.h"

#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/metrics.h"
#include "manager/internal.h"

#define STARTED_MS 10000 /* until a start has a pid */
#define STOP_MS 30000    /* beyond the grace, until a killed tree has ended: the agent gives up after 5 s */

/* ---- places ---- */

/* Takes the oldest ended one that is beyond what may stay. NULL: there is none. A reference, not kept any
 * more. */
static struct exec *take_oldest(struct session *s, int ended_max, int kept_max)
{
	struct exec *x, *oldest = NULL;
	int ended = 0, kept = 0;
	pthread_mutex_lock(&s->lock);
	TAILQ_FOREACH (x, &s->execs, entry) {
		kept += x->kept;
		if (!x->kept || !exec_has_ended(x))
			continue;
		ended++;
		if (!oldest || x->ended_ms < oldest->ended_ms)
			oldest = x;
	}
	bool due = oldest && (ended > ended_max || kept > kept_max);
	if (due)
		oldest->kept = false;
	x = due ? exec_ref(oldest) : NULL;
	pthread_mutex_unlock(&s->lock);
	return x;
}

/* The link over which its number is known, a reference; NULL when there is none. */
static struct channel *link_of(struct exec *x, uint32_t *ret_number)
{
	pthread_mutex_lock(&x->lock);
	*ret_number = x->job_number;
	struct channel *c = x->known_on && x->job_number ? channel_ref(x->known_on) : NULL;
	pthread_mutex_unlock(&x->lock);
	return c;
}

/* Off the list, and the agent may free its record. The row is the caller's business. */
static void let_go(struct exec *x)
{
	uint32_t number;
	_cleanup_(channel_unref_cleanup_) struct channel *c = link_of(x, &number);
	if (c)
		channel_forget_job(c, number);
	exec_slot_processes(x->session, -1);
	exec_unlist(x);
}

/* What it has left running. */
static void kill_rest(struct exec *x)
{
	uint32_t number;
	_cleanup_(channel_unref_cleanup_) struct channel *c = link_of(x, &number);
	if (c)
		channel_cancel_job(c, number, 0);
}

static void trim(struct session *s, int ended_max, int kept_max)
{
	struct exec *x;
	while ((x = take_oldest(s, ended_max, kept_max))) {
		store_exec_forget_later(s->manager->store, x->id);
		let_go(x);
		exec_put(x);
	}
}

bool process_saved(struct exec *x)
{
	struct session *s = x->session;
	pthread_mutex_lock(&s->lock);
	bool kept = x->kept;
	pthread_mutex_unlock(&s->lock);
	if (!kept) {
		store_exec_forget_later(s->manager->store, x->id);
		return false;
	}
	trim(s, PROCESS_ENDED_MAX, PROCESS_KEPT_MAX);
	if (session_get_state(s) == SESSION_GONE)
		processes_leave(s);
	return true;
}

void processes_leave(struct session *s)
{
	size_t count = 0;
	_cleanup_free_ struct exec **all = execs_all(s, &count);
	for (size_t i = 0; i < count; i++) {
		if (all[i]->kind == EXEC_PROCESS && exec_has_ended(all[i]))
			exec_unlist(all[i]);
		exec_put(all[i]);
	}
}

int process_slot_take(struct session *s, struct err *e)
{
	int64_t max = s->manager->settings->max_processes;
	trim(s, PROCESS_ENDED_MAX, PROCESS_KEPT_MAX - 1);
	pthread_mutex_lock(&s->lock);
	bool allowed = s->processes < max && s->process_jobs < PROCESS_KEPT_MAX;
	bool room = allowed && exec_table_has_room(s);
	s->processes += room;
	s->process_jobs += room;
	pthread_mutex_unlock(&s->lock);
	if (room)
		return 0;
	return allowed ? exec_no_room(e)
		       : err_set(e, ERR_LIMIT,
				 "%lld processes of this session run already (SANDBOX_MAX_PROCESSES)",
				 (long long)max);
}

void process_slot_end(struct session *s)
{
	pthread_mutex_lock(&s->lock);
	s->processes--;
	pthread_mutex_unlock(&s->lock);
}

void process_slot_give(struct session *s)
{
	process_slot_end(s);
	exec_slot_processes(s, -1);
}

/* ---- start ---- */

/* Waits for the pid or the end. */
static void wait_started(struct exec *x)
{
	int64_t deadline = clock_mono_ms() + STARTED_MS;
	struct timespec t = { .tv_sec = deadline / 1000, .tv_nsec = deadline % 1000 * 1000000 };
	pthread_mutex_lock(&x->lock);
	while (!x->pid && !x->reply && clock_mono_ms() < deadline)
		pthread_cond_timedwait(&x->changed, &x->lock, &t);
	pthread_mutex_unlock(&x->lock);
}

/* A start that failed has its end in the store as any other, but it is nothing to keep. */
static int check_started(struct exec *x, struct err *e)
{
	_cleanup_json_ json_t *reply = exec_get_reply(x);
	const char *reason = json_string_value(json_object_get(reply, "reason"));
	if (!reason || strcmp(reason, proto_reason_name(PROTO_START_FAILED)) != 0)
		return 0;
	const char *detail = json_string_value(json_object_get(reply, "detail"));
	int r = detail && exec_found_no_room(detail)
			? exec_no_room(e)
			: err_set(e, ERR_UNPROCESSABLE, "the process could not be started: %s",
				  detail ? detail : "no reason was given");
	struct err ignored; /* somebody else who came with the same key was quicker */
	(void)!process_forget(x, NULL, &ignored);
	return r;
}

int process_start(struct session *s, const struct exec_request *rq, const struct caller *who,
		  struct exec **ret, struct err *e)
{
	struct exec *x = NULL;
	int r = exec_start(s, rq, who, -1, &x, e);
	if (r < 0)
		return r;
	if (exec_is_mine(x)) { /* not one that was started before with the same key */
		metrics_add(METRIC_PROCESSES_STARTED, NULL, NULL, 1);
		exec_hand_over(x);
	}
	wait_started(x);
	r = check_started(x, e);
	if (r < 0) {
		exec_put(x);
		return r;
	}
	*ret = x;
	return 0;
}

/* ---- the list ---- */

int process_find(struct session *s, const char *id, struct exec **ret, struct err *e)
{
	struct exec *x = id_is(exec_kinds[EXEC_PROCESS].prefix, id) ? exec_find_listed(s, id) : NULL;
	if (!x)
		return err_set(e, ERR_NOT_FOUND, "there is no such process");
	*ret = x;
	return 0;
}

static json_t *field_of(const json_t *reply, const char *name)
{
	json_t *value = json_object_get(reply, name);
	return value ? json_deep_copy(value) : json_null();
}

json_t *process_get_state(struct exec *x)
{
	json_t *state = json_object();
	pthread_mutex_lock(&x->lock);
	json_object_set_new(state, "id", json_string(x->id));
	json_object_set_new(state, "name", x->name ? json_string(x->name) : json_null());
	json_object_set_new(state, "command", json_string_lossy(x->command, strlen(x->command)));
	json_object_set_new(state, "pid", x->pid ? json_integer(x->pid) : json_null());
	json_object_set_new(state, "running", json_boolean(!x->reply));
	json_object_set_new(state, "exit_code", field_of(x->reply, "exit_code"));
	json_object_set_new(state, "reason", x->reason ? json_string(x->reason) : json_null());
	json_object_set_new(state, "signal", field_of(x->reply, "signal"));
	json_object_set_new(state, "started_at", exec_time_json(x->started_ms));
	json_object_set_new(state, "ended_at", exec_time_json(x->ended_ms));
	pthread_mutex_unlock(&x->lock);
	return state;
}

json_t *process_list(struct session *s)
{
	size_t count = 0;
	json_t *list = json_array();
	_cleanup_free_ struct exec **all = execs_all(s, &count);
	for (size_t i = 0; i < count; i++) {
		if (all[i]->kind == EXEC_PROCESS)
			json_array_append_new(list, process_get_state(all[i]));
		exec_put(all[i]);
	}
	process_ports_add(s, list);
	return list;
}

/* ---- the end ---- */

int process_stop(struct exec *x, int grace_ms, int client_fd, struct err *e)
{
	session_touch(x->session);
	if (exec_has_ended(x))
		return 0;
	exec_cancel(x, grace_ms);
	if (exec_wait(x, grace_ms + STOP_MS, client_fd))
		return 0;
	return err_set(e, ERR_TIMEOUT, "process %s has not ended yet; it is being ended", x->id);
}

static bool stop_keeping(struct exec *x)
{
	pthread_mutex_lock(&x->session->lock);
	bool was = x->kept;
	x->kept = false;
	pthread_mutex_unlock(&x->session->lock);
	return was;
}

int process_forget(struct exec *x, const struct caller *who, struct err *e)
{
	/* First: as soon as it is not kept, its end may be stored, and the agent forgets it. */
	kill_rest(x);
	if (!stop_keeping(x))
		return err_set(e, ERR_NOT_FOUND, "there is no such process");
	struct audit_row audit = audit_of(who, "process.delete", x->session->id, x->command, "ok", NULL);
	audit.exec = x->id;
	struct err why; /* a disk that is full: a restart of berthd would list it again, without its output */
	if (store_exec_forget(x->session->manager->store, x->id, who ? &audit : NULL, &why) < 0)
		LOG(LOG_WARN, "a process is not forgotten in the store", F("session", x->session->id),
		    F("process", x->id), F("why", why.msg));
	let_go(x);
	return 0;
}
