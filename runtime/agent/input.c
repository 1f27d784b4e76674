/* SPDX-License-Identifier: MIT */
#include "runtime/agent/input.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/agent/fd.h"
#include "runtime/protocol/protocol.h"

#define PAGE 4096u
#define PUNCH_BYTES (64 * 1024u)

int input_open(struct input *in, int pipe_fd)
{
	int fd = memfd_create("input", MFD_CLOEXEC);

	if (fd < 0)
		return -1;
	in->fd = fd;
	in->pipe.fd = pipe_fd;
	return 0;
}

void input_clear(struct input *in, struct loop *l)
{
	loop_close(l, &in->pipe);
	fd_close(&in->fd);
	in->from = in->to = in->punched = in->credit = in->owed = in->unaccounted = 0;
	in->eof = false;
}

void input_attach(struct input *in)
{
	in->credit = PROTO_JOB_WINDOW;
	in->owed = 0;
	in->unaccounted = in->to - in->from;
}

/* Bytes left the queue: the memfd's pages go at once, the credit later. */
static void consumed(struct input *in, uint64_t len)
{
	uint64_t old = len < in->unaccounted ? len : in->unaccounted;

	in->unaccounted -= old;
	in->owed += len - old;
	in->from += len;
	if (in->from == in->to) {
		(void)ftruncate(in->fd, 0);
		in->from = in->to = in->punched = 0;
	} else if (in->from - in->punched >= PUNCH_BYTES) {
		uint64_t edge = in->from / PAGE * PAGE;
		(void)fallocate(in->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)in->punched,
				(off_t)(edge - in->punched));
		in->punched = edge;
	}
}

/* The job does not read any more, or memory is gone: what comes is thrown away, for its sender must not hang.
 */
static void give_up(struct input *in, struct loop *l)
{
	loop_close(l, &in->pipe);
	consumed(in, in->to - in->from);
}

bool input_append(struct input *in, struct loop *l, const uint8_t *bytes, size_t len)
{
	if (len > in->credit)
		return false;
	in->credit -= len;
	in->taken += len;
	if (in->pipe.fd >= 0 && pwrite(in->fd, bytes, len, (off_t)in->to) != (ssize_t)len)
		give_up(in, l);
	in->to += len;
	if (in->pipe.fd < 0)
		consumed(in, in->to - in->from);
	else
		(void)loop_watch(l, &in->pipe, EPOLLOUT);
	return true;
}

void input_finish(struct input *in, struct loop *l)
{
	in->eof = true;
	if (in->from == in->to)
		loop_close(l, &in->pipe);
}

/* A pipe without a reader says so only to who asks: it is watched while there is something to write. */
bool input_is_open(const struct input *in)
{
	struct pollfd p = { .fd = in->pipe.fd };

	if (in->pipe.fd < 0 || in->eof)
		return false;
	return poll(&p, 1, 0) <= 0 || !(p.revents & POLLERR);
}

void input_flush(struct input *in, struct loop *l, uint8_t *buffer, size_t size)
{
	uint64_t left = in->to - in->from;
	size_t want = left < size ? (size_t)left : size;
	ssize_t n = want > 0 ? pread(in->fd, buffer, want, (off_t)in->from) : 0;

	if (n > 0)
		n = write(in->pipe.fd, buffer, (size_t)n);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < 0) {
		give_up(in, l);
		return;
	}
	consumed(in, (uint64_t)n);
	if (in->from < in->to)
		return;
	(void)loop_watch(l, &in->pipe, 0);
	if (in->eof)
		loop_close(l, &in->pipe);
}
