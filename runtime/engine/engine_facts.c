/* SPDX-License-Identifier: MIT */
#include "runtime/engine/engine_facts.h"

#include <ctype.h>
#include <string.h>

#include "runtime/engine/engine_json.h"

/*
 * Docker: 1.40 is the first with PidsLimit, NonRecursive binds and IpcMode as we use them; 1.51
 * (Docker 28) the last whose create was tried. Docker 29 still takes 1.44 and up.
 * Podman answers to any number (podman#6813): what counts is its own release, below.
 */
#define API_MIN 1040
#define API_MAX 1051
#define PODMAN_MIN 4000000 /* libpod's API of 4.0.0 */

static const struct engine_quirks quirks[] = {
	[ENGINE_DOCKER] = { .name = "Docker", .miscounts = true, .ipc = "private" },
	[ENGINE_PODMAN] = { .name = "Podman",
			    .native = true,
			    .nproc_default = true,
			    .outlives = true,
			    .ipc = "shareable" },
};

const struct engine_quirks *engine_quirks_of(enum engine_kind kind)
{
	return &quirks[kind];
}

/* ---- versions ---- */

static bool read_number(const char **at, int64_t *ret)
{
	int64_t v = 0;
	const char *p = *at;
	for (; isdigit((unsigned char)*p) && v < 1000; p++)
		v = v * 10 + (*p - '0');
	bool ok = p != *at && v < 1000;
	*at = p;
	*ret = v;
	return ok;
}

int engine_api_number(const char *text)
{
	int64_t major = 0, minor = 0;
	if (!text || !read_number(&text, &major) || *text++ != '.' || !read_number(&text, &minor) || *text)
		return -1;
	return (int)(major * 1000 + minor);
}

int64_t engine_release_number(const char *text)
{
	int64_t number = 0, part = 0;
	for (int i = 0; i < 3; i++) {
		bool there = text && read_number(&text, &part);
		if (!i && !there)
			return -1;
		number = number * 1000 + (there ? part : 0);
		text = there && *text == '.' ? text + 1 : NULL;
	}
	return number;
}

/* The entry of Components whose name begins so; NULL when there is none. */
static const json_t *component(const json_t *version, const char *name)
{
	size_t i;
	json_t *item;
	json_array_foreach (json_object_get(version, "Components"), i, item)
		if (!strncmp(engine_json_text(item, "Name"), name, strlen(name)))
			return item;
	return NULL;
}

static int choose_docker_api(struct engine_facts *f, const json_t *version, struct err *e)
{
	int most = engine_api_number(engine_json_text(version, "ApiVersion"));
	int least = engine_api_number(engine_json_text(version, "MinAPIVersion"));
	int take = MIN(most, API_MAX);
	if (most < 0)
		return err_set(e, ERR_ENGINE, "the engine tells no API version");
	if (most < API_MIN)
		return err_set(
			e, ERR_UNSUPPORTED,
			"Docker %s speaks API %s, at least 1.40 is needed: install Docker 19.03 or newer",
			f->info.version, f->info.api);
	if (take < least)
		return err_set(e, ERR_UNSUPPORTED,
			       "Docker %s takes only API %s and newer, this Berth speaks up to %d.%d: "
			       "install a newer Berth",
			       f->info.version, engine_json_text(version, "MinAPIVersion"), API_MAX / 1000,
			       API_MAX % 1000);
	snprintf(f->info.api, sizeof(f->info.api), "%d.%d", take / 1000, take % 1000);
	return 0;
}

static int choose_podman_api(struct engine_facts *f, const json_t *engine, struct err *e)
{
	const char *least = engine_json_text(json_object_get(engine, "Details"), "MinAPIVersion");
	if (engine_release_number(f->info.version) < PODMAN_MIN)
		return err_set(e, ERR_UNSUPPORTED, "Podman %s is too old: install 4.0 or newer",
			       f->info.version);
	bool raised =
		engine_release_number(least) > PODMAN_MIN && strspn(least, "0123456789.") == strlen(least);
	snprintf(f->native_prefix, sizeof(f->native_prefix), "/v%.12s/libpod", raised ? least : "4.0.0");
	return 0;
}

/* "runc" and the number after "runc version" (Podman), or the component's own (Docker). */
static void find_runtime(struct engine_facts *f, const json_t *version)
{
	const json_t *docker = component(version, "runc"), *podman = component(version, "OCI Runtime");
	const char *text = engine_json_text(docker ? docker : podman, "Version");
	if (docker)
		snprintf(f->info.runtime, sizeof(f->info.runtime), "runc %.30s", text);
	else if (podman && strstr(text, " version "))
		snprintf(f->info.runtime, sizeof(f->info.runtime), "%.*s %.*s",
			 (int)MIN((size_t)(strstr(text, " version ") - text), 12), text,
			 (int)MIN(strcspn(strstr(text, " version ") + 9, " \n"), 24),
			 strstr(text, " version ") + 9);
}

