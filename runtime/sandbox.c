/* SPDX-License-Identifier: MIT */
#include "runtime/sandbox.h"

#include <pthread.h>
#include <string.h>

#include "base/clock.h"
#include "runtime/agent_image.h"
#include "runtime/delivery.h"

#define NOFILE 16384
#define BRIDGE_TIMEOUT_MS 15000
#define CLEANUP_TIMEOUT_MS 20000

static void volume_name(const char *id, const char *suffix, char ret[ENGINE_NAME_SIZE])
{
	snprintf(ret, ENGINE_NAME_SIZE, "berth-%s-%s", id, suffix);
}

static void container_name(const char *id, const char *suffix, char ret[ENGINE_NAME_SIZE])
{
	snprintf(ret, ENGINE_NAME_SIZE, "berth-%s%s", id, suffix);
}

#define LABELS(kit, sandbox_id, role)                                                            \
	{                                                                                        \
		{ SANDBOX_LABEL_INSTANCE, (kit)->instance }, { SANDBOX_LABEL_ID, (sandbox_id) }, \
		{                                                                                \
			SANDBOX_LABEL_ROLE, (role)                                               \
		}                                                                                \
	}

/*
 * A fresh volume belongs to root on Docker. A container of the agent's image, made with the volume at
 * /workspace and never started, has the engine copy that directory's owner and mode into it.
 */
static int own_workspace(const struct sandbox_kit *kit, const char *id, const char *volume, struct err *e)
{
	char image[ENGINE_NAME_SIZE], name[ENGINE_NAME_SIZE], container[ENGINE_ID_SIZE];
	delivery_image_ref(image);
	container_name(id, "-helper", name);
	const struct engine_label labels[] = LABELS(kit, id, "helper");
	const struct engine_mount mount = { .source = volume, .target = SANDBOX_WORKSPACE, .copy_up = true };
	const struct engine_container_spec spec = {
		.name = name,
		.image = image,
		.entrypoint = (const char *const[]){ DELIVERY_BINARY, NULL },
		.workdir = "/",
		.uid = SANDBOX_UID,
		.gid = SANDBOX_UID,
		.memory_bytes = SANDBOX_RESERVE_BYTES,
		.cpu_milli = 1000,
		.pids = 16,
		.nofile = 64,
		.network = "none",
		.mounts = &mount,
		.mount_count = 1,
		.labels = labels,
		.label_count = ARRAY_LEN(labels),
	};
	int r = engine_container_create(kit->engine, &spec, container, e);
	return r < 0 ? r : engine_container_remove(kit->engine, container, CLEANUP_TIMEOUT_MS, e);
}

/* Bears no sandbox's label: it belongs to the instance. */
static void workspace_volume(const struct sandbox_kit *kit, const char *name, char ret[ENGINE_NAME_SIZE])
{
	snprintf(ret, ENGINE_NAME_SIZE, "berth-%s-workspace-%s", kit->instance, name);
}

/* It may be there, with files in it: then the engine answers with it, and the helper copies nothing. */
static int make_named(const struct sandbox_kit *kit, const struct sandbox_spec *s, struct err *e)
{
	char name[ENGINE_NAME_SIZE];
	workspace_volume(kit, s->workspace_name, name);
	const struct engine_label labels[] = { { SANDBOX_LABEL_INSTANCE, kit->instance },
					       { SANDBOX_LABEL_ROLE, "workspace" } };
	const struct engine_volume_spec spec = { .name = name,
						 .labels = labels,
						 .label_count = ARRAY_LEN(labels) };
	int r = engine_volume_create(kit->engine, &spec, e);
	return r < 0 ? r : own_workspace(kit, s->id, name, e);
}

int sandbox_workspace_remove(const struct sandbox_kit *kit, const char *name, struct err *e)
{
	char volume[ENGINE_NAME_SIZE];
	workspace_volume(kit, name, volume);
	return engine_volume_remove(kit->engine, volume, e);
}

static bool is_workspace(const struct sandbox_place *p)
{
	return strcmp(p->path, SANDBOX_WORKSPACE) == 0;
}

static int make_place(const struct sandbox_kit *kit, const struct sandbox_spec *s,
		      const struct sandbox_place *p, struct err *e)
{
	char name[ENGINE_NAME_SIZE];
	volume_name(s->id, p->suffix, name);
	const struct engine_label labels[] = LABELS(kit, s->id, "session");
	const struct engine_volume_spec spec = {
		.name = name,
		.tmpfs_bytes = p->size_bytes,
		.tmpfs_inodes = p->inodes,
		.uid = sandbox_uid(s),
		.gid = sandbox_gid(s),
		.labels = labels,
		.label_count = ARRAY_LEN(labels),
	};
	int r = engine_volume_create(kit->engine, &spec, e);
	return r < 0 || p->size_bytes ? r : own_workspace(kit, s->id, name, e);
}

