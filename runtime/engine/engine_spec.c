/* SPDX-License-Identifier: MIT */
#include "runtime/engine/engine_spec.h"

#include <assert.h>
#include <string.h>

#include "base/json.h"
#include "base/utf8.h"
#include "runtime/engine/engine_facts.h"

#define PERIOD_US 100000        /* of the kernel's cpu bandwidth control, the engines' own choice */
#define MEMORY_MIN (16ll << 20) /* above every engine's floor: Docker says 6 MB, runc fails at the start */

/*
 * System V IPC outlives the job that made it, so its memory could never be won back: segments go with their
 * job, queues (128 of msgmnb, 16 KiB) and semaphores (32000 of 64 bytes) come to some 2 MiB each at most.
 */
#define SYSCTLS "{'kernel.shm_rmid_forced': '1', 'kernel.msgmni': '128', 'kernel.sem': '250 32000 100 128'}"

/*
 * The hardening, as the container's configuration at large. Each member has its reason in
 * docs/SECURITY.md. What is not named takes the engine's default: seccomp, AppArmor, SELinux,
 * masked and read-only paths of /proc.
 *
 * Healthcheck NONE: the engine would start an image's health check inside, outside of every job.
 * StopTimeout 0: a forced removal on Podman would first wait for an answer to SIGTERM.
 */
static const char config_hardening[] =
	"{'Hostname': 'sandbox', 'Tty': false, 'OpenStdin': false, 'StdinOnce': false,"
	" 'AttachStdin': false, 'AttachStdout': false, 'AttachStderr': false,"
	" 'Cmd': [], 'Healthcheck': {'Test': ['NONE']}, 'StopTimeout': 0}";
static const char host_hardening[] =
	"{'ReadonlyRootfs': true, 'Privileged': false, 'CapDrop': ['ALL'], 'CapAdd': [],"
	" 'SecurityOpt': ['no-new-privileges'], 'IpcMode': 'private', 'PidMode': '', 'UTSMode': '',"
	" 'Sysctls': " SYSCTLS ", 'LogConfig': {'Type': 'none', 'Config': {}},"
	" 'Init': false, 'AutoRemove': false, 'RestartPolicy': {'Name': 'no'}, 'PublishAllPorts': false,"
	" 'Binds': [], 'Devices': [], 'DeviceRequests': [], 'DeviceCgroupRules': [], 'GroupAdd': [],"
	" 'VolumesFrom': [], 'Links': [], 'PortBindings': {}, 'ExtraHosts': [], 'Tmpfs': {}}";

/* The same in libpod's words; what the other text has beyond it is no member there unless it is asked for. */
static const char native_hardening[] =
	"{'hostname': 'sandbox', 'terminal': false, 'stdin': false, 'command': [], 'healthconfig': {'Test': "
	"['NONE']},"
	" 'stop_timeout': 0, 'remove': false, 'restart_policy': 'no', 'privileged': false, 'init': false,"
	" 'systemd': 'false', 'env_host': false, 'httpproxy': false, 'log_configuration': {'driver': 'none'},"
	" 'read_only_filesystem': true, 'read_write_tmpfs': false, 'cap_drop': ['ALL'], 'cap_add': [],"
	" 'no_new_privileges': true, 'ipcns': {'nsmode': 'private'}, 'pidns': {'nsmode': 'private'},"
	" 'utsns': {'nsmode': 'private'}, 'sysctl': " SYSCTLS ", 'image_volume_mode': "
	"'ignore'}";

/* A constant of ours, with ' for ": it parses, or the program is wrong. */
static json_t *constant(const char *text)
{
	_cleanup_free_ char *copy = xstrdup(text);
	for (char *p = copy; *p; p++)
		*p = *p == '\'' ? '"' : *p;
	json_t *o = json_loads(copy, JSON_REJECT_DUPLICATES, NULL);
	assert(o);
	return o;
}

/* Adds a member; the value moves in. A text that is no UTF-8 would make NULL: engine_spec_check refuses it
 * before. */
static void put(json_t *object, const char *key, json_t *value)
{
	int r = json_object_set_new(object, key, value);
	assert(!r);
	(void)r;
}

