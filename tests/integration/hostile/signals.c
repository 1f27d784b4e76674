/* SPDX-License-Identifier: MIT */
/* What a job may do to another process of its uid by right: signals, limits, priorities. */
#include "hostile.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SIGNAL_MAX 64

/* siginfo as the kernel takes it from a user: any sender may be claimed while the code is below 0. */
static void queue(pid_t pid, int sig, pid_t claimed, int code)
{
	siginfo_t info = { .si_signo = sig, .si_code = code };

	info.si_pid = claimed;
	(void)syscall(SYS_rt_sigqueueinfo, pid, sig, &info);
	(void)syscall(SYS_rt_tgsigqueueinfo, pid, pid, sig, &info);
}

/* The kernel sends it, on behalf of a socket that says whose it is (fcntl(2), F_SETOWN). */
static void make_kernel_send(pid_t pid, int sig)
{
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		return;
	(void)fcntl(fds[0], F_SETOWN, pid);
	(void)fcntl(fds[0], F_SETSIG, sig);
	(void)fcntl(fds[0], F_SETFL, O_ASYNC);
	(void)!write(fds[1], "x", 1);
	close(fds[0]);
	close(fds[1]);
}

int signal_all(int argc, char **argv)
{
	if (argc < 2)
		return 64;
	pid_t pid = (pid_t)number_of(argv[1]);
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	for (int round = 0; round < 3; round++)
		for (int sig = 1; sig <= SIGNAL_MAX; sig++) {
			(void)kill(pid, sig);
			(void)syscall(SYS_tgkill, pid, pid, sig);
			(void)syscall(SYS_pidfd_send_signal, pidfd, sig, NULL, 0);
			queue(pid, sig, getpid(), SI_QUEUE);
			queue(pid, sig, 0, SI_QUEUE); /* as if from outside of the sandbox */
			queue(pid, sig, 0, SI_USER);
			queue(pid, sig, 0, SI_ASYNCIO);
			make_kernel_send(pid, sig);
		}
	puts("sent");
	return 0;
}

static const struct {
	const char *name;
	int resource;
} LIMITS[] = {
	{ "nofile", RLIMIT_NOFILE }, { "nproc", RLIMIT_NPROC }, { "cpu", RLIMIT_CPU },
	{ "as", RLIMIT_AS },         { "fsize", RLIMIT_FSIZE }, { "stack", RLIMIT_STACK },
};

int signal_oppress(int argc, char **argv)
{
	const struct rlimit none = { 0, 0 };
	const struct sched_param lowest = { 0 };
	cpu_set_t one;

	if (argc < 2)
		return 64;
	pid_t pid = (pid_t)number_of(argv[1]);
	CPU_ZERO(&one);
	CPU_SET(0, &one);
	for (size_t i = 0; i < LENGTH(LIMITS); i++)
		printf("prlimit-%s %s\n", LIMITS[i].name,
		       word_of(prlimit(pid, LIMITS[i].resource, &none, NULL) < 0 ? errno : 0));
	printf("nice %s\n", word_of(setpriority(PRIO_PROCESS, (id_t)pid, 19) < 0 ? errno : 0));
	printf("nice-group %s\n", word_of(setpriority(PRIO_PGRP, (id_t)pid, 19) < 0 ? errno : 0));
	printf("nice-user %s\n", word_of(setpriority(PRIO_USER, getuid(), 19) < 0 ? errno : 0));
	printf("idle %s\n", word_of(sched_setscheduler(pid, SCHED_IDLE, &lowest) < 0 ? errno : 0));
	printf("affinity %s\n", word_of(sched_setaffinity(pid, sizeof(one), &one) < 0 ? errno : 0));
	printf("ioprio %s\n", word_of(syscall(SYS_ioprio_set, 1, pid, 3 << 13) < 0 ? errno : 0));
	return 0;
}
