/* SPDX-License-Identifier: MIT */
/* Keeps time: deadlines of sessions, lost links, what the store or the engine refused, the regular comparison
 * with the engine. */
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "manager/driver.h"
#include "manager/internal.h"

#define TICK_MS 1000
#define PURGE_MS 10000
#define RECONCILE_MIN_MS 1000
#define EVENTS_RETRY_S 2
#define DAY_MS (24ll * 3600 * 1000)

struct janitor {
	struct manager *manager;
	pthread_t thread, events;
	bool has_events;
	atomic_bool stop;
	pthread_mutex_t lock; /* all below */
	pthread_cond_t changed;
	bool woken, reconcile;
};

/* ---- work for the workers: each holds a reference to its session ---- */

static void work_connect(void *arg)
{
	_cleanup_(session_unref_cleanup_) struct session *s = arg;
	_cleanup_(channel_unref_cleanup_) struct channel *c = NULL;
	struct err ignored; /* logged there; comes up again at the next tick */
	/* Does not wait for somebody else's attempt: the workers are few, and one session must not hold them
	 * all. */
	bool open = !atomic_load(&s->manager->quiet) && session_channel(s, 0, &c, &ignored) == 0;
	pthread_mutex_lock(&s->lock);
	s->connect_queued = false;
	bool resume = open && s->resume_wanted;
	s->resume_wanted = s->resume_wanted && !resume;
	pthread_mutex_unlock(&s->lock);
	if (resume)
		execs_resume(s, c);
}

/* ---- one look at one session ---- */

static void judge_deadlines_locked(struct session *s)
{
	int64_t now = clock_wall_ms();
	if (s->state != SESSION_READY && s->state != SESSION_PAUSED)
		return;
	if (s->row.expires_ms && now >= s->row.expires_ms)
		session_doom_locked(s, "expired", "its ttl is over", NULL);
	else if (s->row.idle_ms && now >= s->row.idle_ms && s->slots.taken + s->ending == 0 &&
		 TAILQ_EMPTY(&s->builtins))
		session_doom_locked(s, "idle", "it was not used for its idle_s", NULL);
}

static bool wants_link_locked(const struct session *s)
{
	bool linked = s->channel && channel_is_open(s->channel);
	return s->state == SESSION_READY && !s->doom && !s->connecting && !s->connect_queued &&
	       (!linked || s->resume_wanted) && clock_mono_ms() >= s->connect_not_before_ms;
}

static void connect_if_due(struct session *s)
{
	pthread_mutex_lock(&s->lock);
	/* A full queue: the next tick tries again. */
	bool added = wants_link_locked(s) && workers_add(s->manager->workers, work_connect, s);
	if (added)
		atomic_fetch_add(&s->refs, 1); /* the worker's, who waits for the lock */
	s->connect_queued = s->connect_queued || added;
	pthread_mutex_unlock(&s->lock);
}

static void look_at(struct session *s)
{
	pthread_mutex_lock(&s->lock);
	judge_deadlines_locked(s);
	pthread_mutex_unlock(&s->lock);
	session_end_if_due(s);
	connect_if_due(s);
	execs_save_again(s);
}

static void look_at_all(struct manager *m)
{
	size_t count = 0;
	_cleanup_free_ struct session **all = sessions_all(m, &count);
	for (size_t i = 0; i < count; i++) {
		look_at(all[i]);
		session_unref(all[i]);
	}
}

static void purge(struct manager *m)
{
	struct err e;
	int64_t now = clock_wall_ms(), days = m->settings->audit_days;
	if (store_exec_purge(m->store, now - MANAGER_EXEC_KEPT_MS, &e) < 0 ||
	    store_session_purge(m->store, now - MANAGER_GONE_KEPT_MS, &e) < 0 ||
	    (days && store_audit_purge(m->store, now - days * DAY_MS, &e) < 0))
		LOG(LOG_WARN, "cannot purge old rows", F("why", e.msg));
}

/* ---- the threads ---- */

