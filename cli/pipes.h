/* SPDX-License-Identifier: MIT */
/* pipes.h - our own stdin and stdout, read and written so that a signal always gets through. */
#ifndef BERTH_CLI_PIPES_H
#define BERTH_CLI_PIPES_H

#include "base/buf.h"
#include "cli/interrupt.h"

/* Is fd a pipe, a file or a socket: something that ends, and not a terminal or /dev/null? */
bool pipes_has_input(int fd);

/*
 * Reads to the end. ERR_TOO_LARGE past the buffer's maximum; ERR_TIMEOUT after a signal. Says so on stderr
 * when there is no end after 10 s, since whoever holds an open pipe may not know.
 */
int pipes_read(int fd, struct interrupt *i, struct buf *ret, struct err *e) NODISCARD;

/*
 * Writes all. ERR_GONE when nobody reads any more (EPIPE); ERR_TIMEOUT when a signal has come and the
 * reader stands still.
 */
int pipes_write(int fd, struct interrupt *i, const void *bytes, size_t len, struct err *e) NODISCARD;

#endif
