/* SPDX-License-Identifier: MIT */
/*
 * What an engine stored, compared with what was wished. Every member of the wish must be found in
 * the inspection with the same value; lists have the same length. Empty, false, 0, null and absent
 * are one and the same, since the engines leave out what is not set.
 */
#include <string.h>

#include "base/json.h"
#include "runtime/engine/engine_facts.h"
#include "runtime/engine/engine_json.h"
#include "runtime/engine/engine_spec.h"

static bool is_empty(const json_t *v)
{
	switch (v ? json_typeof(v) : JSON_NULL) {
	case JSON_OBJECT:
		return !json_object_size(v);
	case JSON_ARRAY:
		return !json_array_size(v);
	case JSON_STRING:
		return !*json_string_value(v);
	case JSON_INTEGER:
		return !json_integer_value(v);
	case JSON_NULL:
	case JSON_FALSE:
		return true;
	default:
		return false;
	}
}

static bool is_word(const json_t *v, const char *word)
{
	return json_is_string(v) && !strcmp(json_string_value(v), word);
}

/* ---- members that an engine tells in its own way ---- */

static bool not_told(const json_t *want, const json_t *got)
{
	(void)want;
	(void)got;
	return true;
}

static bool own_namespace(const json_t *want, const json_t *got)
{
	(void)want;
	return is_empty(got) || is_word(got, "private");
}

/* A list of options of which only the wished one may be there, or something that makes it stricter. */
static bool no_new_privileges(const json_t *want, const json_t *got)
{
	size_t i;
	json_t *item;
	bool there = false;
	(void)want;
	json_array_foreach (got, i, item) {
		const char *text = json_string_value(item);
		if (!text || strstr(text, "unconfined") || strstr(text, "disable") || strstr(text, "=false"))
			return false;
		there = there || !strncmp(text, "no-new-privileges", 17);
	}
	return there;
}

static bool is_ulimit(const json_t *got, const json_t *want)
{
	const char *name = engine_json_text(got, "Name");
	return !strcasecmp(!strncmp(name, "RLIMIT_", 7) ? name + 7 : name, engine_json_text(want, "Name")) &&
	       json_equal(json_object_get(got, "Soft"), json_object_get(want, "Soft")) &&
	       json_equal(json_object_get(got, "Hard"), json_object_get(want, "Hard"));
}

/* Podman writes RLIMIT_NOFILE and adds one for nproc. */
static bool has_ulimits(const json_t *want, const json_t *got)
{
	size_t i, k, found = 0;
	json_t *w, *g;
	json_array_foreach (want, i, w)
		json_array_foreach (got, k, g)
			found += is_ulimit(g, w);
	return found == json_array_size(want);
}

static bool never_again(const json_t *want, const json_t *got)
{
	(void)want;
	return is_empty(got) || is_word(got, "no");
}

typedef bool (*same_fn)(const json_t *want, const json_t *got);

/* Members that are not compared as they stand; native: only of libpod's inspection. */

static const struct {
	bool native;
	const char *path;
	same_fn same;
} exceptions[] = {
	{ false, "HostConfig.SecurityOpt", no_new_privileges },
	{ false, "HostConfig.Ulimits", has_ulimits },
	{ false, "HostConfig.RestartPolicy.Name", never_again },
	{ true, "HostConfig.PidMode", own_namespace },
	{ true, "HostConfig.UTSMode", own_namespace },
	{ true, "HostConfig.CapDrop",
	  not_told }, /* told as a list of the default ones; EffectiveCaps says more */
	{ true, "HostConfig.IpcMode", not_told },      /* compared below */
	{ true, "HostConfig.Sysctls", not_told },      /* never told; the agent reads the value itself */
	{ true, "HostConfig.Binds", not_told },        /* repeats the mounts */
	{ true, "HostConfig.Mounts", not_told },       /* compared below, for both */
	{ true, "HostConfig.NetworkMode", not_told },  /* compared below */
	{ true, "HostConfig.Runtime", not_told },      /* compared below */
	{ true, "HostConfig.CgroupnsMode", not_told }, /* compared below */
	{ false, "Config.Entrypoint", not_told },      /* compared below, as the whole command line */
	{ false, "Config.Image", not_told },           /* compared below */
};

