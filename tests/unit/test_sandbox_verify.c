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

enum change {
	NONE,
	UID,
	GID,
	CAP_EFF,
	CAP_BND,
	CAP_AMB,
	CAP_PRM,
	CAP_INH,
	NNP,
	SECCOMP,
	FILTERS,
	ROOT,
	PIDS,
	PIDS_NONE,
	MEMORY,
	SWAP,
	SWAP_UNKNOWN,
	CPU,
	SHM,
	VERSION,
	NET,
	MISSING,
	READ_ONLY,
	SIZE,
	INODES,
	FLAGS,
	FSTYPE,
	EXTRA,
	EXTRA_REFUSED,
	COVERED
};

static void change(struct hello *h, enum change c)
{
	switch (c) {
	case NONE:
		break;
	case UID:
		h->uid = 0;
		break;
	case GID:
		h->gid = 0;
		break;
	case CAP_EFF:
		h->cap_eff = 1;
		break;
	case CAP_PRM:
		h->cap_prm = 1;
		break;
	case CAP_INH:
		h->cap_inh = 1;
		break;
	case CAP_BND:
		h->cap_bnd = 1u << 21;
		break;
	case CAP_AMB:
		h->cap_amb = 1;
		break;
	case NNP:
		h->no_new_privs = 0;
		break;
	case SECCOMP:
		h->seccomp = 0;
		break;
	case FILTERS:
		h->seccomp_filters = 1;
		break;
	case ROOT:
		h->root_ro = 0;
		break;
	case PIDS:
		h->pids_max = 129;
		break;
	case PIDS_NONE:
		h->pids_max = 0;
		break;
	case MEMORY:
		h->memory_max = 1024 * MIB;
		break;
	case SWAP:
		h->swap_max = 512 * MIB;
		break;
	case SWAP_UNKNOWN:
		h->swap_max = UINT64_MAX;
		break;
	case CPU:
		h->cpu_milli = 0;
		break;
	case SHM:
		h->shm_rmid_forced = 0;
		break;
	case VERSION:
		h->version = PROTO_VERSION + 1;
		break;
	case NET:
		snprintf(h->interfaces[h->interface_count++], 32, "eth0");
		break;
	case MISSING:
		h->mounts[0].path[1] = 'x';
		break;
	case READ_ONLY:
		h->mounts[0].write_errno = 30;
		break;
	case SIZE:
		h->mounts[0].size_bytes += 4096;
		break;
	case INODES:
		h->mounts[1].inodes = 0;
		break;
	case FLAGS:
		h->mounts[1].flags = PROTO_MOUNT_NOSUID;
		break;
	case FSTYPE:
		snprintf(h->mounts[0].fstype, 32, "overlay");
		break;
	case EXTRA:
		extra_mount(h, 0);
		break;
	case EXTRA_REFUSED:
		extra_mount(h, 13);
		break;
	case COVERED: /* another tmpfs over one of ours is the one that is seen */
		h->mounts[h->mount_count] = h->mounts[0];
		h->mounts[h->mount_count++].size_bytes = 1;
		break;
	}
}

static const struct verify_row {
	const char *name;
	enum change change;
	const char *says; /* NULL: accepted */
} verifies[] = {
	{ "a sandbox as asked is accepted", NONE, NULL },
	{ "unknown swap is accepted", SWAP_UNKNOWN, NULL },
	{ "a mount that cannot be written is no place", EXTRA_REFUSED, NULL },
	{ "another uid is refused", UID, "uid" },
	{ "another gid is refused", GID, "gid" },
	{ "an effective capability is refused", CAP_EFF, "effective" },
	{ "a permitted capability is refused", CAP_PRM, "permitted" },
	{ "an inheritable capability is refused", CAP_INH, "inheritable" },
	{ "a bounding capability is refused", CAP_BND, "bounding" },
	{ "an ambient capability is refused", CAP_AMB, "ambient" },
	{ "missing no_new_privs is refused", NNP, "no_new_privs" },
	{ "missing seccomp is refused", SECCOMP, "seccomp" },
	{ "only the agent's own filter is refused", FILTERS, "filters" },
	{ "a writable root is refused", ROOT, "root" },
	{ "another pids limit is refused", PIDS, "pids" },
	{ "no pids limit is refused", PIDS_NONE, "pids" },
	{ "another memory limit is refused", MEMORY, "memory" },
	{ "swap is refused", SWAP, "swap" },
	{ "no cpu limit is refused", CPU, "cpu" },
	{ "shared memory that outlives its job is refused", SHM, "shm_rmid_forced" },
	{ "another protocol is refused", VERSION, "version" },
	{ "a network interface is refused", NET, "eth0" },
	{ "a missing place is refused", MISSING, "/tmp" },
	{ "a place that cannot be written is refused", READ_ONLY, "/tmp" },
	{ "a place of another size is refused", SIZE, "/tmp" },
	{ "a place without an inode limit is refused", INODES, "/home/sandbox" },
	{ "a place without nodev is refused", FLAGS, "nodev" },
	{ "a place that is no tmpfs is refused", FSTYPE, "overlay" },
	{ "one more writable place is refused", EXTRA, "/run" },
	{ "a place that something else covers is refused", COVERED, "/tmp" },
};

static void verify_test(void **state)
{
	const struct verify_row *row = *state;
	struct hello h;
	struct err e = { 0 };
	good(&h);
	change(&h, row->change);
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
