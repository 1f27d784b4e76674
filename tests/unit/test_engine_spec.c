/* SPDX-License-Identifier: MIT */
/* A container's spec: what is refused, what is sent, and what a read-back must find. */
#include <string.h>

#include "base/json.h"
#include "runtime/engine/engine_facts.h"
#include "runtime/engine/engine_json.h"
#include "runtime/engine/engine_spec.h"
#include "tests/unit/rows.h"

static const char *const argv[] = { "/.berth/berth-agent", "init", NULL };
static const struct engine_mount mounts[] = {
	{ "work", "/workspace", false, false },
	{ "shm", "/dev/shm", false, false },
	{ "/etc/kube", "/home/sandbox/.kube", true, false },
};
static const struct engine_label labels[] = { { "berth.instance", "i1" }, { "berth.sandbox", "s1" } };

static struct engine_container_spec good(void)
{
	return (struct engine_container_spec){ .name = "berth-s1",
					       .image = "localhost/berth/sandbox:1",
					       .entrypoint = argv,
					       .workdir = "/workspace",
					       .uid = 10001,
					       .gid = 10001,
					       .memory_bytes = 4ll << 30,
					       .cpu_milli = 1500,
					       .pids = 1024,
					       .nofile = 65536,
					       .network = "none",
					       .mounts = mounts,
					       .mount_count = 3,
					       .labels = labels,
					       .label_count = 2 };
}

static struct engine_spec_target target(enum engine_kind kind)
{
	return (struct engine_spec_target){ .quirks = engine_quirks_of(kind),
					    .limits = { 20000, 32768 },
					    .cgroup = 2 };
}

static json_t *json_of(const char *text)
{
	char copy[4096];
	snprintf(copy, sizeof(copy), "%s", text);
	for (char *p = copy; *p; p++)
		*p = *p == '\'' ? '"' : *p;
	json_t *v = json_loads(copy, JSON_DECODE_ANY, NULL);
	assert_non_null(v);
	return v;
}

/* ---- what is refused ---- */

static const char *const no_argv[] = { NULL };
static const struct engine_mount twice[] = { { "a", "/x", false, false }, { "b", "/x", false, false } };
static const struct engine_mount climbing[] = { { "a", "/x/../etc", false, false } };
static const struct engine_mount relative[] = { { "a", "x", false, false } };
static const struct engine_mount rooted[] = { { "a", "/", false, false } };
static const struct engine_mount climbing_source[] = { { "/srv/../etc", "/x", true, false } };
static const struct engine_mount option[] = { { "a", "/x:exec", false, false } };

#define REFUSED(name_, field_, ...) \
	{                           \
		name_, field_,      \
		{                   \
			__VA_ARGS__ \
		}                   \
	}
/* A member that is set here replaces the good one's. */
static const struct refused_row {
	const char *name, *field;
	struct {
		const char *image, *workdir, *network, *runtime;
		const char *const *entrypoint;
		const struct engine_mount *mounts;
		size_t mount_count;
		int64_t memory, cpu, pids, nofile;
		bool root, root_group, no_network, no_workdir;
	} with;
} refused[] = {
	REFUSED("refused: nothing of a good spec", NULL, 0),
	REFUSED("refused: nothing of a named network", NULL, .network = "lan"),
	REFUSED("refused: no image", "image", .image = ""),
	REFUSED("refused: an image that is no UTF-8", "image", .image = "\xff"),
	REFUSED("refused: no entry point", "entrypoint", .entrypoint = no_argv),
	REFUSED("refused: a relative working directory", "workdir", .workdir = "workspace"),
	REFUSED("refused: a working directory in /proc", "workdir", .workdir = "/proc/self/fd/8"),
	REFUSED("refused: a working directory that climbs", "workdir", .workdir = "/a/../proc"),
	REFUSED("refused: no working directory", "workdir", .no_workdir = true),
	REFUSED("refused: root", "user", .root = true),
	REFUSED("refused: root's group", "user", .root_group = true),
	REFUSED("refused: the host's network", "network", .network = "host"),
	REFUSED("refused: another container's network", "network", .network = "container:abc"),
	REFUSED("refused: a network by path", "network", .network = "ns:/proc/1/ns/net"),
	REFUSED("refused: no network named", "network", .no_network = true),
	REFUSED("refused: a runtime by path", "isolation", .runtime = "/usr/bin/evil"),
	REFUSED("refused: less memory than an engine needs", "memory_mb", .memory = 1 << 20),
	REFUSED("refused: pids without a limit", "limits", .pids = -1),
	REFUSED("refused: no cpu", "limits", .cpu = 1),
	REFUSED("refused: hardly a descriptor", "limits", .nofile = 3),
	REFUSED("refused: one target twice", "mounts", .mounts = twice, .mount_count = 2),
	REFUSED("refused: a target that climbs", "mounts", .mounts = climbing, .mount_count = 1),
	REFUSED("refused: a relative target", "mounts", .mounts = relative, .mount_count = 1),
	REFUSED("refused: the root as target", "mounts", .mounts = rooted, .mount_count = 1),
	REFUSED("refused: a host path that climbs", "mounts", .mounts = climbing_source, .mount_count = 1),
	REFUSED("refused: a mount option in a path", "mounts", .mounts = option, .mount_count = 1),
};

