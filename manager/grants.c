/* SPDX-License-Identifier: MIT */
#include "manager/grants.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "base/parse.h"

#define ENV_MAX 256

struct mount {
	char *name, *host, *path;
};

struct grants {
	const struct settings *settings;
	struct mount mounts[SANDBOX_MOUNTS_MAX];
	size_t mount_count;
	char *env[ENV_MAX + 1]; /* "K=V" */
	char *project;
	unsigned uid, gid;
};

void grants_free(struct grants *g)
{
	if (!g)
		return;
	for (size_t i = 0; i < g->mount_count; i++) {
		free(g->mounts[i].name);
		free(g->mounts[i].host);
		free(g->mounts[i].path);
	}
	for (char **p = g->env; *p; p++)
		free(*p);
	free(g->project);
	free(g);
}

/* ---- what may not be handed in ---- */

/* Is path the same as top, or below it? */
static bool is_within(const char *path, const char *top)
{
	size_t len = strlen(top);
	return strncmp(path, top, len) == 0 && (!path[len] || path[len] == '/' || len == 1);
}

/* The same place by its real name; as it is where it does not exist. */
static char *real_name(const char *path)
{
	char *real = realpath(path, NULL);
	return real ? real : xstrdup(path);
}

/* Whoever reaches an engine's socket is root on its machine, and the store has the hashes of all tokens. */
static int check_precious(const struct settings *s, const char *field, const char *host, struct err *e)
{
	bool is_unix = s->engine && strncmp(s->engine, "unix://", 7) == 0;
	const struct {
		const char *path, *what;
	} precious[] = {
		{ is_unix ? s->engine + 7 : NULL, "the engine's socket" },
		{ "/var/run/docker.sock", "an engine's socket" },
		{ "/run/containerd/containerd.sock", "an engine's socket" },
		{ "/run/podman/podman.sock", "an engine's socket" },
		{ s->runtime_dir, "a user's sockets" },
		{ s->data_dir, "berthd's own data" },
	};
	for (size_t i = 0; i < ARRAY_LEN(precious); i++) {
		_cleanup_free_ char *real = precious[i].path ? real_name(precious[i].path) : NULL;
		if (real && (is_within(real, host) || is_within(host, real)))
			return err_field(e, field, "%.200s is, or holds, or lies in %s: %.100s", host,
					 precious[i].what, real);
	}
	return 0;
}

/* *ret is its real name: a link that is changed later changes nothing. */
static int look_at_host(const struct settings *s, const char *field, const char *host, char **ret,
			struct stat *ret_st, struct err *e)
{
	if (s->engine && strncmp(s->engine, "tcp://", 6) == 0) {
		*ret = xstrdup(host);
		*ret_st = (struct stat){ .st_mode = S_IFDIR };
		return 0;
	}
	_cleanup_free_ char *real = realpath(host, NULL);
	if (!real || stat(real, ret_st) < 0) {
		int r = err_sys(e, ERR_INVALID, errno, "%.200s cannot be used", host);
		snprintf(e->field, sizeof(e->field), "%s", field);
		return r;
	}
	if (!S_ISREG(ret_st->st_mode) && !S_ISDIR(ret_st->st_mode))
		return err_field(e, field, "%.200s is neither a file nor a folder", host);
	if (strpbrk(real, ":,"))
		return err_field(e, field, "%.200s has a colon or a comma in its name", real);
	int r = check_precious(s, field, real, e);
	if (r == 0)
		*ret = STEAL_PTR(real);
	return r;
}

/* ---- SANDBOX_MOUNTS ---- */

#define MOUNTS "SANDBOX_MOUNTS"

/* A mount over one of the sandbox's own places would hide it; below the workspace it would leave a file
 * there. */