/* All places in memory, or all on disk. */
struct places_work {
	const struct sandbox_kit *kit;
	const struct sandbox_spec *spec;
	const struct sandbox_places *places;
	bool tmpfs;
	int r;
	struct err e;
};

static void *make_kind(void *arg)
{
	struct places_work *w = arg;
	for (size_t i = 0; w->r == 0 && i < w->places->count; i++) {
		const struct sandbox_place *p = &w->places->at[i];
		if ((p->size_bytes > 0) != w->tmpfs)
			continue;
		if (!is_workspace(p) || w->spec->workspace < WORKSPACE_NAMED)
			w->r = make_place(w->kit, w->spec, p, &w->e);
		else if (w->spec->workspace == WORKSPACE_NAMED)
			w->r = make_named(w->kit, w->spec, &w->e);
	}
	return NULL;
}

/* The workspace's helper container takes as long as all tmpfs volumes together: both at once. */
static int make_places(const struct sandbox_kit *kit, const struct sandbox_spec *spec,
		       const struct sandbox_places *ps, struct err *e)
{
	struct places_work memory = { .kit = kit, .spec = spec, .places = ps, .tmpfs = true };
	struct places_work disk = { .kit = kit, .spec = spec, .places = ps };
	pthread_t thread;
	bool threaded = pthread_create(&thread, NULL, make_kind, &memory) == 0;
	make_kind(&disk);
	if (threaded)
		pthread_join(thread, NULL);
	else
		make_kind(&memory);
	const struct places_work *bad = disk.r < 0 ? &disk : &memory;
	if (bad->r < 0)
		*e = bad->e;
	return bad->r;
}

/* What is mounted at a place: its volume, or the folder of the host. */
static const char *place_source(const struct sandbox_kit *kit, const struct sandbox_spec *s,
				const struct sandbox_place *p, char name[ENGINE_NAME_SIZE])
{
	if (is_workspace(p) && s->workspace == WORKSPACE_HOST)
		return s->workspace_host;
	if (is_workspace(p) && s->workspace == WORKSPACE_NAMED)
		workspace_volume(kit, s->workspace_name, name);
	else
		volume_name(s->id, p->suffix, name);
	return name;
}

static int make_container(const struct sandbox_kit *kit, const struct sandbox_spec *s,
			  const struct sandbox_places *ps, char ret_id[ENGINE_ID_SIZE], struct err *e)
{
	char names[SANDBOX_PLACES_MAX][ENGINE_NAME_SIZE], name[ENGINE_NAME_SIZE];
	struct engine_mount mounts[SANDBOX_PLACES_MAX + 1 + SANDBOX_MOUNTS_MAX];
	size_t n = 0;
	for (size_t i = 0; i < ps->count; i++)
		mounts[n++] = (struct engine_mount){ .source = place_source(kit, s, &ps->at[i], names[i]),
						     .target = ps->at[i].path };
	mounts[n++] =
		(struct engine_mount){ .source = kit->agent_volume, .target = "/.berth", .read_only = true };
	for (size_t i = 0; i < MIN(s->mount_count, (size_t)SANDBOX_MOUNTS_MAX); i++)
		mounts[n++] = (struct engine_mount){ .source = s->mounts[i].host,
						     .target = s->mounts[i].path,
						     .read_only = true };
	container_name(s->id, "", name);
	const struct engine_label labels[] = LABELS(kit, s->id, "session");
	const struct engine_container_spec spec = {
		.name = name,
		.image = s->image,
		.entrypoint = (const char *const[]){ DELIVERY_BINARY, NULL },
		.workdir = SANDBOX_WORKSPACE,
		.uid = sandbox_uid(s),
		.gid = sandbox_gid(s),
		.memory_bytes = s->memory_bytes,
		.cpu_milli = s->cpu_milli,
		.pids = s->pids,
		.nofile = NOFILE,
		.network = s->network,
		.runtime = s->runtime,
		.mounts = mounts,
		.mount_count = n,
		.labels = labels,
		.label_count = ARRAY_LEN(labels),
	};
	return engine_container_create(kit->engine, &spec, ret_id, e);
}

