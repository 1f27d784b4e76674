/* SPDX-License-Identifier: MIT */
#include "runtime/agent/entry.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define NS_PER_S 1000000000ll

struct proto_text entry_path(const char *path)
{
	return (struct proto_text){ path, strnlen(path, PATH_MAX) };
}

struct proto_text entry_detail(const char *detail)
{
	return (struct proto_text){ detail, strnlen(detail, PROTO_DETAIL_MAX) };
}

static enum builtin_type type_of(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
		return BUILTIN_FILE;
	case S_IFDIR:
		return BUILTIN_DIR;
	case S_IFLNK:
		return BUILTIN_SYMLINK;
	case S_IFIFO:
		return BUILTIN_FIFO;
	case S_IFSOCK:
		return BUILTIN_SOCKET;
	case S_IFCHR:
		return BUILTIN_CHAR;
	case S_IFBLK:
		return BUILTIN_BLOCK;
	default:
		return BUILTIN_NONE;
	}
}

/* A file system may store any time; one that does not fit is cut off. */
static int64_t nanoseconds(const struct timespec *t)
{
	int64_t ns;

	if (__builtin_mul_overflow(t->tv_sec, NS_PER_S, &ns) || __builtin_add_overflow(ns, t->tv_nsec, &ns))
		return t->tv_sec < 0 ? INT64_MIN : INT64_MAX;
	return ns;
}

void entry_of(struct builtin_entry *ret, const char *path, const struct stat *st)
{
	*ret = (struct builtin_entry){
		.path = entry_path(path),
		.type = type_of(st->st_mode),
		.mode = st->st_mode & 07777,
		.size = st->st_size > 0 ? (uint64_t)st->st_size : 0,
		.mtime_ns = nanoseconds(&st->st_mtim),
		.ctime_ns = nanoseconds(&st->st_ctim),
		.inode = st->st_ino,
	};
}

int entry_look(struct builtin_entry *ret, const char *path, int dir_fd, const char *name,
	       char target[PATH_MAX])
{
	struct stat st;

	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		*ret = (struct builtin_entry){ .path = entry_path(path), .sys = errno };
		return ret->sys;
	}
	entry_of(ret, path, &st);
	if (ret->type == BUILTIN_SYMLINK) {
		ssize_t n = readlinkat(dir_fd, name, target, PATH_MAX);
		if (n > 0) /* else it was replaced meanwhile, and what was seen of it is still true */
			ret->target = (struct proto_text){ target, (size_t)n };
	}
	return 0;
}
