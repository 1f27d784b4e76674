/* SPDX-License-Identifier: MIT */
#include "runtime/delivery.h"

#include <string.h>

#include "base/id.h"
#include "runtime/agent_image.h"

#define PROOF_TIMEOUT_MS 20000
#define REMOVE_TIMEOUT_MS 20000
#define BUILD_HEX 12 /* characters of the build id that are part of names */

static void build_hex(char ret[2 * AGENT_BUILD_SIZE + 1])
{
	uint8_t build[AGENT_BUILD_SIZE];
	agent_image_build(build);
	for (size_t i = 0; i < sizeof(build); i++)
		snprintf(ret + 2 * i, 3, "%02x", build[i]);
}

void delivery_image_ref(char ret[ENGINE_NAME_SIZE])
{
	char hex[2 * AGENT_BUILD_SIZE + 1];
	build_hex(hex);
	snprintf(ret, ENGINE_NAME_SIZE, "localhost/berth/agent:%.*s", BUILD_HEX, hex);
}

static int ensure_image(const struct sandbox_kit *kit, struct err *e)
{
	char ref[ENGINE_NAME_SIZE];
	delivery_image_ref(ref);
	struct engine_image image = { 0 };
	int r = engine_image_inspect(kit->engine, ref, &image, e);
	engine_image_clear(&image);
	if (r != -ERR_NOT_FOUND)
		return r;
	size_t len = 0;
	_cleanup_free_ uint8_t *tar = agent_image_tar(&len);
	static const char *const changes[] = { "LABEL org.berth.image=agent", NULL };
	return engine_image_import(kit->engine, tar, len, ref, changes, e);
}

static bool is_of_this_build(const char *volume)
{
	char hex[2 * AGENT_BUILD_SIZE + 1], prefix[40];
	build_hex(hex);
	snprintf(prefix, sizeof(prefix), "berth-agent-%.*s-", BUILD_HEX, hex);
	return strncmp(volume, prefix, strlen(prefix)) == 0;
}

static void new_volume_name(char ret[ENGINE_NAME_SIZE])
{
	char hex[2 * AGENT_BUILD_SIZE + 1], random[ID_SIZE];
	build_hex(hex);
	id_new("v_", random);
	snprintf(ret, ENGINE_NAME_SIZE, "berth-agent-%.*s-%.8s", BUILD_HEX, hex, random + 2);
}

/* Starts the agent from the volume that the engine has just filled, and asks it who it is. */
static int run_once(const struct sandbox_kit *kit, const char *container, struct err *e)
{
	uint8_t build[AGENT_BUILD_SIZE];
	agent_image_build(build);
	struct channel *channel = NULL;
	struct hello hello;
	int r = engine_container_start(kit->engine, container, e);
	if (r == 0)
		r = sandbox_connect(kit, container, 1, PROOF_TIMEOUT_MS, &channel, &hello, e);
	if (r == 0 && memcmp(hello.build, build, sizeof(build)) != 0)
		r = err_set(e, ERR_SANDBOX, "the agent in the volume is not this release's");
	channel_unref(channel);
	return r;
}

static int fill(const struct sandbox_kit *kit, const char *volume, struct err *e)
{
	char ref[ENGINE_NAME_SIZE], id[ENGINE_ID_SIZE];
	delivery_image_ref(ref);
	const struct engine_label labels[] = { { SANDBOX_LABEL_INSTANCE, kit->instance },
					       { SANDBOX_LABEL_ROLE, "helper" } };
	const struct engine_mount mount = { .source = volume, .target = "/.berth", .copy_up = true };
	const struct engine_container_spec spec = {
		.name = volume,
		.image = ref,
		.entrypoint = (const char *const[]){ DELIVERY_BINARY, NULL },
		.workdir = "/",
		.uid = SANDBOX_UID,
		.gid = SANDBOX_UID,
		.memory_bytes = 2 * SANDBOX_RESERVE_BYTES,
		.cpu_milli = 1000,
		.pids = 32,
		.nofile = 1024,
		.network = "none",
		.mounts = &mount,
		.mount_count = 1,
		.labels = labels,
		.label_count = ARRAY_LEN(labels),
	};
	int r = engine_container_create(kit->engine, &spec, id, e);
	if (r < 0)
		return r;
	r = run_once(kit, id, e);
	struct err other;
	int removed = engine_container_remove(kit->engine, id, REMOVE_TIMEOUT_MS, r < 0 ? &other : e);
	return r < 0 ? r : removed;
}

int delivery_ensure(const struct sandbox_kit *kit, const char *current, bool again,
		    char ret_volume[ENGINE_NAME_SIZE], struct err *e)
{
	int r = ensure_image(kit, e);
	if (r < 0)
		return err_wrap(e, "cannot bring the agent's image into the engine");
	if (current && !again && is_of_this_build(current)) {
		snprintf(ret_volume, ENGINE_NAME_SIZE, "%s", current);
		return 0;
	}
	char name[ENGINE_NAME_SIZE];
	new_volume_name(name);
	const struct engine_label labels[] = { { SANDBOX_LABEL_INSTANCE, kit->instance },
					       { SANDBOX_LABEL_ROLE, "agent" } };
	const struct engine_volume_spec spec = { .name = name,
						 .labels = labels,
						 .label_count = ARRAY_LEN(labels) };
	r = engine_volume_create(kit->engine, &spec, e);
	if (r == 0)
		r = fill(kit, name, e);
	if (r < 0) {
		struct err ignored; /* it goes with the next delivery_clean() */
		(void)!engine_volume_remove(kit->engine, name, &ignored);
		return err_wrap(e, "cannot deliver the agent");
	}
	memcpy(ret_volume, name, ENGINE_NAME_SIZE);
	return 0;
}

bool delivery_is_lost(const struct sandbox_kit *kit)
{
	_cleanup_free_ struct engine_item *items = NULL;
	size_t count = 0;
	struct err ignored; /* an engine that does not answer has lost nothing yet */
	if (engine_volume_list(kit->engine, SANDBOX_LABEL_INSTANCE, kit->instance, SANDBOX_LABEL_ROLE, &items,
			       &count, &ignored) < 0)
		return false;
	for (size_t i = 0; i < count; i++)
		if (strcmp(items[i].name, kit->agent_volume) == 0)
			return false;
	return true;
}

void delivery_clean(const struct sandbox_kit *kit, const char *current)
{
	_cleanup_free_ struct engine_item *items = NULL;
	size_t count = 0;
	struct err ignored; /* a volume in use is refused, and comes up again at the next start */
	if (engine_volume_list(kit->engine, SANDBOX_LABEL_INSTANCE, kit->instance, SANDBOX_LABEL_ROLE, &items,
			       &count, &ignored) < 0)
		return;
	for (size_t i = 0; i < count; i++)
		if (strcmp(items[i].sandbox, "agent") == 0 && strcmp(items[i].name, current) != 0)
			(void)!engine_volume_remove(kit->engine, items[i].name, &ignored);
}
