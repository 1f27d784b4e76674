/* SPDX-License-Identifier: MIT */
/*
 * removal.h - takes away what stands at a name, with all that is below it, while others change it.
 *
 * Nothing is removed through a symlink or beyond a mount. What is done is done: a failure in the middle
 * leaves the rest.
 */
#ifndef BERTH_AGENT_REMOVAL_H
#define BERTH_AGENT_REMOVAL_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

/* Folders that stay, whatever path leads to them. */
#define REMOVAL_KEPT_MAX 24
struct removal_kept {
	size_t count;
	struct {
		dev_t dev;
		ino_t ino;
	} all[REMOVAL_KEPT_MAX];
};

/* Adds the folder at a path, and the symlink that may stand there; nothing when there is none, or no room. */
void removal_keep(struct removal_kept *kept, const char *path);

/* Adds the root, the writable places of a sandbox, HOME and the current folder. */
void removal_keep_places(struct removal_kept *kept);

/* Is it one of them? */
bool removal_is_kept(const struct removal_kept *kept, const struct stat *st);

struct removal {
	const struct removal_kept *kept; /* may be NULL */
	bool recursive;                  /* else a folder must be empty */
	const char *why;                 /* set on failure: what errno does not say, or NULL */
	char where[NAME_MAX + 1];        /* set on failure: the name below that could not be removed; or "" */
};

/*
 * Removes `name` in the folder dir. 0, or -1 with errno: ENOENT; ENOTEMPTY; EPERM for a folder that stays;
 * EBUSY for a mount point; what unlinkat(2) says.
 */
int removal_run(struct removal *r, int dir, const char *name);

#endif
