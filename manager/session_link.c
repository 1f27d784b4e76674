/* SPDX-License-Identifier: MIT */
/* The link of a session to its agent: opened when it is needed, again after a loss, with backoff. */
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "manager/driver.h"
#include "manager/internal.h"
#include "manager/tools.h"

#define BACKOFF_MIN_MS 100
#define BACKOFF_MAX_MS 10000 /* Podman keeps two processes for 300 s after each exec: do not make many */
#define YOUNG_MS 10000    /* a link that was lost so soon counts against the next one, which comes later, */
#define YOUNG_MAX_MS 2000 /* by so much at most */

static void until(int64_t mono_ms, struct timespec *ret)
{
	*ret = (struct timespec){ .tv_sec = mono_ms / 1000, .tv_nsec = mono_ms % 1000 * 1000000 };
}

static bool is_open_locked(const struct session *s)
{
	return s->channel && channel_is_open(s->channel);
}

struct channel *session_open_channel(struct session *s)
{
	pthread_mutex_lock(&s->lock);
	struct channel *c = is_open_locked(s) ? channel_ref(s->channel) : NULL;
	pthread_mutex_unlock(&s->lock);
	return c;
}

static int refuse_locked(const struct session *s, struct err *e)
{
	if (s->state == SESSION_PAUSED)
		return err_set(e, ERR_CONFLICT, "session %s is paused", s->id);
	if (s->state == SESSION_CREATING)
		return err_set(e, ERR_CONFLICT, "session %s is still being created", s->id);
	return err_set(e, ERR_GONE, "session %s is %s: %s", s->id, session_state_name(s->state),
		       s->row.reason ? s->row.reason : "ended");
}

/* Waits until there is a link, or it is this caller's turn to open one. 1: open, 0: your turn (connecting is
 * set). */
static int wait_turn_locked(struct session *s, int64_t deadline, struct err *e)
{
	for (;;) {
		if (s->state != SESSION_READY)
			return refuse_locked(s, e);
		if (is_open_locked(s))
			return 1;
		int64_t now = clock_mono_ms(), next = deadline;
		if (!s->connecting) {
			if (now >= s->connect_not_before_ms) {
				s->connecting = true;
				return 0;
			}
			next = MIN(next, s->connect_not_before_ms);
		}
		if (now >= deadline)
			return err_set(e, ERR_TIMEOUT, "session %s could not be reached in time", s->id);
		struct timespec t;
		until(next, &t);
		pthread_cond_timedwait(&s->changed, &s->lock, &t);
	}
}

/* Above every earlier one, also when the store was restored from an older copy. */
static uint64_t next_generation(struct session *s)
{
	pthread_mutex_lock(&s->lock);
	int64_t g = MAX(s->row.link_generation + 1, clock_wall_ms());
	s->row.link_generation = g;
	pthread_mutex_unlock(&s->lock);
	struct err e; /* a full disk must not cut sessions off: the wall time stands in after a restart */
	if (store_session_generation(s->manager->store, s->id, g, &e) < 0)
		LOG(LOG_WARN, "link generation not stored", F("session", s->id), F("why", e.msg));
	return (uint64_t)g;
}

/* Takes its full time, whoever asks: an attempt that is given up costs the engine as much as one that
 * succeeds. */
static int open_link(struct session *s, struct channel **ret, struct err *e)
{
	struct manager *m = s->manager;
	pthread_mutex_lock(&s->lock);
	_cleanup_free_ char *container = xstrdup(s->row.container);
	pthread_mutex_unlock(&s->lock);
	_cleanup_free_ struct hello *hello = xcalloc(1, sizeof(*hello));
	return m->driver->link(m, container, next_generation(s), ret, hello, e);
}

static void set_link(struct session *s, struct channel *c, int r, const struct err *e)
{
	int64_t now = clock_mono_ms();
	pthread_mutex_lock(&s->lock);
	s->connecting = false;
	if (r == 0) {
		channel_unref(s->channel);
		s->channel = c;
		s->connect_failures = 0;
		s->young_links = now - s->linked_ms < YOUNG_MS ? MIN(s->young_links + 1, 5) : 0;
		s->linked_ms = now;
		s->connect_not_before_ms = now + MIN(BACKOFF_MIN_MS << s->young_links, YOUNG_MAX_MS);
	} else {
		int64_t wait = BACKOFF_MIN_MS << MIN(s->connect_failures++, 7);
		s->connect_not_before_ms = now + MIN(wait, BACKOFF_MAX_MS);
		if (r == -ERR_NOT_FOUND)
			session_doom_locked(s, "sandbox_lost", e->msg, NULL);
	}
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
}

int session_channel(struct session *s, int timeout_ms, struct channel **ret, struct err *e)
{
	int64_t deadline = clock_mono_ms() + timeout_ms;
	pthread_mutex_lock(&s->lock);
	int r = wait_turn_locked(s, deadline, e);
	if (r == 1)
		*ret = channel_ref(s->channel);
	bool first = !s->channel;
	pthread_mutex_unlock(&s->lock);
	if (r != 0)
		return r < 0 ? r : 0;
	struct channel *c = NULL;
	r = open_link(s, &c, e);
	struct channel *mine = r == 0 ? channel_ref(c) : NULL;
	set_link(s, c, r, e);
	if (r < 0) {
		LOG(LOG_WARN, "link failed", F("session", s->id), F("why", e->msg));
		return r == -ERR_NOT_FOUND ? err_set(e, ERR_GONE, "session %s has lost its sandbox", s->id)
					   : r;
	}
	LOG(LOG_INFO, "link open", F("session", s->id), F("again", !first));
	execs_resume(s, mine);
	if (first) /* a session of an earlier berthd */
		session_probe_shell(s, mine);
	if (first)
		tools_learn(s);
	*ret = mine;
	return 0;
}