static struct engine_container_spec spec_of(const struct refused_row *row)
{
	struct engine_container_spec s = good();
	s.image = row->with.image ? row->with.image : s.image;
	s.workdir = row->with.no_workdir ? NULL : row->with.workdir ? row->with.workdir : s.workdir;
	s.network = row->with.no_network ? NULL : row->with.network ? row->with.network : s.network;
	s.runtime = row->with.runtime;
	s.entrypoint = row->with.entrypoint ? row->with.entrypoint : s.entrypoint;
	s.mounts = row->with.mounts ? row->with.mounts : s.mounts;
	s.mount_count = row->with.mounts ? row->with.mount_count : s.mount_count;
	s.memory_bytes = row->with.memory ? row->with.memory : s.memory_bytes;
	s.cpu_milli = row->with.cpu ? row->with.cpu : s.cpu_milli;
	s.pids = row->with.pids ? row->with.pids : s.pids;
	s.nofile = row->with.nofile ? row->with.nofile : s.nofile;
	s.uid = row->with.root ? 0 : s.uid;
	s.gid = row->with.root_group ? 0 : s.gid;
	return s;
}

static void refused_test(void **state)
{
	const struct refused_row *row = *state;
	struct engine_container_spec s = spec_of(row);
	struct err e = { 0 };
	assert_int_equal(engine_spec_check(&s, &e), row->field ? -ERR_INVALID : 0);
	assert_string_equal(e.field, row->field ? row->field : "");
}

/* ---- what is sent ---- */

