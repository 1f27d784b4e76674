/* SPDX-License-Identifier: MIT */
/*
 * berth-agent: without arguments PID 1 of a sandbox, `bridge` the relay to it, `local` the agent of a manager
 * that runs in the sandbox itself, `version` its release.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/agent/agent.h"
#include "runtime/agent/bridge.h"
#include "runtime/agent/facts.h"
#include "runtime/agent/fd.h"
#include "runtime/agent/job.h"
#include "runtime/agent/link.h"
#include "runtime/agent/loop.h"
#include "runtime/agent/seccomp.h"

#define SIGNALS_MAX 16 /* read in one go */

struct agent {
	struct loop loop;
	struct watch signals;
	bool children;  /* some may have to be reaped */
	bool stop;      /* the engine asks PID 1 to end */
	bool ending;    /* local: the manager is gone, and what runs is being killed */
	int64_t end_ms; /* by then at the latest */
	struct jobs jobs;
	struct links links;
};

static int complain(const char *what)
{
	dprintf(STDERR_FILENO, "berth-agent: %s: %s\n", what, strerrordesc_np(errno));
	return 1;
}

/* Everything else keeps its default, which the kernel does not deliver to the init of a namespace. */
static int open_signals(void)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	if (sigaction(SIGPIPE, &ignore, NULL) < 0 || sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -1;
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/*
 * Any job may signal an agent that is not PID 1: all that can be ignored is. A supervisor ignores them, too,
 * and a command gets the defaults back.
 */
static int open_local_signals(void)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN };
	sigset_t set;

	for (int sig = 1; sig < NSIG; sig++)
		if (sig != SIGCHLD)
			(void)sigaction(sig, &ignore, NULL); /* KILL and STOP refuse */
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	if (sigprocmask(SIG_SETMASK, &set, NULL) < 0)
		return -1;
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void on_signals(void *ctx, uint32_t events)
{
	struct agent *a = ctx;
	struct signalfd_siginfo info[SIGNALS_MAX];
	ssize_t n = read(a->signals.fd, info, sizeof(info));

	(void)events;
	for (ssize_t i = 0; n > 0 && i < n / (ssize_t)sizeof(info[0]); i++) {
		if (info[i].ssi_signo == SIGCHLD)
			a->children = true;
		/*
		 * Only from outside may it be ended, and a sender that this namespace knows is a job. The
		 * code tells more than the pid: a job queues a signal with any pid in it, or makes itself
		 * SIGIO for PID 1 by F_SETOWN, but SI_USER is what the kernel alone writes
		 * (rt_sigqueueinfo(2)).
		 */
		else if (info[i].ssi_code == SI_USER && info[i].ssi_pid == 0)
			a->stop = true;
	}
}

/* 0, 1 and 2 must be something, or a pipe of a job would land there. */
static int fill_standard_descriptors(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd < 0)
		return -1;
	close(fd);
	return 0;
}

/*
 * The file's mode, 0111, keeps jobs from tracing PID 1 from execve on (proc(5), PR_SET_DUMPABLE);
 * this is the second lock.
 */
static int lock_down(void)
{
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -1;
	return fill_standard_descriptors();
}

/*
 * A command can be traced by its neighbours some moments before its execve: by then it has no copy of what
 * other jobs were given or wrote. All that a supervisor needs is on the stack. (madvise(2), since
 * Linux 4.14.)
 */
static void keep_from_children(struct agent *a)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t from = ((uintptr_t)a + page - 1) / page * page, to = (uintptr_t)(a + 1) / page * page;

	(void)madvise((void *)from, to - from, MADV_WIPEONFORK);
}

/*
 * What the start has touched of the program, and what was mapped around it, is hardly touched again. Nobody
 * writes there, so what is comes back from the file (madvise(2), end(3)).
 */
static void give_back_start(void)
{
	extern const char etext[];
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t from = getauxval(AT_PHDR) / page * page, to = (uintptr_t)etext / page * page;

	(void)madvise((void *)from, to - from, MADV_DONTNEED);
}

