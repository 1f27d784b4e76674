/* SPDX-License-Identifier: MIT */
#include "manager/session_default.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "manager/driver.h"
#include "manager/internal.h"

#define TIMEOUT_MS 90000 /* to remove what is left of one, and to make the next */
#define SLICE_MS 1000    /* a stop of berthd is noticed so often */

struct session_default {
	struct manager *manager;
	pthread_mutex_t lock; /* all below */
	pthread_cond_t changed;
	char id[ID_SIZE];  /* of the last one; "": none yet */
	bool busy;         /* somebody makes it, or removes its workspace */
	uint64_t attempts; /* to make it, so far */
	int result;        /* of the last one, with its error */
	struct err why;
};

/* ---- which one it is ---- */

bool session_default_is(const struct session_row *row)
{
	return row->workspace_name && strcmp(row->workspace_name, SESSION_DEFAULT_WORKSPACE) == 0;
}

/* There is at most one: the next is made when nothing of the last is left. */
static void find_loaded(struct session_default *d)
{
	size_t count = 0;
	_cleanup_free_ struct session **all = sessions_all(d->manager, &count);
	for (size_t i = 0; i < count; i++) {
		if (all[i]->is_default)
			snprintf(d->id, sizeof(d->id), "%s", all[i]->id);
		session_unref(all[i]);
	}
}

struct session_default *session_default_new(struct manager *m)
{
	struct session_default *d = xcalloc(1, sizeof(*d));
	d->manager = m;
	pthread_mutex_init(&d->lock, NULL);
	pthread_condattr_t attr;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&d->changed, &attr);
	pthread_condattr_destroy(&attr);
	find_loaded(d);
	return d;
}

void session_default_free(struct session_default *d)
{
	if (!d)
		return;
	pthread_mutex_destroy(&d->lock);
	pthread_cond_destroy(&d->changed);
	free(d);
}

struct session *session_default_peek(struct manager *m)
{
	struct session_default *d = m->standing;
	char id[ID_SIZE];
	pthread_mutex_lock(&d->lock);
	memcpy(id, d->id, sizeof(id));
	pthread_mutex_unlock(&d->lock);
	struct session *s = id[0] ? sessions_peek(m, id) : NULL;
	if (s && session_state_is_live(session_get_state(s)))
		return s;
	session_unref(s);
	return NULL;
}

/* ---- the one that is there ---- */

static bool is_ending(struct session *s)
{
	pthread_mutex_lock(&s->lock);
	bool ending = s->doom || (s->state != SESSION_READY && s->state != SESSION_PAUSED);
	pthread_mutex_unlock(&s->lock);
	return ending;
}

/*
 * 1: it can be used. 0: it has ended. Its link is opened here when there is none, since that is how a sandbox
 * that has vanished is found out; why else there is no link is told by the request itself.
 */
static int try_out(struct session *s, int64_t deadline_ms, struct err *e)
{
	if (!is_ending(s)) {
		_cleanup_(channel_unref_cleanup_) struct channel *c = session_open_channel(s);
		struct err why;
		if (c || session_channel(s, MANAGER_CONNECT_TIMEOUT_MS, &c, &why) != -ERR_GONE)
			return 1;
	}
	if (session_wait_gone(s, deadline_ms))
		return 0;
	if (atomic_load(&s->manager->quiet))
		return err_set(e, ERR_STOPPING, "berthd is stopping");
	err_set(e, ERR_UNAVAILABLE, "the default session before, %s, is still being removed", s->id);
	e->retry_after_s = 5;
	return -ERR_UNAVAILABLE;
}

/* ---- making it ---- */

static bool wait_locked(struct session_default *d, int64_t deadline_ms)
{
	int64_t until = MIN(deadline_ms, clock_mono_ms() + SLICE_MS);
	struct timespec t = { .tv_sec = until / 1000, .tv_nsec = until % 1000 * 1000000 };
	pthread_cond_timedwait(&d->changed, &d->lock, &t);
	return clock_left_ms(deadline_ms) > 0 && !atomic_load(&d->manager->quiet);
}

static int out_of_time(struct session_default *d, struct err *e)
{
	if (atomic_load(&d->manager->quiet))
		return err_set(e, ERR_STOPPING, "berthd is stopping");
	err_set(e, ERR_TIMEOUT, "the default session was not made in time");
	e->retry_after_s = 5;
	return -ERR_TIMEOUT;
}

/* 1: it is this caller's turn, who calls give_turn(). 0: somebody else has made it. His error is everybody's.
 */
static int take_turn(struct session_default *d, int64_t deadline_ms, struct err *e)
{
	pthread_mutex_lock(&d->lock);
	uint64_t before = d->attempts;
	bool more = true;
	while (d->busy && d->attempts == before && more)
		more = wait_locked(d, deadline_ms);
	int r = 1;
	if (d->attempts != before) {
		r = d->result;
		*e = d->why;
	} else if (d->busy) {
		r = out_of_time(d, e);
	} else {
		d->busy = true;
	}
	pthread_mutex_unlock(&d->lock);
	return r;
}

