/* SPDX-License-Identifier: MIT */
/*
 * folders.h - the modes and times that folders get when all is written into them, deepest first.
 *
 * What is noted is held in memory that is taken as it is used, up to a bound.
 */
#ifndef BERTH_AGENT_FOLDERS_H
#define BERTH_AGENT_FOLDERS_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "runtime/agent/findings.h"

#define FOLDERS_MAX BUILTIN_UNPACK_ENTRIES

struct folders {
	uint8_t *notes;  /* one behind the other */
	uint32_t *index; /* where each begins */
	size_t used, count;
};

/* 0 or -1 with errno. */
int folders_init(struct folders *f);

/* The mtime is left alone when tv_nsec is UTIME_OMIT. 0, or -1 with ENOMEM when there is no room. A path that
 * comes again replaces what was noted. */
int folders_note(struct folders *f, const char *path, unsigned mode, const struct timespec *mtime);

/* Sets them. What cannot be set is refused in the findings. */
void folders_apply(struct folders *f, int root, struct findings *findings);

#endif
