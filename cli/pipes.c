/* SPDX-License-Identifier: MIT */
#include "cli/pipes.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <sys/stat.h>

#include "cli/say.h"

#define QUIET_MS 10000
#define READ_SIZE 65536

bool pipes_has_input(int fd)
{
	struct stat st;
	return !fstat(fd, &st) && (S_ISFIFO(st.st_mode) || S_ISREG(st.st_mode) || S_ISSOCK(st.st_mode));
}

/* 1: fd is ready (also for its end); 0: nothing in time; -1: a signal is there and fd is not ready. */
static int await(int fd, short events, int signal_fd, int timeout_ms)
{
	struct pollfd fds[] = { { .fd = fd, .events = events }, { .fd = signal_fd, .events = POLLIN } };
	int n = 0;
	do
		n = poll(fds, ARRAY_LEN(fds), timeout_ms);
	while (n < 0 && errno == EINTR);
	if (n > 0 && fds[0].revents)
		return 1;
	return n > 0 ? -1 : 0;
}

static int interrupted(struct interrupt *i, struct err *e)
{
	interrupt_take(i);
	return err_set(e, ERR_TIMEOUT, "interrupted");
}

int pipes_read(int fd, struct interrupt *i, struct buf *ret, struct err *e)
{
	_cleanup_free_ char *piece = xcalloc(1, READ_SIZE);
	bool said = false;
	for (;;) {
		int ready = await(fd, POLLIN, i->fd, said ? -1 : QUIET_MS);
		if (!ready) {
			say("stdin is open and has not ended; waiting for its end (--no-stdin does without "
			    "it)");
			said = true;
			continue;
		}
		if (ready < 0)
			return interrupted(i, e);
		ssize_t n = read(fd, piece, READ_SIZE);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n < 0)
			return err_sys(e, ERR_INTERNAL, errno, "cannot read stdin");
		if (!n)
			return 0;
		int rc = buf_add(ret, piece, (size_t)n, e);
		if (rc)
			return rc;
	}
}

ssize_t pipes_read_some(int fd, struct interrupt *i, char *room, size_t size, struct err *e)
{
	for (;;) {
		if (await(fd, POLLIN, i->fd, -1) < 0)
			return interrupted(i, e);
		ssize_t n = read(fd, room, size);
		if (n >= 0)
			return n;
		if (errno != EINTR && errno != EAGAIN)
			return err_sys(e, ERR_INTERNAL, errno, "cannot read");
	}
}

int pipes_write(int fd, struct interrupt *i, const void *bytes, size_t len, struct err *e)
{
	const char *at = bytes;
	while (len) {
		if (await(fd, POLLOUT, i->fd, -1) < 0)
			return interrupted(i, e);
		/* A pipe that is ready takes PIPE_BUF bytes without blocking (pipe(7)), more might. */
		ssize_t n = write(fd, at, MIN(len, PIPE_BUF));
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n < 0)
			return errno == EPIPE
				       ? err_sys(e, ERR_GONE, errno, "nobody reads the output any more")
				       : err_sys(e, ERR_NO_SPACE, errno, "cannot write the output");
		at += n;
		len -= (size_t)n;
	}
	return 0;
}
