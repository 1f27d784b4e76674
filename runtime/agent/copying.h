/* SPDX-License-Identifier: MIT */
/*
 * copying.h - copies what stands at a name to another name, as `mv` does between file systems: contents,
 * modes, times of files and folders, symlinks as they are. Hard links become files of their own; devices and
 * mounts are refused.
 */
#ifndef BERTH_AGENT_COPYING_H
#define BERTH_AGENT_COPYING_H

#include <limits.h>
#include <stdbool.h>

struct copying {
	int cancel;               /* of cancel_open() */
	bool cancelled;           /* set on failure: because of it */
	const char *why;          /* set on failure: what errno does not say, or NULL */
	char where[NAME_MAX + 1]; /* the name that was copied last */
};

/* 0, or -1 with errno; what was copied so far is left to the caller. Nothing may stand at the new name. */
int copying_run(struct copying *c, int from_dir, const char *from, int to_dir, const char *to);

#endif
