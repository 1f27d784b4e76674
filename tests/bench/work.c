/* SPDX-License-Identifier: MIT */
/* The units that are measured: through Berth, through the engine, and without either. */
#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>

#include "tests/bench/bench.h"
#include "tests/bench/http.h"
#include "tests/bench/stream.h"

#define ANSWER_MAX (1 << 20)

void lane_init(struct lane *l, const struct setup *s, size_t index)
{
	*l = (struct lane){ .setup = s, .sync_fd = -1 };
	if (s->session_count)
		l->session = s->sessions[index % s->session_count];
}

void lane_clear(struct lane *l)
{
	http_close(l->berth);
	http_close(l->engine);
	if (l->sync_fd >= 0)
		close(l->sync_fd);
}

/* ---- asking Berth and the engine ---- */

/* Asks, expects this status, and reads the answer into `answer`. */
static void ask(struct http *h, const char *headers, const char *method, const char *path, const char *body,
		int expected, struct buf *answer)
{
	int status = http_ask(h, method, path, headers, body);
	http_read_all(h, answer);
	if (status != expected)
		die("%s %s: %d %.300s", method, path, status, answer->data ? answer->data : "");
}

/* The text that stands behind "NAME":" into ret. */
static void take_text(const struct buf *answer, const char *name, char *ret, size_t size)
{
	char key[32];
	snprintf(key, sizeof(key), "\"%s\":", name);
	const char *at = answer->data ? strstr(answer->data, key) : NULL;
	if (at)
		at = strchr(at + strlen(key), '"');
	if (!at)
		die("an answer has no %s: %.300s", name, answer->data ? answer->data : "");
	snprintf(ret, size, "%.*s", (int)strcspn(at + 1, "\""), at + 1);
}

static const char *authorization(const struct lane *l, char *room, size_t size)
{
	snprintf(room, size, "Authorization: Bearer %s\r\n", l->setup->token);
	return room;
}

static void ask_berth(struct lane *l, const char *method, const char *path, const char *body, int expected,
		      struct buf *answer)
{
	char headers[256];
	if (!l->berth)
		l->berth = http_open(l->setup->berth);
	ask(l->berth, authorization(l, headers, sizeof(headers)), method, path, body, expected, answer);
}

static void ask_engine(struct lane *l, const char *method, const char *path, const char *body, int expected,
		       struct buf *answer)
{
	if (!l->engine)
		l->engine = http_open(l->setup->engine);
	ask(l->engine, "", method, path, body, expected, answer);
}

/* ---- one command ---- */

static void exec_in_session(struct lane *l, const char *session)
{
	_cleanup_buf_ struct buf answer = BUF_INIT(ANSWER_MAX);
	char path[128], body[1024];
	snprintf(path, sizeof(path), "/v1/sessions/%s/exec", session);
	snprintf(body, sizeof(body), "{\"argv\":%s}", l->setup->command);
	ask_berth(l, "POST", path, body, 200, &answer);
	if (!strstr(answer.data, "\"exit_code\":0,"))
		die("a command failed: %.300s", answer.data);
}

static void run_berth(struct lane *l)
{
	exec_in_session(l, l->session);
}

/* Create and start on the engine's API; the start's connection becomes the stream, which has not begun to be
 * read. */
static struct http *engine_exec(struct lane *l, const char *container)
{
	_cleanup_buf_ struct buf answer = BUF_INIT(ANSWER_MAX);
	char path[256], body[1024], id[128];
	snprintf(path, sizeof(path), "/containers/%s/exec", container);
	snprintf(body, sizeof(body), "{\"AttachStdout\":true,\"AttachStderr\":true,\"Cmd\":%s}",
		 l->setup->command);
	ask_engine(l, "POST", path, body, 201, &answer);
	take_text(&answer, "Id", id, sizeof(id));
	snprintf(path, sizeof(path), "/exec/%s/start", id);
	struct http *h = http_open(l->setup->engine);
	int status = http_ask(h, "POST", path, "Connection: Upgrade\r\nUpgrade: tcp\r\n",
			      "{\"Detach\":false,\"Tty\":false}");
	if (status != 101 && status != 200)
		die("%s: %d", path, status);
	return h;
}

static void run_engine(struct lane *l)
{
	char piece[4096];
	_cleanup_(http_close_cleanup_) struct http *h = engine_exec(l, l->setup->container);
	while (http_read(h, piece, sizeof(piece)))
		;
}

static void spawn_and_wait(char *const argv[])
{
	pid_t pid;
	int status, r = posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ);
	if (r)
		die("cannot start %s: %s", argv[0], strerror(r));
	if (waitpid(pid, &status, 0) != pid || status)
		die("%s ended with status %d", argv[0], status);
}

static void run_spawn(struct lane *l)
{
	static char bash[] = "bash", c[] = "-c", nothing[] = ":";
	static char *const argv[] = { bash, c, nothing, NULL };
	(void)l;
	spawn_and_wait(argv);
}

static void run_cli(struct lane *l)
{
	spawn_and_wait(l->setup->cli);
}

