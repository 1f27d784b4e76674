/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "runtime/stream.h"
#include "tests/unit/rows.h"

static struct stream *pair(int *ret_other)
{
	int fds[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	*ret_other = fds[1];
	return stream_of_fd(fds[0]);
}

static void test_read(void **state)
{
	char out[8] = "";
	int other;
	struct stream *s = pair(&other);
	(void)state;
	assert_int_equal(s->ops->read(s, out, sizeof(out)), -EAGAIN);
	assert_int_equal(send(other, "hello", 5, 0), 5);
	assert_int_equal(s->ops->read(s, out, sizeof(out)), 5);
	assert_string_equal(out, "hello");
	close(other);
	assert_int_equal(s->ops->read(s, out, sizeof(out)), 0);
	assert_string_equal(s->ops->complaint(s), "");
	stream_close(s);
}

/* SIGPIPE would end the test. */
static void test_write(void **state)
{
	static char piece[1 << 16];
	int other;
	ssize_t n, total = 0;
	struct stream *s = pair(&other);
	(void)state;
	while ((n = s->ops->write(s, piece, sizeof(piece))) > 0)
		total += n;
	assert_int_equal(n, -EAGAIN);
	assert_true(total > 0);
	close(other);
	assert_int_equal(s->ops->write(s, piece, 1), -EPIPE);
	stream_close(s);
	stream_close(NULL);
}

int main(void)
{
	struct rows r = { 0 };
	rows_one(&r, "reads give bytes, then EAGAIN, then the end", test_read);
	rows_one(&r, "writes give what fits, then EAGAIN, then EPIPE without a signal", test_write);
	return rows_run(&r, "stream");
}
