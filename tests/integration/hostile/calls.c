/* SPDX-License-Identifier: MIT */
/* System calls that no job may make, each with arguments that would do harm if it were let through. */
#include "hostile.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <linux/if_packet.h>
#include <linux/keyctl.h>
#include <linux/perf_event.h>
#include <linux/sched.h>
#include <net/ethernet.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif

static char zeros[512];

#define PLACE "/tmp/hostile-place"
#define CALL(name, ...)                                  \
	static long call_##name(void)                    \
	{                                                \
		return syscall(SYS_##name, __VA_ARGS__); \
	}

CALL(mount, "tmpfs", PLACE, "tmpfs", 0, NULL)
CALL(umount2, "/tmp", MNT_DETACH)
CALL(pivot_root, PLACE, PLACE)
CALL(chroot, PLACE)
CALL(open_tree, AT_FDCWD, "/", 1)
CALL(move_mount, AT_FDCWD, "/tmp", AT_FDCWD, PLACE, 0)
CALL(mount_setattr, AT_FDCWD, "/", 0, zeros, 32)
CALL(fsopen, "tmpfs", 0)
CALL(fspick, AT_FDCWD, "/tmp", 0)
CALL(fsconfig, 0, 0, NULL, NULL, 0)
CALL(fsmount, 0, 0, 0)
CALL(add_key, "user", "k", "v", 1, KEY_SPEC_USER_KEYRING)
CALL(request_key, "user", "k", NULL, 0)
CALL(keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 1)
CALL(bpf, BPF_PROG_LOAD, zeros, sizeof(zeros))
CALL(userfaultfd, 1)
CALL(io_uring_setup, 8, zeros)
CALL(clone3, zeros, sizeof(struct clone_args))
CALL(sethostname, "evil", 4)
CALL(setdomainname, "evil", 4)
CALL(init_module, zeros, 1, "")
CALL(delete_module, "loop", 0)
CALL(swapon, PLACE, 0)
CALL(swapoff, PLACE)
CALL(acct, NULL)
CALL(quotactl, 0, NULL, 0, NULL)
CALL(syslog, 3, zeros, sizeof(zeros))
CALL(kexec_load, 0, 0, NULL, 0)
CALL(setuid, 0)
CALL(setgid, 0)
CALL(setresuid, 10002, 10002, 10002)
CALL(setresgid, 10002, 10002, 10002)
CALL(setgroups, 0, NULL)
CALL(chown, "/tmp", 0, 0)
CALL(open_by_handle_at, AT_FDCWD, zeros, 0)
CALL(vhangup, 0)
CALL(fanotify_init, 0, 0)
CALL(lookup_dcookie, 0, zeros, 1)

#if defined(__x86_64__)
CALL(iopl, 3)
CALL(ioperm, 0, 1, 1)
#endif

static long call_reboot(void)
{
	return syscall(SYS_reboot, 0xfee1dead, 672274793, RB_AUTOBOOT, NULL);
}

static long call_perf_event_open(void)
{
	struct perf_event_attr attr = { .size = sizeof(attr), .type = PERF_TYPE_SOFTWARE };
	return syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
}

static long call_settimeofday(void)
{
	struct timeval now = { .tv_sec = 1 };
	return settimeofday(&now, NULL);
}

static long call_clock_settime(void)
{
	struct timespec now = { .tv_sec = 1 };
	return clock_settime(CLOCK_REALTIME, &now);
}

static long call_adjtimex(void)
{
	struct timex t = { .modes = ADJ_FREQUENCY, .freq = 1 };
	return adjtimex(&t);
}

static long call_clock_adjtime(void)
{
	struct timex t = { .modes = ADJ_FREQUENCY, .freq = 1 };
	return syscall(SYS_clock_adjtime, CLOCK_REALTIME, &t);
}

static long call_capset(void)
{
	struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct data[2] = { { 1u << CAP_SYS_ADMIN, 1u << CAP_SYS_ADMIN, 0 } };
	return syscall(SYS_capset, &head, data);
}

static long call_setrlimit(void)
{
	struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };
	return setrlimit(RLIMIT_NOFILE, &limit);
}

static long call_setpriority(void)
{
	return setpriority(PRIO_PROCESS, 0, -10);
}

static long call_sched_setscheduler(void)
{
	struct sched_param p = { .sched_priority = 1 };
	return sched_setscheduler(0, SCHED_FIFO, &p);
}

static long call_pidfd_getfd(void)
{
	int pidfd = (int)syscall(SYS_pidfd_open, 1, 0);
	return pidfd < 0 ? -1 : syscall(SYS_pidfd_getfd, pidfd, 0, 0);
}

static long make_node(const char *path, mode_t type, unsigned major, unsigned minor)
{
	return mknod(path, type | 0600, makedev(major, minor));
}

static long call_mknod_null(void)
{
	return make_node("/tmp/hostile-null", S_IFCHR, 1, 3);
}

static long call_mknod_memory(void)
{
	return make_node("/workspace/hostile-memory", S_IFCHR, 1, 1);
}

static long call_mknod_disk(void)
{
	return make_node("/home/sandbox/hostile-disk", S_IFBLK, 254, 0);
}

static long call_raw_ipv4(void)
{
	return socket(AF_INET, SOCK_RAW, IPPROTO_ICMP);
}

static long call_raw_any(void)
{
	return socket(AF_INET, SOCK_RAW, IPPROTO_RAW);
}

static long call_raw_ipv6(void)
{
	return socket(AF_INET6, SOCK_RAW, IPPROTO_ICMPV6);
}

static long call_packet_raw(void)
{
	return socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));
}

static long call_packet_dgram(void)
{
	return socket(AF_PACKET, SOCK_DGRAM, htons(ETH_P_ALL));
}

