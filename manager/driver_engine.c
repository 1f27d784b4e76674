/* SPDX-License-Identifier: MIT */
/* Sandboxes that are containers of an engine. */
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "manager/driver.h"
#include "manager/grants.h"
#include "runtime/delivery.h"

#define PING_TIMEOUT_MS 2000

/* ---- making ---- */

static int check_engine_side(struct engine *g, const struct sandbox_spec *spec, struct err *e)
{
	bool there = true;
	if (spec->runtime && engine_has_runtime(g, spec->runtime, &there, e) < 0)
		return -(int)e->code;
	return there ? 0 : err_field(e, "isolation", "the engine has no runtime %s", spec->runtime);
}

static char *env_text(char *const *env)
{
	_cleanup_json_ json_t *list = json_array();
	for (; env && *env; env++)
		json_array_append_new(list, json_string_lossy(*env, strlen(*env)));
	return json_text(list);
}

/* *ret_image is filled for the time of the create; its id goes into the row. */
static int find_image(struct engine *g, struct session_row *row, struct engine_image *ret_image,
		      struct err *e)
{
	int r = engine_image_inspect(g, row->image, ret_image, e);
	if (r == -ERR_NOT_FOUND) {
		err_set(e, ERR_NOT_FOUND, "the engine has no image %s: build or pull it first (make image)",
			row->image);
		snprintf(e->field, sizeof(e->field), "image");
	}
	if (r < 0)
		return r;
	row->image_id = xstrdup(ret_image->id);
	row->image_env = env_text(ret_image->env);
	return 0;
}

static int plan(struct manager *m, const struct session_request *rq, const struct sandbox_spec *spec,
		struct session_row *row, struct engine_image *ret_image, struct err *e)
{
	struct engine *g = NULL;
	int r = manager_engine(m, &g, e);
	if (r == 0)
		r = grants_check_network(m->grants, g, row->network, rq->is_default, e);
	if (r == 0)
		r = check_engine_side(g, spec, e);
	return r == 0 ? find_image(g, row, ret_image, e) : r;
}

static int make(struct manager *m, const struct sandbox_spec *spec, struct sandbox *ret, struct err *e)
{
	struct sandbox_kit kit;
	struct err other;
	int64_t deadline = clock_mono_ms() + MANAGER_CREATE_TIMEOUT_MS;
	int r = manager_kit(m, &kit, e);
	if (r < 0)
		return r;
	r = sandbox_create(&kit, spec, MANAGER_CREATE_TIMEOUT_MS, ret, e);
	struct sandbox_kit lost = kit;
	if (r == -ERR_ENGINE && delivery_is_lost(&kit) && manager_redeliver(m, &kit, &other) == 0) {
		r = sandbox_create(&kit, spec, (int)clock_left_ms(deadline), ret, e);
		/* The empty one that the engine has made of the lost name. */
		(void)!engine_volume_remove(kit.engine, lost.agent_volume, &other);
	}
	return r;
}

/* ---- what is there ---- */

static int link_again(struct manager *m, const char *container, uint64_t generation, struct channel **ret,
		      struct hello *ret_hello, struct err *e)
{
	struct sandbox_kit kit;
	int r = manager_engine_kit(m, &kit, e);
	if (r < 0)
		return r;
	return sandbox_connect(&kit, container, generation, MANAGER_CONNECT_TIMEOUT_MS, ret, ret_hello, e);
}

static int destroy(struct manager *m, const char *sandbox, const char *container, struct err *e)
{
	struct sandbox_kit kit;
	int r = manager_engine_kit(m, &kit, e);
	return r < 0 ? r : sandbox_destroy(&kit, sandbox, container, MANAGER_DELETE_TIMEOUT_MS, e);
}

static int remove_workspace(struct manager *m, const char *name, struct err *e)
{
	struct sandbox_kit kit;
	int r = manager_engine_kit(m, &kit, e);
	return r < 0 ? r : sandbox_workspace_remove(&kit, name, e);
}

static void watch(struct manager *m, const atomic_bool *stop, engine_event_fn fn, void *ctx)
{
	struct engine *g = NULL;
	struct err e; /* a stream that broke is opened again */
	if (manager_engine(m, &g, &e) == 0)
		(void)!engine_events(g, SANDBOX_LABEL_INSTANCE, m->instance, stop, fn, ctx, &e);
}

/* ---- health ---- */

static void describe(struct engine *g, char *out, size_t size)
{
	struct engine_info i;
	engine_get_info(g, &i);
	snprintf(out, size, "%s %s (API %s)", i.kind == ENGINE_DOCKER ? "docker" : "podman", i.version,
		 i.api);
}

static void health(struct manager *m, struct manager_health *ret)
{
	struct err e;
	struct probe found;
	struct engine *g = manager_known_engine(m, &e);
	if (!g) {
		snprintf(ret->engine, sizeof(ret->engine), "%s", e.msg);
		health_degrade(ret, "engine: ", ret->engine);
		return;
	}
	if (probe_is_stale(m, &m->engine_probe, &found))
		probe_remember(m, &m->engine_probe, &found, engine_ping(g, PING_TIMEOUT_MS, &e), &e);
	ret->engine_ok = found.ok;
	snprintf(ret->engine, sizeof(ret->engine), "%s", found.why);
	if (ret->engine_ok)
		describe(g, ret->engine, sizeof(ret->engine));
	else
		health_degrade(ret, "engine: ", ret->engine);
	const char *warning;
	for (int i = 0; (warning = engine_warning(g, i)); i++)
		health_degrade(ret, "", warning);
}

const struct driver driver_engine = {
	.name = "engine",
	.plan = plan,
	.make = make,
	.link = link_again,
	.destroy = destroy,
	.remove_workspace = remove_workspace,
	.reconcile = reconcile_engine,
	.watch = watch,
	.health = health,
};

const struct driver *driver_of(const char *runtime)
{
	return strcmp(runtime, driver_local.name) == 0 ? &driver_local : &driver_engine;
}
