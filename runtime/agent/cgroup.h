/* SPDX-License-Identifier: MIT */
/* cgroup.h - the limits of the sandbox as the kernel has them, for cgroup v1 and v2. */
#ifndef BERTH_AGENT_CGROUP_H
#define BERTH_AGENT_CGROUP_H

#include <stdbool.h>
#include <stdint.h>

#define CGROUP_UNKNOWN UINT64_MAX

struct cgroup_limits {
	int version;         /* 1 or 2 */
	uint64_t pids_max;   /* 0: unlimited, as in the next */
	uint64_t memory_max; /* bytes */
	uint64_t swap_max;   /* bytes on top of memory; CGROUP_UNKNOWN; INT64_MAX: unlimited */
	uint64_t cpu_milli;  /* thousandths of a cpu; 0: unlimited */
};

void cgroup_read(struct cgroup_limits *ret);

/* The file that counts OOM kills, to be kept open: a descriptor, or -1. */
int cgroup_open_oom(void);

/* How often the OOM killer has struck; 0 when fd is -1 or it cannot be read. */
uint64_t cgroup_oom_kills(int fd);

#endif
