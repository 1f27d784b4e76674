/* SPDX-License-Identifier: MIT */
/* The engine and the delivered agent, as the manager has them: found when they are first needed. */
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "manager/internal.h"
#include "runtime/delivery.h"

#define RETRY_MS 2000
#define KEY_VOLUME "agent_volume"
#define KEY_ENGINE "engine"

struct engine *manager_known_engine(struct manager *m, struct err *ret_why)
{
	pthread_mutex_lock(&m->lock);
	struct engine *g = m->engine;
	*ret_why = m->connect_why;
	pthread_mutex_unlock(&m->lock);
	if (!g && !ret_why->code)
		err_set(ret_why, ERR_UNAVAILABLE, "the engine is being connected");
	return g;
}

/*
 * Sessions live in one engine. Another one that answers in its place (the other daemon's socket, another
 * machine) has none of their containers: to ask it would end them all.
 */
static int check_identity(struct manager *m, struct engine *g, struct err *e)
{
	struct engine_info info;
	engine_get_info(g, &info);
	_cleanup_free_ char *known = NULL;
	int r = store_get_value(m->store, KEY_ENGINE, &known, e);
	if (r < 0 || (known && strcmp(known, info.id) == 0))
		return r;
	pthread_mutex_lock(&m->lock);
	size_t sessions = m->session_count;
	pthread_mutex_unlock(&m->lock);
	if (known && sessions && !m->settings->new_engine)
		return err_set(
			e, ERR_UNAVAILABLE,
			"%zu sessions live in another engine (%s) than the one at %s: start that one, set "
			"SANDBOX_ENGINE to it, or give them up by SANDBOX_NEW_ENGINE=1",
			sessions, known, info.address);
	if (known) /* the agent was delivered into that one */
		r = store_set_value(m->store, KEY_VOLUME, "", e);
	return r == 0 ? store_set_value(m->store, KEY_ENGINE, info.id, e) : r;
}

static int connect_now(struct manager *m, struct engine **ret, struct err *e)
{
	const struct engine_options options = {
		.address = m->settings->engine,
		.tls_dir = m->settings->engine_tls,
		.runtime_dir = m->settings->runtime_dir,
		.create_parallel = (int)m->settings->engine_parallel,
	};
	int r = engine_connect(&options, ret, e);
	if (r < 0)
		return r;
	r = check_identity(m, *ret, e);
	if (r < 0) {
		engine_free(*ret);
		*ret = NULL;
		return r;
	}
	struct engine_info info;
	engine_get_info(*ret, &info);
	LOG(LOG_INFO, "engine", F("kind", info.kind == ENGINE_DOCKER ? "docker" : "podman"),
	    F("version", info.version), F("api", info.api), F("address", info.address),
	    F("cgroup", info.cgroup));
	const char *warning;
	for (int i = 0; (warning = engine_warning(*ret, i)); i++)
		LOG(LOG_WARN, "engine weakness", F("what", warning));
	return 0;
}

static struct engine *known_engine(struct manager *m)
{
	struct err ignored;
	return manager_known_engine(m, &ignored);
}

/* With m->connecting held: the others wait for this one's result, and a failure holds for a while. */
static int connect_once(struct manager *m, struct engine **ret, struct err *e)
{
	*ret = known_engine(m);
	if (*ret)
		return 0;
	if (clock_mono_ms() < m->connect_retry_ms) {
		*e = m->connect_err;
		return -(int)e->code;
	}
	int r = connect_now(m, ret, e);
	if (r < 0) {
		e->retry_after_s = RETRY_MS / 1000;
		m->connect_err = *e;
		pthread_mutex_lock(&m->lock);
		bool news = strcmp(m->connect_why.msg, e->msg) != 0;
		m->connect_why = *e;
		pthread_mutex_unlock(&m->lock);
		if (news)
			LOG(LOG_ERROR, "no engine", F("why", e->msg));
		m->connect_retry_ms = clock_mono_ms() + RETRY_MS;
		return r;
	}
	pthread_mutex_lock(&m->lock);
	m->engine = *ret;
	pthread_mutex_unlock(&m->lock);
	return 0;
}

