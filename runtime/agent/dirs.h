/* SPDX-License-Identifier: MIT */
/*
 * dirs.h - a walk through a tree: the folders from its top down to the one that is read now.
 *
 * Folders are opened by their name in the one above and never through a symlink, so a tree that others change
 * meanwhile leads nowhere else. Few are held open, however deep it goes: the way up is "..", taken only when
 * it leads to the folder that it came from.
 */
#ifndef BERTH_AGENT_DIRS_H
#define BERTH_AGENT_DIRS_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define DIRS_OPEN 16         /* folders held open, and the top */
#define DIRS_DEPTH_MAX 65536 /* then ENAMETOOLONG */
#define DIRS_BYTES 8192

struct dirs_level {
	int fd; /* -1: closed for a deeper one */
	dev_t dev;
	ino_t ino;
	off_t at;       /* where reading goes on (getdents(2), d_off) */
	char *name;     /* in the level above; NULL at the top */
	unsigned tries; /* the caller's, 0 at first */
};

struct dirs {
	struct dirs_level *all;
	size_t count, room;
	size_t from, to; /* of bytes: read from the last level and not handed out */
	_Alignas(struct dirent64) char bytes[DIRS_BYTES];
};

#define _cleanup_dirs_ __attribute__((cleanup(dirs_clear)))

/* Begins at a folder that is open; the descriptor moves in, also when it fails. All 0 before. 0 or -1. */
int dirs_begin(struct dirs *d, int fd);

/* Goes down into a folder of this name. 0, or -1 with errno; a symlink is ENOTDIR or ELOOP. */
int dirs_enter(struct dirs *d, const char *name);

/* Goes up. 0, or -1 with EBUSY when the folder above is another than before; then the walk is over. */
int dirs_leave(struct dirs *d);

/* The level that is read, which there must be. Valid until the next call. */
struct dirs_level *dirs_last(const struct dirs *d);

/*
 * The next entry of the last level, "." and ".." left out. Valid until the next call. NULL at the end, with
 * errno 0, or when it cannot be read.
 */
const struct dirent64 *dirs_next(struct dirs *d);

/* Is the entry a folder? Asks the file system where the folder does not say. */
bool dirs_is_folder(struct dirs *d, const struct dirent64 *e);

/* Is the last level mounted on the one above? */
bool dirs_is_mount(const struct dirs *d);

void dirs_clear(struct dirs *d);

#endif
