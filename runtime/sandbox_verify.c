/* SPDX-License-Identifier: MIT */
/* The judgement of a hello, and the division of memory between the writable places. Pure. */
#include <string.h>

#include "runtime/sandbox.h"

#define MIB (1ll << 20)
#define PAGE 4096

/* Sizes and inodes of a session of 4096 MiB; others get their share. */
static const struct sandbox_place at_4g[] = {
	{ "/tmp", "tmp", 1024 * MIB, 131072 },
	{ SANDBOX_HOME, "home", 1536 * MIB, 393216 },
	{ "/conversation_history", "history", 64 * MIB, 16384 },
	{ "/dev/shm", "shm", 64 * MIB, 16384 },
};
#define WHOLE_BYTES (4096 * MIB - SANDBOX_RESERVE_BYTES)
#define SMALLEST_BYTES (16 * MIB) /* what the tmpfs places must have to share at least */

static int64_t cost(const struct sandbox_place *p)
{
	return p->size_bytes + p->inodes * SANDBOX_INODE_BYTES;
}

static const struct sandbox_place *find_place(const struct sandbox_places *ps, const char *path)
{
	for (size_t i = 0; i < ps->count; i++)
		if (strcmp(ps->at[i].path, path) == 0)
			return &ps->at[i];
	return NULL;
}

static bool is_below(const char *path, const char *top)
{
	size_t len = strlen(top);
	return strncmp(path, top, len) == 0 && path[len] == '/';
}

static bool is_nested(const struct sandbox_places *ps, const char *path)
{
	for (size_t i = 0; i < ps->count; i++)
		if (is_below(path, ps->at[i].path) || is_below(ps->at[i].path, path))
			return true;
	return false;
}

/* Takes the image's own volumes and the workspace first; what is left over is shared by the others. */
static int add_fixed(const struct sandbox_spec *spec, struct sandbox_places *ps, struct err *e)
{
	struct sandbox_place ws = { .path = SANDBOX_WORKSPACE, .suffix = "workspace" };
	if (spec->workspace == WORKSPACE_TMPFS) {
		ws.size_bytes = spec->workspace_bytes;
		ws.inodes = MAX(ws.size_bytes / (16 * 1024), 1024);
	}
	ps->at[ps->count++] = ws;
	for (const char *const *v = spec->image_volumes; v && *v; v++) {
		if (find_place(ps, *v))
			continue;
		/* A mount point that a job could move away is none. */
		if (is_nested(ps, *v))
			return err_field(e, "image",
					 "has the volume %.100s below or above another writable place", *v);
		if (ps->count == SANDBOX_PLACES_MAX)
			return err_field(e, "image", "has more than %d volumes",
					 SANDBOX_PLACES_MAX - (int)ARRAY_LEN(at_4g) - 1);
		struct sandbox_place *p = &ps->at[ps->count];
		*p = (struct sandbox_place){ .path = *v, .size_bytes = 8 * MIB, .inodes = 1024 };
		snprintf(p->suffix, sizeof(p->suffix), "v%zu", ps->count++);
	}
	return 0;
}

static int not_enough(const struct sandbox_spec *spec, const struct sandbox_places *ps, struct err *e)
{
	if (cost(&ps->at[ARRAY_LEN(at_4g)]) > 0)
		return err_field(e, "workspace.size_mb",
				 "a tmpfs workspace counts as memory: %lld MB do not fit into %lld MB",
				 (long long)(spec->workspace_bytes / MIB),
				 (long long)(spec->memory_bytes / MIB));
	return err_field(e, "limits.memory_mb", "is too little for the sandbox's places in memory");
}

int sandbox_divide(const struct sandbox_spec *spec, struct sandbox_places *ret, struct err *e)
{
	struct sandbox_places ps = { .count = ARRAY_LEN(at_4g) };
	memcpy(ps.at, at_4g, sizeof(at_4g));
	int r = add_fixed(spec, &ps, e);
	if (r < 0)
		return r;
	int64_t share = spec->memory_bytes - SANDBOX_RESERVE_BYTES;
	for (size_t i = ARRAY_LEN(at_4g); i < ps.count; i++)
		share -= cost(&ps.at[i]);
	if (share < SMALLEST_BYTES)
		return not_enough(spec, &ps, e);
	double part = (double)share / (double)WHOLE_BYTES;
	for (size_t i = 0; i < ARRAY_LEN(at_4g); i++) {
		ps.at[i].size_bytes = (int64_t)((double)at_4g[i].size_bytes * part) / PAGE * PAGE;
		ps.at[i].inodes = (int64_t)((double)at_4g[i].inodes * part);
	}
	*ret = ps;
	return 0;
}

static int differs(struct err *e, const char *what, uint64_t is, uint64_t asked)
{
	return err_set(e, ERR_SANDBOX, "the sandbox is not as asked: %s is %llu, not %llu", what,
		       (unsigned long long)is, (unsigned long long)asked);
}