int manager_engine(struct manager *m, struct engine **ret, struct err *e)
{
	struct engine *g = known_engine(m);
	int r = 0;
	if (!g) {
		pthread_mutex_lock(&m->connecting);
		r = connect_once(m, &g, e);
		pthread_mutex_unlock(&m->connecting);
	}
	if (r == 0)
		*ret = g;
	return r;
}

static void kit_of(struct manager *m, struct engine *g, struct sandbox_kit *ret)
{
	*ret = (struct sandbox_kit){ .engine = g, .channels = m->channels, .instance = m->instance };
	pthread_mutex_lock(&m->lock);
	memcpy(ret->agent_volume, m->agent_volume, sizeof(ret->agent_volume));
	pthread_mutex_unlock(&m->lock);
}

/* With m->delivering held. */
static int deliver(struct manager *m, struct engine *g, bool again, struct err *e)
{
	struct sandbox_kit kit;
	kit_of(m, g, &kit);
	_cleanup_free_ char *recorded = NULL;
	int r = store_get_value(m->store, KEY_VOLUME, &recorded, e);
	char volume[ENGINE_NAME_SIZE];
	if (r == 0)
		r = delivery_ensure(&kit, recorded, again, volume, e);
	if (r == 0 && (!recorded || strcmp(recorded, volume) != 0))
		r = store_set_value(m->store, KEY_VOLUME, volume, e);
	if (r < 0)
		return r;
	if (recorded && strcmp(recorded, volume) != 0) {
		/* An engine makes an empty volume without labels for a name that was gone. */
		struct err ignored;
		(void)!engine_volume_remove(g, recorded, &ignored);
	}
	delivery_clean(&kit, volume);
	pthread_mutex_lock(&m->lock);
	memcpy(m->agent_volume, volume, sizeof(volume));
	pthread_mutex_unlock(&m->lock);
	LOG(LOG_INFO, "agent delivered", F("volume", volume));
	return 0;
}

/* The first delivery; one that failed is not tried again at once. With m->delivering held. */
static int deliver_once(struct manager *m, struct engine *g, struct err *e)
{
	if (m->agent_volume[0])
		return 0;
	if (clock_mono_ms() < m->deliver_retry_ms) {
		*e = m->deliver_err;
		return -(int)e->code;
	}
	int r = deliver(m, g, false, e);
	if (r < 0) {
		m->deliver_err = *e;
		m->deliver_retry_ms = clock_mono_ms() + RETRY_MS;
	}
	return r;
}

int manager_engine_kit(struct manager *m, struct sandbox_kit *ret, struct err *e)
{
	struct engine *g = NULL;
	int r = manager_engine(m, &g, e);
	if (r == 0)
		kit_of(m, g, ret);
	return r;
}

int manager_kit(struct manager *m, struct sandbox_kit *ret, struct err *e)
{
	int r = manager_engine_kit(m, ret, e);
	if (r < 0 || ret->agent_volume[0])
		return r;
	pthread_mutex_lock(&m->delivering);
	r = deliver_once(m, ret->engine, e);
	pthread_mutex_unlock(&m->delivering);
	if (r == 0)
		kit_of(m, ret->engine, ret);
	return r;
}

int manager_redeliver(struct manager *m, struct sandbox_kit *kit, struct err *e)
{
	pthread_mutex_lock(&m->delivering);
	int r = 0;
	if (strcmp(m->agent_volume, kit->agent_volume) == 0) /* nobody else has done it meanwhile */
		r = deliver(m, kit->engine, true, e);
	pthread_mutex_unlock(&m->delivering);
	if (r == 0)
		kit_of(m, kit->engine, kit);
	return r;
}
