/* SPDX-License-Identifier: MIT */
/*
 * Calls against an engine of our own on a unix socket, which does what no real one does on demand:
 * hang up in the middle, hang, lie about versions, send too much.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/metrics.h"
#include "runtime/engine/engine.h"
#include "tests/unit/rows.h"

#define VERSION(api) "{\"Version\":\"99\",\"ApiVersion\":\"" api "\",\"MinAPIVersion\":\"1.12\"}"
#define INFO "{\"ID\":\"one\",\"SecurityOptions\":[\"name=seccomp\"]}"
#define INFO_OF_ANOTHER "{\"ID\":\"two\",\"SecurityOptions\":[\"name=seccomp\"]}"
#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

enum act {
	REPLY,   /* a status and a body */
	HANG_UP, /* the connection ends without a byte */
	CUT,     /* it ends in the middle of the body */
	SILENCE, /* no answer */
	NOISE,   /* no HTTP */
	ENDLESS, /* a body without an end */
	UPGRADE, /* 101 and the body as raw bytes, then the end */
};

struct fake {
	char path[64];
	int fd;
	pthread_t thread;
	atomic_bool stop;
	pthread_mutex_t lock;
	/* under the lock: */
	const char *target; /* requests whose line has this word get `act`, */
	int times;          /* so many of them; then and all others a plain 200 */
	enum act act;
	int status;
	const char *body, *version, *info;
	int seen, connections; /* requests with the word; connections taken */
	char last[4096];       /* the last request with the word */
	int fds[64];           /* connections that are open */
	size_t fd_count;
};

static struct fake fake = { .lock = PTHREAD_MUTEX_INITIALIZER, .info = INFO };

static void send_text(int fd, const char *text)
{
	(void)!send(fd, text, strlen(text), MSG_NOSIGNAL);
}

static void send_reply(int fd, int status, const char *body, size_t announced)
{
	_cleanup_free_ char *text =
		xasprintf("HTTP/1.1 %d X\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
			  status, announced, body);
	send_text(fd, text);
}

/* One request with its body into text; false at the end of the connection. */
static bool receive(int fd, char text[4096])
{
	size_t used = 0, want = 0;
	while (used < 4095) {
		ssize_t n = recv(fd, text + used, 4095 - used, 0);
		if (n <= 0)
			return false;
		used += (size_t)n;
		text[used] = 0;
		const char *end = strstr(text, "\r\n\r\n"), *length = strstr(text, "Content-Length: ");
		if (end && !want)
			want = (size_t)(end - text) + 4 +
			       (length && length < end ? strtoul(length + 16, NULL, 10) : 0);
		if (want && used >= want)
			return true;
	}
	return true;
}

static void endless(int fd)
{
	static char piece[65536];
	memset(piece, ' ', sizeof(piece));
	send_text(fd, "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n");
	while (send(fd, piece, sizeof(piece), MSG_NOSIGNAL) > 0)
		;
}

/* Does the act; false when the connection is to end. */
static bool perform(int fd, const struct fake *f)
{
	switch (f->act) {
	case REPLY:
		send_reply(fd, f->status, f->body, strlen(f->body));
		return true;
	case CUT:
		send_reply(fd, 200, f->body, strlen(f->body) + 10);
		return false;
	case NOISE:
		send_text(fd, "SSH-2.0-OpenSSH\r\n\r\n");
		return false;
	case UPGRADE:
		send_text(fd, "HTTP/1.1 101 UPGRADED\r\n\r\n");
		send_text(fd, f->body);
		return false;
	case ENDLESS:
		endless(fd);
		return false;
	case SILENCE:
		while (!atomic_load(&fake.stop) && recv(fd, &(char){ 0 }, 1, 0) > 0)
			;
		return false;
	case HANG_UP:
		break;
	}
	return false;
}