static const struct sent_row {
	const char *name;
	enum engine_kind kind;
	const char *path, *value; /* NULL: absent */
} sent[] = {
	{ "Docker: the image", ENGINE_DOCKER, "Image", "'localhost/berth/sandbox:1'" },
	{ "Docker: the entry point, and no command", ENGINE_DOCKER, "Entrypoint",
	  "['/.berth/berth-agent', 'init']" },
	{ "Docker: the image's CMD is emptied", ENGINE_DOCKER, "Cmd", "[]" },
	{ "Docker: the user", ENGINE_DOCKER, "User", "'10001:10001'" },
	{ "Docker: the working directory", ENGINE_DOCKER, "WorkingDir", "'/workspace'" },
	{ "Docker: a fixed host name", ENGINE_DOCKER, "Hostname", "'sandbox'" },
	{ "Docker: no health check", ENGINE_DOCKER, "Healthcheck", "{'Test': ['NONE']}" },
	{ "Docker: no terminal", ENGINE_DOCKER, "Tty", "false" },
	{ "Docker: no stdin", ENGINE_DOCKER, "OpenStdin", "false" },
	{ "Docker: the labels", ENGINE_DOCKER, "Labels", "{'berth.instance': 'i1', 'berth.sandbox': 's1'}" },
	{ "Docker: no environment of its own", ENGINE_DOCKER, "Env", NULL },
	{ "Docker: a read-only root", ENGINE_DOCKER, "HostConfig.ReadonlyRootfs", "true" },
	{ "Docker: no capability", ENGINE_DOCKER, "HostConfig.CapDrop", "['ALL']" },
	{ "Docker: no new privileges, and the default seccomp profile", ENGINE_DOCKER,
	  "HostConfig.SecurityOpt", "['no-new-privileges']" },
	{ "Docker: not privileged", ENGINE_DOCKER, "HostConfig.Privileged", "false" },
	{ "Docker: IPC of its own", ENGINE_DOCKER, "HostConfig.IpcMode", "'private'" },
	{ "Docker: pids of its own", ENGINE_DOCKER, "HostConfig.PidMode", "''" },
	{ "Docker: a host name of its own", ENGINE_DOCKER, "HostConfig.UTSMode", "''" },
	{ "Docker: shared memory goes with its job, queues and semaphores are bounded", ENGINE_DOCKER,
	  "HostConfig.Sysctls",
	  "{'kernel.shm_rmid_forced': '1', 'kernel.msgmni': '128', 'kernel.sem': '250 32000 100 128'}" },
	{ "Docker: the limit of processes", ENGINE_DOCKER, "HostConfig.PidsLimit", "1024" },
	{ "Docker: the limit of memory", ENGINE_DOCKER, "HostConfig.Memory", "4294967296" },
	{ "Docker: no swap", ENGINE_DOCKER, "HostConfig.MemorySwap", "4294967296" },
	{ "Docker: the limit of cpu time", ENGINE_DOCKER, "HostConfig.NanoCpus", "1500000000" },
	{ "Docker: the OOM killer stays on", ENGINE_DOCKER, "HostConfig.OomKillDisable", NULL },
	{ "Docker: nofile at most the engine's own, core 0", ENGINE_DOCKER, "HostConfig.Ulimits",
	  "[{'Name': 'nofile', 'Soft': 20000, 'Hard': 20000}, {'Name': 'core', 'Soft': 0, 'Hard': 0}]" },
	{ "Docker: no log", ENGINE_DOCKER, "HostConfig.LogConfig", "{'Type': 'none', 'Config': {}}" },
	{ "Docker: no init", ENGINE_DOCKER, "HostConfig.Init", "false" },
	{ "Docker: not removed by itself", ENGINE_DOCKER, "HostConfig.AutoRemove", "false" },
	{ "Docker: not started again", ENGINE_DOCKER, "HostConfig.RestartPolicy", "{'Name': 'no'}" },
	{ "Docker: no device", ENGINE_DOCKER, "HostConfig.Devices", "[]" },
	{ "Docker: no bind but the mounts", ENGINE_DOCKER, "HostConfig.Binds", "[]" },
	{ "Docker: the network", ENGINE_DOCKER, "HostConfig.NetworkMode", "'none'" },
	{ "Docker: the default runtime", ENGINE_DOCKER, "HostConfig.Runtime", NULL },
	{ "Docker: cgroups of its own on v2", ENGINE_DOCKER, "HostConfig.CgroupnsMode", "'private'" },
	{ "Docker: the mounts", ENGINE_DOCKER, "HostConfig.Mounts",
	  "[{'Type': 'volume', 'Source': 'work', 'Target': '/workspace', 'ReadOnly': false, 'VolumeOptions': "
	  "{'NoCopy': true}},"
	  " {'Type': 'volume', 'Source': 'shm', 'Target': '/dev/shm', 'ReadOnly': false, 'VolumeOptions': "
	  "{'NoCopy': true}},"
	  " {'Type': 'bind', 'Source': '/etc/kube', 'Target': '/home/sandbox/.kube', 'ReadOnly': true,"
	  "  'BindOptions': {'Propagation': 'rprivate', 'NonRecursive': true}}]" },
	{ "Podman: the name", ENGINE_PODMAN, "name", "'berth-s1'" },
	{ "Podman: the entry point", ENGINE_PODMAN, "entrypoint", "['/.berth/berth-agent', 'init']" },
	{ "Podman: the image's CMD is emptied", ENGINE_PODMAN, "command", "[]" },
	{ "Podman: the user", ENGINE_PODMAN, "user", "'10001:10001'" },
	{ "Podman: a read-only root", ENGINE_PODMAN, "read_only_filesystem", "true" },
	{ "Podman: no tmpfs of its own", ENGINE_PODMAN, "read_write_tmpfs", "false" },
	{ "Podman: no volumes of the image's own", ENGINE_PODMAN, "image_volume_mode", "'ignore'" },
	{ "Podman: the host's proxies stay outside", ENGINE_PODMAN, "httpproxy", "false" },
	{ "Podman: no capability", ENGINE_PODMAN, "cap_drop", "['ALL']" },
	{ "Podman: no new privileges", ENGINE_PODMAN, "no_new_privileges", "true" },
	{ "Podman: the default seccomp profile", ENGINE_PODMAN, "seccomp_profile_path", NULL },
	{ "Podman: no health check", ENGINE_PODMAN, "healthconfig", "{'Test': ['NONE']}" },
	{ "Podman: no network", ENGINE_PODMAN, "netns", "{'nsmode': 'none'}" },
	{ "Podman: the limits", ENGINE_PODMAN, "resource_limits",
	  "{'pids': {'limit': 1024}, 'memory': {'limit': 4294967296, 'swap': 4294967296}, 'cpu': {'period': "
	  "100000, 'quota': 150000}}" },
	{ "Podman: nproc is said too, for its default may be more than it can set", ENGINE_PODMAN, "r_limits",
	  "[{'type': 'nofile', 'soft': 20000, 'hard': 20000}, {'type': 'core', 'soft': 0, 'hard': 0},"
	  " {'type': 'nproc', 'soft': 32768, 'hard': 32768}]" },
	{ "Podman: the volumes", ENGINE_PODMAN, "volumes",
	  "[{'Name': 'work', 'Dest': '/workspace', 'Options': ['rw', 'nocopy']}, {'Name': 'shm', 'Dest': "
	  "'/dev/shm', 'Options': ['rw', 'nocopy']}]" },
	{ "Podman: the host folders", ENGINE_PODMAN, "mounts",
	  "[{'type': 'bind', 'source': '/etc/kube', 'destination': '/home/sandbox/.kube', 'options': ['ro', "
	  "'bind', 'rprivate', 'nosuid', 'nodev']}]" },
	{ "Podman: no init", ENGINE_PODMAN, "init", "false" },
	{ "Podman: shared memory goes with its job, queues and semaphores are bounded", ENGINE_PODMAN,
	  "sysctl",
	  "{'kernel.shm_rmid_forced': '1', 'kernel.msgmni': '128', 'kernel.sem': '250 32000 100 128'}" },
	{ "Podman: no log", ENGINE_PODMAN, "log_configuration", "{'driver': 'none'}" },
};

