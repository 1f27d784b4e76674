/* SPDX-License-Identifier: MIT */
/*
 * tar_header.h - what stands before a file in a tar archive. Pure.
 *
 * Ustar, and before it a pax header (POSIX.1-2001, pax(1)) for whatever ustar cannot say: times that are no
 * whole seconds, long names, names that are not ASCII, large sizes. Names are written as the bytes they are:
 * GNU tar, Python and libarchive read them so, while the pax way of saying that they are no UTF-8
 * ("hdrcharset") makes GNU tar complain.
 */
#ifndef BERTH_AGENT_TAR_HEADER_H
#define BERTH_AGENT_TAR_HEADER_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define TAR_BLOCK 512
/* two names of PATH_MAX, two numbers, and three blocks that may be filled in part */
#define TAR_HEADER_MAX (2 * 4096 + 4 * TAR_BLOCK)

enum tar_type { TAR_FILE = '0', TAR_SYMLINK = '2', TAR_DIR = '5' };

struct tar_member {
	enum tar_type type;
	const char *name;   /* less than PATH_MAX; of a folder without "/" at the end */
	const char *target; /* of a symlink, less than PATH_MAX; else NULL */
	unsigned mode;      /* 0777 */
	uint64_t size;      /* bytes that follow, filled up to TAR_BLOCK */
	struct timespec mtime;
};

/* The bytes written, a multiple of TAR_BLOCK. */
size_t tar_header_encode(const struct tar_member *member, uint8_t out[TAR_HEADER_MAX]);

#endif
