/* SPDX-License-Identifier: MIT */
#include "manager/manager.h"

#include <search.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "manager/driver.h"
#include "manager/grants.h"
#include "manager/internal.h"
#include "manager/session_default.h"
#include "manager/tools.h"
#include "runtime/local.h"

#define WORKERS 4
#define ENDERS 8
#define WORKERS_QUEUE 4096
#define KEY_INSTANCE "instance"

static int find_instance(struct manager *m, struct err *e)
{
	_cleanup_free_ char *known = NULL;
	int r = store_get_value(m->store, KEY_INSTANCE, &known, e);
	if (r < 0)
		return r;
	if (m->settings->instance || known) {
		snprintf(m->instance, sizeof(m->instance), "%s",
			 m->settings->instance ? m->settings->instance : known);
		return 0;
	}
	id_new("i_", m->instance);
	return store_set_value(m->store, KEY_INSTANCE, m->instance, e);
}

/* A session of before: what was being created is not finished, it is removed. */
static void load_session(struct manager *m, struct session_row *row)
{
	struct err e;
	_cleanup_(session_unref_cleanup_) struct session *s = session_new(m, row);
	(void)!sessions_enter(m, s, SIZE_MAX);
	if (s->state == SESSION_CREATING &&
	    session_move(s, SESSION_EV_STOP, "manager_restarted", "it was being created", NULL, &e) < 0)
		LOG(LOG_WARN, "cannot end a half-made session yet", F("session", s->id), F("why", e.msg));
}

static int load_sessions(struct manager *m, struct err *e)
{
	char after[ID_SIZE] = "";
	size_t count = 0;
	do {
		const struct session_filter f = { .after = after[0] ? after : NULL, .limit = 1000 };
		struct session_row *rows = NULL;
		int r = store_session_list(m->store, &f, &rows, &count, e);
		if (r < 0)
			return r;
		for (size_t i = 0; i < count; i++) {
			snprintf(after, sizeof(after), "%s", rows[i].id);
			load_session(m, &rows[i]);
		}
		session_rows_free(rows, count);
	} while (count);
	return 0;
}

static int start(struct manager *m, struct err *e)
{
	int r = grants_new(m->settings, &m->grants, e);
	if (r == 0)
		r = store_open(m->driver == &driver_local ? NULL : m->settings->data_dir, &m->store, e);
	if (r == 0)
		r = find_instance(m, e);
	if (r == 0)
		r = channels_new(&m->channels, e);
	if (r == 0 && m->driver == &driver_local)
		m->local = local_new(m->channels, m->settings->local_agent);
	if (r == 0)
		r = collector_new(&m->collector, e);
	if (r == 0)
		r = workers_new(WORKERS, WORKERS_QUEUE, &m->workers, e);
	if (r == 0)
		r = workers_new(ENDERS, WORKERS_QUEUE, &m->enders, e);
	if (r == 0)
		r = load_sessions(m, e);
	if (r == 0)
		m->standing = session_default_new(m);
	if (r == 0)
		r = execs_load(m, e);
	return r == 0 ? janitor_new(m, &m->janitor, e) : r;
}

int manager_new(const struct settings *settings, struct manager **ret, struct err *e)
{
	struct manager *m = xcalloc(1, sizeof(*m));
	m->settings = settings;
	m->driver = driver_of(settings->runtime);
	m->tools = tools_new(settings->image);
	m->engine_probe.ok = m->store_probe.ok =
		true; /* until the first look, which has begun when somebody asks */
	pthread_mutex_init(&m->lock, NULL);
	pthread_mutex_init(&m->connecting, NULL);
	pthread_mutex_init(&m->delivering, NULL);
	int r = start(m, e);
	if (r < 0) {
		manager_free(m);
		return r;
	}
	*ret = m;
	return 0;
}

void manager_quiesce(struct manager *m)
{
	atomic_store(&m->quiet, true);
}

/* The links are cut; what runs in the sandboxes goes on. */
static void leave_all(struct manager *m)
{
	size_t count = 0, execs = 0;
	_cleanup_free_ struct session **all = sessions_all(m, &count);
	for (size_t i = 0; i < count; i++) {
		struct session *s = all[i];
		_cleanup_free_ struct exec **list = execs_all(s, &execs);
		for (size_t k = 0; k < execs; k++) {
			exec_unlist(list[k]);
			exec_put(list[k]);
		}
		sessions_leave(m, s);
		session_unref(s);
	}
}

void manager_free(struct manager *m)
{
	if (!m)
		return;
	manager_quiesce(m);
	/* Threads first, memory later: those that still run wake the ones that have ended. */
	janitor_stop(m->janitor);
	workers_free(m->workers);
	workers_free(m->enders);
	collector_stop(m->collector);
	store_close(m->store); /* runs the callbacks of what was queued */
	session_default_free(m->standing);
	leave_all(m);
	channels_free(m->channels);
	collector_free(m->collector);
	janitor_free(m->janitor);
	engine_free(m->engine);
	local_free(m->local);
	grants_free(m->grants);
	tools_free(m->tools);
	pthread_mutex_destroy(&m->lock);
	pthread_mutex_destroy(&m->connecting);
	pthread_mutex_destroy(&m->delivering);
	free(m);
}

/* ---- figures ---- */

void manager_set_gauges(struct manager *m)
{
	static const enum session_state live[] = { SESSION_CREATING, SESSION_READY, SESSION_PAUSED,
						   SESSION_STOPPING };
	int64_t counts[SESSION_STATE_COUNT_] = { 0 };
	size_t count = 0;
	_cleanup_free_ struct session **all = sessions_all(m, &count);
	for (size_t i = 0; i < count; i++) {
		counts[session_get_state(all[i])]++;
		session_unref(all[i]);
	}
	for (size_t i = 0; i < ARRAY_LEN(live); i++)
		metrics_set(METRIC_SESSIONS, session_state_name(live[i]), counts[live[i]]);
	metrics_set(METRIC_COMMANDS_RUNNING, NULL, atomic_load(&m->execs_running));
	metrics_set(METRIC_PROCESSES_RUNNING, NULL, atomic_load(&m->processes_running));
}
