/* SPDX-License-Identifier: MIT */
/* clang-format off */
/*
 * builtin.h - the jobs that the agent does itself, in the place of a command: files and archives.
 * Pure, as protocol.h; linked into both sides.
 *
 * A START with PROTO_F_BUILTIN names one of the table below; its arguments follow as PROTO_F_ARG: paths
 * as raw bytes, numbers as decimal text. It runs in the child of the job's supervisor, with the uid, the
 * limits and the places of the sandbox, so that whatever hangs or is killed is that one job. Relative
 * paths count from the spec's cwd. It exits with 0 when its output says all there is to say, failures
 * included; any other end means that it was killed, or that its output is not to be believed. A name that
 * is none, or the wrong number of arguments, is a start_failed with the detail "no_builtin" and the errno
 * ENOSYS or EINVAL.
 *
 * Its output on stdout is a list of fields, each a PROTO_F_ENTRY (a nested field list, decoded by
 * builtin_entry_decode) or, last, one PROTO_F_DONE. `read` and `pack` send one entry and then raw bytes;
 * only the entry when it has an errno.
 *
 *   name    arguments           stdin    stdout
 *   read    PATH OFFSET LENGTH  -        ENTRY of the open file (errno 0), then bytes: at most LENGTH (0: to its
 *                                        end) from OFFSET; only regular files. A file that has no size (/proc)
 *                                        is read to its end, at most BUILTIN_SIZELESS_MAX; one that grows, to
 *                                        the size it had
 *   write   PATH MODE WANT      content  ENTRY of the new file. MODE: octal, for a file that is new; "" is 644.
 *                                        WANT: "" any, "new" only if there is none (EEXIST), "old" only if there
 *                                        is one (ESTALE), else a tag that the file must have (ESTALE)
 *   list    PATH RECURSIVE MAX  -        ENTRYs of what is in the folder in byte order of their paths, the first
 *                                        MAX, then DONE. What is no folder: its own ENTRY. RECURSIVE leaves out
 *                                        folders named .git and node_modules, with all in them; `refused` is how
 *                                        many folders could not be read, and names too long for a path. When it
 *                                        could not begin, there is no ENTRY and DONE has an errno
 *   stat    PATH...             -        an ENTRY for each, in order
 *   mkdir   PATH                -        an ENTRY; parents are made; a folder that is there is fine
 *   move    FROM TO             -        an ENTRY of TO. As rename(2): a folder TO is not moved into; across file
 *                                        systems by a copy that gets its name when it is whole. What `delete`
 *                                        never deletes is never moved
 *   delete  RECURSIVE PATH...   -        an ENTRY for each, in order. EPERM: /, the writable places of a
 *                                        sandbox, HOME and the spec's cwd; EBUSY: a mount point. A symlink
 *                                        itself goes; a failure leaves what was not removed yet
 *   ports   PID...              -        an ENTRY for each TCP port on which the job of that leader listens:
 *                                        `pid` and `size` (the port)
 *   pack    PATH FORMAT         -        ENTRY of the folder, then the archive; what was left out on stderr
 *                                        (SPLIT) as ENTRYs, then DONE
 *   unpack  PATH FORMAT         archive  ENTRYs of what was refused, at most BUILTIN_REPORT_MAX, then DONE
 *
 * RECURSIVE is "1" or "0". FORMAT is "tar", "tar.gz" or "tar.zst"; unpack also takes "" (looks for itself).
 * In an entry `path` is as it was given (the first PATH_MAX bytes of it, should it be longer), or that joined
 * with what is below it.
 * `write` ends well only after the end of its stdin; its entry's `detail` is "new" when there was no file
 * before. One that is cancelled first gets SIGTERM, and takes its temporary file away.
 *
 * In the reports of `pack` and `unpack` a path is the name in the archive. `pack` takes a single file, too, and
 * then has it alone. It stores files (each whole), folders and symlinks, owned by 0; other types are EINVAL, a
 * file that became shorter ESTALE and zeros. `unpack` makes PATH where it is missing. It refuses with EINVAL
 * (and a detail) names that are absolute or have "..", hard links, devices, FIFOs and links that leave PATH;
 * with ENAMETOOLONG, ELOOP (a symlink in the way), ENOTDIR, EISDIR or what the kernel says; a broken header is
 * EBADMSG. Of a name that comes twice the later one stays. In its DONE `sys` is EBADMSG for what is no archive,
 * damaged or cut off, E2BIG above BUILTIN_UNPACK_ENTRIES or BUILTIN_UNPACK_BYTES or for one header of megabytes,
 * ENOSPC and EDQUOT for a full disk; what was written before stays. Its stdin is read to its end or closed.
 */