/* 4 KiB is a page of the store. */
static void run_flush(struct lane *l)
{
	static const char page[4096];
	if (l->sync_fd < 0)
		l->sync_fd = open(l->setup->dir, O_TMPFILE | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
	if (l->sync_fd < 0 || write(l->sync_fd, page, sizeof(page)) != sizeof(page) ||
	    fdatasync(l->sync_fd) < 0)
		die("cannot write in %s", l->setup->dir);
}

static void run_spawn_and_flush(struct lane *l)
{
	run_spawn(l);
	run_flush(l);
}

/* ---- from nothing to the end of a first command ---- */

static void run_session(struct lane *l)
{
	_cleanup_buf_ struct buf answer = BUF_INIT(ANSWER_MAX);
	ask_berth(l, "POST", "/v1/sessions", "{}", 201, &answer);
	take_text(&answer, "id", l->made, sizeof(l->made));
	exec_in_session(l, l->made);
}

static void delete_session(struct lane *l)
{
	_cleanup_buf_ struct buf answer = BUF_INIT(ANSWER_MAX);
	char path[256];
	snprintf(path, sizeof(path), "/v1/sessions/%s", l->made);
	ask_berth(l, "DELETE", path, "", 200, &answer);
}

/* What the engine is asked for at the least. Podman wants limits named that it may not raise. */
static const char container_body[] = "{\"Image\":\"%s\",\"Entrypoint\":[\"sleep\",\"infinity\"],"
				     "\"HostConfig\":{\"NetworkMode\":\"none\",\"Ulimits\":["
				     "{\"Name\":\"nofile\",\"Soft\":4096,\"Hard\":4096},{\"Name\":\"nproc\","
				     "\"Soft\":4096,\"Hard\":4096}]}}";

static void run_container(struct lane *l)
{
	_cleanup_buf_ struct buf answer = BUF_INIT(ANSWER_MAX);
	char path[256], body[1024], piece[4096];
	snprintf(body, sizeof(body), container_body, l->setup->image);
	ask_engine(l, "POST", "/containers/create", body, 201, &answer);
	take_text(&answer, "Id", l->made, sizeof(l->made));
	snprintf(path, sizeof(path), "/containers/%s/start", l->made);
	ask_engine(l, "POST", path, "", 204, &answer);
	_cleanup_(http_close_cleanup_) struct http *h = engine_exec(l, l->made);
	while (http_read(h, piece, sizeof(piece)))
		;
}

static void delete_container(struct lane *l)
{
	_cleanup_buf_ struct buf answer = BUF_INIT(ANSWER_MAX);
	char path[256];
	snprintf(path, sizeof(path), "/containers/%s?force=true&v=true", l->made);
	ask_engine(l, "DELETE", path, "", 204, &answer);
}

/* ---- much output ---- */

static void stream_berth(struct lane *l, enum stream_format format, const char *encoding)
{
	char path[128], body[1024], headers[256];
	if (!l->berth)
		l->berth = http_open(l->setup->berth);
	snprintf(path, sizeof(path), "/v1/sessions/%s/exec/stream", l->session);
	snprintf(body, sizeof(body), "{\"argv\":%s,\"encoding\":\"%s\"}", l->setup->command, encoding);
	int status = http_ask(l->berth, "POST", path, authorization(l, headers, sizeof(headers)), body);
	if (status != 200)
		die("%s: %d", path, status);
	stream_expect(l->berth, format, l->setup->bytes);
}

static void run_stream_utf8(struct lane *l)
{
	stream_berth(l, STREAM_UTF8, "utf8");
}

static void run_stream_base64(struct lane *l)
{
	stream_berth(l, STREAM_BASE64, "base64");
}

static void run_stream_engine(struct lane *l)
{
	_cleanup_(http_close_cleanup_) struct http *h = engine_exec(l, l->setup->container);
	stream_expect(h, STREAM_ENGINE, l->setup->bytes);
}

/* ---- files and processes ---- */

#define SMALL_FILE "/files/content?path=small"

static void below_session(struct lane *l, const char *method, const char *path, const char *body,
			  int expected)
{
	_cleanup_buf_ struct buf answer = BUF_INIT(ANSWER_MAX);
	char whole[256];
	snprintf(whole, sizeof(whole), "/v1/sessions/%s%s", l->session, path);
	ask_berth(l, method, whole, body, expected, &answer);
}

static void run_file_write(struct lane *l)
{
	static char page[4097];
	memset(page, 'x', sizeof(page) - 1);
	below_session(l, "PUT", SMALL_FILE, page, 200);
}

static void run_file_read(struct lane *l)
{
	below_session(l, "GET", SMALL_FILE, "", 200);
}

/* --process names one that has written something. */
static void run_poll(struct lane *l)
{
	char path[128];
	snprintf(path, sizeof(path), "/processes/%s?offset=0", l->setup->process);
	below_session(l, "GET", path, "", 200);
}

/* ---- by name ---- */

static const struct work works[] = {
	{ "berth", run_berth, NULL },
	{ "engine", run_engine, NULL },
	{ "cli", run_cli, NULL },
	{ "spawn", run_spawn, NULL },
	{ "flush", run_flush, NULL },
	{ "spawn-and-flush", run_spawn_and_flush, NULL },
	{ "session", run_session, delete_session },
	{ "container", run_container, delete_container },
	{ "file-write", run_file_write, NULL },
	{ "file-read", run_file_read, NULL },
	{ "poll", run_poll, NULL },
	{ "stream-utf8", run_stream_utf8, NULL },
	{ "stream-base64", run_stream_base64, NULL },
	{ "stream-engine", run_stream_engine, NULL },
};

const struct work *work_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(works); i++)
		if (!strcmp(works[i].name, name))
			return &works[i];
	return NULL;
}