/* ---- what is refused ---- */

static bool is_text(const char *text)
{
	return text && *text && utf8_is_valid(text, strlen(text));
}

/* Absolute and without a way back up: engines resolve it in the host's or the image's name space. */
static bool is_clean_path(const char *path)
{
	return is_text(path) && path[0] == '/' && path[1] && !strstr(path, "//") && !strstr(path, "/../") &&
	       !strstr(path, "/./") && !strchr(path, ':') && !strchr(path, ',') &&
	       path[strlen(path) - 1] != '/' &&
	       (strlen(path) < 3 || strcmp(path + strlen(path) - 3, "/..")) &&
	       strcmp(path + strlen(path) - 2, "/.");
}

/* A name of a network and never a mode such as host, container:ID or ns:PATH. */
static bool network_is_allowed(const char *network)
{
	return is_text(network) && strcmp(network, "host") && !strpbrk(network, ":/ ");
}

static int check_mounts(const struct engine_container_spec *spec, struct err *e)
{
	for (size_t i = 0; i < spec->mount_count; i++) {
		const struct engine_mount *m = &spec->mounts[i];
		if (!is_clean_path(m->target))
			return err_field(e, "mounts", "the target of mount %zu is no clean absolute path", i);
		if (!is_text(m->source) || (m->source[0] == '/' && !is_clean_path(m->source)))
			return err_field(e, "mounts",
					 "the source of %s is no volume name or clean absolute path",
					 m->target);
		for (size_t k = 0; k < i; k++)
			if (!strcmp(m->target, spec->mounts[k].target))
				return err_field(e, "mounts", "%s is mounted twice", m->target);
	}
	return 0;
}

static int check_program(const struct engine_container_spec *spec, struct err *e)
{
	if (!is_text(spec->image))
		return err_field(e, "image", "must be named");
	if (!spec->entrypoint || !is_text(spec->entrypoint[0]))
		return err_field(e, "entrypoint", "must be given");
	for (size_t i = 0; spec->entrypoint[i]; i++)
		if (!utf8_is_valid(spec->entrypoint[i], strlen(spec->entrypoint[i])))
			return err_field(e, "entrypoint", "must be UTF-8");
	/* Not below /proc: a working directory of /proc/self/fd/N reached the host once (CVE-2024-21626). */
	bool root = spec->workdir && !strcmp(spec->workdir, "/");
	if (!root && (!is_clean_path(spec->workdir) || !strncmp(spec->workdir, "/proc", 5)))
		return err_field(e, "workdir", "must be a clean absolute path outside /proc");
	return 0;
}

static int check_limits(const struct engine_container_spec *spec, struct err *e)
{
	if (!spec->uid || !spec->gid)
		return err_field(e, "user", "must not be root");
	if (spec->memory_bytes < MEMORY_MIN)
		return err_field(e, "memory_mb", "must be at least %lld", MEMORY_MIN >> 20);
	if (spec->cpu_milli < 10 || spec->pids < 1 || spec->nofile < 64)
		return err_field(e, "limits", "cpus, pids and nofile must be set");
	return 0;
}

int engine_spec_check(const struct engine_container_spec *spec, struct err *e)
{
	int r = check_program(spec, e);
	r = r ? r : check_limits(spec, e);
	if (!r && !network_is_allowed(spec->network))
		r = err_field(e, "network", "\"%.80s\" is not allowed: none, or the name of a network",
			      spec->network ? spec->network : "");
	if (!r && spec->runtime && (!is_text(spec->runtime) || strpbrk(spec->runtime, "/ ")))
		r = err_field(e, "isolation", "must be a runtime's name");
	return r ? r : check_mounts(spec, e);
}

/* ---- parts of both ---- */

json_t *engine_spec_labels(const struct engine_label *labels, size_t count)
{
	json_t *o = json_object();
	for (size_t i = 0; i < count; i++)
		put(o, labels[i].key, json_string_lossy(labels[i].value, strlen(labels[i].value)));
	return o;
}

static json_t *argv_of(const char *const *argv)
{
	json_t *a = json_array();
	for (size_t i = 0; argv[i]; i++)
		json_array_append_new(a, json_string(argv[i]));
	return a;
}

