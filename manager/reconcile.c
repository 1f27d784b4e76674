/* SPDX-License-Identifier: MIT */
/*
 * Both ways: a session whose sandbox is gone ends with a reason; what carries our label and belongs to no
 * session is removed. The engine is listed first and the table is looked at afterwards: a sandbox is in the
 * table before it is in the engine, and leaves it later. Containers of others are never touched.
 */
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "manager/driver.h"
#include "manager/internal.h"
#include "runtime/delivery.h"

#define STRAY_TIMEOUT_MS 20000

struct listing {
	struct engine_item *items;
	size_t count;
};

static void listing_clear(struct listing *l)
{
	free(l->items);
}

static const struct engine_item *find(const struct listing *l, const char *sandbox)
{
	for (size_t i = 0; i < l->count; i++)
		if (strcmp(l->items[i].sandbox, sandbox) == 0 && !strstr(l->items[i].name, "-helper"))
			return &l->items[i];
	return NULL;
}

/* Is it really gone or dead? The list may be older than the session. */
static void judge(struct session *s, struct engine *g)
{
	pthread_mutex_lock(&s->lock);
	_cleanup_free_ char *container =
		s->state == SESSION_READY && s->row.container ? xstrdup(s->row.container) : NULL;
	pthread_mutex_unlock(&s->lock);
	if (!container)
		return;
	struct engine_container_state state;
	struct err e;
	int r = engine_container_inspect(g, container, &state, &e);
	if (r == -ERR_NOT_FOUND) {
		session_doom(s, "sandbox_lost", "its container was removed");
	} else if (r == 0 && (state.state == ENGINE_EXITED || state.state == ENGINE_REMOVING)) {
		_cleanup_free_ char *text = xasprintf("its container ended with status %d%s", state.exit_code,
						      state.oom_killed ? ", out of memory" : "");
		session_doom(s, "sandbox_lost", text);
	}
}

static void judge_sessions(struct manager *m, struct engine *g, const struct listing *containers)
{
	size_t count = 0;
	_cleanup_free_ struct session **all = sessions_all(m, &count);
	for (size_t i = 0; i < count; i++) {
		const struct engine_item *item = find(containers, all[i]->sandbox);
		if (!item || (item->state != ENGINE_RUNNING && item->state != ENGINE_PAUSED))
			judge(all[i], g);
		session_unref(all[i]);
	}
}

static void remove_stray_containers(struct manager *m, const struct sandbox_kit *kit, const struct listing *l)
{
	for (size_t i = 0; i < l->count; i++) {
		const struct engine_item *item = &l->items[i];
		struct err e;
		/* One without a sandbox id belongs to a delivery, which cleans up after itself while it holds
		 * this lock. */
		bool helper = !item->sandbox[0];
		if (helper && pthread_mutex_trylock(&m->delivering) != 0)
			continue;
		if (helper || !sessions_has_sandbox(m, item->sandbox)) {
			int r = engine_container_remove(kit->engine, item->id, STRAY_TIMEOUT_MS, &e);
			LOG(LOG_INFO, "stray container", F("name", item->name), F("removed", r == 0));
		}
		if (helper) {
			/* What it was filling can go now, too. Not by the kit's name, which may be older than
			 * the lock. */
			if (m->agent_volume[0])
				delivery_clean(kit, m->agent_volume);
			pthread_mutex_unlock(&m->delivering);
		}
	}
}

static void remove_stray_volumes(struct manager *m, struct engine *g, const struct listing *l)
{
	for (size_t i = 0; i < l->count; i++) {
		const struct engine_item *item = &l->items[i];
		struct err e;
		if (!item->sandbox[0] || sessions_has_sandbox(m, item->sandbox))
			continue;
		int r = engine_volume_remove(g, item->name, &e);
		LOG(LOG_INFO, "stray volume", F("name", item->name), F("removed", r == 0));
	}
}

/* A row that says it lives, of a session that does not: the store has refused its end. */
static void close_row(struct manager *m, struct session_row *row)
{
	_cleanup_free_ char *before = xstrdup(row->state);
	session_row_end(row);
	struct audit_row audit =
		audit_of(NULL, "session.delete", row->id, row->reason, "ok", "closed by reconcile");
	struct err e;
	/* ERR_CONFLICT: it has ended between the list and the look at the table, and says itself why. */
	int r = store_session_update(m->store, row, before, &audit, &e);
	if (r < 0 && r != -ERR_CONFLICT)
		LOG(LOG_WARN, "cannot close a row yet", F("session", row->id), F("why", e.msg));
}

static int close_rows(struct manager *m, struct err *e)
{
	char after[ID_SIZE] = "";
	size_t count = 0;
	do {
		const struct session_filter f = { .after = after[0] ? after : NULL, .limit = 500 };
		struct session_row *rows = NULL;
		int r = store_session_list(m->store, &f, &rows, &count, e);
		if (r < 0)
			return r;
		for (size_t i = 0; i < count; i++) {
			_cleanup_(session_unref_cleanup_) struct session *s = sessions_peek(m, rows[i].id);
			snprintf(after, sizeof(after), "%s", rows[i].id);
			if (!s)
				close_row(m, &rows[i]);
		}
		session_rows_free(rows, count);
	} while (count);
	return 0;
}

static void deliver_ahead(void *arg)
{
	struct manager *m = arg;
	struct sandbox_kit kit;
	struct err e;
	/* One worker is enough for it. */
	if (atomic_load(&m->quiet) || pthread_mutex_trylock(&m->delivering) != 0)
		return;
	pthread_mutex_unlock(&m->delivering);
	if (manager_kit(m, &kit, &e) < 0)
		LOG(LOG_WARN, "the agent cannot be delivered yet", F("why", e.msg));
}

int reconcile_engine(struct manager *m, struct err *e)
{
	struct sandbox_kit kit;
	_cleanup_(listing_clear) struct listing containers = { 0 };
	_cleanup_(listing_clear) struct listing volumes = { 0 };
	int r = manager_engine_kit(m, &kit, e);
	if (r == 0 && !kit.agent_volume[0])
		(void)!workers_add(m->workers, deliver_ahead,
				   m); /* so that the first session need not wait */
	struct engine *g = r == 0 ? kit.engine : NULL;
	if (r == 0)
		r = engine_volume_list(g, SANDBOX_LABEL_INSTANCE, m->instance, SANDBOX_LABEL_ID,
				       &volumes.items, &volumes.count, e);
	if (r == 0)
		r = engine_container_list(g, SANDBOX_LABEL_INSTANCE, m->instance, SANDBOX_LABEL_ID,
					  &containers.items, &containers.count, e);
	if (r < 0)
		return r;
	judge_sessions(m, g, &containers);
	remove_stray_containers(m, &kit, &containers);
	remove_stray_volumes(m, g, &volumes);
	return 0;
}

int manager_reconcile(struct manager *m, struct err *e)
{
	int r = m->driver->reconcile(m, e);
	return r == 0 ? close_rows(m, e) : r;
}