/* The script's part for a request; true and a copy when it is its turn. */
static bool scripted(const char *text, struct fake *ret)
{
	char line[256];
	snprintf(line, sizeof(line), "%.*s", (int)MIN(strcspn(text, "\r"), 255), text);
	pthread_mutex_lock(&fake.lock);
	bool mine = fake.target && strstr(line, fake.target);
	if (mine) {
		fake.seen++;
		snprintf(fake.last, sizeof(fake.last), "%s", text);
	}
	bool turn = mine && fake.times > 0 && fake.times-- > 0;
	*ret = fake;
	pthread_mutex_unlock(&fake.lock);
	return turn;
}

static const char *usual_body(const char *text, const struct fake *f)
{
	if (strstr(text, " /version "))
		return f->version;
	if (strstr(text, " /info "))
		return f->info;
	return strstr(text, "/exec HTTP") || strstr(text, "create") ? "{\"Id\":\"" ID "\"}"
								    : "{\"State\":{\"Status\":\"running\"}}";
}

static void forget(int fd)
{
	pthread_mutex_lock(&fake.lock);
	for (size_t i = 0; i < fake.fd_count; i++)
		if (fake.fds[i] == fd)
			fake.fds[i] = fake.fds[--fake.fd_count];
	close(fd);
	pthread_mutex_unlock(&fake.lock);
}

static void *serve_one(void *ctx)
{
	int fd = (int)(intptr_t)ctx;
	char text[4096];
	while (receive(fd, text)) {
		struct fake f;
		if (scripted(text, &f)) {
			if (!perform(fd, &f))
				break;
			continue;
		}
		const char *body = usual_body(text, &f);
		send_reply(fd, 200, body, strlen(body));
	}
	forget(fd);
	return NULL;
}

static void *serve(void *ctx)
{
	struct pollfd p = { .fd = fake.fd, .events = POLLIN };
	(void)ctx;
	while (!atomic_load(&fake.stop)) {
		pthread_t t;
		int fd = poll(&p, 1, 50) > 0 ? accept(fake.fd, NULL, NULL) : -1;
		if (fd < 0)
			continue;
		pthread_mutex_lock(&fake.lock);
		fake.connections++;
		assert_true(fake.fd_count < 64);
		fake.fds[fake.fd_count++] = fd;
		pthread_mutex_unlock(&fake.lock);
		if (!pthread_create(&t, NULL, serve_one, (void *)(intptr_t)fd))
			pthread_detach(t);
	}
	return NULL;
}

static void fake_listen(void)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	snprintf(a.sun_path, sizeof(a.sun_path), "%s", fake.path);
	unlink(fake.path);
	fake.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fake.fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(fake.fd, 64), 0);
	atomic_store(&fake.stop, false);
	assert_int_equal(pthread_create(&fake.thread, NULL, serve, NULL), 0);
}

static void fake_stop(void)
{
	atomic_store(&fake.stop, true);
	pthread_join(fake.thread, NULL);
	pthread_mutex_lock(&fake.lock);
	for (size_t i = 0; i < fake.fd_count; i++)
		shutdown(fake.fds[i], SHUT_RDWR);
	pthread_mutex_unlock(&fake.lock);
	close(fake.fd);
	unlink(fake.path);
}

static void script(const char *target, int times, enum act act, int status, const char *body)
{
	pthread_mutex_lock(&fake.lock);
	fake.target = target;
	fake.times = times;
	fake.act = act;
	fake.status = status;
	fake.body = body;
	fake.seen = 0;
	*fake.last = 0;
	pthread_mutex_unlock(&fake.lock);
}

static int seen(void)
{
	pthread_mutex_lock(&fake.lock);
	int n = fake.seen;
	pthread_mutex_unlock(&fake.lock);
	return n;
}

static int connections(void)
{
	pthread_mutex_lock(&fake.lock);
	int n = fake.connections;
	pthread_mutex_unlock(&fake.lock);
	return n;
}

static struct engine *connect_fake(int timeout_ms)
{
	struct engine *g = NULL;
	struct err e = { 0 };
	char address[80];
	snprintf(address, sizeof(address), "unix://%s", fake.path);
	const struct engine_options o = { .address = address, .call_timeout_ms = timeout_ms };
	fake.version = VERSION("1.41");
	script(NULL, 0, REPLY, 200, "");
	if (engine_connect(&o, &g, &e))
		fail_msg("%s", e.msg);
	return g;
}