static void sent_test(void **state)
{
	const struct sent_row *row = *state;
	struct engine_container_spec s = good();
	struct engine_spec_target t = target(row->kind);
	_cleanup_json_ json_t *body = row->kind ? engine_spec_native(&s, &t) : engine_spec_wish(&s, &t);
	const json_t *got = engine_json_at(body, row->path);
	_cleanup_json_ json_t *want = row->value ? json_of(row->value) : NULL;
	if (!row->value)
		assert_null(got);
	else
		assert_true(json_equal(got, want));
}

static void other_sent_test(void **state)
{
	struct engine_container_spec s = good();
	struct engine_spec_target t = target(ENGINE_PODMAN);
	(void)state;
	s.network = "lan";
	s.runtime = "runsc";
	t.limits = (struct engine_spec_limits){ 0 };
	_cleanup_json_ json_t *body = engine_spec_native(&s, &t), *want = json_of("{'lan': {}}");
	_cleanup_json_ json_t *docker = engine_spec_wish(&s, &t);
	assert_true(json_equal(json_object_get(body, "networks"), want));
	assert_string_equal(engine_json_text(json_object_get(body, "netns"), "nsmode"), "bridge");
	assert_string_equal(engine_json_text(body, "oci_runtime"), "runsc");
	assert_string_equal(engine_json_text(json_object_get(docker, "HostConfig"), "Runtime"), "runsc");
	assert_int_equal(json_array_size(json_object_get(body, "r_limits")),
			 2); /* nothing known of nproc: not said */
	assert_int_equal(json_integer_value(json_object_get(
				 json_array_get(json_object_get(body, "r_limits"), 0), "hard")),
			 65536);
}

