/* SPDX-License-Identifier: MIT */
/* How the manager and its sessions are; engine and store are asked, at most once a second, sandboxes never.
 */
#include <string.h>

#include "base/clock.h"
#include "manager/driver.h"
#include "manager/internal.h"
#include "manager/tools.h"

#define PROBE_MS 1000 /* engine and store are asked at most so often */

void health_degrade(struct manager_health *h, const char *part, const char *why)
{
	size_t i = 0;
	while (i < ARRAY_LEN(h->degraded) && h->degraded[i][0])
		i++;
	if (i < ARRAY_LEN(h->degraded))
		snprintf(h->degraded[i], sizeof(h->degraded[i]), "%s%s", part, why);
}

bool probe_is_stale(struct manager *m, struct probe *p, struct probe *ret)
{
	pthread_mutex_lock(&m->lock);
	bool stale = !p->at_ms || clock_mono_ms() - p->at_ms >= PROBE_MS;
	if (stale)
		p->at_ms = clock_mono_ms();
	*ret = *p;
	pthread_mutex_unlock(&m->lock);
	return stale;
}

void probe_remember(struct manager *m, struct probe *p, struct probe *found, int r, const struct err *e)
{
	found->ok = r == 0;
	snprintf(found->why, sizeof(found->why), "%s", r < 0 ? e->msg : "");
	pthread_mutex_lock(&m->lock);
	*p = *found;
	pthread_mutex_unlock(&m->lock);
}

static void store_health(struct manager *m, struct manager_health *ret)
{
	struct err e;
	struct probe found;
	if (probe_is_stale(m, &m->store_probe, &found))
		probe_remember(m, &m->store_probe, &found, store_check(m->store, &e), &e);
	ret->store_ok = found.ok;
	const char *ok = m->driver == &driver_local ? "in memory" : "ok";
	snprintf(ret->store, sizeof(ret->store), "%s", found.ok ? ok : found.why);
}

void manager_get_health(struct manager *m, struct manager_health *ret)
{
	*ret = (struct manager_health){ 0 };
	ret->runtime = m->driver->name;
	m->driver->health(m, ret);
	store_health(m, ret);
	ret->ok = ret->engine_ok && ret->store_ok;
	if (!ret->store_ok)
		health_degrade(ret, "store: ", ret->store);
	pthread_mutex_lock(&m->lock);
	ret->sessions_live = (int64_t)m->session_count;
	pthread_mutex_unlock(&m->lock);
	ret->execs_running = atomic_load(&m->execs_running);
	ret->processes_running = atomic_load(&m->processes_running);
}

void session_get_health(struct session *s, struct session_health *ret)
{
	pthread_mutex_lock(&s->lock);
	_cleanup_free_ char *image = s->row.image_id ? xstrdup(s->row.image_id) : NULL;
	*ret = (struct session_health){
		.ok = s->state == SESSION_READY && !s->doom && s->channel && channel_is_open(s->channel),
		.busy = s->slots.taken,
		.processes = s->processes,
	};
	pthread_mutex_unlock(&s->lock);
	ret->tools = tools_get(s->manager->tools, image);
}

json_t *manager_get_tools(struct manager *m)
{
	return tools_get(m->tools, NULL);
}