static void run_once(struct agent *a)
{
	int64_t jobs_ms = jobs_next_ms(&a->jobs), links_ms = links_next_ms(&a->links);
	int64_t until_ms = a->children ? 0 : jobs_ms < links_ms ? jobs_ms : links_ms;

	loop_run(&a->loop, until_ms);
	if (a->children)
		a->children = jobs_reap(&a->jobs);
	jobs_step(&a->jobs);
	links_step(&a->links);
}

static void run(struct agent *a)
{
	while (!a->stop)
		run_once(a);
}

/* Its manager is gone for good with its socket: then all that runs is, too. */
static void run_local(struct agent *a)
{
	while (!a->ending || (!jobs_are_over(&a->jobs) && a->loop.now_ms < a->end_ms)) {
		if (!a->ending && links_are_over(&a->links)) {
			a->ending = true;
			a->end_ms = a->loop.now_ms + KILL_DEADLINE_MS;
			jobs_end_all(&a->jobs);
			continue;
		}
		run_once(a);
	}
}

/* link_fd -1: listens for bridges. 0, or an exit status. */
static int set_up(struct agent *a, int signal_fd, int link_fd)
{
	keep_from_children(a);
	a->signals = (struct watch){ .fd = signal_fd, .ready = on_signals, .ctx = a };
	if (a->signals.fd < 0 || loop_init(&a->loop) < 0 || loop_watch(&a->loop, &a->signals, EPOLLIN) < 0)
		return complain("cannot set up its loop");
	if (jobs_init(&a->jobs, &a->loop) < 0)
		return complain("cannot set up its jobs");
	struct proto_writer facts = { a->links.facts, sizeof(a->links.facts), 0, false };
	facts_gather(&facts);
	a->links.facts_len = facts.used;
	if (links_init(&a->links, &a->loop, &a->jobs, link_fd) < 0)
		return complain("cannot set up its link");
	give_back_start();
	return 0;
}

static struct agent agent; /* large, and touched as far as it is used */

static int init_main(void)
{
	if (getpid() != 1) {
		dprintf(STDERR_FILENO,
			"berth-agent: runs as PID 1 of a container; see `berth-agent version`\n");
		return 2;
	}
	if (lock_down() < 0 || seccomp_install(false) < 0)
		return complain("cannot lock itself down");
	int status = set_up(&agent, open_signals(), -1);
	if (status == 0)
		run(&agent);
	return status;
}

static bool is_socket(int fd)
{
	int type;
	socklen_t len = sizeof(type);

	return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0 && type == SOCK_STREAM &&
	       fcntl(fd, F_SETFD, FD_CLOEXEC) == 0;
}

static int local_main(void)
{
	if (!is_socket(AGENT_LOCAL_FD)) {
		dprintf(STDERR_FILENO,
			"berth-agent local: is started by berthd, with a socket as descriptor %d\n",
			AGENT_LOCAL_FD);
		return 2;
	}
	(void)setsid(); /* no key on a terminal is for it */
	if (lock_down() < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0 || seccomp_install(true) < 0)
		return complain("cannot lock itself down");
	int status = set_up(&agent, open_local_signals(), AGENT_LOCAL_FD);
	if (status == 0)
		run_local(&agent);
	return status;
}

static int bridge_main(void)
{
	if (lock_down() < 0)
		return complain("cannot lock itself down");
	return bridge_run();
}

static int version_main(void)
{
	dprintf(STDOUT_FILENO, "berth-agent %s, protocol %d\n", BERTH_VERSION, PROTO_VERSION);
	return 0;
}

static const struct {
	const char *name;
	int (*run)(void);
} COMMANDS[] = {
	{ "bridge", bridge_main },
	{ "local", local_main },
	{ "version", version_main },
};

int main(int argc, char **argv)
{
	if (argc < 2)
		return init_main();
	for (size_t i = 0; i < sizeof(COMMANDS) / sizeof(COMMANDS[0]); i++)
		if (argc == 2 && strcmp(argv[1], COMMANDS[i].name) == 0)
			return COMMANDS[i].run();
	dprintf(STDERR_FILENO, "usage: berth-agent [bridge | local | version]\n");
	return 2;
}