static int check_inside(const char *path, struct err *e)
{
	static const char *const whole[] = { SANDBOX_WORKSPACE, "/.berth", "/proc", "/sys", "/dev" };
	static const char *const places[] = { SANDBOX_HOME, "/tmp", "/conversation_history" };
	for (size_t i = 0; i < ARRAY_LEN(whole); i++)
		if (is_within(path, whole[i]) || is_within(whole[i], path))
			return err_field(e, MOUNTS, "%.200s may not be at, above or below %s", path,
					 whole[i]);
	for (size_t i = 0; i < ARRAY_LEN(places); i++)
		if (is_within(places[i], path))
			return err_field(e, MOUNTS, "%.200s may not be at or above %s", path, places[i]);
	if (strstr(path, "//") || strstr(path, "/./") || path[strlen(path) - 1] == '/' || strchr(path, ','))
		return err_field(e, MOUNTS, "%.200s must be a plain path", path);
	return 0;
}

static int check_twice(const struct grants *g, const struct mount *m, struct err *e)
{
	for (size_t i = 0; i < g->mount_count; i++) {
		if (strcmp(g->mounts[i].name, m->name) == 0)
			return err_field(e, MOUNTS, "%s is named twice", m->name);
		if (is_within(g->mounts[i].path, m->path) || is_within(m->path, g->mounts[i].path))
			return err_field(e, MOUNTS, "%.200s and %.200s lie in one another", m->path,
					 g->mounts[i].path);
	}
	return 0;
}

/* NAME=HOST:PATH:ro, of that form already. */
static int add_mount(struct grants *g, const char *item, struct err *e)
{
	const char *host = strchr(item, '=') + 1, *path = strchr(host, ':') + 1;
	_cleanup_free_ char *outside = xstrndup(host, (size_t)(path - 1 - host));
	struct stat st;
	if (g->mount_count == SANDBOX_MOUNTS_MAX)
		return err_field(e, MOUNTS, "has more than %d items", SANDBOX_MOUNTS_MAX);
	struct mount *m = &g->mounts[g->mount_count];
	*m = (struct mount){ .name = xstrndup(item, (size_t)(host - 1 - item)),
			     .path = xstrndup(path, strcspn(path, ":")) };
	int r = check_twice(g, m, e);
	g->mount_count++; /* grants_free() frees it */
	if (r == 0)
		r = check_inside(m->path, e);
	return r == 0 ? look_at_host(g->settings, MOUNTS, outside, &m->host, &st, e) : r;
}

static int read_mounts(struct grants *g, struct err *e)
{
	const char *at = g->settings->mounts ? g->settings->mounts : "", *item;
	size_t len = 0;
	int r = 0;
	while (r == 0 && (item = parse_list_next(&at, &len))) {
		_cleanup_free_ char *copy = xstrndup(item, len);
		r = add_mount(g, copy, e);
	}
	return r;
}

static const struct mount *find_mount(const struct grants *g, const char *name)
{
	for (size_t i = 0; i < g->mount_count; i++)
		if (strcmp(g->mounts[i].name, name) == 0)
			return &g->mounts[i];
	return NULL;
}

int grants_find_mounts(const struct grants *g, const json_t *names, struct sandbox_mount *ret,
		       size_t *ret_count, struct err *e)
{
	size_t count = names ? json_array_size(names) : g->mount_count;
	if (count > SANDBOX_MOUNTS_MAX)
		return err_field(e, "mounts", "must be at most %d", SANDBOX_MOUNTS_MAX);
	for (size_t i = 0; i < count; i++) {
		const char *name = names ? json_string_value(json_array_get(names, i)) : g->mounts[i].name;
		const struct mount *m = name ? find_mount(g, name) : NULL;
		if (!m)
			return err_field(e, "mounts", "%.63s is not among " MOUNTS,
					 name ? name : "a non-text");
		for (size_t k = 0; k < i; k++)
			if (ret[k].path == m->path)
				return err_field(e, "mounts", "%s is named twice", m->name);
		ret[i] = (struct sandbox_mount){ m->host, m->path };
	}
	*ret_count = count;
	return 0;
}