/* ---- one call, one misbehaviour ---- */

static int do_get(struct engine *g, struct err *e)
{
	struct engine_container_state s;
	return engine_container_inspect(g, ID, &s, e);
}

static int do_delete(struct engine *g, struct err *e)
{
	return engine_volume_remove(g, "volume", e);
}

static int do_post(struct engine *g, struct err *e)
{
	const struct engine_volume_spec v = { .name = "volume" };
	return engine_volume_create(g, &v, e);
}

static int do_exec(struct engine *g, struct err *e)
{
	static const char *const argv[] = { "/x", NULL };
	struct stream *s = NULL;
	int r = engine_exec_open(g, ID, argv, 10002, 10002, &s, e);
	stream_close(s);
	return r;
}

static const struct call_row {
	const char *name;
	int (*call)(struct engine *g, struct err *e);
	const char *target;
	int times;
	enum act act;
	int status;
	const char *body;
	int result, seen;
} calls[] = {
	{ "call: a GET whose connection ends is asked again", do_get, "/json", 1, HANG_UP, 0, "", 0, 2 },
	/* libcurl itself repeats on a kept connection once more. */
	{ "call: a GET is not asked for ever", do_get, "/json", 99, HANG_UP, 0, "", ERR_UNAVAILABLE, -1 },
	{ "call: a GET that is cut is asked again", do_get, "/json", 1, CUT, 0, "{}", 0, 2 },
	{ "call: a DELETE whose connection ends is asked again", do_delete, "/volumes/volume", 1, HANG_UP, 0,
	  "", 0, 2 },
	{ "call: a POST with a body is sent once, also on a kept connection", do_post, "/volumes/create", 99,
	  HANG_UP, 0, "", ERR_UNAVAILABLE, 1 },
	{ "call: a POST that is cut is sent once", do_post, "/volumes/create", 1, CUT, 0, "{}",
	  ERR_UNAVAILABLE, 1 },
	{ "call: an exec is started once", do_exec, "/start", 99, HANG_UP, 0, "", ERR_UNAVAILABLE, 1 },
	{ "call: another version is agreed on after a refusal", do_post, "/volumes/create", 1, REPLY, 400,
	  "{\"message\":\"client version 1.41 is too old. Minimum supported API version is 1.44\"}",
	  ERR_ENGINE, 2 },
	{ "call: a GET too", do_get, "/json", 1, REPLY, 400,
	  "{\"message\":\"client version 1.41 is too new. Maximum supported API version is 1.40\"}", 0, 2 },
	{ "call: a refused version is not argued about for ever", do_get, "/json", 99, REPLY, 400,
	  "{\"message\":\"client version 1.41 is too new.\"}", ERR_ENGINE, 2 },
	{ "call: no reply in time", do_get, "/json", 99, SILENCE, 0, "", ERR_TIMEOUT, 1 },
	{ "call: no reply to an exec in time", do_exec, "/start", 99, SILENCE, 0, "", ERR_TIMEOUT, 1 },
	{ "call: what is no HTTP", do_get, "/json", 99, NOISE, 0, "", ERR_UNAVAILABLE, -1 },
	{ "call: what is no HTTP to an exec", do_exec, "/start", 99, NOISE, 0, "", ERR_ENGINE, 1 },
	{ "call: a reply without an end is cut off", do_get, "/json", 1, ENDLESS, 0, "", ERR_ENGINE, 1 },
	{ "call: a redirect is not followed", do_get, "/json", 99, REPLY, 301, "", ERR_ENGINE, 1 },
	{ "call: what is no JSON", do_get, "/json", 1, REPLY, 200, "<html>", ERR_ENGINE, 1 },
	{ "call: an exec without an id", do_exec, "/exec ", 1, REPLY, 201, "{}", ERR_ENGINE, 1 },
	{ "call: an exec with a path for an id", do_exec, "/exec ", 1, REPLY, 201, "{\"Id\":\"../../x\"}",
	  ERR_ENGINE, 1 },
	{ "call: a refused start of an exec", do_exec, "/start", 1, REPLY, 409,
	  "{\"message\":\"not running\"}", ERR_CONFLICT, 1 },
	{ "call: a refused start in plain text", do_exec, "/start", 1, REPLY, 500, "boom\n", ERR_ENGINE, 1 },
	{ "call: 101 and the end at once is a stream", do_exec, "/start", 1, UPGRADE, 0, "", 0, 1 },
	{ "call: a state that is unknown", do_get, "/json", 1, REPLY, 200, "{\"State\":{\"Status\":\"odd\"}}",
	  ERR_ENGINE, 1 },
	{ "call: the engine's own words reach the caller", do_get, "/json", 1, REPLY, 404,
	  "{\"message\":\"no such thing\"}", ERR_NOT_FOUND, 1 },
};

