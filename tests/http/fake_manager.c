/* SPDX-License-Identifier: MIT */
/*
 * fake_manager.c - manager.h without engine, sandbox or store: sessions live in memory, and a command runs as
 * a plain child of this process. It lets the HTTP side be tested in seconds and by hostile clients.
 */
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/metrics.h"
#include "manager/session_default.h"
#include "manager/settings.h"
#include "tests/http/fake_manager.h"

struct manager the = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

/* ---- the daemon ---- */

int manager_new(const struct settings *settings, struct manager **ret, struct err *e)
{
	(void)settings;
	(void)e;
	*ret = &the;
	return 0;
}

void manager_free(struct manager *m)
{
	for (size_t i = 0; i < m->session_count; i++)
		free(m->sessions[i].labels);
}

void manager_quiesce(struct manager *m)
{
	pthread_mutex_lock(&m->lock);
	m->quiet = true;
	pthread_cond_broadcast(&m->changed);
	pthread_mutex_unlock(&m->lock);
}

void manager_get_health(struct manager *m, struct manager_health *ret)
{
	*ret = (struct manager_health){ .ok = true,
					.runtime = "engine",
					.engine_ok = true,
					.store_ok = true,
					.engine = "fake",
					.store = "ok",
					.sessions_live = (int64_t)m->session_count };
}

void manager_set_gauges(struct manager *m)
{
	metrics_set(METRIC_SESSIONS, "ready", (int64_t)m->session_count);
}

void manager_note_unauthorized(struct manager *m, const char *address)
{
	(void)m;
	(void)address;
}

void manager_note_refused(struct manager *m, const struct caller *who, const char *session,
			  const char *subject, const struct err *why)
{
	(void)m;
	(void)why;
	printf("refused %s %s %s\n", who->actor, session ? session : "-", subject);
	(void)fflush(stdout);
}

/* ---- sessions ---- */

void session_row_clear(struct session_row *row)
{
	free(row->id);
	free(row->name);
	free(row->labels);
	free(row->state);
	free(row->reason);
	*row = (struct session_row){ 0 };
}

void session_rows_free(struct session_row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++)
		session_row_clear(&rows[i]);
	free(rows);
}

static void fill_row(const struct session *s, struct session_row *row)
{
	*row = (struct session_row){ .id = xstrdup(s->id),
				     .name = s->name[0] ? xstrdup(s->name) : NULL,
				     .labels = xstrdup(s->labels),
				     .state = xstrdup(s->gone ? "gone" : "ready"),
				     .reason = s->gone ? xstrdup("deleted") : NULL,
				     .memory_mb = 4096,
				     .cpu_milli = 1500,
				     .pids = 1024,
				     .ttl_s = s->ttl_s,
				     .idle_s = s->idle_s,
				     .created_ms = s->created_ms };
}

int sessions_create(struct manager *m, const struct session_request *rq, const struct caller *who,
		    struct session_row *ret_row, char ret_token[64], struct err *e)
{
	struct session *s;

	(void)who;
	if (m->session_count == SESSIONS_MAX)
		return err_set(e, ERR_LIMIT, "too many sessions");
	pthread_mutex_lock(&m->lock);
	s = &m->sessions[m->session_count++];
	id_new("s_", s->id);
	id_token("bst_", s->token);
	(void)snprintf(s->name, sizeof(s->name), "%s", rq->name ? rq->name : "");
	s->labels = rq->labels ? json_text(rq->labels) : xstrdup("{}");
	s->ttl_s = rq->ttl_s < 0 ? 3600 : rq->ttl_s;
	s->idle_s = rq->idle_s < 0 ? 900 : rq->idle_s;
	s->created_ms = clock_wall_ms();
	fill_row(s, ret_row);
	(void)snprintf(ret_token, 64, "%s", s->token);
	pthread_mutex_unlock(&m->lock);
	return 0;
}

static struct session *by_id(struct manager *m, const char *id)
{
	struct session *found = NULL;

	pthread_mutex_lock(&m->lock);
	for (size_t i = 0; i < m->session_count; i++)
		if (!strcmp(m->sessions[i].id, id))
			found = &m->sessions[i];
	pthread_mutex_unlock(&m->lock);
	return found;
}

