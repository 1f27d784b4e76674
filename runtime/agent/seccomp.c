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

/* CLONE_NEWTIME lies in the bits of clone's exit signal: only clone3 and unshare know it (clone(2)). */
#define CLONE_NAMESPACES                                                                              \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | \
	 CLONE_NEWNET)

#define LOAD(member) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, member))
#define RETURN(what) BPF_STMT(BPF_RET | BPF_K, what)
#define UNLESS_EQUAL(value, skip) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, skip)
#define DENY(sys) RETURN(SECCOMP_RET_ERRNO | (sys))

int seccomp_install(void)
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
		LOAD(args[0]), /* the low half: both architectures are little-endian */
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_NAMESPACES, 0, 1),
		DENY(EPERM),
		RETURN(SECCOMP_RET_ALLOW),
	};
	enum { HEAD = sizeof(head) / sizeof(head[0]) };
	struct sock_filter code[HEAD + 2 * FORBIDDEN_COUNT + 1];
	size_t n = 0;

	for (size_t i = 0; i < HEAD; i++)
		code[n++] = head[i];
	for (size_t i = 0; i < FORBIDDEN_COUNT; i++) {
		code[n++] = (struct sock_filter)UNLESS_EQUAL(FORBIDDEN[i], 1);
		code[n++] = (struct sock_filter)DENY(EPERM);
	}
	code[n++] = (struct sock_filter)RETURN(SECCOMP_RET_ALLOW);
	struct sock_fprog program = { (unsigned short)n, code };
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -1;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}
