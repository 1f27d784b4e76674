/* SPDX-License-Identifier: MIT */
/*
 * tree.h - a local folder as a plain tar stream, and such a stream as a folder. Files, folders and symlinks
 * that stay within; all else is left out and named on stderr.
 *
 * What comes out of a sandbox is hostile: nothing is written outside of the target, through a symlink, or
 * with set-id bits.
 */
#ifndef BERTH_CLI_TREE_H
#define BERTH_CLI_TREE_H

#include <sys/types.h>

#include "base/err.h"

/* ---- out: a folder being packed, pulled by its reader ---- */

struct tree;

/* What is in the folder, without its own name. ERR_INVALID: it cannot be read. */
int tree_open(const char *folder, struct tree **ret, struct err *e) NODISCARD;
/* The next bytes of the stream: how many, 0 at its end, or a negative code. */
ssize_t tree_read(struct tree *t, char *room, size_t size, struct err *e) NODISCARD;
/* Entries that were left out so far. */
size_t tree_left_out(const struct tree *t);
void tree_free(struct tree *t);
DEFINE_CLEANUP(struct tree *, tree_free)

/* ---- in: a stream being unpacked, on a thread of its own ---- */

struct tree_in;

/* Unpacks what is written to *ret_fd, which the caller closes at the end, into the folder, which is there.
 * The program's own folder changes to it. */
int tree_in_start(const char *folder, struct tree_in **ret, int *ret_fd, struct err *e) NODISCARD;
/* Waits for its end and frees it. *ret_left_out: entries that were not written. */
int tree_in_finish(struct tree_in *t, size_t *ret_left_out, struct err *e) NODISCARD;

/* Would a symlink `name` (relative, without "..") with this target lead out of the folder? Pure. */
bool tree_link_leaves(const char *name, const char *target);

#endif