/* made: an attempt ends here, with this result. id NULL: none was made. */
static void give_turn(struct session_default *d, bool made, const char *id, int result, const struct err *e)
{
	pthread_mutex_lock(&d->lock);
	d->busy = false;
	if (made) {
		d->attempts++;
		d->result = result;
		d->why = result < 0 ? *e : (struct err){ 0 };
	}
	if (id)
		snprintf(d->id, sizeof(d->id), "%s", id);
	pthread_cond_broadcast(&d->changed);
	pthread_mutex_unlock(&d->lock);
}

static int make(struct session_default *d, const struct caller *who, struct err *e)
{
	const struct session_request rq = {
		.name = SESSION_DEFAULT_WORKSPACE,
		.memory_mb = -1,
		.cpu_milli = -1,
		.pids = -1,
		.workspace_mb = -1,
		.network = d->manager->settings->network,
		.may_be_endless = true,
		.is_default = true,
	};
	struct session_row row = { 0 };
	char token[ID_TOKEN_SIZE]; /* nobody gets it: SANDBOX_TOKEN stands for the session */
	int64_t began = clock_mono_ms();
	LOG(LOG_INFO, "the default session is being made");
	int r = sessions_create(d->manager, &rq, who, &row, token, e);
	if (r == 0)
		LOG(LOG_INFO, "the default session is ready", F("session", row.id),
		    F("ms", clock_mono_ms() - began));
	else
		LOG(LOG_WARN, "the default session could not be made", F("why", e->msg));
	give_turn(d, true, r == 0 ? row.id : NULL, r, e);
	session_row_clear(&row);
	return r;
}

static int make_or_wait(struct session_default *d, const struct caller *who, int64_t deadline_ms,
			struct err *e)
{
	int r = take_turn(d, deadline_ms, e);
	if (r != 1)
		return r;
	/* Between the look and the turn another may have made it. */
	_cleanup_(session_unref_cleanup_) struct session *s = session_default_peek(d->manager);
	if (!s)
		return make(d, who, e);
	give_turn(d, false, NULL, 0, NULL);
	return 0;
}

int session_default_get(struct manager *m, const struct caller *who, struct session **ret, struct err *e)
{
	int64_t deadline_ms = clock_mono_ms() + TIMEOUT_MS;
	do {
		_cleanup_(session_unref_cleanup_) struct session *s = session_default_peek(m);
		int r = s ? try_out(s, deadline_ms, e) : 0;
		if (r == 1)
			*ret = STEAL_PTR(s);
		if (r == 0)
			r = make_or_wait(m->standing, who, deadline_ms, e);
		if (r != 0)
			return r < 0 ? r : 0;
	} while (clock_left_ms(deadline_ms) > 0);
	return out_of_time(m->standing, e);
}

/* ---- its workspace ---- */

static int check_ended(struct manager *m, const char *id, struct err *e)
{
	struct session_row row = { 0 };
	int r = sessions_get(m, id, &row, e);
	if (r == 0 && (!session_default_is(&row) || strcmp(row.workspace_kind, "named") != 0))
		r = err_field(e, "workspace", "the session has no volume that outlives it");
	else if (r == 0 && session_state_is_live(session_state_of(row.state)))
		r = err_set(e, ERR_CONFLICT, "session %s is %s", id, row.state);
	session_row_clear(&row);
	return r;
}

static int remove_workspace(struct manager *m, const char *id, const struct caller *who, struct err *e)
{
	_cleanup_(session_unref_cleanup_) struct session *s = session_default_peek(m);
	if (s)
		return err_set(e, ERR_CONFLICT, "session %s works on it", s->id);
	struct audit_row audit =
		audit_of(who, "workspace.delete", id, SESSION_DEFAULT_WORKSPACE, "accepted", NULL);
	int r = store_audit(m->store, &audit, e);
	if (r == 0)
		r = m->driver->remove_workspace(m, SESSION_DEFAULT_WORKSPACE, e);
	if (r == 0)
		LOG(LOG_INFO, "the default session's workspace was removed", F("session", id));
	return r;
}

int sessions_delete_workspace(struct manager *m, const char *id, const struct caller *who, struct err *e)
{
	int r = check_ended(m, id, e);
	if (r < 0)
		return r;
	struct session_default *d = m->standing;
	pthread_mutex_lock(&d->lock);
	bool busy = d->busy;
	d->busy = true;
	pthread_mutex_unlock(&d->lock);
	if (busy)
		return err_set(e, ERR_CONFLICT, "the default session is being made again");
	r = remove_workspace(m, id, who, e);
	give_turn(d, false, NULL, 0, NULL);
	return r;
}