/* ---- member by member ---- */

#define BAD_SIZE 96 /* the path of the first member that differs; "" while none does */

struct walk {
	bool native;
	char bad[BAD_SIZE];
	char got[BAD_SIZE]; /* what stands there instead */
};

static void differ(struct walk *w, const char *path, const json_t *got)
{
	_cleanup_free_ char *text =
		got ? json_dumps(got, JSON_COMPACT | JSON_ENCODE_ANY | JSON_ENSURE_ASCII) : NULL;
	snprintf(w->bad, sizeof(w->bad), "%s", path);
	snprintf(w->got, sizeof(w->got), " (%.80s)", text ? text : "absent");
}

static void compare(struct walk *w, json_t *want, const json_t *got, const char *path);

static void compare_objects(struct walk *w, json_t *want, const json_t *got, const char *path)
{
	const char *key;
	json_t *value;
	json_object_foreach (want, key, value) {
		char below[BAD_SIZE];
		snprintf(below, sizeof(below), "%.60s%s%.34s", path, *path ? "." : "", key);
		if (!*w->bad)
			compare(w, value, json_object_get(got, key), below);
	}
}

static void compare_arrays(struct walk *w, json_t *want, const json_t *got, const char *path)
{
	size_t i;
	json_t *item;
	if (json_array_size(want) != json_array_size(got))
		differ(w, path, got);
	json_array_foreach (want, i, item)
		if (!*w->bad)
			compare(w, item, json_array_get(got, i), path);
}

static same_fn exception_of(bool native, const char *path)
{
	for (size_t i = 0; i < ARRAY_LEN(exceptions); i++)
		if ((native || !exceptions[i].native) && !strcmp(path, exceptions[i].path))
			return exceptions[i].same;
	return NULL;
}

static void compare(struct walk *w, json_t *want, const json_t *got, const char *path)
{
	same_fn same = exception_of(w->native, path);
	bool same_value = same ? same(want, got) : is_empty(want) ? is_empty(got) : json_equal(want, got);
	if (same_value)
		return;
	/* Objects may have members that were not wished for, but not where none at all were. */
	if (!same && json_object_size(want) && json_is_object(got))
		compare_objects(w, want, got, path);
	else if (!same && json_array_size(want) && json_is_array(got))
		compare_arrays(w, want, got, path);
	else
		differ(w, path, got);
}

/* ---- what is told in another place ---- */

/* The whole command line: nothing of the image's ENTRYPOINT or CMD is left in it. */
static bool command_is(const struct engine_container_spec *spec, const json_t *inspect)
{
	const json_t *args = json_object_get(inspect, "Args");
	size_t n = 0;
	if (strcmp(engine_json_text(inspect, "Path"), spec->entrypoint[0]))
		return false;
	for (; spec->entrypoint[n + 1]; n++)
		if (!is_word(json_array_get(args, n), spec->entrypoint[n + 1]))
			return false;
	/* Podman (4.3 to 5.8) repeats the program as its argument when it has none. */
	if (!n && json_array_size(args) == 1)
		return is_word(json_array_get(args, 0), spec->entrypoint[0]);
	return json_array_size(args) == n;
}

/* Docker repeats what was asked for, Podman the id or the full name. */
static bool image_is(const struct engine_container_spec *spec, const json_t *inspect)
{
	const char *id = engine_json_text(inspect, "Image");
	const char *hex = !strncmp(spec->image, "sha256:", 7) ? spec->image + 7 : spec->image;
	return !strcmp(!strncmp(id, "sha256:", 7) ? id + 7 : id, hex) ||
	       is_word(engine_json_at(inspect, "Config.Image"), spec->image) ||
	       !strcmp(engine_json_text(inspect, "ImageName"), spec->image);
}

static const json_t *mount_at(const json_t *mounts, const char *target)
{
	size_t i;
	json_t *item;
	json_array_foreach (mounts, i, item)
		if (!strcmp(engine_json_text(item, "Destination"), target))
			return item;
	return NULL;
}

static bool mount_is(const struct engine_mount *m, const json_t *got)
{
	bool bind = m->source[0] == '/';
	return got && !strcmp(engine_json_text(got, "Type"), bind ? "bind" : "volume") &&
	       !strcmp(engine_json_text(got, bind ? "Source" : "Name"), m->source) &&
	       json_is_boolean(json_object_get(got, "RW")) &&
	       json_is_true(json_object_get(got, "RW")) == !m->read_only;
}