int sessions_get(struct manager *m, const char *id, struct session_row *ret, struct err *e)
{
	struct session *s = by_id(m, id);

	if (!s)
		return err_set(e, ERR_NOT_FOUND, "no such session");
	fill_row(s, ret);
	return 0;
}

int sessions_list(struct manager *m, const struct session_filter *f, struct session_row **ret_rows,
		  size_t *ret_count, struct err *e)
{
	struct session_row *rows = xcalloc(SESSIONS_MAX, sizeof(*rows));
	bool started = !f->after;
	size_t count = 0;

	(void)e;
	for (size_t i = 0; i < m->session_count && count < (size_t)f->limit; i++) {
		const struct session *s = &m->sessions[i];

		if (started && s->gone == (f->state && !strcmp(f->state, "gone")) &&
		    (!f->name || !strcmp(f->name, s->name)))
			fill_row(s, &rows[count++]);
		started = started || !strcmp(s->id, f->after);
	}
	*ret_rows = rows;
	*ret_count = count;
	return 0;
}

int sessions_find(struct manager *m, const char *id, struct session **ret, struct err *e)
{
	struct session *s = by_id(m, id);

	if (!s)
		return err_set(e, ERR_NOT_FOUND, "no such session");
	if (s->gone)
		return err_set(e, ERR_GONE, "the session is gone: deleted");
	*ret = s;
	return 0;
}

int sessions_patch(struct manager *m, const char *id, const struct session_patch *p, const struct caller *who,
		   struct session_row *ret, struct err *e)
{
	struct session *s;

	(void)who;
	if (sessions_find(m, id, &s, e))
		return -e->code;
	s->ttl_s = p->ttl_s < 0 ? s->ttl_s : p->ttl_s;
	s->idle_s = p->idle_s < 0 ? s->idle_s : p->idle_s;
	fill_row(s, ret);
	return 0;
}

int sessions_delete(struct manager *m, const char *id, const struct caller *who, bool *ret_gone,
		    struct err *e)
{
	struct session *s = by_id(m, id);

	(void)who;
	if (!s || s->gone)
		return err_set(e, ERR_NOT_FOUND, "no such session");
	s->gone = *ret_gone = true;
	return 0;
}

static const char *id_of_token(struct manager *m, const char *token)
{
	const char *id = NULL;

	pthread_mutex_lock(&m->lock);
	for (size_t i = 0; i < m->session_count; i++)
		if (!strcmp(m->sessions[i].token, token))
			id = m->sessions[i].id;
	pthread_mutex_unlock(&m->lock);
	return id;
}

int sessions_find_by_token(struct manager *m, const char *token, struct session **ret, struct err *e)
{
	const char *id = id_of_token(m, token);

	return id ? sessions_find(m, id, ret, e) : err_set(e, ERR_UNAUTHORIZED, "no session has this token");
}

int sessions_get_by_token(struct manager *m, const char *token, struct session_row *ret, struct err *e)
{
	const char *id = id_of_token(m, token);

	return id ? sessions_get(m, id, ret, e) : err_set(e, ERR_UNAUTHORIZED, "no session has this token");
}

/* There is no default session here. */

int session_default_get(struct manager *m, const struct caller *who, struct session **ret, struct err *e)
{
	(void)m;
	(void)who;
	(void)ret;
	return err_set(e, ERR_UNAVAILABLE, "no default session");
}

struct session *session_default_peek(struct manager *m)
{
	(void)m;
	return NULL;
}

int sessions_delete_workspace(struct manager *m, const char *id, const struct caller *who, struct err *e)
{
	(void)m;
	(void)id;
	(void)who;
	return err_field(e, "workspace", "goes with the session");
}

void session_get_health(struct session *s, struct session_health *ret)
{
	*ret = (struct session_health){ .ok = !s->gone, .tools = json_object() };
}

json_t *manager_get_tools(struct manager *m)
{
	(void)m;
	return json_object();
}

void session_unref(struct session *s)
{
	(void)s;
}

const char *session_get_id(const struct session *s)
{
	return s->id;
}
