/* SPDX-License-Identifier: MIT */
#include <arpa/inet.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "api/conns.h"
#include "api/listen.h"
#include "base/clock.h"
#include "tests/unit/rows.h"

static const struct conns_limits quick = { .total = 3,
					   .per_address = 2,
					   .headers_ms = 150,
					   .crowded_ms = 30,
					   .idle_ms = 150,
					   .body_ms = 150,
					   .reply_ms = 150,
					   .min_rate = 1000,
					   .tick_ms = 10 };

struct pair {
	int ours, theirs;
	struct conn *conn;
};

static struct pair open_pair(struct conns *cs, const char *address, bool loopback)
{
	int fds[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	return (struct pair){ fds[0], fds[1], conns_add(cs, fds[0], address, loopback) };
}

static void close_pair(struct pair *p)
{
	conns_remove(p->conn);
	close(p->ours);
	close(p->theirs);
}

/* The milliseconds until the other side sees the end; -1: not within within_ms. */
static int64_t cut_after(const struct pair *p, int within_ms)
{
	struct pollfd fd = { .fd = p->theirs, .events = POLLIN };
	int64_t start = clock_mono_ms();
	return poll(&fd, 1, within_ms) == 1 ? clock_mono_ms() - start : -1;
}

static void headers(struct conn *c)
{
	(void)c; /* as it is after conns_add() */
}

static void body(struct conn *c)
{
	conn_begin(c);
}

static void slow_body(struct conn *c)
{
	conn_begin(c);
	conn_expect_body(c, 10); /* 10 ms' worth */
}

static void reader(struct conn *c)
{
	conn_begin(c);
	conn_expect_reader(c, 10, 0);
}

static void idle(struct conn *c)
{
	conn_begin(c);
	conn_end(c);
}

struct cut_row {
	const char *name;
	void (*enter)(struct conn *c);
};
static const struct cut_row cuts[] = {
	{ "a connection without headers is cut at its deadline", headers },
	{ "one whose body does not come", body },
	{ "one whose body comes too slowly", slow_body },
	{ "one that does not take its reply", reader },
	{ "one that is idle", idle },
};

static void cut_test(void **state)
{
	const struct cut_row *row = *state;
	_cleanup_(conns_free_cleanup_) struct conns *cs = conns_new(&quick);
	struct pair p = open_pair(cs, "a", true);
	row->enter(p.conn);
	int64_t took = cut_after(&p, 5000);
	assert_true(took >= 100);
	close_pair(&p);
}

static void work(struct conn *c)
{
	conn_begin(c);
	conn_work(c);
}

static void fast_body(struct conn *c)
{
	conn_begin(c);
	conn_expect_body(c, 100000); /* 100 s' worth */
}

static void long_reply(struct conn *c)
{
	conn_begin(c);
	conn_expect_reader(c, 100000, 0);
}

static const struct cut_row kept[] = {
	{ "a connection whose handler works is kept", work },
	{ "one whose body comes as fast as it must", fast_body },
	{ "one with a long reply", long_reply },
};

static void kept_test(void **state)
{
	const struct cut_row *row = *state;
	_cleanup_(conns_free_cleanup_) struct conns *cs = conns_new(&quick);
	struct pair p = open_pair(cs, "a", true);
	row->enter(p.conn);
	assert_int_equal(cut_after(&p, 400), -1);
	close_pair(&p);
}

static void crowded_test(void **state)
{
	(void)state;
	_cleanup_(conns_free_cleanup_) struct conns *cs = conns_new(&quick);
	struct pair p[5] = { open_pair(cs, "10.0.0.1", false), open_pair(cs, "10.0.0.1", false),
			     open_pair(cs, "10.0.0.1", false), open_pair(cs, "10.0.0.2", false),
			     open_pair(cs, "127.0.0.1", true) };
	static const bool want[] = { false, false, true, true, true };
	for (size_t i = 0; i < ARRAY_LEN(p); i++)
		assert_int_equal(conn_is_crowded(p[i].conn), want[i]);
	assert_true(cut_after(&p[4], 120) >= 0);
	for (size_t i = 0; i < ARRAY_LEN(p); i++)
		close_pair(&p[i]);
	p[0] = open_pair(cs, "10.0.0.1", false);
	assert_false(conn_is_crowded(p[0].conn));
	close_pair(&p[0]);
}

static void loopback_test(void **state)
{
	(void)state;
	_cleanup_(conns_free_cleanup_) struct conns *cs = conns_new(&quick);
	struct pair p[3];
	for (size_t i = 0; i < ARRAY_LEN(p); i++) {
		p[i] = open_pair(cs, "127.0.0.1", true);
		assert_false(conn_is_crowded(p[i].conn));
	}
	for (size_t i = 0; i < ARRAY_LEN(p); i++)
		close_pair(&p[i]);
}

static void drain_test(void **state)
{
	(void)state;
	_cleanup_(conns_free_cleanup_) struct conns *cs = conns_new(&quick);
	struct pair silent = open_pair(cs, "a", true), busy = open_pair(cs, "b", true);
	conn_begin(busy.conn);
	conn_work(busy.conn);
	conns_drain(cs);
	assert_true(cut_after(&silent, 50) >= 0);
	assert_false(conns_wait_quiet(cs, 50));
	assert_int_equal(cut_after(&busy, 0), -1);
	conn_end(busy.conn);
	assert_true(cut_after(&busy, 50) >= 0);
	assert_true(conns_wait_quiet(cs, 1000));
	close_pair(&silent);
	close_pair(&busy);
}

struct listen_row {
	const char *name, *text;
	const char *host, *port; /* NULL: refused */
};

static const struct listen_row listens[] = {
	{ "listen: IPv4", "127.0.0.1:8080", "127.0.0.1", "8080" },
	{ "listen: IPv6", "[::1]:0", "::1", "0" },
	{ "listen: a name", "localhost:80", "localhost", "80" },
	{ "listen: no port", "127.0.0.1", NULL, NULL },
	{ "listen: an empty port", "127.0.0.1:", NULL, NULL },
	{ "listen: no address", ":8080", NULL, NULL },
	{ "listen: a port above 65535", "127.0.0.1:65536", NULL, NULL },
	{ "listen: IPv6 without brackets", "::1:80", NULL, NULL },
	{ "listen: a bracket left open", "[::1:80", NULL, NULL },
	{ "listen: empty brackets", "[]:80", NULL, NULL },
	{ "listen: nothing", "", NULL, NULL },
};

static void listen_test(void **state)
{
	const struct listen_row *row = *state;
	struct listen_address a;
	struct err e = { 0 };
	assert_int_equal(listen_parse(row->text, &a, &e), row->host ? 0 : -ERR_INVALID);
	if (!row->host)
		return;
	assert_string_equal(a.host, row->host);
	assert_string_equal(a.port, row->port);
}

static void in_use_test(void **state)
{
	(void)state;
	struct listen_address a;
	struct err e = { 0 };
	_cleanup_close_ int fd = -1;
	int port, second = -1;
	assert_int_equal(listen_parse("127.0.0.1:0", &a, &e), 0);
	assert_int_equal(listen_open(&a, &fd, &port, &e), 0);
	snprintf(a.port, sizeof(a.port), "%d", port);
	assert_int_equal(listen_open(&a, &second, &port, &e), -ERR_CONFLICT);
	assert_non_null(strstr(e.msg, a.port));
	assert_int_equal(second, -1);
}

static void peer_test(void **state)
{
	(void)state;
	struct sockaddr_in v4 = { .sin_family = AF_INET };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
	char name[LISTEN_NAME_SIZE];
	inet_pton(AF_INET, "10.1.2.3", &v4.sin_addr);
	listen_peer_name((struct sockaddr *)&v4, name);
	assert_string_equal(name, "10.1.2.3");
	inet_pton(AF_INET6, "::ffff:10.1.2.3", &v6.sin6_addr);
	listen_peer_name((struct sockaddr *)&v6, name);
	assert_string_equal(name, "10.1.2.3");
	inet_pton(AF_INET6, "fd00::1", &v6.sin6_addr);
	listen_peer_name((struct sockaddr *)&v6, name);
	assert_string_equal(name, "fd00::1");
}

int main(void)
{
	struct rows r = { 0 };
	ROWS(&r, cut_test, cuts);
	ROWS(&r, kept_test, kept);
	rows_one(&r, "connections above a limit are crowded and cut soon", crowded_test);
	rows_one(&r, "local clients may have them all", loopback_test);
	rows_one(&r, "a drain cuts who is not busy, the others at their end", drain_test);
	ROWS(&r, listen_test, listens);
	rows_one(&r, "listen: a port in use is told by its number", in_use_test);
	rows_one(&r, "a client's address has no port, and is IPv4 where it can be", peer_test);
	return rows_run(&r, "api_conns");
}