#define NAMESPACE(name, flag, file)                                                   \
	static long call_unshare_##name(void)                                         \
	{                                                                             \
		return unshare(flag);                                                 \
	}                                                                             \
	static long call_clone_##name(void)                                           \
	{                                                                             \
		long pid = syscall(SYS_clone, (flag) | SIGCHLD, NULL, NULL, NULL, 0); \
		if (pid == 0)                                                         \
			_exit(0);                                                     \
		return pid;                                                           \
	}                                                                             \
	static long call_setns_##name(void)                                           \
	{                                                                             \
		return setns(open("/proc/self/ns/" file, O_RDONLY | O_CLOEXEC), 0);   \
	}

NAMESPACE(user, CLONE_NEWUSER, "user")
NAMESPACE(mount, CLONE_NEWNS, "mnt")
NAMESPACE(pid, CLONE_NEWPID, "pid")
NAMESPACE(net, CLONE_NEWNET, "net")
NAMESPACE(ipc, CLONE_NEWIPC, "ipc")
NAMESPACE(uts, CLONE_NEWUTS, "uts")
NAMESPACE(cgroup, CLONE_NEWCGROUP, "cgroup")

static long call_unshare_time(void)
{
	return unshare(CLONE_NEWTIME);
}

/* clang-format off */
#define ROW(name) { #name, call_##name }
#define ROWS(name) ROW(unshare_##name), ROW(clone_##name), ROW(setns_##name)
static const struct {
	const char *name;
	long (*call)(void);
} CALLS[] = {
	ROW(mount), ROW(umount2), ROW(pivot_root), ROW(chroot), ROW(open_tree), ROW(move_mount), ROW(mount_setattr),
	ROW(fsopen), ROW(fspick), ROW(fsconfig), ROW(fsmount), ROW(add_key), ROW(request_key), ROW(keyctl), ROW(bpf),
	ROW(userfaultfd), ROW(io_uring_setup), ROW(clone3), ROW(sethostname), ROW(setdomainname), ROW(init_module),
	ROW(delete_module), ROW(swapon), ROW(swapoff), ROW(acct), ROW(quotactl), ROW(syslog), ROW(kexec_load),
	ROW(setuid), ROW(setgid), ROW(setresuid), ROW(setresgid), ROW(setgroups), ROW(chown), ROW(open_by_handle_at),
	ROW(vhangup), ROW(fanotify_init), ROW(lookup_dcookie), ROW(reboot), ROW(perf_event_open), ROW(settimeofday),
	ROW(clock_settime), ROW(adjtimex), ROW(clock_adjtime), ROW(capset), ROW(setrlimit), ROW(setpriority),
	ROW(sched_setscheduler), ROW(pidfd_getfd), ROW(mknod_null), ROW(mknod_memory), ROW(mknod_disk), ROW(raw_ipv4),
	ROW(raw_any), ROW(raw_ipv6), ROW(packet_raw), ROW(packet_dgram), ROWS(user), ROWS(mount), ROWS(pid), ROWS(net),
	ROWS(ipc), ROWS(uts), ROWS(cgroup), ROW(unshare_time),
#if defined(__x86_64__)
	ROW(iopl), ROW(ioperm),
#endif
};
/* clang-format on */

int calls_run(int argc, char **argv)
{
	(void)mkdir(PLACE, 0700);
	for (size_t i = 0; i < LENGTH(CALLS); i++) {
		bool wanted = argc == 1;
		for (int a = 1; a < argc; a++)
			wanted = wanted || strcmp(argv[a], CALLS[i].name) == 0;
		if (!wanted)
			continue;
		errno = 0;
		long result = CALLS[i].call();
		printf("%s %s\n", CALLS[i].name, word_of(result < 0 ? errno : 0));
	}
	return 0;
}

int calls_foreign(int argc, char **argv)
{
	long result = 0;

	if (argc < 2)
		return 64;
#if defined(__x86_64__)
	if (strcmp(argv[1], "i386") == 0)
		__asm__ volatile("int $0x80" : "=a"(result) : "a"(20) : "memory"); /* getpid */
	else
		result = syscall(0x40000000 | SYS_getpid);
#endif
	printf("answered %ld\n", result);
	return 0;
}

/* What the kernel gave a program at execve, read from outside before it can change it; a zombie shows it too.
 */
static int ids_of(char *program)
{
	int ready[2], input[2];
	char line[256], path[64], byte;

	if (pipe2(ready, O_CLOEXEC) < 0 || pipe2(input, O_CLOEXEC) < 0)
		return 1;
	pid_t pid = fork();
	if (pid == 0) {
		char *args[] = { program, NULL };
		int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
		dup2(input[0], STDIN_FILENO);
		dup2(null, STDOUT_FILENO);
		dup2(null, STDERR_FILENO);
		execv(program, args);
		(void)!write(ready[1], "x", 1);
		_exit(127);
	}
	close(ready[1]);
	bool failed = read(ready[0], &byte, 1) == 1; /* otherwise the end of it is the execve */
	close(ready[0]);
	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	FILE *status = fopen(path, "re");
	printf("%s%s", program, failed ? " does not start" : "");
	while (status && fgets(line, sizeof(line), status))
		if (strncmp(line, "Uid:", 4) == 0 || strncmp(line, "Gid:", 4) == 0 ||
		    strncmp(line, "CapEff:", 7) == 0 || strncmp(line, "CapPrm:", 7) == 0)
			for (char *word = line, *rest; (word = strtok_r(word, "\t\n", &rest)); word = NULL)
				printf(" %s", word);
	printf("\n");
	if (status)
		fclose(status);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(input[0]);
	close(input[1]);
	return 0;
}

int calls_ids(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (ids_of(argv[i]))
			return 1;
	return 0;
}