static int verify_numbers(const struct sandbox_spec *spec, const struct hello *h, struct err *e)
{
	const struct {
		const char *what;
		uint64_t is, asked;
	} rows[] = {
		{ "protocol version", h->version, PROTO_VERSION },
		{ "uid", h->uid, sandbox_uid(spec) },
		{ "gid", h->gid, sandbox_gid(spec) },
		{ "effective capabilities", h->cap_eff, 0 },
		{ "permitted capabilities", h->cap_prm, 0 },
		{ "inheritable capabilities", h->cap_inh, 0 },
		{ "bounding capabilities", h->cap_bnd, 0 },
		{ "ambient capabilities", h->cap_amb, 0 },
		{ "no_new_privs", h->no_new_privs, 1 },
		{ "seccomp mode", h->seccomp, 2 },
		{ "read-only root", h->root_ro, 1 },
		{ "kernel.shm_rmid_forced", h->shm_rmid_forced, 1 },
		{ "pids limit", h->pids_max, (uint64_t)spec->pids },
		{ "memory limit", h->memory_max / PAGE, (uint64_t)spec->memory_bytes / PAGE },
		{ "cpu limit in thousandths", h->cpu_milli, (uint64_t)spec->cpu_milli },
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (rows[i].is != rows[i].asked)
			return differs(e, rows[i].what, rows[i].is, rows[i].asked);
	/* Kernels without swap accounting cannot say. */
	if (h->swap_max && h->swap_max != UINT64_MAX)
		return differs(e, "swap", h->swap_max, 0);
	/* The agent's own filter comes on top of the engine's; a kernel that counts must count both. */
	if (h->seccomp_filters == 1)
		return differs(e, "number of seccomp filters", 1, 2);
	return 0;
}

static const struct hello_mount *find_mount(const struct hello *h, const char *path)
{
	/* The last one on a path is the one that is seen. */
	for (size_t i = h->mount_count; i-- > 0;)
		if (strcmp(h->mounts[i].path, path) == 0)
			return &h->mounts[i];
	return NULL;
}

static int verify_place(const struct sandbox_place *p, const struct hello *h, struct err *e)
{
	const struct hello_mount *m = find_mount(h, p->path);
	if (!m)
		return err_set(e, ERR_SANDBOX, "the sandbox is not as asked: %s is not a writable mount",
			       p->path);
	if (m->write_errno)
		return err_sys(e, ERR_SANDBOX, m->write_errno,
			       "the sandbox is not as asked: a test write in %s failed", p->path);
	if (!p->size_bytes)
		return 0;
	if (strcmp(m->fstype, "tmpfs") != 0)
		return err_set(e, ERR_SANDBOX, "the sandbox is not as asked: %s is a %s, not a tmpfs",
			       p->path, m->fstype);
	if (m->size_bytes != (uint64_t)p->size_bytes)
		return differs(e, p->path, m->size_bytes, (uint64_t)p->size_bytes);
	if (m->inodes != (uint64_t)p->inodes)
		return differs(e, p->path, m->inodes, (uint64_t)p->inodes);
	if ((m->flags & (PROTO_MOUNT_NOSUID | PROTO_MOUNT_NODEV)) != (PROTO_MOUNT_NOSUID | PROTO_MOUNT_NODEV))
		return err_set(e, ERR_SANDBOX, "the sandbox is not as asked: %s lacks nosuid or nodev",
			       p->path);
	return 0;
}

static int verify_mounts(const struct sandbox_spec *spec, const struct hello *h, struct err *e)
{
	struct sandbox_places ps;
	int r = sandbox_divide(spec, &ps, e);
	for (size_t i = 0; r == 0 && i < ps.count; i++)
		r = verify_place(&ps.at[i], h, e);
	for (size_t i = 0; r == 0 && i < h->mount_count; i++)
		if (!find_place(&ps, h->mounts[i].path) && h->mounts[i].write_errno == 0)
			r = err_set(e, ERR_SANDBOX, "the sandbox is not as asked: %s can be written",
				    h->mounts[i].path);
	return r;
}

static int verify_network(const struct sandbox_spec *spec, const struct hello *h, struct err *e)
{
	if (strcmp(spec->network, "none") != 0)
		return 0;
	for (size_t i = 0; i < h->interface_count; i++)
		if (strcmp(h->interfaces[i], "lo") != 0)
			return err_set(e, ERR_SANDBOX,
				       "the sandbox is not as asked: it has the network interface %s",
				       h->interfaces[i]);
	return 0;
}

int sandbox_verify(const struct sandbox_spec *spec, const struct hello *h, struct err *e)
{
	int r = verify_numbers(spec, h, e);
	if (r == 0)
		r = verify_mounts(spec, h, e);
	return r == 0 ? verify_network(spec, h, e) : r;
}