static json_t *user_of(const struct engine_container_spec *spec)
{
	return json_sprintf("%u:%u", spec->uid, spec->gid);
}

/* nofile and core always explicit: without them the start fails where the engine may not raise its own
 *. */
struct ulimit {
	const char *name;
	int64_t value;
};

static size_t ulimits_of(const struct engine_container_spec *spec, const struct engine_spec_target *t,
			 struct ulimit ret[3])
{
	int64_t most = t->limits.nofile;
	ret[0] = (struct ulimit){ "nofile", most ? MIN(spec->nofile, most) : spec->nofile };
	ret[1] = (struct ulimit){ "core", 0 };
	ret[2] = (struct ulimit){ "nproc", t->limits.nproc };
	/*
	 * nproc counts a uid over the whole host, so it is no limit of a sandbox (pids is). It is said
	 * only where Podman would set 1048576 by itself and fail for want of CAP_SYS_RESOURCE.
	 */
	return t->quirks->nproc_default && t->limits.nproc ? 3 : 2;
}

/* ---- Docker's words ---- */

/*
 * Propagation private: nothing mounted later on the host appears inside. A read-only folder is
 * bound without what is mounted below it, which would stay writable.
 */
static json_t *docker_mount(const struct engine_mount *m)
{
	bool bind = m->source[0] == '/';
	json_t *o = json_pack("{s:s, s:s, s:s, s:b}", "Type", bind ? "bind" : "volume", "Source", m->source,
			      "Target", m->target, "ReadOnly", m->read_only);
	if (bind)
		put(o, "BindOptions",
		    json_pack("{s:s, s:b}", "Propagation", "rprivate", "NonRecursive", m->read_only));
	else
		put(o, "VolumeOptions", json_pack("{s:b}", "NoCopy", !m->copy_up));
	return o;
}

static json_t *docker_mounts(const struct engine_container_spec *spec)
{
	json_t *a = json_array();
	for (size_t i = 0; i < spec->mount_count; i++)
		json_array_append_new(a, docker_mount(&spec->mounts[i]));
	return a;
}

static json_t *docker_ulimits(const struct engine_container_spec *spec, const struct engine_spec_target *t)
{
	struct ulimit limits[3];
	size_t n = ulimits_of(spec, t, limits);
	json_t *a = json_array();
	for (size_t i = 0; i < n; i++)
		json_array_append_new(a, json_pack("{s:s, s:I, s:I}", "Name", limits[i].name, "Soft",
						   (json_int_t)limits[i].value, "Hard",
						   (json_int_t)limits[i].value));
	return a;
}

static json_t *host_config(const struct engine_container_spec *spec, const struct engine_spec_target *t)
{
	json_t *host = constant(host_hardening);
	put(host, "NetworkMode", json_string(spec->network));
	put(host, "Memory", json_integer(spec->memory_bytes));
	put(host, "MemorySwap", json_integer(spec->memory_bytes)); /* the sum: no swap */
	put(host, "NanoCpus", json_integer(spec->cpu_milli * 1000000));
	put(host, "PidsLimit", json_integer(spec->pids));
	put(host, "Ulimits", docker_ulimits(spec, t));
	put(host, "Mounts", docker_mounts(spec));
	if (spec->runtime)
		put(host, "Runtime", json_string(spec->runtime));
	/* On v2 the host's name space would show the whole tree, and the agent the wrong limits. v1 has no
	 * such way. */
	if (t->cgroup == 2)
		put(host, "CgroupnsMode", json_string("private"));
	return host;
}

json_t *engine_spec_wish(const struct engine_container_spec *spec, const struct engine_spec_target *t)
{
	json_t *o = constant(config_hardening);
	put(o, "Image", json_string(spec->image));
	put(o, "Entrypoint", argv_of(spec->entrypoint));
	put(o, "User", user_of(spec));
	put(o, "WorkingDir", json_string(spec->workdir));
	put(o, "Labels", engine_spec_labels(spec->labels, spec->label_count));
	put(o, "HostConfig", host_config(spec, t));
	return o;
}