/* clang-format on */
#ifndef BERTH_BUILTIN_H
#define BERTH_BUILTIN_H

#include "runtime/protocol/protocol.h"

#define BUILTIN_PATHS_MAX 4096             /* of one stat or delete */
#define BUILTIN_LIST_MAX 100000            /* entries of one list */
#define BUILTIN_SIZELESS_MAX (16ull << 20) /* bytes read of a file that says it has none */
#define BUILTIN_REPORT_MAX 1000            /* entries of a report; DONE counts the others, too */
#define BUILTIN_UNPACK_ENTRIES 1000000     /* of one archive */
#define BUILTIN_UNPACK_BYTES (64ull << 30) /* decompressed, and likewise written, holes counted in */
#define BUILTIN_ENTRY_MAX 9216             /* bytes of one encoded entry: two paths of PATH_MAX, a detail */
#define BUILTIN_TAG_SIZE 72                /* of a file's tag, NUL included */

enum builtin_type {
	BUILTIN_NONE, /* there is no file */
	BUILTIN_FILE,
	BUILTIN_DIR,
	BUILTIN_SYMLINK,
	BUILTIN_FIFO,
	BUILTIN_SOCKET,
	BUILTIN_CHAR,
	BUILTIN_BLOCK,
	BUILTIN_TYPE_COUNT_
};

/* "file", "dir", "symlink", ...; NULL for a number that is none, "" for BUILTIN_NONE. */
const char *builtin_type_name(unsigned type);

/* What is known of one path. Texts are borrowed from the payload and not NUL-terminated. */
struct builtin_entry {
	struct proto_text path;
	enum builtin_type type;
	unsigned mode; /* permission bits, 07777 */
	uint64_t size; /* bytes */
	int64_t mtime_ns, ctime_ns;
	uint64_t inode;
	unsigned pid;
	struct proto_text target; /* of a symlink */
	int sys;                  /* errno of what went wrong; 0: nothing */
	struct proto_text detail; /* why, when errno does not say it all */
};

struct builtin_done {
	uint64_t entries; /* all that were handled; of unpack those that were written */
	uint64_t bytes;   /* likewise, of their contents */
	uint64_t refused; /* those that were not, reported or not */
	bool truncated;   /* there were more than was asked for */
	int sys;          /* the errno that ended it early; 0: it did all */
	struct proto_text detail;
};

/* The fields of a PROTO_F_ENTRY or PROTO_F_DONE value: 0, or -1 when something is broken or out of its range.
 * The encoders put the whole field, tag and all; they are the inverse. */
int builtin_entry_decode(const uint8_t *value, size_t len, struct builtin_entry *ret);
void builtin_entry_encode(struct proto_writer *w, const struct builtin_entry *entry);
int builtin_done_decode(const uint8_t *value, size_t len, struct builtin_done *ret);
void builtin_done_encode(struct proto_writer *w, const struct builtin_done *done);

/* The tag of a file's version, as HTTP's ETag without quotes: made of inode, size, mtime and ctime. */
void builtin_tag(const struct builtin_entry *entry, char ret[BUILTIN_TAG_SIZE]);

#endif