static void tmpfs_test(void **state)
{
	struct engine_volume_spec v = {
		.name = "x", .tmpfs_bytes = (1 << 20) + 1, .tmpfs_inodes = 500, .uid = 10001, .gid = 10002
	};
	(void)state;
	_cleanup_free_ char *text = engine_spec_tmpfs(&v);
	assert_string_equal(text, "nr_blocks=257,nr_inodes=500,uid=10001,gid=10002,mode=0700,nosuid,nodev");
	v.noexec = true;
	_cleanup_free_ char *noexec = engine_spec_tmpfs(&v);
	assert_non_null(strstr(noexec, ",noexec"));
}

/* ---- the read-back ---- */

/* What a faithful engine tells of the good spec. */
static json_t *inspection(enum engine_kind kind, const struct engine_container_spec *s,
			  const struct engine_spec_target *t)
{
	json_t *wish = engine_spec_wish(s, t), *host = json_incref(json_object_get(wish, "HostConfig"));
	json_object_del(wish, "HostConfig");
	json_t *o = json_of("{'Path': '/.berth/berth-agent', 'Args': ['init'], 'Mounts': ["
			    "{'Type': 'volume', 'Name': 'work', 'Destination': '/workspace', 'RW': true},"
			    "{'Type': 'volume', 'Name': 'shm', 'Destination': '/dev/shm', 'RW': true},"
			    "{'Type': 'bind', 'Source': '/etc/kube', 'Destination': '/home/sandbox/.kube', "
			    "'RW': false}]}");
	json_object_set_new(o, "Config", wish);
	json_object_set_new(o, "HostConfig", host);
	if (kind == ENGINE_DOCKER)
		return o;
	/* As Podman 4.3.1 does. */
	_cleanup_json_ json_t *native = json_of("{'EffectiveCaps': null, 'BoundingCaps': null, 'OCIRuntime': "
						"'runc', 'ImageName': 'localhost/berth/sandbox:1'}");
	_cleanup_json_ json_t *told = json_of("{'CapDrop': ['CAP_CHOWN'], 'IpcMode': 'shareable', 'PidMode': "
					      "'private', 'UTSMode': 'private', 'CgroupMode': 'private',"
					      " 'Binds': ['work:/workspace'], 'Runtime': 'oci', 'Ulimits': ["
					      "{'Name': 'RLIMIT_NOFILE', 'Soft': 20000, 'Hard': 20000}, "
					      "{'Name': 'RLIMIT_CORE', 'Soft': 0, 'Hard': 0},"
					      "{'Name': 'RLIMIT_NPROC', 'Soft': 32768, 'Hard': 32768}]}");
	json_object_update(o, native);
	json_object_update(host, told);
	json_object_del(host, "Sysctls");
	json_object_del(host, "Mounts");
	json_object_del(host, "Init");
	json_object_set_new(json_object_get(o, "Config"), "Entrypoint",
			    json_string("/.berth/berth-agent init"));
	return o;
}

