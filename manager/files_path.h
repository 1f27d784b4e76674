/* SPDX-License-Identifier: MIT */
/* files_path.h - paths of a sandbox as text: bytes without NUL, not looked up anywhere. Pure. */
#ifndef BERTH_FILES_PATH_H
#define BERTH_FILES_PATH_H

#include "base/err.h"

/* Counted from `folder` when it is relative; "." and double slashes go, ".." stays: what it means depends on
 * symlinks. "" is the folder itself. Owned by the caller. */
char *files_path_absolute(const char *folder, const char *path) NODISCARD;

/*
 * Is it, or is above, one of the places that are never deleted: /, /tmp, HOME, /conversation_history, the
 * workspace? By its text with ".." resolved; the agent judges what symlinks make of it.
 */
bool files_path_is_kept(const char *workspace, const char *absolute);

#endif
