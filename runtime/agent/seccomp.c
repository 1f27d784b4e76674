/* SPDX-License-Identifier: MIT */
#include "runtime/agent/seccomp.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#define FOREIGN_CALLS 0x40000000u /* the x32 ABI shares the architecture's number (seccomp(2)) */
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#else
#error "the agent's filter knows x86_64 and aarch64"
#endif

/* newer than some libc headers; the numbers are the same everywhere */
#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif
#ifndef SYS_open_tree_attr
#define SYS_open_tree_attr 467
#endif

static const uint16_t FORBIDDEN[] = {
	/* clang-format off */
	SYS_unshare, SYS_setns,
	SYS_mount, SYS_umount2, SYS_pivot_root,
	SYS_open_tree, SYS_open_tree_attr, SYS_move_mount, SYS_mount_setattr,
	SYS_fsopen, SYS_fsconfig, SYS_fsmount, SYS_fspick,
	SYS_add_key, SYS_request_key, SYS_keyctl,
	SYS_bpf, SYS_userfaultfd, SYS_perf_event_open, SYS_io_uring_setup,
	/* clang-format on */
};
#define FORBIDDEN_COUNT (sizeof(FORBIDDEN) / sizeof(FORBIDDEN[0]))

/*
 * What a process may do to another of its uid without any privilege, and would be the end of PID 1: no
 * descriptors, a KILL at the end of its cpu time (prlimit(2)), or the last place in every queue. Its group is
 * 1, too.
 */
#define INIT 1
#define IOPRIO_WHO_USER 3 /* ioprio_set(2); libc has no name for it */
static const struct {
	uint16_t call;
	uint8_t arg; /* which one is judged */
	uint32_t forbidden;
} OPPRESSION[] = {
	{ SYS_prlimit64, 0, INIT },
	{ SYS_sched_setaffinity, 0, INIT },
	{ SYS_sched_setscheduler, 0, INIT },
	{ SYS_sched_setparam, 0, INIT },
	{ SYS_sched_setattr, 0, INIT },
	{ SYS_setpriority, 1, INIT },
	{ SYS_setpriority, 0, PRIO_USER },
	{ SYS_ioprio_set, 1, INIT },
	{ SYS_ioprio_set, 0, IOPRIO_WHO_USER },
};
#define OPPRESSION_COUNT (sizeof(OPPRESSION) / sizeof(OPPRESSION[0]))
#define OPPRESSION_CODE 5 /* instructions for each */

/* CLONE_NEWTIME lies in the bits of clone's exit signal: only clone3 and unshare know it (clone(2)). */
#define CLONE_NAMESPACES                                                                              \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | \
	 CLONE_NEWNET)

#define LOAD(member) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, member))
/* its low half: both architectures are little-endian */
#define LOAD_ARG(i)                        \
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, \
		 (uint32_t)(offsetof(struct seccomp_data, args) + sizeof(uint64_t) * (i)))
#define LOAD_ARG_HIGH(i)                                                                    \
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(offsetof(struct seccomp_data, args) + \
						      sizeof(uint64_t) * (i) + sizeof(uint32_t)))
#define RETURN(what) BPF_STMT(BPF_RET | BPF_K, what)
#define UNLESS_EQUAL(value, skip) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, skip)
#define DENY(sys) RETURN(SECCOMP_RET_ERRNO | (sys))

/*
 * `berth-agent local`: the commands share their uid with the manager, and each of its threads has a pid by
 * which its limits can be set. So nobody sets those of another process; reading them is fine.
 */
static const struct sock_filter OWN_LIMITS_ONLY[] = {
	UNLESS_EQUAL(SYS_prlimit64, 8),
	LOAD_ARG(0),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 5, 0),
	LOAD_ARG(2), /* the new limits: a pointer, both halves */
	UNLESS_EQUAL(0, 2),
	LOAD_ARG_HIGH(2),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0),
	DENY(EPERM),
	LOAD(nr),
};
#define OWN_LIMITS_CODE (sizeof(OWN_LIMITS_ONLY) / sizeof(OWN_LIMITS_ONLY[0]))

int seccomp_install(bool local)
{
	struct sock_filter head[] = {
		LOAD(arch),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0),
		RETURN(SECCOMP_RET_KILL_PROCESS),
		LOAD(nr),
#ifdef FOREIGN_CALLS
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, FOREIGN_CALLS, 0, 1),
		RETURN(SECCOMP_RET_KILL_PROCESS),
#endif
		UNLESS_EQUAL(SYS_clone3, 1),
		DENY(ENOSYS),
		UNLESS_EQUAL(SYS_clone, 4),
		LOAD_ARG(0),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_NAMESPACES, 0, 1),
		DENY(EPERM),
		RETURN(SECCOMP_RET_ALLOW),
	};
	enum { HEAD = sizeof(head) / sizeof(head[0]) };
	struct sock_filter
		code[HEAD + 2 * FORBIDDEN_COUNT + OPPRESSION_CODE * OPPRESSION_COUNT + OWN_LIMITS_CODE + 1];
	size_t n = 0;

	for (size_t i = 0; i < HEAD; i++)
		code[n++] = head[i];
	for (size_t i = 0; i < FORBIDDEN_COUNT; i++) {
		code[n++] = (struct sock_filter)UNLESS_EQUAL(FORBIDDEN[i], 1);
		code[n++] = (struct sock_filter)DENY(EPERM);
	}
	for (size_t i = 0; i < OPPRESSION_COUNT; i++) {
		struct sock_filter one[OPPRESSION_CODE] = {
			UNLESS_EQUAL(OPPRESSION[i].call, 4),
			LOAD_ARG(OPPRESSION[i].arg),
			UNLESS_EQUAL(OPPRESSION[i].forbidden, 1),
			DENY(EPERM),
			LOAD(nr),
		};
		for (size_t j = 0; j < OPPRESSION_CODE; j++)
			code[n++] = one[j];
	}
	for (size_t i = 0; local && i < OWN_LIMITS_CODE; i++)
		code[n++] = OWN_LIMITS_ONLY[i];
	code[n++] = (struct sock_filter)RETURN(SECCOMP_RET_ALLOW);
	struct sock_fprog program = { (unsigned short)n, code };
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -1;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}