#define BOTH -1
static const struct readback_row {
	const char *name;
	int kind;
	const char *path, *value; /* the member that differs; NULL value: it is missing */
	const char *bad;          /* in the message; NULL: no difference */
} readbacks[] = {
	{ "read-back: a faithful engine passes", BOTH, "Nothing", "1", NULL },
	{ "read-back: more labels (the image's) pass", BOTH, "Config.Labels.of-image", "'x'", NULL },
	{ "read-back: an environment of the image's passes", BOTH, "Config.Env", "['A=b']", NULL },
	{ "read-back: null for an empty list passes", BOTH, "HostConfig.Devices", "null", NULL },
	{ "read-back: an absent false passes", BOTH, "HostConfig.Privileged", NULL, NULL },
	{ "read-back: a stricter security option passes", BOTH, "HostConfig.SecurityOpt",
	  "['no-new-privileges', 'label=type:x_t']", NULL },
	{ "read-back: the other form of no-new-privileges passes", BOTH, "HostConfig.SecurityOpt",
	  "['no-new-privileges:true']", NULL },
	{ "read-back: no restart policy passes", BOTH, "HostConfig.RestartPolicy", "{'Name': ''}", NULL },
	{ "read-back: Podman's private IPC passes", ENGINE_PODMAN, "HostConfig.IpcMode", "'private'", NULL },
	{ "read-back: Podman 5's words for no log pass", ENGINE_PODMAN, "HostConfig.LogConfig",
	  "{'Type': 'none', 'Config': null, 'Path': '', 'Tag': '', 'Size': '-1B'}", NULL },
	{ "read-back: Podman 5's words for no command pass", ENGINE_PODMAN, "Config.Cmd", "null", NULL },
	{ "read-back: a writable root", BOTH, "HostConfig.ReadonlyRootfs", "false",
	  "HostConfig.ReadonlyRootfs" },
	{ "read-back: a field the engine ignored", BOTH, "HostConfig.ReadonlyRootfs", NULL,
	  "HostConfig.ReadonlyRootfs" },
	{ "read-back: privileged", BOTH, "HostConfig.Privileged", "true", "HostConfig.Privileged" },
	{ "read-back: a capability is not dropped", ENGINE_DOCKER, "HostConfig.CapDrop", "['CHOWN']",
	  "HostConfig.CapDrop" },
	{ "read-back: a capability is added", BOTH, "HostConfig.CapAdd", "['NET_RAW']", "HostConfig.CapAdd" },
	{ "read-back: Podman tells a capability", ENGINE_PODMAN, "EffectiveCaps", "['CAP_CHOWN']",
	  "EffectiveCaps" },
	{ "read-back: Podman tells a bounding capability", ENGINE_PODMAN, "BoundingCaps", "['CAP_CHOWN']",
	  "BoundingCaps" },
	{ "read-back: Podman tells no capabilities at all", ENGINE_PODMAN, "EffectiveCaps", NULL,
	  "EffectiveCaps" },
	{ "read-back: new privileges", BOTH, "HostConfig.SecurityOpt", "[]", "HostConfig.SecurityOpt" },
	{ "read-back: seccomp off", BOTH, "HostConfig.SecurityOpt",
	  "['no-new-privileges', 'seccomp=unconfined']", "HostConfig.SecurityOpt" },
	{ "read-back: SELinux off", BOTH, "HostConfig.SecurityOpt", "['no-new-privileges', 'label=disable']",
	  "HostConfig.SecurityOpt" },
	{ "read-back: no-new-privileges=false", BOTH, "HostConfig.SecurityOpt", "['no-new-privileges=false']",
	  "HostConfig.SecurityOpt" },
	{ "read-back: the host's IPC", BOTH, "HostConfig.IpcMode", "'host'", "HostConfig.IpcMode" },
	{ "read-back: shareable IPC on Docker", ENGINE_DOCKER, "HostConfig.IpcMode", "'shareable'",
	  "HostConfig.IpcMode" },
	{ "read-back: the host's pids", BOTH, "HostConfig.PidMode", "'host'", "HostConfig.PidMode" },
	{ "read-back: the host's name", BOTH, "HostConfig.UTSMode", "'host'", "HostConfig.UTSMode" },
	{ "read-back: the host's cgroups", ENGINE_DOCKER, "HostConfig.CgroupnsMode", "'host'",
	  "HostConfig.CgroupnsMode" },
	{ "read-back: the host's cgroups on Podman", ENGINE_PODMAN, "HostConfig.CgroupMode", "'host'",
	  "HostConfig.CgroupMode" },
	{ "read-back: another network", BOTH, "HostConfig.NetworkMode", "'bridge'",
	  "HostConfig.NetworkMode" },
	{ "read-back: no limit of memory", BOTH, "HostConfig.Memory", "0", "HostConfig.Memory" },
	{ "read-back: swap", BOTH, "HostConfig.MemorySwap", "-1", "HostConfig.MemorySwap" },
	{ "read-back: no limit of cpu time", BOTH, "HostConfig.NanoCpus", "0", "HostConfig.NanoCpus" },
	{ "read-back: no limit of processes", BOTH, "HostConfig.PidsLimit", "null", "HostConfig.PidsLimit" },
	{ "read-back: another nofile", BOTH, "HostConfig.Ulimits",
	  "[{'Name': 'nofile', 'Soft': 9, 'Hard': 9}]", "HostConfig.Ulimits" },
	{ "read-back: no ulimits", BOTH, "HostConfig.Ulimits", "null", "HostConfig.Ulimits" },
	{ "read-back: a log", BOTH, "HostConfig.LogConfig.Type", "'json-file'", "HostConfig.LogConfig.Type" },
	{ "read-back: an init", BOTH, "HostConfig.Init", "true", "HostConfig.Init" },
	{ "read-back: a restart", BOTH, "HostConfig.RestartPolicy", "{'Name': 'always'}",
	  "HostConfig.RestartPolicy.Name" },
	{ "read-back: a device", BOTH, "HostConfig.Devices", "[{'PathOnHost': '/dev/kvm'}]",
	  "HostConfig.Devices" },
	{ "read-back: a bind", ENGINE_DOCKER, "HostConfig.Binds", "['/:/host']", "HostConfig.Binds" },
	{ "read-back: a tmpfs of the engine's own", BOTH, "HostConfig.Tmpfs", "{'/tmp': 'rw'}",
	  "HostConfig.Tmpfs" },
	{ "read-back: a group more", BOTH, "HostConfig.GroupAdd", "['0']", "HostConfig.GroupAdd" },
	{ "read-back: a sysctl is missing", ENGINE_DOCKER, "HostConfig.Sysctls", "{}", "HostConfig.Sysctls" },
	{ "read-back: copy-up", ENGINE_DOCKER, "HostConfig.Mounts", "[]", "HostConfig.Mounts" },
	{ "read-back: root", BOTH, "Config.User", "'0:0'", "Config.User" },
	{ "read-back: a terminal", BOTH, "Config.Tty", "true", "Config.Tty" },
	{ "read-back: stdin", BOTH, "Config.OpenStdin", "true", "Config.OpenStdin" },
	{ "read-back: a health check", BOTH, "Config.Healthcheck", "{'Test': ['CMD', '/x']}",
	  "Config.Healthcheck.Test" },
	{ "read-back: another working directory", BOTH, "Config.WorkingDir", "'/'", "Config.WorkingDir" },
	{ "read-back: another host name", BOTH, "Config.Hostname", "'x'", "Config.Hostname" },
	{ "read-back: a label is missing", BOTH, "Config.Labels", "{'berth.instance': 'i1'}",
	  "Config.Labels.berth.sandbox" },
	{ "read-back: another program", BOTH, "Path", "'/bin/sh'", "command line" },
	{ "read-back: the image's CMD is left over", BOTH, "Args", "['init', 'bash']", "command line" },
	{ "read-back: an argument is missing", BOTH, "Args", "[]", "command line" },
	{ "read-back: a mount is missing", BOTH, "Mounts", "[]", "/workspace" },
	{ "read-back: no mounts told", BOTH, "Mounts", NULL, "/workspace" },
	{ "read-back: another image", ENGINE_DOCKER, "Config.Image", "'evil'", "Image" },
	{ "read-back: another image on Podman", ENGINE_PODMAN, "ImageName", "'evil'", NULL },
};