/* Each mount that was asked for and no other: an image's VOLUME would be a writable place without a bound. */
static void compare_mounts(const struct engine_container_spec *spec, const json_t *inspect,
			   char bad[BAD_SIZE])
{
	const json_t *mounts = json_object_get(inspect, "Mounts");
	size_t i;
	json_t *item;
	for (i = 0; i < spec->mount_count; i++)
		if (!mount_is(&spec->mounts[i], mount_at(mounts, spec->mounts[i].target))) {
			snprintf(bad, BAD_SIZE, "Mounts of %.80s", spec->mounts[i].target);
			return;
		}
	json_array_foreach (mounts, i, item) {
		bool asked = false;
		for (size_t k = 0; k < spec->mount_count; k++)
			asked = asked ||
				!strcmp(engine_json_text(item, "Destination"), spec->mounts[k].target);
		if (!asked)
			snprintf(bad, BAD_SIZE, "Mounts of %.60s (not asked for)",
				 engine_json_text(item, "Destination"));
	}
}

static bool is_there_and_empty(const json_t *inspect, const char *key)
{
	const json_t *v = json_object_get(inspect, key);
	return v && is_empty(v);
}

static bool native_network_is(const char *network, const json_t *inspect)
{
	bool none = !strcmp(network, "none");
	return is_word(engine_json_at(inspect, "HostConfig.NetworkMode"), none ? "none" : "bridge") &&
	       (none || json_object_get(engine_json_at(inspect, "NetworkSettings.Networks"), network));
}

/* The name of what libpod tells elsewhere than Docker and otherwise than wished; NULL: all is well. */
static const char *native_difference(const struct engine_container_spec *spec,
				     const struct engine_spec_target *t, const json_t *inspect)
{
	const json_t *ipc = engine_json_at(inspect, "HostConfig.IpcMode");
	if (!is_there_and_empty(inspect, "EffectiveCaps"))
		return "EffectiveCaps";
	if (!is_there_and_empty(inspect, "BoundingCaps"))
		return "BoundingCaps";
	if (!is_word(ipc, "private") && !is_word(ipc, t->quirks->ipc))
		return "HostConfig.IpcMode";
	if (t->cgroup == 2 && !is_word(engine_json_at(inspect, "HostConfig.CgroupMode"), "private"))
		return "HostConfig.CgroupMode";
	if (spec->runtime && strcmp(engine_json_text(inspect, "OCIRuntime"), spec->runtime))
		return "OCIRuntime";
	return native_network_is(spec->network, inspect) ? NULL : "HostConfig.NetworkMode";
}

/* The wish as an inspection has it: {Config: ..., HostConfig: ...}. */
static json_t *as_inspected(json_t *wish)
{
	json_t *host = json_incref(json_object_get(wish, "HostConfig"));
	json_object_del(wish, "HostConfig");
	return json_pack("{s:O, s:o}", "Config", wish, "HostConfig", host);
}

int engine_spec_compare(const struct engine_container_spec *spec, const struct engine_spec_target *t,
			const json_t *inspect, struct err *e)
{
	_cleanup_json_ json_t *wish = engine_spec_wish(spec, t);
	_cleanup_json_ json_t *want = as_inspected(wish);
	struct walk w = { .native = t->quirks->native };
	compare_objects(&w, want, inspect, "");
	const char *native = w.native && !*w.bad ? native_difference(spec, t, inspect) : NULL;
	if (native)
		snprintf(w.bad, sizeof(w.bad), "%s", native);
	else if (!*w.bad && !command_is(spec, inspect))
		snprintf(w.bad, sizeof(w.bad), "the command line");
	else if (!*w.bad && !image_is(spec, inspect))
		snprintf(w.bad, sizeof(w.bad), "Image");
	else if (!*w.bad)
		compare_mounts(spec, inspect, w.bad);
	if (*w.bad)
		return err_set(e, ERR_ENGINE, "%s made a container that differs from what was asked in %s%s",
			       t->quirks->name, w.bad, w.got);
	return 0;
}
