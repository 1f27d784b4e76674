/* SPDX-License-Identifier: MIT */
/* Containers: create and read back, start, kill, pause, remove, inspect, list. */
#include <poll.h>
#include <string.h>

#include "base/clock.h"
#include "runtime/engine/engine_json.h"
#include "runtime/engine/engine_priv.h"
#include "runtime/engine/engine_spec.h"

#define CLEANUP_MS 15000 /* for the removal of a container that did not come out right */

/* ---- create ---- */

static struct engine_spec_target target_of(struct engine *g)
{
	struct engine_facts f;
	engine_get_facts(g, &f);
	return (struct engine_spec_target){ f.quirks, g->limits, f.info.cgroup };
}

static int post_create(struct engine *g, const struct engine_container_spec *spec,
		       const struct engine_spec_target *t, char ret_id[ENGINE_ID_SIZE], struct err *e)
{
	bool native = t->quirks->native;
	_cleanup_json_ json_t *body = native ? engine_spec_native(spec, t) : engine_spec_wish(spec, t),
			      *reply = NULL;
	_cleanup_free_ char *text = json_text(body);
	_cleanup_free_ char *path =
		native ? xstrdup("/containers/create") : xasprintf("/containers/create?name=%s", spec->name);
	const struct engine_request rq = { .verb = ENGINE_POST,
					   .api = native ? ENGINE_API_NATIVE : ENGINE_API,
					   .path = path,
					   .body = text,
					   .body_len = strlen(text) };
	int r = engine_call_json(g, &rq, &reply, e);
	return r ? r : engine_json_id(reply, "Id", ret_id, e);
}

static int read_back(struct engine *g, const struct engine_container_spec *spec,
		     const struct engine_spec_target *t, const char *id, struct err *e)
{
	_cleanup_json_ json_t *inspect = NULL;
	_cleanup_free_ char *path = xasprintf("/containers/%s/json", id);
	const struct engine_request rq = { .verb = ENGINE_GET,
					   .api = t->quirks->native ? ENGINE_API_NATIVE : ENGINE_API,
					   .path = path };
	int r = engine_call_json(g, &rq, &inspect, e);
	return r ? r : engine_spec_compare(spec, t, inspect, e);
}

int engine_container_create(struct engine *g, const struct engine_container_spec *spec,
			    char ret_id[ENGINE_ID_SIZE], struct err *e)
{
	char id[ENGINE_ID_SIZE];
	struct engine_spec_target t = target_of(g);
	int r = engine_check_name("name", spec->name, e);
	r = r ? r : engine_spec_check(spec, e);
	r = r ? r : engine_turn_take(g, clock_mono_ms() + g->call_timeout_ms, e);
	if (r)
		return r;
	r = post_create(g, spec, &t, id, e);
	engine_turn_give(g);
	if (r)
		return err_wrap(e, "container %s", spec->name);
	r = read_back(g, spec, &t, id, e);
	if (r) {
		struct err ignored; /* what is left then goes by its label, at the next reconcile */
		(void)!engine_container_remove(g, id, CLEANUP_MS, &ignored);
		return r;
	}
	memcpy(ret_id, id, sizeof(id));
	return 0;
}

/* ---- acts that may have been done already ---- */

static int act(struct engine *g, const char *id, const char *verb, struct err *e)
{
	int r = engine_check_name("id", id, e);
	_cleanup_free_ char *path = r ? NULL : xasprintf("/containers/%s/%s", id, verb);
	return r ? r : engine_post(g, path, NULL, NULL, e);
}

/*
 * After an act that was refused: 0 when the container is in one of the wanted states all the same.
 * The engines' codes for "already so" differ (409, 500), the state does not.
 */
static int settle(struct engine *g, const char *id, int r, unsigned wanted)
{
	struct engine_container_state s;
	struct err now;
	if (r != -ERR_CONFLICT && r != -ERR_ENGINE)
		return r;
	if (!engine_container_inspect(g, id, &s, &now) && wanted & 1u << s.state)
		return 0;
	return r;
}

int engine_container_start(struct engine *g, const char *id, struct err *e)
{
	struct engine_container_state s;
	struct err now;
	int r = engine_turn_take(g, clock_mono_ms() + g->call_timeout_ms, e);
	if (r)
		return r;
	r = act(g, id, "start", e); /* 304 when it runs already */
	engine_turn_give(g);
	/* A missing network or program is a 404 too: only a container that is gone is not found. */
	if (r == -ERR_NOT_FOUND && !engine_container_inspect(g, id, &s, &now)) {
		e->code = ERR_ENGINE;
		r = -ERR_ENGINE;
	}
	return r;
}

int engine_container_kill(struct engine *g, const char *id, struct err *e)
{
	return settle(g, id, act(g, id, "kill", e),
		      1u << ENGINE_CREATED | 1u << ENGINE_EXITED | 1u << ENGINE_REMOVING);
}

int engine_container_pause(struct engine *g, const char *id, bool pause, struct err *e)
{
	return settle(g, id, act(g, id, pause ? "pause" : "unpause", e),
		      1u << (pause ? ENGINE_PAUSED : ENGINE_RUNNING));
}

/*
 * A Docker that restarted beside a living container (live-restore) counts the users of its volumes from 0:
 * their release at the container's end makes that -1, which is a very large number, and "volume has active
 * mounts" is the answer to every removal until the next restart. To look at a file of the container mounts
 * its volumes and releases them, after which Docker does not release them again (volume/mounts: Cleanup()
 * forgets the mount's id; seen on 20.10.24).
 */