static int build(const struct sandbox_kit *kit, const struct sandbox_spec *spec, int64_t deadline,
		 struct sandbox *box, struct err *e)
{
	struct sandbox_places ps;
	int r = sandbox_divide(spec, &ps, e);
	if (r == 0)
		r = make_places(kit, spec, &ps, e);
	if (r == 0)
		r = make_container(kit, spec, &ps, box->container, e);
	if (r == 0)
		r = engine_container_start(kit->engine, box->container, e);
	if (r == 0)
		r = sandbox_connect(kit, box->container, 1, (int)clock_left_ms(deadline), &box->channel,
				    &box->hello, e);
	uint8_t build_id[AGENT_BUILD_SIZE];
	agent_image_build(build_id);
	if (r == 0 && memcmp(box->hello.build, build_id, sizeof(build_id)) != 0)
		r = err_set(e, ERR_SANDBOX, "the sandbox runs another agent than this release's");
	return r == 0 ? sandbox_verify(spec, &box->hello, e) : r;
}

int sandbox_create(const struct sandbox_kit *kit, const struct sandbox_spec *spec, int timeout_ms,
		   struct sandbox *ret, struct err *e)
{
	struct sandbox box = { 0 };
	int r = build(kit, spec, clock_mono_ms() + timeout_ms, &box, e);
	if (r < 0) {
		struct err ignored; /* what is left is found by its label later */
		channel_unref(box.channel);
		(void)!sandbox_destroy(kit, spec->id, box.container[0] ? box.container : NULL,
				       CLEANUP_TIMEOUT_MS, &ignored);
		return r;
	}
	*ret = box;
	return 0;
}

/* Why is there no link? The engine knows whether the container runs at all. */
static int judge(const struct sandbox_kit *kit, const char *container, int r, struct err *e)
{
	struct engine_container_state state;
	struct err other;
	int known = engine_container_inspect(kit->engine, container, &state, &other);
	if (known == -ERR_NOT_FOUND)
		return err_set(e, ERR_NOT_FOUND, "the container is gone");
	if (known < 0)
		return r;
	if (state.state == ENGINE_PAUSED)
		return err_set(e, ERR_CONFLICT, "the container is paused");
	if (state.restarted)
		return err_set(e, ERR_NOT_FOUND, "the container was started again from outside");
	if (state.state != ENGINE_RUNNING)
		return err_set(e, ERR_NOT_FOUND, "the container has ended with status %d%s", state.exit_code,
			       state.oom_killed ? " (out of memory)" : "");
	return r;
}

int sandbox_connect(const struct sandbox_kit *kit, const char *container, uint64_t generation, int timeout_ms,
		    struct channel **ret, struct hello *ret_hello, struct err *e)
{
	static const char *const argv[] = { DELIVERY_BINARY, "bridge", NULL };
	struct stream *s = NULL;
	int r = engine_exec_open(kit->engine, container, argv, SANDBOX_BRIDGE_UID, SANDBOX_BRIDGE_UID, &s, e);
	if (r == 0)
		r = channel_open(kit->channels, s, generation, MIN(timeout_ms, BRIDGE_TIMEOUT_MS), ret,
				 ret_hello, e);
	struct err ignored; /* it matters at the end of the sandbox only, and to some engines */
	if (r == 0 && generation > 1)
		(void)!engine_container_recount(kit->engine, container, &ignored);
	return r < 0 ? judge(kit, container, r, e) : 0;
}

/* Every container of a sandbox: also the one whose create was never answered, and a helper. */
static int remove_containers(const struct sandbox_kit *kit, const char *id, int64_t deadline, struct err *e)
{
	_cleanup_free_ struct engine_item *items = NULL;
	size_t count = 0;
	int r = engine_container_list(kit->engine, SANDBOX_LABEL_ID, id, SANDBOX_LABEL_ROLE, &items, &count,
				      e);
	for (size_t i = 0; r == 0 && i < count; i++)
		r = engine_container_remove(kit->engine, items[i].id, (int)clock_left_ms(deadline), e);
	return r;
}

static int remove_volumes(const struct sandbox_kit *kit, const char *id, struct err *e)
{
	_cleanup_free_ struct engine_item *items = NULL;
	size_t count = 0;
	int r = engine_volume_list(kit->engine, SANDBOX_LABEL_ID, id, SANDBOX_LABEL_ROLE, &items, &count, e);
	for (size_t i = 0; r == 0 && i < count; i++)
		r = engine_volume_remove(kit->engine, items[i].name, e);
	return r;
}

int sandbox_destroy(const struct sandbox_kit *kit, const char *id, const char *container, int timeout_ms,
		    struct err *e)
{
	int64_t deadline = clock_mono_ms() + timeout_ms;
	int r = container ? engine_container_remove(kit->engine, container, timeout_ms, e) : 0;
	if (r == 0)
		r = remove_containers(kit, id, deadline, e);
	return r == 0 ? remove_volumes(kit, id, e) : r;
}
