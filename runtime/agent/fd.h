/* SPDX-License-Identifier: MIT */
/* fd.h - descriptors: closing, and small files read whole. */
#ifndef BERTH_AGENT_FD_H
#define BERTH_AGENT_FD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <unistd.h>

#define _cleanup_close_ __attribute__((cleanup(fd_close)))

/* Closes *fd unless it is negative, and makes it -1. */
void fd_close(int *fd);

/* 0 or -1. */
int fd_nonblock(int fd);

/* Closes every descriptor above 2 but those named, which are left as they are. Sorts `keep`. */
void fd_keep_only(int *keep, size_t count);

/* Reads up to size - 1 bytes and ends them with NUL. The length; -1 when it cannot be read. */
ssize_t fd_read_text(int dir_fd, const char *path, char *text, size_t size);

/* All of it, or -1. */
int fd_write_all(int fd, const void *bytes, size_t len);

#endif
