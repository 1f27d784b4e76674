/* SPDX-License-Identifier: MIT */
#include "runtime/sandbox.h"
#include "tests/unit/rows.h"

#define MIB (1ll << 20)

static const struct sandbox_spec asked = {
	.id = "b_test",
	.memory_bytes = 512 * MIB,
	.cpu_milli = 1500,
	.pids = 128,
	.network = "none",
	.workspace = WORKSPACE_VOLUME,
};

/* A hello that is exactly as asked. */
static void good(struct hello *h)
{
	struct sandbox_places ps;
	struct err e;
	*h = (struct hello){
		.version = PROTO_VERSION,
		.uid = SANDBOX_UID,
		.gid = SANDBOX_UID,
		.no_new_privs = 1,
		.seccomp = 2,
		.seccomp_filters = 2,
		.root_ro = 1,
		.cgroup = 2,
		.pids_max = 128,
		.memory_max = 512 * MIB,
		.cpu_milli = 1500,
		.shm_rmid_forced = 1,
		.interface_count = 1,
		.interfaces = { "lo" },
	};
	assert_int_equal(sandbox_divide(&asked, &ps, &e), 0);
	h->mount_count = ps.count;
	for (size_t i = 0; i < ps.count; i++) {
		struct hello_mount *m = &h->mounts[i];
		snprintf(m->path, sizeof(m->path), "%s", ps.at[i].path);
		snprintf(m->fstype, sizeof(m->fstype), "%s", ps.at[i].size_bytes ? "tmpfs" : "ext4");
		m->size_bytes = (uint64_t)ps.at[i].size_bytes;
		m->inodes = (uint64_t)ps.at[i].inodes;
		m->flags = ps.at[i].size_bytes ? PROTO_MOUNT_NOSUID | PROTO_MOUNT_NODEV : 0;
	}
}

static void extra_mount(struct hello *h, int write_errno)
{
	struct hello_mount *m = &h->mounts[h->mount_count++];
	snprintf(m->path, sizeof(m->path), "/run");
	snprintf(m->fstype, sizeof(m->fstype), "tmpfs");
	m->write_errno = write_errno;
}

/* What a row changes: a number of the hello, or something else by a function. */
struct change {
	size_t offset;
	uint64_t value;
	void (*also)(struct hello *h);
};
#define NUMBER(member, number)                               \
	{                                                    \
		offsetof(struct hello, member), number, NULL \
	}
#define ALSO(fn)                                                   \
	{                                                          \
		offsetof(struct hello, version), PROTO_VERSION, fn \
	}

static void add_network(struct hello *h)
{
	snprintf(h->interfaces[h->interface_count++], 32, "eth0");
}

static void lose_place(struct hello *h)
{
	h->mounts[0].path[1] = 'x';
}

static void make_read_only(struct hello *h)
{
	h->mounts[0].write_errno = 30;
}

static void make_larger(struct hello *h)
{
	h->mounts[0].size_bytes += 4096;
}

static void lose_inodes(struct hello *h)
{
	h->mounts[1].inodes = 0;
}

static void lose_nodev(struct hello *h)
{
	h->mounts[1].flags = PROTO_MOUNT_NOSUID;
}

static void make_overlay(struct hello *h)
{
	snprintf(h->mounts[0].fstype, 32, "overlay");
}

static void add_place(struct hello *h)
{
	extra_mount(h, 0);
}

static void add_refused_place(struct hello *h)
{
	extra_mount(h, 13);
}

/* Another tmpfs over one of ours is the one that is seen. */
static void cover(struct hello *h)
{
	h->mounts[h->mount_count] = h->mounts[0];
	h->mounts[h->mount_count++].size_bytes = 1;
}

static const struct verify_row {
	const char *name;
	struct change change;
	const char *says; /* NULL: accepted */
} verifies[] = {
	{ "a sandbox as asked is accepted", NUMBER(version, PROTO_VERSION), NULL },
	{ "unknown swap is accepted", NUMBER(swap_max, UINT64_MAX), NULL },
	{ "a mount that cannot be written is no place", ALSO(add_refused_place), NULL },
	{ "another uid is refused", NUMBER(uid, 0), "uid" },
	{ "another gid is refused", NUMBER(gid, 0), "gid" },
	{ "an effective capability is refused", NUMBER(cap_eff, 1), "effective" },
	{ "a permitted capability is refused", NUMBER(cap_prm, 1), "permitted" },
	{ "an inheritable capability is refused", NUMBER(cap_inh, 1), "inheritable" },
	{ "a bounding capability is refused", NUMBER(cap_bnd, 1u << 21), "bounding" },
	{ "an ambient capability is refused", NUMBER(cap_amb, 1), "ambient" },
	{ "missing no_new_privs is refused", NUMBER(no_new_privs, 0), "no_new_privs" },
	{ "missing seccomp is refused", NUMBER(seccomp, 0), "seccomp" },
	{ "only the agent's own filter is refused", NUMBER(seccomp_filters, 1), "filters" },
	{ "a writable root is refused", NUMBER(root_ro, 0), "root" },
	{ "another pids limit is refused", NUMBER(pids_max, 129), "pids" },
	{ "no pids limit is refused", NUMBER(pids_max, 0), "pids" },
	{ "another memory limit is refused", NUMBER(memory_max, 1024 * MIB), "memory" },
	{ "swap is refused", NUMBER(swap_max, 512 * MIB), "swap" },
	{ "no cpu limit is refused", NUMBER(cpu_milli, 0), "cpu" },
	{ "shared memory that outlives its job is refused", NUMBER(shm_rmid_forced, 0), "shm_rmid_forced" },
	{ "another protocol is refused", NUMBER(version, PROTO_VERSION + 1), "version" },
	{ "a network interface is refused", ALSO(add_network), "eth0" },
	{ "a missing place is refused", ALSO(lose_place), "/tmp" },
	{ "a place that cannot be written is refused", ALSO(make_read_only), "/tmp" },
	{ "a place of another size is refused", ALSO(make_larger), "/tmp" },
	{ "a place without an inode limit is refused", ALSO(lose_inodes), "/home/sandbox" },
	{ "a place without nodev is refused", ALSO(lose_nodev), "nodev" },
	{ "a place that is no tmpfs is refused", ALSO(make_overlay), "overlay" },
	{ "one more writable place is refused", ALSO(add_place), "/run" },
	{ "a place that something else covers is refused", ALSO(cover), "/tmp" },
};

