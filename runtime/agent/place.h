/* SPDX-License-Identifier: MIT */
/*
 * place.h - where a path leads, as a folder that is open and a name in it, so that what follows does not look
 * the path up again while a job moves things about.
 */
#ifndef BERTH_AGENT_PLACE_H
#define BERTH_AGENT_PLACE_H

#include <limits.h>
#include <stdbool.h>

#include "runtime/agent/fd.h"

struct place {
	int dir;    /* O_PATH: the deepest folder on the way that is there */
	char *rest; /* borrowed from text: the folders below it that are not, then the name */
	char text[PATH_MAX];
};

#define _cleanup_place_ __attribute__((cleanup(place_clear)))

/*
 * Finds it; the last component is not followed. A path that ends with a slash has an empty name. 0, or -1
 * with errno: ENOENT for an empty path, ENAMETOOLONG from PATH_MAX on, ENOTDIR, EACCES ...
 */
int place_find(struct place *p, const char *path);

/* As place_find(), but slashes at the end of the path do not count. */
int place_find_folder(struct place *p, const char *path);

/* Follows a symlink that stands there, and the next, to a name that is none; its folder must be there. 0 or
 * -1. */
int place_follow(struct place *p);

/* Are all folders there, so that rest is the name alone? */
bool place_is_whole(const struct place *p);

/* Makes the folders that are not, with what umask leaves of 0777. 0 or -1. */
int place_make(struct place *p);

/* Is it a name that a file can have: not empty, not "." or ".."? */
bool place_has_name(const struct place *p);

/*
 * Finds what an operation on names shall work on: slashes at the end do not count, but then it must be no
 * file or symlink (ENOTDIR); all folders must be there (ENOENT). 0 or -1; place_has_name() is not asked.
 */
int place_find_name(struct place *p, const char *path);

/* Closes it; it may be all 0 but dir, which is then -1. */
void place_clear(struct place *p);

#endif