/* ---- SANDBOX_PASS_ENV ---- */

static int read_env(struct grants *g, struct err *e)
{
	const char *at = g->settings->pass_env ? g->settings->pass_env : "", *item;
	size_t len = 0, count = 0;
	while ((item = parse_list_next(&at, &len))) {
		_cleanup_free_ char *name = xstrndup(item, len);
		const char *value = settings_pass_env(name);
		if (!value)
			LOG(LOG_WARN, "a variable to pass on is not set", F("name", name));
		else if (count == ENV_MAX)
			return err_field(e, "SANDBOX_PASS_ENV", "has more than %d names", ENV_MAX);
		else
			g->env[count++] = xasprintf("%s=%s", name, value);
	}
	return 0;
}

char *const *grants_get_env(const struct grants *g)
{
	return g->env;
}

/* ---- ATLAS_PROJECT_DIR ---- */

#define PROJECT "ATLAS_PROJECT_DIR"

static int read_project(struct grants *g, struct err *e)
{
	const struct settings *s = g->settings;
	struct stat st;
	if (!s->project_dir)
		return 0;
	int r = look_at_host(s, PROJECT, s->project_dir, &g->project, &st, e);
	if (r < 0)
		return r;
	if (!S_ISDIR(st.st_mode))
		return err_field(e, PROJECT, "%.200s is no folder", s->project_dir);
	g->uid = s->uid ? (unsigned)s->uid : st.st_uid;
	g->gid = s->gid ? (unsigned)s->gid : st.st_gid;
	if (!g->uid || !g->gid)
		return err_field(
			e, PROJECT,
			"%.200s belongs to root, as whom no command may run: give it to another user, or "
			"set ATLAS_SANDBOX_UID and ATLAS_SANDBOX_GID",
			s->project_dir);
	if (g->uid == SANDBOX_BRIDGE_UID)
		return err_field(e, PROJECT, "user id %d is Berth's own: no command may have it",
				 SANDBOX_BRIDGE_UID);
	return 0;
}

const char *grants_get_project(const struct grants *g, unsigned *ret_uid, unsigned *ret_gid)
{
	*ret_uid = g->uid;
	*ret_gid = g->gid;
	return g->project;
}

/* ---- SANDBOX_NETWORKS ---- */

static bool is_listed(const char *list, const char *name)
{
	const char *item;
	size_t len = 0;
	while (list && (item = parse_list_next(&list, &len)))
		if (strlen(name) == len && memcmp(item, name, len) == 0)
			return true;
	return false;
}

int grants_check_network(const struct grants *g, struct engine *engine, const char *network, bool is_default,
			 struct err *e)
{
	struct engine_network n;
	if (strcmp(network, "none") == 0)
		return 0;
	if (!is_default && !is_listed(g->settings->networks, network))
		return err_field(e, "network",
				 "must be none, or one of those that the administrator has listed "
				 "(SANDBOX_NETWORKS)");
	int r = engine_network_inspect(engine, network, &n, e);
	if (r == -ERR_NOT_FOUND)
		return err_field(e, "network", "the engine has no network %s", network);
	if (r < 0 || g->settings->link_local || engine_network_is_closed(&n))
		return r;
	return err_field(
		e, "network",
		"%s is no internal network: link-local addresses, where clouds have their metadata, may "
		"be reached from it (SANDBOX_LINK_LOCAL)",
		network);
}

/* ---- all ---- */

int grants_new(const struct settings *settings, struct grants **ret, struct err *e)
{
	_cleanup_(grants_free_cleanup_) struct grants *g = xcalloc(1, sizeof(*g));
	g->settings = settings;
	if (read_mounts(g, e) < 0 || read_env(g, e) < 0 || read_project(g, e) < 0)
		return -(int)e->code;
	*ret = STEAL_PTR(g);
	return 0;
}
