/* SPDX-License-Identifier: MIT */
/* berthd: the composition root. Settings, store, engine, API; signals; the orderly stop. */
#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "api/server.h"
#include "base/id.h"
#include "base/log.h"
#include "manager/manager.h"
#include "manager/settings.h"

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
	if (s->admin_token)
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

static void wait_for_stop(const sigset_t *set)
{
	int signo = 0;
	while (sigwait(set, &signo) != 0)
		;
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
		wait_for_stop(stop_signals);
		server_stop(server, STOP_DEADLINE_MS);
	}
	manager_free(m);
	return r;
}

static int run(struct settings *s)
{
	struct err e;
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	pthread_sigmask(SIG_BLOCK, &set, NULL); /* before the first thread, so that all inherit it */
	set_up_log(s);
	set_up_process();
	int r = serve(s, &set, &e);
	curl_global_cleanup();
	return r < 0 ? fail(&e) : 0;
}

int main(int argc, char **argv)
{
	struct settings s = { 0 };
	enum settings_action action = SETTINGS_RUN;
	struct err e;
	int status = 0;
	if (settings_load(argc, argv, &s, &action, &e) < 0)
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