int engine_container_recount(struct engine *g, const char *id, struct err *e)
{
	struct engine_facts f;
	engine_get_facts(g, &f);
	int r = engine_check_name("id", id, e);
	if (r || !f.quirks->miscounts || !f.info.live_restore)
		return r;
	_cleanup_free_ char *path = xasprintf("/containers/%s/archive?path=/", id);
	const struct engine_request rq = { .verb = ENGINE_HEAD, .path = path };
	return engine_call_json(g, &rq, NULL, e);
}

/*
 * That a container is not there is believed only of the engine that made it: a connection may have been
 * opened anew, without a word, to another one that listens there now.
 */
static int believe_absence(struct engine *g, int64_t deadline_ms, struct err *e)
{
	struct err why = { 0 };
	int r = engine_negotiate(g, deadline_ms, &why);
	if (r)
		*e = why;
	return r;
}

/* ---- remove ---- */

static int delete_once(struct engine *g, const char *id, int64_t deadline_ms, struct err *e)
{
	_cleanup_free_ char *path = xasprintf("/containers/%s?force=true&v=true", id);
	const struct engine_request rq = { .verb = ENGINE_DELETE, .path = path, .deadline_ms = deadline_ms };
	return engine_call_json(g, &rq, NULL, e);
}

/* 1 gone, 0 still there, or an error. */
static int is_gone(struct engine *g, const char *id, int64_t deadline_ms, struct err *e)
{
	_cleanup_free_ char *path = xasprintf("/containers/%s/json", id);
	const struct engine_request rq = { .verb = ENGINE_GET, .path = path, .deadline_ms = deadline_ms };
	int r = engine_call_json(g, &rq, NULL, e);
	return r == -ERR_NOT_FOUND ? 1 : r;
}

/*
 * Until the container is not listed: a removal that is under way already (409), a device that is
 * busy for a moment (500) and a container stuck in "removing" are all asked for again.
 */
int engine_container_remove(struct engine *g, const char *id, int timeout_ms, struct err *e)
{
	int64_t deadline = clock_mono_ms() + timeout_ms, wait_ms = 10;
	struct err why = { 0 };
	int r = engine_check_name("id", id, e);
	if (r)
		return r;
	for (;; wait_ms = MIN(wait_ms * 2, 500)) {
		r = delete_once(g, id, deadline, &why);
		if (r == -ERR_NOT_FOUND)
			return believe_absence(g, deadline, e);
		int gone = r == 0 || r == -ERR_CONFLICT || r == -ERR_ENGINE ? is_gone(g, id, deadline, e) : r;
		if (gone > 0)
			return 0;
		if (r == -ERR_UNAVAILABLE || clock_left_ms(deadline) <= wait_ms)
			break;
		poll(NULL, 0, (int)wait_ms); /* no event tells when a second try makes sense */
	}
	if (r == -ERR_UNAVAILABLE) {
		*e = why;
		return r;
	}
	return err_set(e, ERR_TIMEOUT, "the container is still there after %d ms%s%.200s", timeout_ms,
		       *why.msg ? ": " : "", why.msg);
}

/* ---- inspect and list ---- */

/*
 * A removal on Podman that was broken off (its service killed) leaves a container without storage:
 * inspecting it fails as "container not known", removing it again works.
 */
int engine_container_inspect(struct engine *g, const char *id, struct engine_container_state *ret,
			     struct err *e)
{
	_cleanup_json_ json_t *inspect = NULL;
	int r = engine_check_name("id", id, e);
	_cleanup_free_ char *path = r ? NULL : xasprintf("/containers/%s/json", id);
	r = r ? r : engine_get(g, path, &inspect, e);
	if (r == -ERR_NOT_FOUND) {
		int other = believe_absence(g, clock_mono_ms() + g->call_timeout_ms, e);
		return other ? other : r;
	}
	if (r == -ERR_CONFLICT) {
		*ret = (struct engine_container_state){ .state = ENGINE_REMOVING };
		return 0;
	}
	return r ? r : engine_json_state(inspect, ret, e);
}

static int get_list(struct engine *g, enum engine_api api, const char *path, const struct engine_label *label,
		    json_t **ret, struct err *e)
{
	_cleanup_buf_ struct buf full = BUF_INIT(2048);
	_cleanup_free_ char *filter = engine_label_filter(label->key, label->value, false);
	int r = buf_addf(&full, e, "%s", path);
	r = r ? r : engine_path_query(&full, "filters", filter, e);
	const struct engine_request rq = {
		.verb = ENGINE_GET, .api = api, .path = full.data, .reply_max = ENGINE_LIST_MAX
	};
	return r ? r : engine_call_json(g, &rq, ret, e);
}

/* One such broken container makes Podman's Docker-shaped list fail as a whole (seen on 4.3.1), its own list
 * shows it. */
int engine_container_list(struct engine *g, const char *label_key, const char *label_value,
			  const char *detail_key, struct engine_item **ret_items, size_t *ret_count,
			  struct err *e)
{
	_cleanup_json_ json_t *list = NULL;
	const struct engine_label label = { label_key, label_value };
	enum engine_api api = target_of(g).quirks->native ? ENGINE_API_NATIVE : ENGINE_API;
	int r = get_list(g, api, "/containers/json?all=true", &label, &list, e);
	return r ? r : engine_json_containers(list, detail_key, ret_items, ret_count, e);
}

int engine_volume_list(struct engine *g, const char *label_key, const char *label_value,
		       const char *detail_key, struct engine_item **ret_items, size_t *ret_count,
		       struct err *e)
{
	_cleanup_json_ json_t *reply = NULL;
	const struct engine_label label = { label_key, label_value };
	int r = get_list(g, ENGINE_API, "/volumes", &label, &reply, e);
	return r ? r : engine_json_volumes(reply, detail_key, ret_items, ret_count, e);
}
