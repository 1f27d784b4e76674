/* SPDX-License-Identifier: MIT */
#include "runtime/agent/facts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "runtime/agent/fd.h"
#include "runtime/agent/text.h"

#define MOUNTS_MAX 48 /* a sandbox with more writable places is not one of ours */
#define LINE_SIZE 8192
#define FIELDS_SIZE 512 /* the fields of one mount */

/* Kernel interfaces, whose writability is no storage. */
static const char *const SKIPPED[] = { "proc", "sysfs", "cgroup", "cgroup2", "devpts", "mqueue" };

struct mount {
	uint64_t id;
	char *path, *fstype;
};

static bool is_octal(const char *at)
{
	return at[0] >= '0' && at[0] <= '3' && at[1] >= '0' && at[1] <= '7' && at[2] >= '0' && at[2] <= '7';
}

/* "\040" and its like stand for blanks in a path (proc(5)). */
static void unescape(char *text)
{
	char *to = text;

	for (const char *at = text; *at; at++) {
		if (at[0] == '\\' && is_octal(at + 1)) {
			*to++ = (char)((at[1] - '0') * 64 + (at[2] - '0') * 8 + (at[3] - '0'));
			at += 3;
		} else {
			*to++ = *at;
		}
	}
	*to = '\0';
}

/* "id parent major:minor root PATH options [optional ...] - FSTYPE source superoptions" */
static bool parse_line(char *line, struct mount *ret)
{
	const char *id = line;
	char *separator = strstr(line, " - ");
	const char *path = text_word(line, 4);

	if (!separator || !path || path > separator || !text_number(&id, 10, &ret->id))
		return false;
	ret->path = line + (path - line);
	ret->fstype = separator + 3;
	ret->path[strcspn(ret->path, " ")] = '\0';
	ret->fstype[strcspn(ret->fstype, " ")] = '\0';
	unescape(ret->path);
	return true;
}

static bool is_skipped(const char *fstype)
{
	for (size_t i = 0; i < sizeof(SKIPPED) / sizeof(SKIPPED[0]); i++)
		if (strcmp(fstype, SKIPPED[i]) == 0)
			return true;
	return false;
}

/* A mount may lie hidden under a later one; the path then shows the other (statx(2), since Linux 5.8). */
static bool is_visible(const struct mount *m, mode_t *ret_mode)
{
	struct statx st;

	if (statx(AT_FDCWD, m->path, AT_NO_AUTOMOUNT | AT_SYMLINK_NOFOLLOW, STATX_TYPE | STATX_MNT_ID, &st) <
	    0)
		return false;
	*ret_mode = st.stx_mode;
	return !(st.stx_mask & STATX_MNT_ID) || st.stx_mnt_id == m->id;
}

/* errno of a write, 0 when it worked. */
static int test_write(const char *path, bool is_dir)
{
	static const char NAME[] = ".berth-test-write";

	if (!is_dir) {
		_cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
		return fd < 0 ? errno : 0;
	}
	_cleanup_close_ int dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return errno;
	(void)unlinkat(dir, NAME, 0); /* of a start that was cut short */
	_cleanup_close_ int fd =
		openat(dir, NAME, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return errno;
	int sys = write(fd, "x", 1) == 1 ? 0 : errno;
	if (unlinkat(dir, NAME, 0) < 0 && sys == 0)
		sys = errno;
	return sys;
}

static const struct {
	unsigned long kernel;
	unsigned ours;
} FLAGS[] = {
	{ ST_NOSUID, PROTO_MOUNT_NOSUID },
	{ ST_NODEV, PROTO_MOUNT_NODEV },
	{ ST_NOEXEC, PROTO_MOUNT_NOEXEC },
};

static void put_mount(struct proto_writer *w, const struct mount *m, bool is_dir)
{
	uint8_t bytes[FIELDS_SIZE];
	struct proto_writer nested = { bytes, sizeof(bytes), 0, false };
	struct statvfs fs;
	unsigned flags = 0;

	if (statvfs(m->path, &fs) < 0)
		return;
	for (size_t i = 0; i < sizeof(FLAGS) / sizeof(FLAGS[0]); i++)
		if (fs.f_flag & FLAGS[i].kernel)
			flags |= FLAGS[i].ours;
	proto_put_u64(&nested, PROTO_F_SIZE, (uint64_t)fs.f_blocks * fs.f_frsize);
	proto_put_u64(&nested, PROTO_F_INODES, fs.f_files);
	proto_put_u64(&nested, PROTO_F_FLAGS, flags);
	proto_put_u64(&nested, PROTO_F_WRITE, (uint64_t)test_write(m->path, is_dir));
	proto_put_text(&nested, PROTO_F_FSTYPE, m->fstype);
	size_t room = sizeof(bytes) - nested.used, len = strlen(m->path);
	/* a path too long is told as far as it goes: the manager knows no such place and says so */
	proto_put(&nested, PROTO_F_PATH, m->path, len + 6 < room ? len : room - 6);
	proto_put(w, PROTO_F_MOUNT, bytes, nested.used);
}

static bool take_line(struct proto_writer *w, char *line)
{
	struct mount m;
	mode_t mode;

	if (!parse_line(line, &m) || is_skipped(m.fstype) || !is_visible(&m, &mode))
		return false;
	if ((!S_ISDIR(mode) && !S_ISREG(mode)) || faccessat(AT_FDCWD, m.path, W_OK, AT_EACCESS) < 0)
		return false;
	put_mount(w, &m, S_ISDIR(mode));
	return true;
}

/* Takes the whole lines in text; what is left of them moves to the front, its length is returned. */
static size_t take_lines(struct proto_writer *w, char *text, size_t used, bool *cut, int *found)
{
	char *line = text, *end;

	while ((end = strchr(line, '\n'))) {
		*end = '\0';
		if (!*cut && *found < MOUNTS_MAX)
			*found += take_line(w, line);
		*cut = false;
		line = end + 1;
	}
	used -= (size_t)(line - text);
	memmove(text, line, used);
	return used;
}

void facts_put_mounts(struct proto_writer *w)
{
	_cleanup_close_ int fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	char text[LINE_SIZE];
	size_t used = 0;
	bool cut = false;
	int found = 0;
	ssize_t n;

	while (fd >= 0 && (n = read(fd, text + used, sizeof(text) - 1 - used)) > 0) {
		used += (size_t)n;
		text[used] = '\0';
		used = take_lines(w, text, used, &cut, &found);
		if (used == sizeof(text) - 1) { /* an overlay of very many layers */
			cut = true;
			used = 0;
		}
	}
}