static json_t *parent_of(json_t *o, const char *path, char last[64])
{
	const char *dot;
	while ((dot = strchr(path, '.'))) {
		char key[64];
		snprintf(key, sizeof(key), "%.*s", (int)(dot - path), path);
		o = json_object_get(o, key);
		path = dot + 1;
	}
	snprintf(last, 64, "%s", path);
	return o;
}

static void check_readback(const struct readback_row *row, enum engine_kind kind)
{
	char last[64];
	struct err e = { 0 };
	struct engine_container_spec s = good();
	struct engine_spec_target t = target(kind);
	_cleanup_json_ json_t *o = inspection(kind, &s, &t);
	json_t *parent = parent_of(o, row->path, last);
	if (row->value)
		json_object_set_new(parent, last, json_of(row->value));
	else
		json_object_del(parent, last);
	int r = engine_spec_compare(&s, &t, o, &e);
	assert_int_equal(r, row->bad ? -ERR_ENGINE : 0);
	if (row->bad && !strstr(e.msg, row->bad))
		fail_msg("%s", e.msg);
}

static void readback_test(void **state)
{
	const struct readback_row *row = *state;
	for (int kind = ENGINE_DOCKER; kind <= ENGINE_PODMAN; kind++)
		if (row->kind == BOTH || row->kind == kind)
			check_readback(row, (enum engine_kind)kind);
}

