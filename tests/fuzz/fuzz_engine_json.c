/* SPDX-License-Identifier: MIT */
/*
 * Whatever an engine answers: a decoder fills its outputs with what keeps their promises, or leaves them
 * alone and gives ERR_ENGINE with one safe line. A read-back never passes for an answer that was made up.
 */
#include <string.h>

#include "base/utf8.h"
#include "runtime/engine/engine_facts.h"
#include "runtime/engine/engine_hijack.h"
#include "runtime/engine/engine_json.h"
#include "runtime/engine/engine_spec.h"
#include "tests/fuzz/fuzz.h"

static void must_fail_well(int r, const struct err *e, int code)
{
	MUST(r == -code && (int)e->code == code && *e->msg);
	MUST(utf8_is_valid(e->msg, strlen(e->msg)) && !strpbrk(e->msg, "\r\n\x1b"));
}

static bool is_id(const char *id)
{
	return strlen(id) == 64 && strspn(id, "0123456789abcdef") == 64;
}

static void try_facts(const json_t *v)
{
	struct engine_facts f = { 0 };
	struct err e = { 0 };
	int r = engine_facts_version(&f, v, &e);
	if (r) {
		MUST(e.code == ERR_ENGINE || e.code == ERR_UNSUPPORTED);
		must_fail_well(r, &e, (int)e.code);
		return;
	}
	MUST(!strncmp(f.prefix, "/v", 2) && strspn(f.prefix + 2, "0123456789.") == strlen(f.prefix + 2));
	MUST(f.info.kind == ENGINE_DOCKER || strstr(f.native_prefix, "/libpod"));
	if (!engine_facts_info(&f, v, &e))
		MUST(f.info.cgroup >= 1 && f.info.cgroup <= 2 &&
		     f.info.warnings_count <= ENGINE_WARNINGS_MAX);
}

static void try_lists(const json_t *v)
{
	struct engine_item *items = NULL;
	size_t count = 0;
	struct err e = { 0 };
	int r = engine_json_containers(v, "d", &items, &count, &e);
	if (r)
		must_fail_well(r, &e, ERR_ENGINE);
	for (size_t i = 0; !r && i < count; i++)
		MUST(is_id(items[i].id) && items[i].state <= ENGINE_REMOVING);
	free(items);
	items = NULL;
	r = engine_json_volumes(v, "d", &items, &count, &e);
	if (r)
		must_fail_well(r, &e, ERR_ENGINE);
	for (size_t i = 0; !r && i < count; i++)
		MUST(*items[i].name);
	free(items);
}

static void try_objects(const json_t *v)
{
	struct engine_container_state s;
	struct engine_image image;
	struct err e = { 0 };
	char id[ENGINE_ID_SIZE];
	if (!engine_json_state(v, &s, &e))
		MUST(s.state <= ENGINE_REMOVING && (s.state == ENGINE_EXITED || !s.exit_code));
	if (!engine_json_id(v, "Id", id, &e))
		MUST(is_id(id));
	if (!engine_json_image(v, &image, &e)) {
		MUST(!strncmp(image.id, "sha256:", 7) && is_id(image.id + 7));
		engine_image_clear(&image);
	}
}

/* The input could only pass if it had the whole configuration right, random label included. */
static void try_readback(const json_t *v)
{
	static const char *const argv[] = { "/.berth/berth-agent", NULL };
	static const struct engine_label label = { "berth.fuzz", "a value that no input has: 5f0c6d1e" };
	const struct engine_container_spec s = { .name = "n",
						 .image = "i",
						 .entrypoint = argv,
						 .workdir = "/w",
						 .uid = 1,
						 .gid = 1,
						 .memory_bytes = 1 << 28,
						 .cpu_milli = 1000,
						 .pids = 10,
						 .nofile = 100,
						 .network = "none",
						 .labels = &label,
						 .label_count = 1 };
	for (int kind = ENGINE_DOCKER; kind <= ENGINE_PODMAN; kind++) {
		const struct engine_spec_target t = { .quirks = engine_quirks_of((enum engine_kind)kind),
						      .cgroup = 2 };
		struct err e = { 0 };
		must_fail_well(engine_spec_compare(&s, &t, v, &e), &e, ERR_ENGINE);
	}
}

static void try_texts(const char *text, size_t size)
{
	struct err e = { 0 };
	char id[80] = "", event[ENGINE_ID_SIZE], action[ENGINE_ACTION_SIZE];
	int r = engine_json_import(text, size, id, &e);
	if (r)
		must_fail_well(r, &e, ERR_ENGINE);
	else
		MUST(!strncmp(id, "sha256:", 7) && is_id(id + 7));
	if (engine_json_event(text, size, event, action))
		MUST(is_id(event) && *action && !strchr(action, ':'));
	(void)engine_json_wants_version(400, text, size);
	(void)engine_json_error(500, text, size, &e);
	MUST(*e.msg && utf8_is_valid(e.msg, strlen(e.msg)) && !strpbrk(e.msg, "\r\n\x1b"));
	MUST(engine_hijack_head(text, size) <= size);
	(void)engine_hijack_status(text, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err e = { 0 };
	_cleanup_json_ json_t *v = NULL;
	try_texts((const char *)data, size);
	int r = engine_json_parse((const char *)data, size, &v, &e);
	if (r) {
		must_fail_well(r, &e, ERR_ENGINE);
		return 0;
	}
	try_facts(v);
	try_lists(v);
	try_objects(v);
	try_readback(v);
	return 0;
}