static bool wait_tick(struct janitor *j)
{
	struct timespec t;
	int64_t until = clock_mono_ms() + TICK_MS;
	t = (struct timespec){ .tv_sec = until / 1000, .tv_nsec = until % 1000 * 1000000 };
	pthread_mutex_lock(&j->lock);
	while (!j->woken && !atomic_load(&j->stop) && clock_mono_ms() < until)
		pthread_cond_timedwait(&j->changed, &j->lock, &t);
	j->woken = false;
	bool reconcile = j->reconcile;
	j->reconcile = false;
	pthread_mutex_unlock(&j->lock);
	return reconcile;
}

static void *janitor_main(void *arg)
{
	struct janitor *j = arg;
	struct manager *m = j->manager;
	int64_t next_reconcile = 0, next_purge = 0, next_tell = 0, last_reconcile = 0;
	bool asked = false;
	while (!atomic_load(&j->stop)) {
		asked = wait_tick(j) || asked;
		int64_t now = clock_mono_ms();
		look_at_all(m);
		/* A storm of events makes one comparison a second, not one each. */
		if (now >= next_reconcile || (asked && now - last_reconcile >= RECONCILE_MIN_MS)) {
			asked = false;
			struct err e;
			if (manager_reconcile(m, &e) < 0 && e.code != ERR_UNAVAILABLE)
				LOG(LOG_WARN, "cannot reconcile", F("why", e.msg));
			last_reconcile = clock_mono_ms();
			next_reconcile = now + m->settings->reconcile_s * 1000;
		}
		if (now >= next_tell) {
			manager_tell_unlisted(m);
			next_tell = now + TICK_MS;
		}
		if (now >= next_purge) {
			purge(m);
			next_purge = now + PURGE_MS;
		}
	}
	manager_tell_unlisted(m);
	return NULL;
}

static void on_event(void *ctx, const char *id, const char *action)
{
	(void)id;
	static const char *const worth[] = { "die", "remove", "destroy", "oom", "stop", "kill" };
	for (size_t i = 0; i < ARRAY_LEN(worth); i++)
		if (strcmp(worth[i], action) == 0)
			janitor_wake(ctx, true);
}

/* Events are lossy and only wake the janitor up: a broken stream costs nothing but time until the next look.
 */
static void *events_main(void *arg)
{
	struct janitor *j = arg;
	struct manager *m = j->manager;
	while (!atomic_load(&j->stop)) {
		m->driver->watch(m, &j->stop, on_event, j);
		janitor_wake(j, true);
		for (int i = 0; i < EVENTS_RETRY_S * 10 && !atomic_load(&j->stop); i++)
			clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){ .tv_nsec = 100000000 }, NULL);
	}
	return NULL;
}

int janitor_new(struct manager *m, struct janitor **ret, struct err *e)
{
	struct janitor *j = xcalloc(1, sizeof(*j));
	j->manager = m;
	pthread_mutex_init(&j->lock, NULL);
	pthread_condattr_t attr;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&j->changed, &attr);
	pthread_condattr_destroy(&attr);
	*ret = j; /* the sessions that its thread looks at reach it through the manager */
	int sys = pthread_create(&j->thread, NULL, janitor_main, j);
	if (sys) {
		*ret = NULL;
		free(j);
		return err_sys(e, ERR_INTERNAL, sys, "cannot start the janitor's thread");
	}
	sys = pthread_create(&j->events, NULL, events_main, j);
	j->has_events = sys == 0;
	if (sys) {
		janitor_free(j);
		*ret = NULL;
		return err_sys(e, ERR_INTERNAL, sys, "cannot start the events' thread");
	}
	return 0;
}

void janitor_stop(struct janitor *j)
{
	if (!j || atomic_load(&j->stop))
		return;
	atomic_store(&j->stop, true);
	janitor_wake(j, false);
	pthread_join(j->thread, NULL);
	if (j->has_events)
		pthread_join(j->events, NULL);
}

void janitor_free(struct janitor *j)
{
	if (!j)
		return;
	janitor_stop(j);
	pthread_mutex_destroy(&j->lock);
	pthread_cond_destroy(&j->changed);
	free(j);
}

void janitor_wake(struct janitor *j, bool reconcile)
{
	pthread_mutex_lock(&j->lock);
	j->woken = true;
	j->reconcile = j->reconcile || reconcile;
	pthread_cond_signal(&j->changed);
	pthread_mutex_unlock(&j->lock);
}
