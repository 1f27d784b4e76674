/* SPDX-License-Identifier: MIT */
/* berthd: the composition root. Settings, store, engine, API; signals; the orderly stop. */
#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <jansson.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "api/server.h"
#include "base/id.h"
#include "base/log.h"
#include "manager/manager.h"
#include "manager/settings.h"
#include "runtime/sandbox.h"

#define STOP_DEADLINE_MS 10000
#define TOKEN_FILE "admin-token"

static int fail(const struct err *e)
{
	fprintf(stderr, "berthd: %s%s%s\n", e->field, e->field[0] ? ": " : "", e->msg);
	return err_exit_status(e->code);
}

static enum log_level level_of(const char *name)
{
	static const char *const names[] = { "error", "warn", "info", "debug" };
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strcmp(names[i], name) == 0)
			return (enum log_level)i;
	return LOG_INFO;
}

static void set_up_log(const struct settings *s)
{
	const struct log_format f = {
		.json = strcmp(s->log_format, "json") == 0,
		.color = log_wants_color(s->log_color, s->no_color),
		.level = level_of(s->log_level),
	};
	log_setup(&f);
}

/* Thousands of connections and links need descriptors; many arenas would cost memory for nothing. */
static void set_up_process(void)
{
	struct rlimit n;
	if (getrlimit(RLIMIT_NOFILE, &n) == 0) {
		n.rlim_cur = n.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &n);
	}
	mallopt(M_ARENA_MAX, 2);  /* NOLINT(concurrency-mt-unsafe): before the first thread */
	signal(SIGPIPE, SIG_IGN); /* NOLINT(concurrency-mt-unsafe): likewise */
	umask(077);
	curl_global_init(CURL_GLOBAL_DEFAULT);
	json_object_seed(0);
}

static int read_token(int fd, char **ret, struct err *e)
{
	char text[ID_TOKEN_SIZE] = "";
	ssize_t n = read(fd, text, sizeof(text) - 1);
	if (n < 16)
		return err_set(e, ERR_INVALID, "the file %s holds no token: remove it, and a new one is made",
			       TOKEN_FILE);
	text[strcspn(text, "\n")] = 0;
	*ret = xstrdup(text);
	return 0;
}

/* Without a token from outside, one is made at the first start: also on loopback nobody gets in without. */
static int ensure_admin_token(struct settings *s, struct err *e)
{
	if (s->admin_token || settings_is_local(s))
		return 0;
	_cleanup_free_ char *path = xasprintf("%s/%s", s->data_dir, TOKEN_FILE);
	_cleanup_close_ int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	struct stat st;
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, ERR_STORE, errno, "cannot open %s", path);
	if (st.st_size > 0)
		return read_token(fd, &s->admin_token, e);
	char token[ID_TOKEN_SIZE];
	id_token("bat_", token);
	if (dprintf(fd, "%s\n", token) < 0 || fsync(fd) < 0)
		return err_sys(e, ERR_STORE, errno, "cannot write %s", path);
	s->admin_token = xstrdup(token);
	LOG(LOG_INFO, "admin token made", F("file", path));
	return 0;
}

/*
 * PID 1 of a container is asked to end from outside: by a process that this namespace does not know, or by a
 * key on the terminal. A command can queue a signal with any pid in it, but these codes are the kernel's own
 * (rt_sigqueueinfo(2)).
 */
static bool is_from_outside(const siginfo_t *info)
{
	return getpid() != 1 || (info->si_code == SI_USER && info->si_pid == 0) || info->si_code == SI_KERNEL;
}

static void wait_for_stop(const sigset_t *set, struct manager *m)
{
	siginfo_t info;
	int signo;
	do {
		signo = sigwaitinfo(set, &info);
		if (signo == SIGCHLD)
			manager_on_children(m);
	} while (signo < 0 || signo == SIGCHLD || !is_from_outside(&info));
	LOG(LOG_INFO, "stopping", F("signal", signo));
}

static int serve(struct settings *s, const sigset_t *stop_signals, struct err *e)
{
	struct manager *m = NULL;
	struct server *server = NULL;
	int r = manager_new(s, &m, e);
	/* Now the folder is ours alone: nobody else makes a token in it. */
	if (r == 0)
		r = ensure_admin_token(s, e);
	if (r == 0)
		r = server_start(s, m, &server, e);
	if (r == 0) {
		LOG(LOG_INFO, "berthd is ready", F("version", BERTH_VERSION), F("listen", s->listen),
		    F("port", server_port(server)));
		wait_for_stop(stop_signals, m);
		server_stop(server, STOP_DEADLINE_MS);
	}
	manager_free(m);
	return r;
}

/* The token may be in a file that only root can read. Whoever runs as root in the container is not kept from
 * anything, so commands do not. */
static int leave_root(struct err *e)
{
	if (geteuid() != 0)
		return 0;
	if (setgroups(0, NULL) < 0 || setresgid(SANDBOX_UID, SANDBOX_UID, SANDBOX_UID) < 0 ||
	    setresuid(SANDBOX_UID, SANDBOX_UID, SANDBOX_UID) < 0)
		return err_sys(e, ERR_INVALID, errno,
			       "SANDBOX_RUNTIME=local does not run as root, and cannot become user %d",
			       SANDBOX_UID);
	return 0;
}

/*
 * Commands have our uid: what they may not see must be in no file that they can open, and in no memory that
 * they can trace. The program's mode, 0111, makes this process undumpable from execve on; this is the second
 * lock.
 */
static int set_up_local(struct settings *s, struct err *e)
{
	if (!settings_is_local(s))
		return 0;
	/* Another process than PID 1 can be killed by every command, and outside of a container that is the
	 * least. */
	if (!s->local_anywhere && getpid() != 1)
		return err_field(
			e, "SANDBOX_RUNTIME",
			"local is for PID 1 of a container, without --init, and this is process %d: its "
			"commands could do all that this user can (SANDBOX_LOCAL_ANYWHERE=1 allows it)",
			(int)getpid());
	if (leave_root(e) < 0)
		return -(int)e->code;
	if (s->token_file && access(s->token_file, R_OK) == 0)
		return err_field(e, "SANDBOX_TOKEN",
				 "every command could read it in %s: let that be root's alone and start the "
				 "container as "
				 "root, or use SANDBOX_TOKEN",
				 s->token_file);
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		return err_sys(e, ERR_INTERNAL, errno, "cannot protect this process");
	return 0;
}

static int run(struct settings *s)
{
	struct err e;
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	if (settings_is_local(s))
		sigaddset(&set, SIGCHLD);
	pthread_sigmask(SIG_BLOCK, &set, NULL); /* before the first thread, so that all inherit it */
	set_up_log(s);
	set_up_process();
	int r = set_up_local(s, &e);
	if (r == 0)
		r = serve(s, &set, &e);
	curl_global_cleanup();
	return r < 0 ? fail(&e) : 0;
}

int main(int argc, char **argv)
{
	struct settings s = { 0 };
	enum settings_action action = SETTINGS_RUN;
	struct err e;
	int status = 0, r = settings_load(argc, argv, &s, &action, &e);
	settings_scrub_environment();
	if (r < 0)
		return fail(&e);
	switch (action) {
	case SETTINGS_HELP:
		settings_help(stdout);
		break;
	case SETTINGS_VERSION:
		printf("berthd %s\n", BERTH_VERSION);
		break;
	case SETTINGS_PRINT:
		settings_print(&s, stdout);
		break;
	case SETTINGS_DOCS:
		settings_markdown(stdout);
		break;
	case SETTINGS_RUN:
		status = run(&s);
		break;
	}
	settings_clear(&s);
	return status;
}