static void verify_test(void **state)
{
	const struct verify_row *row = *state;
	struct hello h;
	struct err e = { 0 };
	good(&h);
	memcpy((char *)&h + row->change.offset, &row->change.value, sizeof(row->change.value));
	if (row->change.also)
		row->change.also(&h);
	int r = sandbox_verify(&asked, &h, &e);
	assert_int_equal(r, row->says ? -ERR_SANDBOX : 0);
	if (row->says)
		assert_non_null(strstr(e.msg, row->says));
}

/* One of them is a place of ours already. */
static const char *const some_volumes[] = { "/data", "/tmp", "/var/lib/db", "/cache", NULL };
static const char *const nested_volumes[] = { "/data", "/workspace/cache", NULL };
static const char *const upper_volumes[] = { "/home", NULL };
static const char *const many_volumes[] = { "/1", "/2", "/3",  "/4",  "/5",  "/6",  "/7",
					    "/8", "/9", "/10", "/11", "/12", "/13", NULL };

static const struct budget_row {
	const char *name;
	int64_t memory_mb;
	enum workspace_kind kind;
	int64_t workspace_mb;
	const char *field; /* NULL: fits */
	const char *const *image_volumes;
} budgets[] = {
	{ "4096 MB divide", 4096, WORKSPACE_VOLUME, 0, NULL, NULL },
	{ "64 MB divide", 64, WORKSPACE_VOLUME, 0, NULL, NULL },
	{ "a terabyte divides", 1024 * 1024, WORKSPACE_VOLUME, 0, NULL, NULL },
	{ "a tmpfs workspace counts", 1024, WORKSPACE_TMPFS, 512, NULL, NULL },
	{ "too little memory names its field", 40, WORKSPACE_VOLUME, 0, "limits.memory_mb", NULL },
	{ "a tmpfs workspace of all memory names its field", 1024, WORKSPACE_TMPFS, 1024, "workspace.size_mb",
	  NULL },
	{ "an image's volumes count", 256, WORKSPACE_VOLUME, 0, NULL, some_volumes },
	{ "an image's volumes may be too much for little memory", 64, WORKSPACE_VOLUME, 0, "limits.memory_mb",
	  some_volumes },
	{ "a volume below a writable place names the image", 4096, WORKSPACE_VOLUME, 0, "image",
	  nested_volumes },
	{ "a volume above a writable place names the image", 4096, WORKSPACE_VOLUME, 0, "image",
	  upper_volumes },
	{ "too many volumes name the image", 4096, WORKSPACE_VOLUME, 0, "image", many_volumes },
	{ "a tmpfs workspace of a petabyte names its field", 1024, WORKSPACE_TMPFS, 1ll << 30,
	  "workspace.size_mb", NULL },
};

/* The promise of sandbox_places(): sizes, inodes and the reserve together stay below the memory. */
static void budget_test(void **state)
{
	const struct budget_row *row = *state;
	struct sandbox_spec spec = asked;
	struct sandbox_places ps;
	struct err e = { 0 };
	spec.memory_bytes = row->memory_mb * MIB;
	spec.workspace = row->kind;
	spec.image_volumes = row->image_volumes;
	spec.workspace_bytes = row->workspace_mb * MIB;
	int r = sandbox_divide(&spec, &ps, &e);
	assert_int_equal(r, row->field ? -ERR_INVALID : 0);
	if (row->field) {
		assert_string_equal(e.field, row->field);
		return;
	}
	int64_t sum = SANDBOX_RESERVE_BYTES;
	for (size_t i = 0; i < ps.count; i++) {
		sum += ps.at[i].size_bytes + ps.at[i].inodes * SANDBOX_INODE_BYTES;
		assert_int_equal(ps.at[i].size_bytes % 4096, 0);
		assert_true(!ps.at[i].size_bytes || ps.at[i].inodes >= 16);
	}
	assert_true(sum < spec.memory_bytes);
}

int main(void)
{
	struct rows r = { 0 };
	ROWS(&r, verify_test, verifies);
	ROWS(&r, budget_test, budgets);
	return rows_run(&r, "sandbox_verify");
}
