/* SPDX-License-Identifier: MIT */
/* What a job can learn of, or do to, a process by ptrace and /proc. */
#include "hostile.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- one process ---- */

/* Some files open for all and refuse the first byte. */
static bool opens(pid_t pid, const char *file, int flags)
{
	char path[64], byte = '0';

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	int fd = open(path, flags | O_CLOEXEC);
	if (fd < 0)
		return false;
	ssize_t n = flags == O_RDONLY ? read(fd, &byte, 1) : write(fd, &byte, 1);
	int sys = errno;
	close(fd);
	return n >= 0 || (sys != EPERM && sys != EACCES);
}

static bool reads_link(pid_t pid, const char *file)
{
	char path[64], to[256];

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	return readlink(path, to, sizeof(to)) >= 0;
}

static bool lists(pid_t pid, const char *file)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	DIR *dir = opendir(path);
	if (dir)
		closedir(dir);
	return dir;
}

/* Only what stands still can be let go (ptrace(2)). */
static void let_go(pid_t pid)
{
	(void)waitpid(pid, NULL, __WALL);
	(void)ptrace(PTRACE_DETACH, pid, NULL, NULL);
}

static bool seizes(pid_t pid)
{
	if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) < 0)
		return false;
	(void)ptrace(PTRACE_INTERRUPT, pid, NULL, NULL);
	let_go(pid);
	return true;
}

static bool attaches(pid_t pid)
{
	if (ptrace(PTRACE_ATTACH, pid, NULL, NULL) < 0)
		return false;
	let_go(pid);
	return true;
}

static bool copies(pid_t pid, long call)
{
	char here[8] = { 0 };
	/* where a program without -pie lies; what is there does not matter, EPERM comes first */
	struct iovec local = { here, sizeof(here) }, remote = { (void *)0x400000, sizeof(here) };

	return syscall(call, pid, &local, 1, &remote, 1, 0) >= 0 || errno != EPERM;
}

static bool takes_descriptor(pid_t pid)
{
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (pidfd < 0)
		return false;
	long fd = syscall(SYS_pidfd_getfd, pidfd, 3, 0);
	bool refused = fd < 0 && (errno == EPERM || errno == ENOSYS);
	close(pidfd);
	return !refused;
}

int spy_on(int argc, char **argv)
{
	static const char *const READ[] = { "environ", "mem",     "maps",      "smaps",
					    "auxv",    "stack",   "syscall",   "personality",
					    "io",      "pagemap", "numa_maps", "map_files" };
	static const char *const WRITE[] = { "mem",          "oom_score_adj",   "oom_adj",
					     "clear_refs",   "coredump_filter", "comm",
					     "autogroup",    "sched",           "timerslack_ns",
					     "attr/current", "setgroups" };
	static const char *const LINKS[] = { "exe", "cwd", "root", "fd/0", "fd/3", "ns/net", "ns/mnt" };

	if (argc < 2)
		return 64;
	pid_t pid = (pid_t)number_of(argv[1]);
	for (size_t i = 0; i < LENGTH(READ); i++)
		if (opens(pid, READ[i], O_RDONLY))
			printf("read:%s\n", READ[i]);
	for (size_t i = 0; i < LENGTH(WRITE); i++)
		if (opens(pid, WRITE[i], O_WRONLY))
			printf("write:%s\n", WRITE[i]);
	for (size_t i = 0; i < LENGTH(LINKS); i++)
		if (reads_link(pid, LINKS[i]))
			printf("link:%s\n", LINKS[i]);
	if (lists(pid, "fd"))
		puts("list:fd");
	if (lists(pid, "fdinfo"))
		puts("list:fdinfo");
	if (seizes(pid))
		puts("seize");
	if (attaches(pid))
		puts("attach");
	if (copies(pid, SYS_process_vm_readv))
		puts("process_vm_readv");
	if (copies(pid, SYS_process_vm_writev))
		puts("process_vm_writev");
	if (takes_descriptor(pid))
		puts("pidfd_getfd");
	return 0;
}

/* ---- the race: whoever appears is seized at once ---- */

#define PIDS 65536

struct race {
	const char *comm, *argument;
	unsigned seen, seized;
	bool known[PIDS]; /* by pid, modulo PIDS: each is counted once */
};

static bool reads(pid_t pid, const char *file, char *text, size_t size)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);
	if (fd >= 0)
		close(fd);
	if (n > 0)
		text[n] = '\0';
	return n > 0;
}

static bool looks_like_prey(const struct race *r, pid_t pid)
{
	char name[32];

	if (!reads(pid, "comm", name, sizeof(name)))
		return false;
	name[strcspn(name, "\n")] = '\0';
	return strcmp(name, r->comm) == 0;
}

/* Not a fork of it on its way to become something else, as a supervisor's child is. */
static bool is_prey(const struct race *r, pid_t pid)
{
	char words[256];

	if (!looks_like_prey(r, pid) || !reads(pid, "cmdline", words, sizeof(words)))
		return false;
	return strcmp(words + strlen(words) + 1, r->argument) == 0;
}

/* Strikes before it looks whom it struck: the door is open shortly, if at all. */
static void hunt(struct race *r, pid_t pid)
{
	bool seized = ptrace(PTRACE_SEIZE, pid, NULL, NULL) == 0;
	bool prey = is_prey(r, pid);

	if (seized) {
		(void)ptrace(PTRACE_INTERRUPT, pid, NULL, NULL);
		let_go(pid);
	}
	if (!prey)
		return;
	r->seized += seized;
	r->seen += !r->known[pid % PIDS];
	r->known[pid % PIDS] = true;
}

static void look_round(struct race *r, pid_t self)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;

	while (proc && (entry = readdir(proc))) {
		pid_t pid = (pid_t)number_of(entry->d_name);
		if (isdigit((unsigned char)entry->d_name[0]) && pid != self && pid != 1 &&
		    looks_like_prey(r, pid))
			hunt(r, pid);
	}
	if (proc)
		closedir(proc);
}

int spy_race(int argc, char **argv)
{
	if (argc < 4)
		return 64;
	static struct race r;
	r.comm = argv[1];
	r.argument = argv[2];
	puts("ready");
	while (r.seen < (unsigned)number_of(argv[3]))
		look_round(&r, getpid());
	printf("seen %u seized %u\n", r.seen, r.seized);
	return 0;
}

int spy_starts(int argc, char **argv)
{
	if (argc < 3)
		return 64;
	for (long i = 0; i < number_of(argv[1]); i++) {
		pid_t pid = fork();
		if (pid == 0) {
			int null = open("/dev/null", O_RDWR | O_CLOEXEC);
			dup2(null, STDERR_FILENO);
			execv(argv[2], argv + 2);
			_exit(127);
		}
		if (pid < 0 || waitpid(pid, NULL, 0) < 0)
			return 1;
	}
	return 0;
}
