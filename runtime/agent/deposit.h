/* SPDX-License-Identifier: MIT */
/*
 * deposit.h - files and symlinks that appear under their name whole or not at all, in a folder that is held
 * by a descriptor. A file or symlink of that name is replaced; a folder is EISDIR.
 *
 * A file has no name until it is whole, where the file system can do that (O_TMPFILE, open(2)): then nothing
 * is left of it when its writer is killed.
 */
#ifndef BERTH_AGENT_DEPOSIT_H
#define BERTH_AGENT_DEPOSIT_H

#include <time.h>

#include "runtime/agent/temp.h"

struct deposit {
	int dir;                   /* borrowed */
	int fd;                    /* of the file, to be written to */
	char temporary[TEMP_NAME]; /* "" while it has no name */
};

/* 0, or -1 with errno. Mode 0600. Ends with deposit_close() in any case. */
int deposit_open(struct deposit *d, int dir);
int deposit_publish(struct deposit *d, const char *name);
void deposit_close(struct deposit *d);

int deposit_link(int dir, const char *name, const char *target, const struct timespec times[2]);

#endif
