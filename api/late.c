/* SPDX-License-Identifier: MIT */
#include "api/late.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"

#define SEND_MS 5000
#define DRAIN_MS 10000

static bool wait_for(int fd, short events, int64_t deadline_ms)
{
	struct pollfd p = { .fd = fd, .events = events };
	int n;

	do
		n = poll(&p, 1, (int)clock_left_ms(deadline_ms));
	while (n < 0 && errno == EINTR);
	return n > 0;
}

static bool send_all(int fd, const char *bytes, size_t len, int64_t deadline_ms)
{
	while (len) {
		ssize_t n = send(fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return false;
		if (n < 0 && !wait_for(fd, POLLOUT, deadline_ms))
			return false;
		bytes += MAX(n, 0);
		len -= (size_t)MAX(n, 0);
	}
	return true;
}

static void drain(int fd)
{
	char waste[16384];
	int64_t deadline = clock_mono_ms() + DRAIN_MS;

	while (clock_left_ms(deadline) > 0 && wait_for(fd, POLLIN, deadline)) {
		ssize_t n = recv(fd, waste, sizeof(waste), MSG_DONTWAIT);
		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
			return;
	}
}

void late_answer(int fd, const struct response *rs, const char *reason)
{
	_cleanup_buf_ struct buf head = BUF_INIT(4096);
	int64_t deadline = clock_mono_ms() + SEND_MS;
	struct err e;
	int r = buf_addf(&head, &e, "HTTP/1.1 %d %s\r\n", rs->status, reason);

	for (size_t i = 0; i < rs->header_count && !r; i++)
		r = buf_addf(&head, &e, "%s: %s\r\n", rs->headers[i].name, rs->headers[i].value);
	if (!r)
		r = buf_addf(
			&head, &e,
			"Content-Type: application/json\r\nCache-Control: no-store\r\n"
			"X-Content-Type-Options: nosniff\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n",
			rs->body_len);
	if (r || !send_all(fd, head.data, head.len, deadline) ||
	    !send_all(fd, rs->body, rs->body_len, deadline))
		return;
	(void)shutdown(fd, SHUT_WR);
	drain(fd);
}
