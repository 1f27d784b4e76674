/* SPDX-License-Identifier: MIT */
/*
 * supervisor.h - the process between PID 1 and a job's command.
 *
 * It is only the place where the job's orphans gather (a child subreaper) and the one that reaps
 * them. Deadlines, output and the end belong to PID 1, since a job can kill or stop it.
 */
#ifndef BERTH_AGENT_SUPERVISOR_H
#define BERTH_AGENT_SUPERVISOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>

/* What a supervisor is forked with. All descriptors are above 2. */
struct supervisor_setup {
	int in, out, err; /* become the command's 0, 1 and 2 */
	int go;           /* read: one byte means execve, the end means that the job is off */
	int exec;         /* write: a struct supervisor_failure, or nothing and its end when execve worked */
	int report;       /* write: struct supervisor_report */
	int spec;         /* the memfd with the job's spec, spec_len bytes */
	size_t spec_len;
	struct rlimit nofile; /* what a job gets, since PID 1 raised its own */
};

enum supervisor_step { STEP_SPEC = 1, STEP_CHDIR, STEP_SHELL, STEP_BUILTIN, STEP_EXEC };

struct supervisor_failure {
	int32_t step; /* enum supervisor_step */
	int32_t sys;  /* errno */
};

enum supervisor_event {
	SUPERVISOR_FORKED = 1, /* leader is the command's pid */
	SUPERVISOR_NO_FORK,    /* status is errno */
	SUPERVISOR_LEFT,  /* the command ended with wait status `status`; `more` says whether others are left
			   */
	SUPERVISOR_ALONE, /* the others have ended too */
};

/* Written whole: it is shorter than PIPE_BUF (pipe(7)). The sums are over all processes reaped so far. */
struct supervisor_report {
	int32_t event;
	int32_t leader, status;
	int32_t more;
	uint64_t user_us, sys_us, peak_bytes;
};

/* The life of a supervisor; called in a fresh child of PID 1. */
_Noreturn void supervisor_run(const struct supervisor_setup *setup);

#endif