int engine_facts_version(struct engine_facts *f, const json_t *version, struct err *e)
{
	const json_t *podman = component(version, "Podman Engine");
	f->info.kind = podman ? ENGINE_PODMAN : ENGINE_DOCKER;
	f->quirks = engine_quirks_of(f->info.kind);
	engine_json_copy(version, "Version", f->info.version, sizeof(f->info.version));
	engine_json_copy(version, "ApiVersion", f->info.api, sizeof(f->info.api));
	engine_json_copy(version, "KernelVersion", f->info.kernel, sizeof(f->info.kernel));
	find_runtime(f, version);
	if (engine_api_number(f->info.api) < 0)
		return err_set(e, ERR_ENGINE, "what answers there is no Docker or Podman");
	int r = podman ? choose_podman_api(f, podman, e) : choose_docker_api(f, version, e);
	if (!r)
		snprintf(f->prefix, sizeof(f->prefix), "/v%s", f->info.api);
	return r;
}

/* ---- warnings ---- */

/* Releases of the program `name` with from <= release < below. Distributions repair older ones, hence
 * "unless". */
static const struct {
	const char *name;
	int64_t from, below;
	const char *text;
} releases[] = {
	{ "runc", 0, 1000000,
	  "runc before 1.0 is open to CVE-2019-5736, unless your distribution has repaired it" },
	{ "runc", 0, 1001012,
	  "runc before 1.1.12 is open to CVE-2024-21626, unless your distribution has repaired it" },
	{ "runc", 0, 1002008,
	  "runc before 1.2.8 is open to CVE-2025-31133, CVE-2025-52565 and CVE-2025-52881, unless your "
	  "distribution has repaired it" },
	{ "runc", 1003000, 1003003,
	  "runc before 1.3.3 is open to CVE-2025-31133, CVE-2025-52565 and CVE-2025-52881" },
	{ "runc", 0, 1004003,
	  "runc before 1.4.3 is open to CVE-2026-41579 (low): do not let sessions choose images freely" },
};

/* Members of /info that must be true. Absent (as on Podman in part) says nothing. */
static const struct {
	const char *key, *text;
} abilities[] = {
	{ "MemoryLimit", "the engine cannot limit memory here" },
	{ "SwapLimit", "the engine cannot limit swap here: a sandbox may use more memory than its limit" },
	{ "PidsLimit", "the engine cannot limit processes here" },
	{ "CpuCfsQuota", "the engine cannot limit cpu time here" },
};

void engine_facts_warn(struct engine_facts *f, const char *constant_text)
{
	if (f->info.warnings_count < ENGINE_WARNINGS_MAX)
		f->warnings[f->info.warnings_count++] = constant_text;
}

static void warn_of_runtime(struct engine_facts *f)
{
	const char *blank = strchr(f->info.runtime, ' ');
	int64_t release = blank ? engine_release_number(blank + 1) : -1;
	for (size_t i = 0; release >= 0 && i < ARRAY_LEN(releases); i++)
		if (!strncmp(f->info.runtime, releases[i].name, (size_t)(blank - f->info.runtime)) &&
		    release >= releases[i].from && release < releases[i].below)
			engine_facts_warn(f, releases[i].text);
}

static bool has_security(const json_t *info, const char *option)
{
	size_t i;
	json_t *item;
	json_array_foreach (json_object_get(info, "SecurityOptions"), i, item) {
		const char *text = json_string_value(item);
		size_t len = strlen(option);
		if (text && !strncmp(text, "name=", 5) && !strncmp(text + 5, option, len) &&
		    (!text[5 + len] || text[5 + len] == ','))
			return true;
	}
	return false;
}

/* Podman looks where cgroup v1 has its files, and on v2 says no to what it does very well (5.4, 5.8). */
static bool tells_abilities(const struct engine_facts *f)
{
	return f->info.kind != ENGINE_PODMAN || f->info.cgroup == 1;
}

int engine_facts_info(struct engine_facts *f, const json_t *info, struct err *e)
{
	struct engine_info *i = &f->info;
	if (!json_is_object(info))
		return err_set(e, ERR_ENGINE, "the engine's /info is no object");
	engine_json_copy(info, "Driver", i->storage, sizeof(i->storage));
	/* Docker's ID is kept with its data; Podman makes up another one each time. */
	bool docker = i->kind == ENGINE_DOCKER;
	snprintf(i->id, sizeof(i->id), "%s %.180s", docker ? "docker" : "podman",
		 engine_json_text(info, docker ? "ID" : "DockerRootDir"));
	/* Docker before 20.10 knows cgroup v1 only and does not say. */
	i->cgroup = !strcmp(engine_json_text(info, "CgroupVersion"), "2") ? 2 : 1;
	i->rootless = json_is_true(json_object_get(info, "Rootless")) || has_security(info, "rootless");
	i->userns = i->rootless || has_security(info, "userns");
	i->live_restore = f->quirks->outlives || json_is_true(json_object_get(info, "LiveRestoreEnabled"));
	warn_of_runtime(f);
	for (size_t k = 0; k < ARRAY_LEN(abilities); k++)
		if (tells_abilities(f) && json_is_false(json_object_get(info, abilities[k].key)))
			engine_facts_warn(f, abilities[k].text);
	if (!has_security(info, "seccomp"))
		engine_facts_warn(f, "the engine has no seccomp profile: only the agent's own filter holds");
	if (i->rootless && i->cgroup == 1)
		engine_facts_warn(f, "a rootless engine on cgroup v1 cannot apply limits");
	return 0;
}
