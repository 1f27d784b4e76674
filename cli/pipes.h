/* SPDX-License-Identifier: MIT */
/* pipes.h - our own stdin and stdout, read and written so that a signal always gets through. */
#ifndef BERTH_CLI_PIPES_H
#define BERTH_CLI_PIPES_H

#include <errno.h>

#include "base/buf.h"
#include "cli/interrupt.h"

/* Is fd a pipe, a file or a socket: something that ends, and not a terminal or /dev/null? */
bool pipes_has_input(int fd);

/*
 * Reads to the end. ERR_TOO_LARGE past the buffer's maximum; ERR_TIMEOUT after a signal. Says so on stderr
 * when there is no end after 10 s, since whoever holds an open pipe may not know.
 */
int pipes_read(int fd, struct interrupt *i, struct buf *ret, struct err *e) NODISCARD;

/* The next bytes, once there are any: how many, 0 at the end, or a negative code. ERR_TIMEOUT after a signal.
 */
ssize_t pipes_read_some(int fd, struct interrupt *i, char *room, size_t size, struct err *e) NODISCARD;

/*
 * Writes all. ERR_GONE when nobody reads any more, which pipes_is_unread() tells from a session that is gone;
 * ERR_TIMEOUT when a signal has come and the
 * reader stands still.
 */
int pipes_write(int fd, struct interrupt *i, const void *bytes, size_t len, struct err *e) NODISCARD;

static inline bool pipes_is_unread(const struct err *e)
{
	return e->code == ERR_GONE && e->sys == EPIPE;
}

#endif
