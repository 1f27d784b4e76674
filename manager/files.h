/* SPDX-License-Identifier: MIT */
/*
 * files.h - files of a session, for the faces: each call is one built-in job in the sandbox, which waits with
 * deadlines. Bytes in bulk: files_stream.h.
 *
 * Any thread. Paths are bytes without NUL, at most PATH_MAX of them are of use; relative ones count from the
 * workspace. Errors of all of them, beside those of files_error(): as builtin_start() and builtin_next().
 */
#ifndef BERTH_FILES_H
#define BERTH_FILES_H

#include "manager/manager.h"

#define FILES_TAG_SIZE 72
#define FILES_PATHS_MAX 4096  /* of one stat or delete */
#define FILES_LIST_MAX 100000 /* entries of one list */

/* On whose behalf. Borrowed for the call, or as long as what it opens is open. */
struct files_caller {
	struct session *session;
	const struct caller *who;
	int client_fd;  /* whose hang-up ends it; -1: nobody's */
	const char *as; /* what it counts as in metrics; NULL: what it is */
};

struct file_entry {
	const char *path; /* absolute, symlinks not resolved; path_len exact bytes */
	size_t path_len;
	const char *type;   /* "file", "dir", "symlink", "fifo", "socket", "char", "block" */
	unsigned mode;      /* permission bits */
	uint64_t size;      /* bytes */
	int64_t mtime_ms;   /* since the epoch */
	const char *target; /* of a symlink, target_len bytes; NULL: none */
	size_t target_len;
	bool is_new;              /* of a write: there was no file before */
	char tag[FILES_TAG_SIZE]; /* of this version of it: an ETag without quotes */
	struct err err;           /* why there is nothing but a path; code 0: all is well */
};

/* Gets an entry; what it points to is borrowed until it returns. A negative code ends the call with *e. */
typedef int (*file_entry_fn)(void *ctx, const struct file_entry *entry, struct err *e);

/* What an errno of a file means: ERR_NOT_FOUND, ERR_FORBIDDEN, ERR_CONFLICT, ERR_NO_SPACE, ERR_PRECONDITION,
 * ERR_TOO_LARGE, or ERR_UNPROCESSABLE. `about` says which file, and why when that is not all (len 0:
 * nothing). */
int files_error(struct err *e, int sys, const char *about, size_t about_len, const char *why, size_t why_len);

/* The absolute form of a path, as entries have it; owned by the caller. */
char *files_absolute(const struct files_caller *c, const char *path) NODISCARD;

/* An entry for each path, in their order. */
int files_stat(const struct files_caller *c, const char *const *paths, size_t count, file_entry_fn fn,
	       void *ctx, struct err *e) NODISCARD;
struct files_wanted {
	const char *path;
	bool recursive; /* without .git and node_modules */
	unsigned max;   /* entries, up to FILES_LIST_MAX */
};
/* What is in a folder, in byte order of the paths; a path that is no folder is its own only entry. */
int files_list(const struct files_caller *c, const struct files_wanted *what, file_entry_fn fn, void *ctx,
	       bool *ret_truncated, struct err *e) NODISCARD;
/* With its parents; one that is there is fine. */
int files_mkdir(const struct files_caller *c, const char *path, struct err *e) NODISCARD;
int files_move(const struct files_caller *c, const char *from, const char *to, struct err *e) NODISCARD;
/* An entry for each path, in their order: only its path and err count. */
int files_delete(const struct files_caller *c, const char *const *paths, size_t count, bool recursive,
		 file_entry_fn fn, void *ctx, struct err *e) NODISCARD;

/* ---- for the manager's own ---- */

struct builtin_entry;
/* path: its own bytes when NULL. Texts are borrowed. */
void files_entry(const struct builtin_entry *from, const char *path, struct file_entry *ret);
enum files_act {
	FILES_STAT,
	FILES_LIST,
	FILES_MKDIR,
	FILES_MOVE,
	FILES_DELETE,
	FILES_READ,
	FILES_WRITE,
	FILES_PACK,
	FILES_UNPACK,
};
/* Counts and audits an act on a path; err code 0: it went well. bytes: of its content. */
void files_note(const struct files_caller *c, enum files_act act, const char *path, const struct err *err,
		int64_t bytes);

#endif
