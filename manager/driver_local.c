/* SPDX-License-Identifier: MIT */
/* The one sandbox that is the container berthd itself runs in: for the default session, and no other. */
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "manager/driver.h"
#include "manager/settings.h"
#include "runtime/local.h"

#define WATCH_MS 200

/* Of berthd's own variables a command gets PATH, which an image may have set, and what SANDBOX_PASS_ENV
 * names. */
static char *image_env(void)
{
	const char *path = settings_pass_env("PATH");
	_cleanup_free_ char *text = path ? xasprintf("PATH=%s", path) : NULL;
	_cleanup_json_ json_t *list = json_array();
	if (text)
		json_array_append_new(list, json_string_lossy(text, strlen(text)));
	return json_text(list);
}

static int plan(struct manager *m, const struct session_request *rq, const struct sandbox_spec *spec,
		struct session_row *row, struct engine_image *ret_image, struct err *e)
{
	(void)m, (void)spec, (void)ret_image;
	if (!rq->is_default)
		return err_set(e, ERR_LOCAL_MODE, "there is one session only, that of SANDBOX_TOKEN");
	row->image_id = xstrdup("local");
	row->image_env = image_env();
	return 0;
}

/* What was left of an earlier one has been ended by destroy(). */
static int make(struct manager *m, const struct sandbox_spec *spec, struct sandbox *ret, struct err *e)
{
	struct err ignored;
	(void)spec;
	int r = local_start(m->local, MANAGER_CREATE_TIMEOUT_MS, ret, e);
	if (r < 0)
		(void)!local_end(MANAGER_DELETE_TIMEOUT_MS, &ignored);
	return r;
}

/* The socket that the agent was started with is the only one. */
static int link_again(struct manager *m, const char *container, uint64_t generation, struct channel **ret,
		      struct hello *ret_hello, struct err *e)
{
	(void)m, (void)container, (void)generation, (void)ret, (void)ret_hello;
	return err_set(e, ERR_NOT_FOUND, "the agent has ended");
}

static int destroy(struct manager *m, const char *sandbox, const char *container, struct err *e)
{
	(void)m, (void)sandbox, (void)container;
	return local_end(MANAGER_DELETE_TIMEOUT_MS, e);
}

static int remove_workspace(struct manager *m, const char *name, struct err *e)
{
	(void)m, (void)name;
	return err_set(e, ERR_LOCAL_MODE, "the workspace is the container's own");
}

static int reconcile(struct manager *m, struct err *e)
{
	(void)m, (void)e;
	return 0; /* a link that is lost says all there is to know */
}

static void watch(struct manager *m, const atomic_bool *stop, engine_event_fn fn, void *ctx)
{
	(void)m, (void)fn, (void)ctx;
	while (!atomic_load(stop))
		clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){ .tv_nsec = WATCH_MS * 1000000 },
				NULL);
}

static void health(struct manager *m, struct manager_health *ret)
{
	(void)m;
	ret->engine_ok = true;
	snprintf(ret->engine, sizeof(ret->engine), "none: commands run beside berthd, as its own user");
}

const struct driver driver_local = {
	.name = "local",
	.plan = plan,
	.make = make,
	.link = link_again,
	.destroy = destroy,
	.remove_workspace = remove_workspace,
	.reconcile = reconcile,
	.watch = watch,
	.health = health,
};

void manager_on_children(struct manager *m)
{
	if (m->local)
		local_reap(m->local);
}