static void call_test(void **state)
{
	const struct call_row *row = *state;
	struct err e = { 0 };
	struct engine *g = connect_fake(1000);
	assert_int_equal(engine_ping(g, 1000, &e), 0); /* now there is a kept connection */
	script(row->target, row->times, row->act, row->status, row->body);
	int64_t before = clock_mono_ms();
	int r = row->call(g, &e);
	assert_in_range(clock_mono_ms() - before, 0, 3000);
	if (r != -row->result)
		fail_msg("%d: %s", r, e.msg);
	if (row->seen >= 0)
		assert_int_equal(seen(), row->seen);
	else
		assert_in_range(seen(), 2, 4);
	script(NULL, 0, REPLY, 200, "");
	assert_int_equal(do_get(g, &e), 0); /* it goes on as if nothing had been */
	engine_free(g);
}

/* ---- longer stories ---- */

static void test_kept(void **state)
{
	struct err e;
	struct engine *g = connect_fake(1000);
	int before = connections();
	(void)state;
	for (int i = 0; i < 20; i++) {
		assert_int_equal(do_get(g, &e), 0);
		assert_int_equal(engine_container_kill(g, ID, &e), 0);
	}
	/* one more may be counted late: connecting looks at who listens, and closes at once */
	assert_true(connections() <= before + 1);
	engine_free(g);
}

static void test_restart(void **state)
{
	struct err e = { 0 };
	struct engine_info info;
	struct engine *g = connect_fake(1000);
	(void)state;
	fake_stop();
	assert_int_equal(do_get(g, &e), -ERR_UNAVAILABLE);
	assert_non_null(strstr(e.msg, fake.path));
	assert_int_equal(do_post(g, &e), -ERR_UNAVAILABLE);
	assert_int_equal(do_exec(g, &e), -ERR_UNAVAILABLE);
	fake.version = VERSION("1.44");
	fake_listen();
	script("/json", 0, REPLY, 200, "");
	assert_int_equal(do_get(g, &e), 0);
	assert_non_null(strstr(fake.last, "/v1.44/containers/"));
	engine_get_info(g, &info);
	assert_string_equal(info.api, "1.44");
	engine_free(g);
}

static void test_another(void **state)
{
	struct err e = { 0 };
	struct engine *g = connect_fake(1000);
	(void)state;
	fake.info = INFO_OF_ANOTHER;
	script(ID, 1, REPLY, 404, "{}"); /* what it knows nothing of is not gone */
	assert_int_equal(do_get(g, &e), -ERR_UNAVAILABLE);
	assert_non_null(strstr(e.msg, "another engine"));
	assert_int_equal(do_delete(g, &e), -ERR_UNAVAILABLE);
	fake.info = INFO;
	assert_int_equal(do_get(g, &e), 0);
	fake.info = INFO_OF_ANOTHER;
	script(ID, 1, REPLY, 404, "{}");
	assert_int_equal(engine_container_remove(g, ID, 1000, &e), -ERR_UNAVAILABLE);
	fake.info = INFO;
	script(ID, 2, REPLY, 404, "{}");
	assert_int_equal(do_get(g, &e), -ERR_NOT_FOUND);
	assert_int_equal(engine_container_remove(g, ID, 1000, &e), 0);
	engine_free(g);
}

