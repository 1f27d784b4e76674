/* SPDX-License-Identifier: MIT */
/* seccomp.h - the agent's own system call filter, inherited by every job. */
#ifndef BERTH_AGENT_SECCOMP_H
#define BERTH_AGENT_SECCOMP_H

#include <stdbool.h>

/*
 * After it: namespaces, mounts, keys, bpf, userfaultfd, perf events and io_uring are EPERM, clone3
 * is ENOSYS (libc falls back to clone, whose flags can be looked at), foreign architectures are
 * killed. Sets no_new_privs. `local`: nobody sets another process's limits, either. 0, or -1 with errno.
 */
int seccomp_install(bool local);

#endif
