/* SPDX-License-Identifier: MIT */
#include "runtime/hello.h"

#include <string.h>

/* Every number that a hello must carry, and where it goes. */
static const struct number {
	uint16_t tag;
	size_t offset;
	const char *name;
} numbers[] = {
	{ PROTO_F_VERSION, offsetof(struct hello, version), "version" },
	{ PROTO_F_UID, offsetof(struct hello, uid), "uid" },
	{ PROTO_F_GID, offsetof(struct hello, gid), "gid" },
	{ PROTO_F_CAP_EFF, offsetof(struct hello, cap_eff), "cap_eff" },
	{ PROTO_F_CAP_PRM, offsetof(struct hello, cap_prm), "cap_prm" },
	{ PROTO_F_CAP_BND, offsetof(struct hello, cap_bnd), "cap_bnd" },
	{ PROTO_F_CAP_AMB, offsetof(struct hello, cap_amb), "cap_amb" },
	{ PROTO_F_CAP_INH, offsetof(struct hello, cap_inh), "cap_inh" },
	{ PROTO_F_NO_NEW_PRIVS, offsetof(struct hello, no_new_privs), "no_new_privs" },
	{ PROTO_F_SECCOMP, offsetof(struct hello, seccomp), "seccomp" },
	{ PROTO_F_SECCOMP_FILTERS, offsetof(struct hello, seccomp_filters), "seccomp_filters" },
	{ PROTO_F_ROOT_RO, offsetof(struct hello, root_ro), "root_ro" },
	{ PROTO_F_CGROUP, offsetof(struct hello, cgroup), "cgroup" },
	{ PROTO_F_PIDS_MAX, offsetof(struct hello, pids_max), "pids_max" },
	{ PROTO_F_MEMORY_MAX, offsetof(struct hello, memory_max), "memory_max" },
	{ PROTO_F_SWAP_MAX, offsetof(struct hello, swap_max), "swap_max" },
	{ PROTO_F_CPU_MILLI, offsetof(struct hello, cpu_milli), "cpu_milli" },
	{ PROTO_F_SHM_RMID_FORCED, offsetof(struct hello, shm_rmid_forced), "shm_rmid_forced" },
	{ PROTO_F_START_NS, offsetof(struct hello, start_ns), "start_ns" },
};

static bool take_text(const struct proto_field *f, char *out, size_t size)
{
	if (f->len >= size || memchr(f->value, 0, f->len))
		return false;
	memcpy(out, f->value, f->len);
	out[f->len] = 0;
	return true;
}

static bool mount_field(const struct proto_field *f, struct hello_mount *m)
{
	uint64_t n = 0;
	if (f->tag == PROTO_F_PATH)
		return take_text(f, m->path, sizeof(m->path));
	if (f->tag == PROTO_F_FSTYPE)
		return take_text(f, m->fstype, sizeof(m->fstype));
	if (proto_u64(f, &n) < 0)
		return false;
	switch (f->tag) {
	case PROTO_F_SIZE:
		m->size_bytes = n;
		return true;
	case PROTO_F_INODES:
		m->inodes = n;
		return true;
	case PROTO_F_FLAGS:
		m->flags = (unsigned)n;
		return true;
	case PROTO_F_WRITE:
		m->write_errno = (int)(n & 0xfff);
		return true;
	default:
		return true;
	}
}

static bool take_mount(const struct proto_field *f, struct hello *h)
{
	if (h->mount_count == HELLO_MOUNTS_MAX)
		return false;
	struct proto_cursor c = { f->value, f->len };
	struct hello_mount m = { 0 };
	struct proto_field inner;
	int more;
	while ((more = proto_next(&c, &inner)) > 0)
		if (!mount_field(&inner, &m))
			return false;
	if (more < 0 || !m.path[0])
		return false;
	h->mounts[h->mount_count++] = m;
	return true;
}

static bool take_interface(const struct proto_field *f, struct hello *h)
{
	if (h->interface_count == HELLO_INTERFACES_MAX)
		return false;
	return take_text(f, h->interfaces[h->interface_count++], sizeof(h->interfaces[0]));
}

static bool take_number(const struct proto_field *f, struct hello *h, uint32_t *seen)
{
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
		if (numbers[i].tag != f->tag)
			continue;
		*seen |= 1u << i;
		uint64_t n = 0;
		if (proto_u64(f, &n) < 0)
			return false;
		memcpy((char *)h + numbers[i].offset, &n, sizeof(n));
	}
	return true;
}

static bool take_field(const struct proto_field *f, struct hello *h, uint32_t *seen)
{
	switch (f->tag) {
	case PROTO_F_AGENT:
		return take_text(f, h->agent, sizeof(h->agent));
	case PROTO_F_BUILD:
		if (f->len != HELLO_BUILD_SIZE)
			return false;
		memcpy(h->build, f->value, HELLO_BUILD_SIZE);
		return true;
	case PROTO_F_MOUNT:
		return take_mount(f, h);
	case PROTO_F_INTERFACE:
		return take_interface(f, h);
	default:
		return take_number(f, h, seen);
	}
}

int hello_decode(const struct proto_frame *frame, struct hello *ret, struct err *e)
{
	uint64_t magic = 0;
	if (proto_find_u64(frame, PROTO_F_MAGIC, &magic) < 0 || magic != PROTO_MAGIC)
		return err_set(e, ERR_SANDBOX, "the other side is no Berth agent");
	struct hello h = { 0 };
	uint32_t seen = 0;
	struct proto_cursor c = { frame->payload, frame->length };
	struct proto_field f;
	int more;
	while ((more = proto_next(&c, &f)) > 0)
		if (!take_field(&f, &h, &seen))
			return err_set(e, ERR_SANDBOX, "the agent's hello has a broken field (tag %u)",
				       f.tag);
	if (more < 0)
		return err_set(e, ERR_SANDBOX, "the agent's hello is broken");
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		if (!(seen & 1u << i))
			return err_set(e, ERR_SANDBOX, "the agent's hello lacks %s", numbers[i].name);
	*ret = h;
	return 0;
}