/* ---- libpod's words ---- */

static json_t *native_volume(const struct engine_mount *m)
{
	json_t *options = json_pack("[s]", m->read_only ? "ro" : "rw");
	if (!m->copy_up)
		json_array_append_new(options, json_string("nocopy"));
	return json_pack("{s:s, s:s, s:o}", "Name", m->source, "Dest", m->target, "Options", options);
}

static json_t *native_bind(const struct engine_mount *m)
{
	return json_pack("{s:s, s:s, s:s, s:[s, s, s, s, s]}", "type", "bind", "source", m->source,
			 "destination", m->target, "options", m->read_only ? "ro" : "rw",
			 m->read_only ? "bind" : "rbind", "rprivate", "nosuid", "nodev");
}

static void put_native_mounts(json_t *o, const struct engine_container_spec *spec)
{
	json_t *volumes = json_array(), *binds = json_array();
	for (size_t i = 0; i < spec->mount_count; i++) {
		const struct engine_mount *m = &spec->mounts[i];
		if (m->source[0] == '/')
			json_array_append_new(binds, native_bind(m));
		else
			json_array_append_new(volumes, native_volume(m));
	}
	put(o, "volumes", volumes);
	put(o, "mounts", binds);
}

static json_t *native_resources(const struct engine_container_spec *spec)
{
	return json_pack("{s:{s:I}, s:{s:I, s:I}, s:{s:I, s:I}}", "pids", "limit", (json_int_t)spec->pids,
			 "memory", "limit", (json_int_t)spec->memory_bytes, "swap",
			 (json_int_t)spec->memory_bytes, "cpu", "period", (json_int_t)PERIOD_US, "quota",
			 (json_int_t)(spec->cpu_milli * PERIOD_US / 1000));
}

static json_t *native_ulimits(const struct engine_container_spec *spec, const struct engine_spec_target *t)
{
	struct ulimit limits[3];
	size_t n = ulimits_of(spec, t, limits);
	json_t *a = json_array();
	for (size_t i = 0; i < n; i++)
		json_array_append_new(a, json_pack("{s:s, s:I, s:I}", "type", limits[i].name, "soft",
						   (json_int_t)limits[i].value, "hard",
						   (json_int_t)limits[i].value));
	return a;
}

static void put_native_network(json_t *o, const char *network)
{
	bool none = !strcmp(network, "none");
	put(o, "netns", json_pack("{s:s}", "nsmode", none ? "none" : "bridge"));
	if (!none)
		put(o, "networks", json_pack("{s:{}}", network));
}

json_t *engine_spec_native(const struct engine_container_spec *spec, const struct engine_spec_target *t)
{
	json_t *o = constant(native_hardening);
	put(o, "name", json_string(spec->name));
	put(o, "image", json_string(spec->image));
	put(o, "entrypoint", argv_of(spec->entrypoint));
	put(o, "user", user_of(spec));
	put(o, "work_dir", json_string(spec->workdir));
	put(o, "labels", engine_spec_labels(spec->labels, spec->label_count));
	put(o, "resource_limits", native_resources(spec));
	put(o, "r_limits", native_ulimits(spec, t));
	put_native_network(o, spec->network);
	put_native_mounts(o, spec);
	if (spec->runtime)
		put(o, "oci_runtime", json_string(spec->runtime));
	if (t->cgroup == 2)
		put(o, "cgroupns", json_pack("{s:s}", "nsmode", "private"));
	return o;
}

/* ---- volumes ---- */

/*
 * nr_blocks and not size, since Podman reads size as a project quota. A block here is a page
 * (tmpfs(5)), 4 KiB on every machine that Berth runs on; rounded up.
 */
char *engine_spec_tmpfs(const struct engine_volume_spec *spec)
{
	return xasprintf("nr_blocks=%lld,nr_inodes=%lld,uid=%u,gid=%u,mode=0700,nosuid,nodev%s",
			 (long long)((spec->tmpfs_bytes + 4095) / 4096), (long long)spec->tmpfs_inodes,
			 spec->uid, spec->gid, spec->noexec ? ",noexec" : "");
}
