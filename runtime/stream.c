/* SPDX-License-Identifier: MIT */
#include "runtime/stream.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

static ssize_t fd_read(struct stream *s, void *bytes, size_t size)
{
	for (;;) {
		ssize_t n = recv(s->fd, bytes, size, 0);
		if (n >= 0 || errno != EINTR)
			return n >= 0 ? n : -errno;
	}
}

static ssize_t fd_write(struct stream *s, const void *bytes, size_t len)
{
	for (;;) {
		ssize_t n = send(s->fd, bytes, len, MSG_NOSIGNAL);
		if (n >= 0 || errno != EINTR)
			return n >= 0 ? n : -errno;
	}
}

static const char *fd_complaint(struct stream *s)
{
	(void)s;
	return "";
}

static void fd_close(struct stream *s)
{
	close(s->fd);
	free(s);
}

static const struct stream_ops fd_ops = { fd_read, fd_write, fd_complaint, fd_close };

struct stream *stream_of_fd(int fd)
{
	int flags = fcntl(fd, F_GETFL);
	assert(flags >= 0);
	/* Setting O_NONBLOCK on a socket that is open cannot fail (fcntl(2)). */
	(void)fcntl(fd, F_SETFL, flags | O_NONBLOCK);
	struct stream *s = xcalloc(1, sizeof(*s));
	*s = (struct stream){ .ops = &fd_ops, .fd = fd };
	return s;
}
