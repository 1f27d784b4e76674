/* SPDX-License-Identifier: MIT */
/* entry.h - what the kernel says of a file, as a built-in tells it. */
#ifndef BERTH_AGENT_ENTRY_H
#define BERTH_AGENT_ENTRY_H

#include <limits.h>
#include <sys/stat.h>

#include "runtime/protocol/builtin.h"

/* Texts for an entry, borrowed, cut to what one may hold: PATH_MAX and PROTO_DETAIL_MAX bytes. */
struct proto_text entry_path(const char *path);
struct proto_text entry_detail(const char *detail);

/* Fills it from a stat; `path` is borrowed. */
void entry_of(struct builtin_entry *ret, const char *path, const struct stat *st);

/*
 * Looks at `name` in the folder dir_fd, a symlink itself and not what it names, and fills *ret; a symlink's
 * target lies in `target`, which must live as long. 0, or the errno, which then stands in *ret.
 */
int entry_look(struct builtin_entry *ret, const char *path, int dir_fd, const char *name,
	       char target[PATH_MAX]);

#endif
