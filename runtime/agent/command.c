/* SPDX-License-Identifier: MIT */
#include "runtime/agent/command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/agent/builtins.h"
#include "runtime/agent/fd.h"
#include "runtime/protocol/protocol.h"

/* MAX_ARG_STRLEN of the kernel (execve(2)): one argument with its NUL */
#define ARGUMENT_MAX (32 * 4096u)
/* where the memfd of a long script goes: scripts use the low numbers themselves */
#define SCRIPT_FD 60
#define SCRIPT_PATH_SIZE 32
#define COMMAND_NICE 10
#define BUILTIN_UMASK 022

struct command {
	char *spec; /* a private copy of the memfd, so that it can be written to */
	size_t spec_len;
	struct proto_spec facts;
	char **argv, **env;
	char script_path[SCRIPT_PATH_SIZE];
	char option[sizeof("-c")];
};

static int map_spec(struct command *c, int fd, size_t len)
{
	/* one byte more, for the NUL after the last value */
	if (ftruncate(fd, (off_t)len + 1) < 0)
		return -1;
	c->spec = mmap(NULL, len + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	c->spec_len = len;
	return c->spec == MAP_FAILED ? -1 : 0;
}

static int allocate_lists(struct command *c)
{
	/* a script has three arguments; each list ends with NULL */
	size_t args = c->facts.arg_count + 4, vars = c->facts.env_count + 1;
	char **list = mmap(NULL, (args + vars) * sizeof(*list), PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (list == MAP_FAILED)
		return -1;
	c->argv = list;
	c->env = list + args;
	return 0;
}

/* A value borrowed from the spec, as a place in our own writable copy of it. */
static char *own(const struct command *c, const void *value)
{
	return c->spec + ((const char *)value - c->spec);
}

/* Collects arguments and variables and terminates every value. */
static void fill_lists(struct command *c)
{
	struct proto_cursor cursor = { (const uint8_t *)c->spec, c->spec_len };
	struct proto_field f;
	size_t args = 0, vars = 0;
	char *end = NULL;

	while (proto_next(&cursor, &f) > 0) {
		if (f.tag == PROTO_F_ARG)
			c->argv[args++] = own(c, f.value);
		else if (f.tag == PROTO_F_ENV)
			c->env[vars++] = own(c, f.value);
		if (end) /* over the first byte of this field's tag, which was read by now */
			*end = '\0';
		end = own(c, f.value) + f.len;
	}
	if (end)
		*end = '\0';
}

/* A script too long for an argument becomes a file; its path, or NULL. */
static char *script_file(struct command *c)
{
	static const char DIR[] = "/proc/self/fd/";
	int fd = memfd_create("script", 0);

	if (fd < 0 || fd_write_all(fd, c->facts.script.at, c->facts.script.len) < 0)
		return NULL;
	int high = fcntl(fd, F_DUPFD, SCRIPT_FD);
	if (high >= 0) {
		close(fd);
		fd = high;
	}
	char *at = c->script_path + SCRIPT_PATH_SIZE - 1;
	do
		*--at = (char)('0' + fd % 10);
	while ((fd /= 10) > 0);
	at -= sizeof(DIR) - 1;
	memcpy(at, DIR, sizeof(DIR) - 1);
	return at;
}

static int use_script(struct command *c)
{
	c->argv[0] = own(c, c->facts.shell.at);
	if (c->facts.script.len < ARGUMENT_MAX) {
		memcpy(c->option, "-c", sizeof(c->option));
		c->argv[1] = c->option;
		c->argv[2] = own(c, c->facts.script.at);
		return 0;
	}
	c->argv[1] = script_file(c);
	return c->argv[1] ? 0 : -1;
}

static int prepare(struct command *c, const struct supervisor_setup *s)
{
	const char *why;

	if (map_spec(c, s->spec, s->spec_len) < 0)
		return -1;
	if (proto_spec_decode((const uint8_t *)c->spec, c->spec_len, &c->facts, &why) < 0) {
		errno = EINVAL;
		return -1;
	}
	if (allocate_lists(c) < 0)
		return -1;
	fill_lists(c);
	return c->facts.script.at ? use_script(c) : 0;
}

static void take_descriptors(const struct supervisor_setup *s)
{
	int keep[] = { s->go, s->exec, s->spec };

	dup2(s->in, STDIN_FILENO);
	dup2(s->out, STDOUT_FILENO);
	dup2(s->err, STDERR_FILENO);
	fd_keep_only(keep, sizeof(keep) / sizeof(keep[0]));
}

static void wait_for_go(int fd)
{
	char byte;
	ssize_t n;

	do
		n = read(fd, &byte, 1);
	while (n < 0 && errno == EINTR);
	if (n != 1)
		_exit(0);
}

/* The OOM killer shall find jobs before PID 1. A dumpable process owns its files in /proc, another does not.
 */
static void offer_to_oom_killer(void)
{
	(void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	_cleanup_close_ int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	if (fd >= 0)
		(void)fd_write_all(fd, "1000", 4);
}

/*
 * The kernel counts queued signals per uid, and one that finds no room arrives without its sender: as if from
 * outside of the sandbox, where PID 1 takes SIGTERM from (sigqueue(3), and __send_signal() of the kernel). So
 * what jobs may queue leaves room below PID 1's limit.
 */
static void leave_room_for_signals(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_SIGPENDING, &limit) < 0)
		return;
	limit.rlim_cur = limit.rlim_max = limit.rlim_cur / 2;
	(void)setrlimit(RLIMIT_SIGPENDING, &limit);
}

/*
 * Behind PID 1, which has to win against a bomb on the same processors. Priorities count within a cgroup
 * only, so this takes nothing from the sandbox as a whole (sched(7), group scheduling).
 */
static void step_back(void)
{
	(void)setpriority(PRIO_PROCESS, 0, COMMAND_NICE);
}

static void reset_signals(void)
{
	/* The kernel's own struct: no handler, no flags, an empty mask. libc keeps 32 and 33 to itself, but
	 * an engine may have been started with them ignored, and that is inherited. */
	static const unsigned long normal[4];
	sigset_t none;

	for (int sig = 1; sig < NSIG; sig++)
		(void)syscall(SYS_rt_sigaction, sig, normal, NULL, sizeof(unsigned long));
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

static _Noreturn void fail(const struct supervisor_setup *s, enum supervisor_step step, int sys)
{
	struct supervisor_failure failure = { step, sys };

	(void)fd_write_all(s->exec, &failure, sizeof(failure));
	_exit(127);
}

static enum supervisor_step failed_step(const struct command *c, int sys)
{
	bool missing = sys == ENOENT || sys == EACCES || sys == ENOTDIR;
	return c->facts.script.at && missing ? STEP_SHELL : STEP_EXEC;
}

/*
 * The end of the exec pipe says that it has begun, as an execve would. The process stays dumpable: a file
 * without a name gets one through /proc/self/fd, which is root's otherwise (proc(5)).
 */
static _Noreturn void do_builtin(const struct supervisor_setup *s, const struct command *c)
{
	int argc = (int)c->facts.arg_count;
	const struct builtin *b = builtins_find(own(c, c->facts.builtin.at), argc);

	if (b) {
		fd_keep_only(NULL, 0);
		(void)umask(BUILTIN_UMASK);
		_exit(builtins_run(b, argc, c->argv));
	}
	fail(s, STEP_BUILTIN, errno);
}

_Noreturn void command_run(const struct supervisor_setup *s)
{
	struct command c = { 0 };

	(void)setsid();
	take_descriptors(s);
	int rc = prepare(&c, s), sys = errno;
	wait_for_go(s->go);
	if (rc < 0)
		fail(s, STEP_SPEC, sys);
	offer_to_oom_killer();
	step_back();
	(void)setrlimit(RLIMIT_NOFILE, &s->nofile);
	leave_room_for_signals();
	reset_signals();
	if (c.facts.cwd.at && chdir(own(&c, c.facts.cwd.at)) < 0)
		fail(s, STEP_CHDIR, errno);
	environ = c.env; /* execvpe(3) looks for PATH in it */
	if (c.facts.builtin.at)
		do_builtin(s, &c);
	execvpe(c.argv[0], c.argv, c.env);
	sys = errno;
	fail(s, failed_step(&c, sys), sys);
}