static void test_counters(void **state)
{
	struct err e;
	struct engine *g = connect_fake(1000);
	(void)state;
	int64_t good = metrics_get(METRIC_ENGINE_CALLS, "container_inspect", "ok");
	int64_t bad = metrics_get(METRIC_ENGINE_CALLS, "container_inspect", "failed");
	int64_t timed = metrics_get(METRIC_ENGINE_CALL_SECONDS, NULL, NULL);
	assert_int_equal(do_get(g, &e), 0);
	script("/json", 1, REPLY, 500, "{}");
	assert_int_equal(do_get(g, &e), -ERR_ENGINE);
	assert_int_equal(metrics_get(METRIC_ENGINE_CALLS, "container_inspect", "ok") - good, 1);
	assert_int_equal(metrics_get(METRIC_ENGINE_CALLS, "container_inspect", "failed") - bad, 1);
	assert_int_equal(metrics_get(METRIC_ENGINE_CALL_SECONDS, NULL, NULL) - timed, 2);
	engine_free(g);
}

static void test_early_bytes(void **state)
{
	static const char *const argv[] = { "/x", NULL };
	struct err e = { 0 };
	struct stream *s = NULL;
	char out[64] = "";
	struct engine *g = connect_fake(1000);
	(void)state;
	/* Text instead of frames: broken, and told as a complaint. */
	script("/start", 1, UPGRADE, 0, "Error: no");
	assert_int_equal(engine_exec_open(g, ID, argv, 10002, 10002, &s, &e), 0);
	ssize_t n = -EAGAIN;
	for (int i = 0; i < 100 && n == -EAGAIN; i++, poll(NULL, 0, 5))
		n = s->ops->read(s, out, sizeof(out));
	assert_int_equal(n, -EPROTO);
	stream_close(s);
	engine_free(g);
}

static const struct away_row {
	const char *name, *address;
	enum err_code code;
	const char *words;
} aways[] = {
	{ "connect: no socket there", "unix:///nonexistent/engine.sock", ERR_UNAVAILABLE,
	  "/nonexistent/engine.sock" },
	{ "connect: nobody listens", "tcp://127.0.0.1:1", ERR_UNAVAILABLE, "127.0.0.1:1" },
	{ "connect: no address", "docker", ERR_INVALID, "unix:///" },
};

static void away_test(void **state)
{
	const struct away_row *row = *state;
	struct engine *g = NULL;
	struct err e = { 0 };
	const struct engine_options o = { .address = row->address, .call_timeout_ms = 1000 };
	assert_int_equal(engine_connect(&o, &g, &e), -(int)row->code);
	assert_null(g);
	assert_non_null(strstr(e.msg, row->words));
}

static void test_unsuitable(void **state)
{
	struct engine *g = NULL;
	struct err e = { 0 };
	char address[80];
	(void)state;
	snprintf(address, sizeof(address), "unix://%s", fake.path);
	const struct engine_options o = { .address = address, .call_timeout_ms = 1000 };
	fake.version = VERSION("1.30");
	assert_int_equal(engine_connect(&o, &g, &e), -ERR_UNSUPPORTED);
	fake.version = "{}";
	assert_int_equal(engine_connect(&o, &g, &e), -ERR_ENGINE);
	fake.version = VERSION("1.41");
}

int main(void)
{
	struct rows r = { 0 };
	char id[ID_SIZE];
	id_new("f_", id);
	snprintf(fake.path, sizeof(fake.path), "/tmp/berth-%s.sock", id);
	fake.version = VERSION("1.41");
	fake_listen();
	ROWS(&r, call_test, calls);
	rows_one(&r, "connections are kept", test_kept);
	rows_one(&r, "an engine that was away is found again, with its new version", test_restart);
	rows_one(&r, "another engine at the same address is refused until the first is back", test_another);
	rows_one(&r, "calls and errors are counted", test_counters);
	rows_one(&r, "bytes behind the head are the stream's", test_early_bytes);
	ROWS(&r, away_test, aways);
	rows_one(&r, "an engine that does not suit is refused", test_unsuitable);
	int failed = rows_run(&r, "engine_http");
	fake_stop();
	return failed;
}
