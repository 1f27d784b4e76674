/* SPDX-License-Identifier: MIT */
/* Sessions that live: the table, their moves, their use. */
#include <search.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "manager/builtin.h"
#include "manager/internal.h"
#include "manager/session_default.h"

#define TOUCH_STEP_MS 1000 /* an idle deadline that moves by less is not written */

static int by_id(const void *a, const void *b)
{
	return strcmp(((const struct session *)a)->id, ((const struct session *)b)->id);
}

static int by_token(const void *a, const void *b)
{
	return strcmp(((const struct session *)a)->token_hash, ((const struct session *)b)->token_hash);
}

struct session *session_new(struct manager *m, struct session_row *row)
{
	struct session *s = xcalloc(1, sizeof(*s));
	s->manager = m;
	atomic_init(&s->refs, 1);
	s->row = *row;
	*row = (struct session_row){ 0 };
	s->id = xstrdup(s->row.id);
	s->sandbox = xstrdup(s->row.sandbox);
	s->token_hash = xstrdup(s->row.token_hash);
	s->is_default = session_default_is(&s->row);
	s->state = session_state_of(s->row.state);
	pthread_mutex_init(&s->moving, NULL);
	pthread_mutex_init(&s->lock, NULL);
	pthread_condattr_t attr;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&s->changed, &attr);
	pthread_condattr_destroy(&attr);
	TAILQ_INIT(&s->execs);
	exec_slots_init(s);
	builtin_session_init(s);
	return s;
}

struct session *session_ref(struct session *s)
{
	atomic_fetch_add(&s->refs, 1);
	return s;
}

void session_unref(struct session *s)
{
	if (!s || atomic_fetch_sub(&s->refs, 1) > 1)
		return;
	channel_unref(s->channel);
	session_row_clear(&s->row);
	pthread_mutex_destroy(&s->moving);
	pthread_mutex_destroy(&s->lock);
	pthread_cond_destroy(&s->changed);
	free(s->id);
	free(s->sandbox);
	free(s->token_hash);
	free(s->doom);
	free(s->doom_detail);
	free(s->doom_actor);
	free(s->doom_address);
	free(s);
}

const char *session_get_id(const struct session *s)
{
	return s->id;
}

/* ---- the table ---- */

bool sessions_enter(struct manager *m, struct session *s, size_t max)
{
	pthread_mutex_lock(&m->lock);
	bool room = m->session_count < max;
	if (room) {
		if (!tsearch(s, &m->by_id, by_id) || !tsearch(s, &m->by_token, by_token))
			abort();
		m->session_count++;
		atomic_fetch_add(&s->refs, 1);
	}
	pthread_mutex_unlock(&m->lock);
	return room;
}

void sessions_leave(struct manager *m, struct session *s)
{
	pthread_mutex_lock(&m->lock);
	bool there = tdelete(s, &m->by_id, by_id) != NULL;
	if (there) {
		tdelete(s, &m->by_token, by_token);
		m->session_count--;
	}
	pthread_mutex_unlock(&m->lock);
	if (there)
		session_unref(s);
}

struct gathering {
	struct session **all;
	size_t count;
};

static void gather(const void *node, VISIT visit, void *arg)
{
	struct gathering *g = arg;
	if (visit == postorder || visit == leaf)
		g->all[g->count++] = session_ref(*(struct session *const *)node);
}

struct session **sessions_all(struct manager *m, size_t *ret_count)
{
	pthread_mutex_lock(&m->lock);
	struct gathering g = { .all = xcalloc(m->session_count + 1, sizeof(*g.all)) };
	twalk_r(m->by_id, gather, &g);
	pthread_mutex_unlock(&m->lock);
	*ret_count = g.count;
	return g.all;
}

bool sessions_has_sandbox(struct manager *m, const char *sandbox_id)
{
	size_t count = 0;
	bool found = false;
	struct session **all = sessions_all(m, &count);
	for (size_t i = 0; i < count; i++) {
		found = found || strcmp(all[i]->sandbox, sandbox_id) == 0;
		session_unref(all[i]);
	}
	free(all);
	return found;
}

static struct session *look_up(struct manager *m, void *const *tree, const struct session *key,
			       int (*compare)(const void *, const void *))
{
	pthread_mutex_lock(&m->lock);
	struct session *const *node = tfind(key, tree, compare);
	struct session *s = node ? session_ref(*node) : NULL;
	pthread_mutex_unlock(&m->lock);
	return s;
}

struct session *sessions_peek(struct manager *m, const char *id)
{
	char name[ID_SIZE];
	snprintf(name, sizeof(name), "%s", id);
	struct session key = { .id = name };
	return strlen(id) < sizeof(name) ? look_up(m, &m->by_id, &key, by_id) : NULL;
}

/* The error for a session that does not live any more. */
static int gone(const struct session_row *row, struct err *e)
{
	return err_set(e, ERR_GONE, "session %s is %s: %s%s%s", row->id, row->state,
		       row->reason ? row->reason : "ended", row->detail ? ", " : "",
		       row->detail ? row->detail : "");
}

