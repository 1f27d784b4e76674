/* SPDX-License-Identifier: MIT */
/* The end of a session: deleted, expired, idle or lost. What is left in the engine is removed first, then it is gone. */
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "manager/internal.h"

void session_doom_locked(struct session *s, const char *reason, const char *detail)
{
	if (s->doom || s->state == SESSION_STOPPING || s->state == SESSION_GONE)
		return;
	s->doom = xstrdup(reason);
	s->doom_detail = detail ? xstrdup(detail) : NULL;
	janitor_wake(s->manager->janitor, false);
}

void session_doom(struct session *s, const char *reason, const char *detail)
{
	pthread_mutex_lock(&s->lock);
	session_doom_locked(s, reason, detail);
	pthread_mutex_unlock(&s->lock);
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

static int remove_remains(struct session *s, int timeout_ms, struct err *e)
{
	struct sandbox_kit kit;
	int r = manager_kit(s->manager, &kit, e);
	if (r < 0)
		return r;
	pthread_mutex_lock(&s->lock);
	_cleanup_free_ char *container = s->row.container ? xstrdup(s->row.container) : NULL;
	pthread_mutex_unlock(&s->lock);
	return sandbox_destroy(&kit, s->sandbox, container, timeout_ms, e);
}

static const char *word(const char *reason)
{
	return strcmp(reason, "deleted") == 0 ? "the session was deleted" : "the sandbox is lost";
}

/* Moves to stopping. ERR_CONFLICT: another caller did so before; that is fine. A full disk is, too. */
static int begin_end(struct session *s, const char *reason, const char *detail, const struct caller *who, struct err *e)
{
	struct audit_row audit = audit_of(who, "session.stop", s->id, reason, "accepted", detail);
	int r = session_move(s, SESSION_EV_STOP, reason, detail, &audit, e);
	if (r == -ERR_STORE)
		LOG(LOG_ERROR, "store refused a move, the session ends all the same", F("session", s->id), F("why", e->msg));
	return r == -ERR_STORE ? 0 : r;
}

int session_end(struct session *s, const char *reason, const char *detail, const struct caller *who, int timeout_ms,
		bool *ret_gone, struct err *e)
{
	if (begin_end(s, reason, detail, who, e) == -ERR_CONFLICT && session_get_state(s) == SESSION_CREATING)
		return -ERR_CONFLICT;
	cut_off(s, word(reason));
	int r = remove_remains(s, timeout_ms, e);
	if (r < 0) {
		LOG(LOG_WARN, "the engine has not removed a session yet", F("session", s->id), F("why", e->msg));
		*ret_gone = false;
		return 0; /* whatever it was: the janitor goes on */
	}
	struct audit_row audit = audit_of(who, "session.delete", s->id, reason, "ok", detail);
	r = session_move(s, SESSION_EV_REMOVED, NULL, NULL, &audit, e);
	sessions_leave(s->manager, s);
	*ret_gone = true;
	/* ERR_CONFLICT: another caller has removed it at the same time. A row that the store refuses is closed by reconcile. */
	return 0;
}

int sessions_delete(struct manager *m, const char *id, const struct caller *who, bool *ret_gone, struct err *e)
{
	_cleanup_(session_unref_cleanup_) struct session *s = sessions_peek(m, id);
	if (!s) {
		struct session_row row = { 0 };
		int r = sessions_get(m, id, &row, e);
		session_row_clear(&row);
		return r < 0 ? r : err_set(e, ERR_NOT_FOUND, "session %s is gone already", id);
	}
	return session_end(s, "deleted", NULL, who, MANAGER_DELETE_TIMEOUT_MS, ret_gone, e);
}
