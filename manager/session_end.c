/* SPDX-License-Identifier: MIT */
/* The end of a session: deleted, expired, idle or lost. What is left in the engine is removed first, then it
 * is gone. */
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "manager/driver.h"
#include "manager/internal.h"

#define RETRY_MS 1000 /* what the engine refuses to remove is tried again, less and less often */
#define RETRY_MAX_MS 10000
#define SLICE_MS 1000 /* a stop of berthd is noticed so often */

void session_doom_locked(struct session *s, const char *reason, const char *detail, const struct caller *who)
{
	if (s->doom || s->state == SESSION_STOPPING || !session_state_is_live(s->state))
		return;
	s->doom = xstrdup(reason);
	s->doom_detail = detail ? xstrdup(detail) : NULL;
	s->doom_actor = who ? xstrdup(who->actor) : NULL;
	s->doom_address = who && who->address ? xstrdup(who->address) : NULL;
	janitor_wake(s->manager->janitor, false);
}

void session_doom(struct session *s, const char *reason, const char *detail)
{
	pthread_mutex_lock(&s->lock);
	session_doom_locked(s, reason, detail, NULL);
	pthread_mutex_unlock(&s->lock);
}

/* ---- the work ---- */

/* Why it ends and who wants it; texts of its own, since the session's may be replaced meanwhile. */
struct verdict {
	char *reason, *detail, *actor, *address;
	struct caller who;
};

static void verdict_clear(struct verdict *v)
{
	free(v->reason);
	free(v->detail);
	free(v->actor);
	free(v->address);
}

static char *copy(const char *text)
{
	return text ? xstrdup(text) : NULL;
}

static void read_verdict(struct session *s, struct verdict *ret)
{
	pthread_mutex_lock(&s->lock);
	*ret = (struct verdict){
		.reason = xstrdup(s->doom         ? s->doom
				  : s->row.reason ? s->row.reason
						  : "ended"),
		.detail = copy(s->doom_detail),
		.actor = xstrdup(s->doom_actor ? s->doom_actor : "manager"),
		.address = copy(s->doom_address),
	};
	pthread_mutex_unlock(&s->lock);
	ret->who = (struct caller){ ret->actor, ret->address };
}

/* Every waiter and every exec learns of the end. */
static void cut_off(struct session *s, const char *detail)
{
	pthread_mutex_lock(&s->lock);
	struct channel *c = s->channel ? channel_ref(s->channel) : NULL;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
	if (c)
		channel_close(c);
	channel_unref(c);
	execs_lost(s, detail);
}

static int remove_remains(struct session *s, struct err *e)
{
	pthread_mutex_lock(&s->lock);
	_cleanup_free_ char *container = copy(s->row.container);
	pthread_mutex_unlock(&s->lock);
	return s->manager->driver->destroy(s->manager, s->sandbox, container, e);
}

/* To stopping. It may be there already, from before a restart; a full disk does not keep it alive. */
static void begin_end(struct session *s, const struct verdict *v)
{
	struct err e;
	struct audit_row audit = audit_of(&v->who, "session.stop", s->id, v->reason, "accepted", v->detail);
	if (session_move(s, SESSION_EV_STOP, v->reason, v->detail, &audit, &e) == -ERR_STORE)
		LOG(LOG_ERROR, "store refused a move, the session ends all the same", F("session", s->id),
		    F("why", e.msg));
}

/* False: the engine has not removed all of it yet. */
static bool end_now(struct session *s)
{
	struct err e;
	_cleanup_(verdict_clear) struct verdict v;
	read_verdict(s, &v);
	begin_end(s, &v);
	cut_off(s, strcmp(v.reason, "deleted") == 0 ? "the session was deleted" : "the sandbox is lost");
	if (remove_remains(s, &e) < 0) {
		LOG(LOG_WARN, "the engine has not removed a session yet", F("session", s->id),
		    F("why", e.msg));
		return false;
	}
	struct audit_row audit = audit_of(&v.who, "session.delete", s->id, v.reason, "ok", v.detail);
	if (session_move(s, SESSION_EV_REMOVED, NULL, NULL, &audit, &e) <
	    0) /* reconcile closes the row later */
		LOG(LOG_ERROR, "store refused the end of a session", F("session", s->id), F("why", e.msg));
	sessions_leave(s->manager, s);
	processes_leave(s);
	return true;
}

static void work_end(void *arg)
{
	_cleanup_(session_unref_cleanup_) struct session *s = arg;
	/* What is not ended before berthd stops is ended by the next one. */
	if (!atomic_load(&s->manager->quiet))
		(void)end_now(s);
	pthread_mutex_lock(&s->lock);
	s->being_ended = false;
	s->end_not_before_ms = clock_mono_ms() + MIN(RETRY_MS << MIN(s->end_failures, 5), RETRY_MAX_MS);
	s->end_failures++;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
}

void session_end_if_due(struct session *s)
{
	struct manager *m = s->manager;
	pthread_mutex_lock(&s->lock);
	/* One that is being created is ended by its creator, who looks at its doom. */
	bool due = (s->doom || s->state == SESSION_STOPPING) && session_state_is_live(s->state) &&
		   s->state != SESSION_CREATING && !s->being_ended && clock_mono_ms() >= s->end_not_before_ms;
	/* A full queue: the next tick tries again. */
	s->being_ended = s->being_ended || (due && workers_add(m->enders, work_end, s));
	if (due && s->being_ended)
		atomic_fetch_add(&s->refs, 1); /* the worker's, who waits for the lock */
	pthread_mutex_unlock(&s->lock);
}

/* ---- DELETE ---- */

bool session_wait_gone(struct session *s, int64_t deadline_ms)
{
	pthread_mutex_lock(&s->lock);
	while (session_state_is_live(s->state) && clock_left_ms(deadline_ms) > 0 &&
	       !atomic_load(&s->manager->quiet)) {
		int64_t until = MIN(deadline_ms, clock_mono_ms() + SLICE_MS);
		struct timespec t = { .tv_sec = until / 1000, .tv_nsec = until % 1000 * 1000000 };
		pthread_cond_timedwait(&s->changed, &s->lock, &t);
	}
	bool gone = !session_state_is_live(s->state);
	pthread_mutex_unlock(&s->lock);
	return gone;
}

int sessions_delete(struct manager *m, const char *id, const struct caller *who, bool *ret_gone,
		    struct err *e)
{
	int64_t deadline = clock_mono_ms() + MANAGER_DELETE_TIMEOUT_MS;
	_cleanup_(session_unref_cleanup_) struct session *s = sessions_peek(m, id);
	if (!s) {
		struct session_row row = { 0 };
		int r = sessions_get(m, id, &row, e);
		session_row_clear(&row);
		return r < 0 ? r : err_set(e, ERR_NOT_FOUND, "session %s is gone already", id);
	}
	pthread_mutex_lock(&s->lock);
	session_doom_locked(s, "deleted", NULL, who);
	bool creating = s->state == SESSION_CREATING;
	pthread_mutex_unlock(&s->lock);
	/* What is promised from here on is stored first. A session that is being created has its row as such:
	 * it ends with berthd. */
	if (!creating) {
		_cleanup_(verdict_clear) struct verdict v;
		read_verdict(s, &v);
		begin_end(s, &v);
	}
	session_end_if_due(s);
	*ret_gone = session_wait_gone(s, deadline);
	return 0;
}
