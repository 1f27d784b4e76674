/* SPDX-License-Identifier: MIT */
/*
 * hello.h - what an agent tells of its sandbox when a link opens. Pure. The sender is hostile:
 * every count and text is bounded, a list that is broken or too long is refused.
 */
#ifndef BERTH_HELLO_H
#define BERTH_HELLO_H

#include "base/err.h"
#include "runtime/protocol/protocol.h"

#define HELLO_MOUNTS_MAX 48
#define HELLO_INTERFACES_MAX 16
#define HELLO_BUILD_SIZE 20

struct hello_mount {
	char path[256], fstype[32];
	uint64_t size_bytes, inodes;
	unsigned flags;  /* PROTO_MOUNT_* */
	int write_errno; /* 0: a file could be made in it */
};

/* Numbers as the protocol's tags of the same name; 0 in a limit means unlimited. */
struct hello {
	char agent[40];
	uint8_t build[HELLO_BUILD_SIZE];
	uint64_t version, uid, gid, cap_eff, cap_prm, cap_bnd, cap_amb, cap_inh;
	uint64_t no_new_privs, seccomp, seccomp_filters, root_ro, cgroup;
	uint64_t pids_max, memory_max, swap_max, cpu_milli, shm_rmid_forced, start_ns;
	size_t mount_count, interface_count;
	struct hello_mount mounts[HELLO_MOUNTS_MAX];
	char interfaces[HELLO_INTERFACES_MAX][32];
};

/* ERR_SANDBOX names what is missing or broken. */
int hello_decode(const struct proto_frame *frame, struct hello *ret, struct err *e) NODISCARD;

#endif