int sessions_find(struct manager *m, const char *id, struct session **ret, struct err *e)
{
	_cleanup_(session_unref_cleanup_) struct session *s = sessions_peek(m, id);
	if (s) {
		enum session_state state = session_get_state(s);
		if (state != SESSION_STOPPING && state != SESSION_GONE) {
			*ret = STEAL_PTR(s);
			return 0;
		}
	}
	struct session_row row = { 0 };
	int r = sessions_get(m, id, &row, e);
	if (r == 0)
		r = gone(&row, e);
	session_row_clear(&row);
	return r;
}

int sessions_find_by_token(struct manager *m, const char *token, struct session **ret, struct err *e)
{
	char hash[ID_HASH_SIZE];
	id_hash(token, strlen(token), hash);
	struct session key = { .token_hash = hash };
	struct session *s = look_up(m, &m->by_token, &key, by_token);
	if (s) {
		*ret = s;
		return 0;
	}
	struct session_row row = { 0 };
	int r = sessions_get_by_token(m, token, &row, e);
	if (r == 0)
		r = gone(&row, e);
	session_row_clear(&row);
	return r;
}

void session_row_end(struct session_row *row)
{
	bool never = strcmp(row->state, session_state_name(SESSION_CREATING)) == 0;
	free(row->state);
	row->state = xstrdup(session_state_name(never ? SESSION_FAILED : SESSION_GONE));
	if (!row->reason)
		row->reason = xstrdup(never ? "create_failed" : "ended");
	row->ended_ms = clock_wall_ms();
}

/* A store that has refused the last moves (full disk) has a row of before: what is known here counts. */
static void correct_row(struct manager *m, struct session_row *row)
{
	if (!session_state_is_live(session_state_of(row->state)))
		return;
	_cleanup_(session_unref_cleanup_) struct session *s = sessions_peek(m, row->id);
	struct session_row now = { 0 };
	struct err e;
	bool unsaved = false;
	if (s) {
		pthread_mutex_lock(&s->lock);
		unsaved = s->unsaved;
		pthread_mutex_unlock(&s->lock);
	}
	if (unsaved)
		session_copy_row(s, &now);
	else if (!s && store_session_get(m->store, row->id, &now, &e) == 0 &&
		 session_state_is_live(
			 session_state_of(now.state))) /* read again: it may have ended just now */
		session_row_end(&now);
	if (now.id) {
		session_row_clear(row);
		*row = now;
	}
}

int sessions_get(struct manager *m, const char *id, struct session_row *ret, struct err *e)
{
	if (!id_is("s_", id))
		return err_set(e, ERR_NOT_FOUND, "there is no such session");
	int r = store_session_get(m->store, id, ret, e);
	if (r == 0)
		correct_row(m, ret);
	return r == -ERR_NOT_FOUND ? err_set(e, ERR_NOT_FOUND, "there is no session %s", id) : r;
}

int sessions_get_by_token(struct manager *m, const char *token, struct session_row *ret, struct err *e)
{
	char hash[ID_HASH_SIZE];
	id_hash(token, strlen(token), hash);
	int r = store_session_by_token(m->store, hash, ret, e);
	if (r == 0)
		correct_row(m, ret);
	return r == -ERR_NOT_FOUND ? err_set(e, ERR_UNAUTHORIZED, "the token is not known") : r;
}

int sessions_list(struct manager *m, const struct session_filter *f, struct session_row **ret_rows,
		  size_t *ret_count, struct err *e)
{
	int r = store_session_list(m->store, f, ret_rows, ret_count, e);
	for (size_t i = 0; r == 0 && i < *ret_count; i++)
		correct_row(m, &(*ret_rows)[i]);
	return r;
}

/* ---- moves ---- */

enum session_state session_get_state(struct session *s)
{
	pthread_mutex_lock(&s->lock);
	enum session_state state = s->state;
	pthread_mutex_unlock(&s->lock);
	return state;
}

static char *copy_text(const char *text)
{
	return text ? xstrdup(text) : NULL;
}

void session_row_copy(const struct session_row *from, struct session_row *to)
{
	*to = *from; /* the numbers */
	char **texts[] = { &to->id,        &to->name,           &to->labels,         &to->env,
			   &to->image,     &to->image_id,       &to->image_env,      &to->network,
			   &to->isolation, &to->workspace_kind, &to->workspace_name, &to->state,
			   &to->reason,    &to->detail,         &to->token_hash,     &to->sandbox,
			   &to->container };
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		*texts[i] = copy_text(*texts[i]);
}

void session_copy_row(struct session *s, struct session_row *ret)
{
	pthread_mutex_lock(&s->lock);
	session_row_copy(&s->row, ret);
	pthread_mutex_unlock(&s->lock);
}

static void replace(char **slot, const char *text)
{
	free(*slot);
	*slot = copy_text(text);
}