/* One mount's member changed: volume instead of bind, writable instead of read-only, one more. */
static const struct mount_row {
	const char *name, *mount, *bad;
} changed_mounts[] = {
	{ "read-back: a writable host folder",
	  "{'Type': 'bind', 'Source': '/etc/kube', 'Destination': '/home/sandbox/.kube', 'RW': true}",
	  "/home/sandbox/.kube" },
	{ "read-back: another host folder",
	  "{'Type': 'bind', 'Source': '/', 'Destination': '/home/sandbox/.kube', 'RW': false}",
	  "/home/sandbox/.kube" },
	{ "read-back: a volume instead of a host folder",
	  "{'Type': 'volume', 'Name': '/etc/kube', 'Source': '/etc/kube', 'Destination': "
	  "'/home/sandbox/.kube', 'RW': false}",
	  "/home/sandbox/.kube" },
	{ "read-back: a mount without RW",
	  "{'Type': 'bind', 'Source': '/etc/kube', 'Destination': '/home/sandbox/.kube'}",
	  "/home/sandbox/.kube" },
};

static void mount_test(void **state)
{
	const struct mount_row *row = *state;
	struct err e = { 0 };
	struct engine_container_spec s = good();
	struct engine_spec_target t = target(ENGINE_DOCKER);
	_cleanup_json_ json_t *o = inspection(ENGINE_DOCKER, &s, &t);
	json_array_set_new(json_object_get(o, "Mounts"), 2, json_of(row->mount));
	assert_int_equal(engine_spec_compare(&s, &t, o, &e), -ERR_ENGINE);
	assert_non_null(strstr(e.msg, row->bad));
}

static void extra_mount_test(void **state)
{
	struct err e = { 0 };
	struct engine_container_spec s = good();
	struct engine_spec_target t = target(ENGINE_DOCKER);
	_cleanup_json_ json_t *o = inspection(ENGINE_DOCKER, &s, &t);
	(void)state;
	json_array_append_new(json_object_get(o, "Mounts"),
			      json_of("{'Type': 'volume', 'Name': 'anonymous', 'Destination': "
				      "'/var/lib/data', 'RW': true}"));
	assert_int_equal(engine_spec_compare(&s, &t, o, &e), -ERR_ENGINE);
	assert_non_null(strstr(e.msg, "/var/lib/data (not asked for)"));
}

int main(void)
{
	struct rows r = { 0 };
	ROWS(&r, refused_test, refused);
	ROWS(&r, sent_test, sent);
	rows_one(&r, "a named network, a runtime and unknown limits are sent as such", other_sent_test);
	rows_one(&r, "a tmpfs is counted in blocks, rounded up", tmpfs_test);
	ROWS(&r, readback_test, readbacks);
	ROWS(&r, mount_test, changed_mounts);
	rows_one(&r, "read-back: a volume that nobody asked for", extra_mount_test);
	return rows_run(&r, "engine_spec");
}
