/* SPDX-License-Identifier: MIT */
#include "runtime/local.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/parse.h"
#include "runtime/agent_image.h"

#define AGENT_FD 3 /* AGENT_LOCAL_FD in runtime/agent/agent.h */
#define ROUND_MS 5
#define STAT_SIZE 512

struct local {
	struct channels *channels;
	const char *binary;
	atomic_int agent; /* its pid; 0 before the first, and once it was reaped */
};

struct local *local_new(struct channels *cs, const char *binary)
{
	struct local *l = xcalloc(1, sizeof(*l));
	l->channels = cs;
	l->binary = binary;
	return l;
}

void local_free(struct local *l)
{
	free(l);
}

/* ---- starting ---- */

static int set_actions(posix_spawn_file_actions_t *actions, int link)
{
	int r = 0;
	for (int fd = 0; r == 0 && fd < AGENT_FD; fd++)
		r = posix_spawn_file_actions_addopen(actions, fd, "/dev/null", O_RDWR, 0);
	if (r == 0)
		r = posix_spawn_file_actions_adddup2(actions, link, AGENT_FD);
	return r ? r : posix_spawn_file_actions_addclosefrom_np(actions, AGENT_FD + 1);
}

/* An errno. The one place where berthd makes a process; it shares memory with it until the execve (vfork(2)).
 */
static int spawn(const char *binary, int link, pid_t *ret)
{
	char name[] = "berth-agent", mode[] = "local";
	char *const argv[] = { name, mode, NULL }, *const env[] = { NULL };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t none;
	sigemptyset(&none);
	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attr);
	int r = set_actions(&actions, link);
	if (r == 0)
		r = posix_spawnattr_setsigmask(&attr, &none);
	if (r == 0)
		r = posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
	if (r == 0)
		r = posix_spawn(ret, binary, &actions, &attr, argv, env);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&actions);
	return r;
}

static int start_agent(struct local *l, struct stream **ret, struct err *e)
{
	int pair[2];
	pid_t pid = 0;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(e, ERR_INTERNAL, errno, "no socket for the agent");
	_cleanup_close_ int ours = pair[0];
	/* above those that the child's actions overwrite */
	_cleanup_close_ int theirs = fcntl(pair[1], F_DUPFD_CLOEXEC, AGENT_FD + 1);
	close(pair[1]);
	if (theirs < 0)
		return err_sys(e, ERR_INTERNAL, errno, "no socket for the agent");
	int sys = spawn(l->binary, theirs, &pid);
	if (sys)
		return err_sys(e, ERR_SANDBOX, sys, "cannot start %s", l->binary);
	atomic_store(&l->agent, pid);
	*ret = stream_of_fd(STEAL_FD(ours));
	return 0;
}

static int check_hello(const struct hello *h, struct err *e)
{
	uint8_t build[AGENT_BUILD_SIZE];
	agent_image_build(build);
	if (h->version != PROTO_VERSION || memcmp(h->build, build, sizeof(build)) != 0)
		return err_set(e, ERR_SANDBOX, "the agent is not this release's");
	return h->uid == geteuid() ? 0 : err_set(e, ERR_SANDBOX, "the agent runs as another user");
}

int local_start(struct local *l, int timeout_ms, struct sandbox *ret, struct err *e)
{
	struct sandbox box = { .container = "local" };
	struct stream *s = NULL;
	int r = start_agent(l, &s, e);
	if (r == 0)
		r = channel_open(l->channels, s, 1, timeout_ms, &box.channel, &box.hello, e);
	if (r == 0)
		r = check_hello(&box.hello, e);
	if (r < 0) {
		channel_unref(box.channel);
		return r;
	}
	*ret = box;
	return 0;
}

/* ---- ending ---- */

static pid_t parent_of(const char *pid)
{
	char text[STAT_SIZE];
	_cleanup_free_ char *path = xasprintf("/proc/%s/stat", pid);
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return -1;
	text[n] = '\0';
	/* "PID (NAME) STATE PPID ..."; a name may hold anything (proc(5)) */
	const char *at = strrchr(text, ')');
	int64_t parent = -1;
	struct err e;
	if (!at || strlen(at) < 5)
		return -1;
	_cleanup_free_ char *word = xstrndup(at + 4, strcspn(at + 4, " "));
	return parse_int(word, 0, INT32_MAX, &parent, &e) == 0 ? (pid_t)parent : -1;
}

/* Our children; those of what is killed are ours next. */
static void kill_children(void)
{
	DIR *dir = opendir("/proc");
	const struct dirent *d;
	/* NOLINTNEXTLINE(concurrency-mt-unsafe): the stream is this call's own (readdir(3)) */
	while (dir && (d = readdir(dir)))
		if (d->d_name[0] >= '1' && d->d_name[0] <= '9' && parent_of(d->d_name) == getpid()) {
			int64_t pid = 0;
			struct err e;
			if (parse_int(d->d_name, 2, INT32_MAX, &pid, &e) == 0)
				(void)kill((pid_t)pid, SIGKILL);
		}
	if (dir)
		closedir(dir);
}

/* Reaps those that have ended. True when there are no children at all. */
static bool reap_all(void)
{
	pid_t pid;
	while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
		;
	return pid < 0 && errno == ECHILD;
}

int local_end(int timeout_ms, struct err *e)
{
	int64_t deadline = clock_mono_ms() + timeout_ms;
	do {
		if (getpid() == 1)
			(void)kill(-1, SIGKILL);
		else
			kill_children();
		if (reap_all())
			return 0;
		(void)poll(NULL, 0, ROUND_MS);
	} while (clock_left_ms(deadline) > 0);
	return err_set(e, ERR_TIMEOUT, "some processes have not ended");
}

void local_reap(struct local *l)
{
	int status;
	pid_t pid;
	while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
		if (pid != atomic_load(&l->agent))
			continue;
		if (WIFSTOPPED(status))
			(void)kill(pid, SIGKILL); /* it is still our child, so the pid is nobody else's */
		else
			atomic_store(&l->agent, 0);
	}
}