/* The row after the move; ERR_CONFLICT when the table does not allow it. */
static int next_row(struct session *s, enum session_event ev, const char *reason, const char *detail,
		    struct session_row *ret, struct err *e)
{
	pthread_mutex_lock(&s->lock);
	enum session_state to = session_state_after(s->state, ev);
	if (to != SESSION_NONE)
		session_row_copy(&s->row, ret);
	enum session_state from = s->state;
	pthread_mutex_unlock(&s->lock);
	if (to == SESSION_NONE)
		return err_set(e, ERR_CONFLICT, "the session is %s", session_state_name(from));
	replace(&ret->state, session_state_name(to));
	if (reason) {
		replace(&ret->reason, reason);
		replace(&ret->detail, detail);
	}
	if (!session_state_is_live(to))
		ret->ended_ms = clock_wall_ms();
	return 0;
}

static void take_row(struct session *s, struct session_row *row, bool saved)
{
	pthread_mutex_lock(&s->lock);
	row->idle_ms = row->idle_ms ? MAX(row->idle_ms, s->row.idle_ms) : 0;
	row->link_generation = MAX(row->link_generation, s->row.link_generation);
	session_row_clear(&s->row);
	s->row = *row;
	s->state = session_state_of(s->row.state);
	s->unsaved = !saved;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
}

int session_move(struct session *s, enum session_event ev, const char *reason, const char *detail,
		 const struct audit_row *audit, struct err *e)
{
	struct session_row row = { 0 };
	pthread_mutex_lock(&s->moving);
	_cleanup_free_ char *before = NULL;
	pthread_mutex_lock(&s->lock);
	before = xstrdup(s->row.state);
	bool unsaved = s->unsaved;
	pthread_mutex_unlock(&s->lock);
	int r = next_row(s, ev, reason, detail, &row, e);
	if (r == 0) {
		/* A move that was not saved leaves an older state in the store: then any is expected. */
		r = store_session_update(s->manager->store, &row, unsaved ? NULL : before, audit, e);
		bool final = ev == SESSION_EV_STOP || ev == SESSION_EV_REMOVED || ev == SESSION_EV_FAILED;
		if (r == 0 || final)
			take_row(s, &row, r == 0);
		else
			session_row_clear(&row);
	}
	pthread_mutex_unlock(&s->moving);
	if (r == 0)
		LOG(LOG_INFO, "session", F("session", s->id),
		    F("state", session_state_name(session_get_state(s))), F("reason", reason),
		    F("detail", detail));
	return r;
}

void session_touch(struct session *s)
{
	pthread_mutex_lock(&s->lock);
	int64_t idle = s->row.idle_s ? clock_wall_ms() + s->row.idle_s * 1000 : 0;
	bool write = idle > s->row.idle_ms + TOUCH_STEP_MS;
	if (write)
		s->row.idle_ms = idle;
	pthread_mutex_unlock(&s->lock);
	if (write)
		store_session_touch(s->manager->store, s->id, idle);
}

int sessions_patch(struct manager *m, const char *id, const struct session_patch *p, const struct caller *who,
		   struct session_row *ret, struct err *e)
{
	if (!p->may_be_endless && (p->ttl_s == 0 || p->idle_s == 0))
		return err_field(e, p->ttl_s == 0 ? "ttl_s" : "idle_s", "0 (no limit) needs the admin token");
	_cleanup_(session_unref_cleanup_) struct session *s = NULL;
	int r = sessions_find(m, id, &s, e);
	if (r != 0)
		return r;
	if (session_get_state(s) == SESSION_CREATING) /* its row is the creator's */
		return err_set(e, ERR_CONFLICT, "session %s is still being created", s->id);
	struct session_row row = { 0 };
	pthread_mutex_lock(&s->moving);
	session_copy_row(s, &row);
	int64_t now = clock_wall_ms();
	if (p->ttl_s >= 0) {
		row.ttl_s = p->ttl_s;
		row.expires_ms = p->ttl_s ? now + p->ttl_s * 1000 : 0;
	}
	if (p->idle_s >= 0) {
		row.idle_s = p->idle_s;
		row.idle_ms = p->idle_s ? now + p->idle_s * 1000 : 0;
	}
	if (p->labels) {
		free(row.labels);
		row.labels = json_dumps(p->labels, JSON_COMPACT | JSON_SORT_KEYS);
	}
	struct audit_row audit = audit_of(who, "session.patch", id, NULL, "ok", NULL);
	r = store_session_update(m->store, &row, row.state, &audit, e);
	if (r == 0) {
		pthread_mutex_lock(&s->lock);
		s->row.idle_ms = row.idle_ms; /* a patch may bring it closer */
		pthread_mutex_unlock(&s->lock);
		struct session_row copy = { 0 };
		session_row_copy(&row, &copy);
		take_row(s, &copy, true);
		*ret = row;
	} else {
		session_row_clear(&row);
	}
	pthread_mutex_unlock(&s->moving);
	return r;
}
