/* SPDX-License-Identifier: MIT */
#include "runtime/agent/supervisor.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/agent/command.h"
#include "runtime/agent/fd.h"

/*
 * A job may signal every process of its uid. Ignored signals are not queued, so they cost the
 * uid's RLIMIT_SIGPENDING nothing; SIGCHLD must stay at its default or the kernel would reap.
 */
static void ignore_signals(void)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN };

	for (int sig = 1; sig < NSIG; sig++)
		if (sig != SIGCHLD)
			(void)sigaction(sig, &ignore, NULL); /* KILL and STOP refuse */
}

static void report(int fd, struct supervisor_report *r, enum supervisor_event event)
{
	r->event = event;
	(void)fd_write_all(fd, r, sizeof(*r)); /* PID 1 outlives us: a failure cannot be told to anybody */
}

static uint64_t micros(const struct timeval *t)
{
	return (uint64_t)t->tv_sec * 1000000 + (uint64_t)t->tv_usec;
}

/*
 * A child that calls PTRACE_TRACEME makes us its tracer, and wait4() tells its stops, which are no end. It is
 * let go with the signal that stopped it; SIGTRAP is the kernel's own, for its execve (ptrace(2)).
 */
static bool is_stop(pid_t pid, int status)
{
	if (!WIFSTOPPED(status))
		return false;
	intptr_t sig = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
	(void)ptrace(PTRACE_DETACH, pid, NULL, (void *)sig);
	return true;
}

/* Reaps one descendant. Its pid, 0 when none has ended (with WNOHANG), -1 when there are none. */
static pid_t reap(struct supervisor_report *sums, int *ret_status, int flags)
{
	struct rusage usage;
	pid_t pid;

	do
		pid = wait4(-1, ret_status, flags, &usage);
	while (pid < 0 ? errno == EINTR : pid > 0 && is_stop(pid, *ret_status));
	if (pid <= 0)
		return pid;
	sums->user_us += micros(&usage.ru_utime);
	sums->sys_us += micros(&usage.ru_stime);
	uint64_t peak = (uint64_t)usage.ru_maxrss * 1024;
	if (peak > sums->peak_bytes)
		sums->peak_bytes = peak;
	return pid;
}

static _Noreturn void watch_over(int fd, pid_t leader)
{
	struct supervisor_report sums = { .leader = leader };
	int status;
	pid_t pid;

	report(fd, &sums, SUPERVISOR_FORKED);
	do
		pid = reap(&sums, &status, 0);
	while (pid > 0 && pid != leader);
	sums.status = status;
	do
		pid = reap(&sums, &status, WNOHANG);
	while (pid > 0);
	sums.more = pid == 0;
	report(fd, &sums, SUPERVISOR_LEFT);
	if (sums.more) {
		while (reap(&sums, &status, 0) > 0)
			;
		report(fd, &sums, SUPERVISOR_ALONE);
	}
	_exit(0);
}

_Noreturn void supervisor_run(const struct supervisor_setup *s)
{
	int keep[] = { s->in, s->out, s->err, s->go, s->exec, s->report, s->spec };

	ignore_signals();
	fd_keep_only(keep, sizeof(keep) / sizeof(keep[0]));
	(void)setsid();
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);

	pid_t leader = fork();
	if (leader == 0)
		command_run(s);
	int sys = errno, only[] = { s->report };
	fd_keep_only(only, 1); /* above all the job's pipes, whose ends must be seen */
	if (leader < 0) {
		struct supervisor_report r = { .status = sys };
		report(s->report, &r, SUPERVISOR_NO_FORK);
		_exit(1);
	}
	watch_over(s->report, leader);
}
