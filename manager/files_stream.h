/* SPDX-License-Identifier: MIT */
/*
 * files_stream.h - bytes out of and into a session's files and archives, in constant memory: a reader or a
 * writer is one built-in job, and belongs to one thread. Each leaves an audit row when it is freed.
 *
 * Errors as in files.h; after one a reader or writer can only be freed.
 */
#ifndef BERTH_FILES_STREAM_H
#define BERTH_FILES_STREAM_H

#include "manager/files.h"

struct files_reader;
struct files_writer;

/* ---- out ---- */

/*
 * Opens a regular file and waits for what it is. length 0: to its end. A probe reads one byte at most and
 * leaves no audit row.
 */
int files_read(const struct files_caller *c, const char *path, uint64_t offset, uint64_t length,
	       struct files_reader **ret, struct err *e) NODISCARD;
int files_probe(const struct files_caller *c, const char *path, struct files_reader **ret,
		struct err *e) NODISCARD;
/* Packs a folder or a file. format: "tar", "tar.gz" or "tar.zst". */
int files_pack(const struct files_caller *c, const char *path, const char *format, struct files_reader **ret,
	       struct err *e) NODISCARD;
/* Borrowed from the reader. */
const struct file_entry *files_reader_get_entry(const struct files_reader *r);
/* 1: the next bytes, at least one, borrowed until the next call; 0: it was all, and whole. */
int files_reader_next(struct files_reader *r, const char **ret_bytes, size_t *ret_len,
		      struct err *e) NODISCARD;
/* Takes NULL. Ends what has not ended. */
void files_reader_free(struct files_reader *r);
DEFINE_CLEANUP(struct files_reader *, files_reader_free)

/* ---- in ---- */

/*
 * Opens a file to be written: it is there, whole, once files_write_commit() says so, and nothing of it
 * before. mode: octal text for a file that is new, "" for the usual; want: "" whatever is there, "new" only
 * if there is none (else ERR_CONFLICT), "old" only if there is one, or the tag that it must have
 * (ERR_PRECONDITION).
 */
int files_write(const struct files_caller *c, const char *path, const char *mode, const char *want,
		struct files_writer **ret, struct err *e) NODISCARD;
/* Unpacks what is given into a folder. format: as above, or "": what it looks like. */
int files_unpack(const struct files_caller *c, const char *path, const char *format,
		 struct files_writer **ret, struct err *e) NODISCARD;
/* As fast as the sandbox takes them. */
int files_writer_add(struct files_writer *w, const void *bytes, size_t len, struct err *e) NODISCARD;

/* That was all. *ret is borrowed from the writer. */
int files_write_commit(struct files_writer *w, const struct file_entry **ret, struct err *e) NODISCARD;

struct files_report {
	uint64_t entries, bytes; /* written */
	uint64_t refused;        /* entries that were not */
	bool truncated;          /* more were refused than fn was told */
};
/* fn is told of each entry that was refused. When all of it failed, *ret is filled, too. */
int files_unpack_commit(struct files_writer *w, file_entry_fn fn, void *ctx, struct files_report *ret,
			struct err *e) NODISCARD;
/* Takes NULL. What was not committed leaves nothing behind, but for what an archive had written by then. */
void files_writer_free(struct files_writer *w);
DEFINE_CLEANUP(struct files_writer *, files_writer_free)

#endif
