/* SPDX-License-Identifier: MIT */
#include "runtime/agent/copying.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/agent/cancel.h"
#include "runtime/agent/dirs.h"
#include "runtime/agent/fd.h"

#define PIECE (4u << 20) /* between two looks at whether it is cancelled */
#define ALL_BITS 07777

/* One thing: its name there and its name here. */
struct step {
	int from_dir, to_dir;
	const char *from, *to;
};

static int refuse(struct copying *c, int sys, const char *why)
{
	c->why = why;
	errno = sys;
	return -1;
}

static int go_on(struct copying *c)
{
	c->cancelled = cancel_asked(c->cancel);
	return c->cancelled ? refuse(c, ECANCELED, NULL) : 0;
}

/* Mode and times come last: a folder without write permission could not be filled. */
static int finish(int fd, const struct stat *st)
{
	struct timespec times[] = { st->st_atim, st->st_mtim };

	if (fchmod(fd, st->st_mode & ALL_BITS) < 0)
		return -1;
	return futimens(fd, times);
}

/* To the size that it had: one that grows has no end. */
static int copy_content(struct copying *c, int from, int to, off_t left)
{
	while (left > 0) {
		if (go_on(c) < 0)
			return -1;
		ssize_t n = sendfile(to, from, NULL, left < PIECE ? (size_t)left : PIECE);
		if (n < 0 && errno != EINTR)
			return -1;
		if (n == 0)
			return 0;
		left -= n > 0 ? n : 0;
	}
	return 0;
}

static int copy_file(struct copying *c, const struct step *s)
{
	struct stat st;
	_cleanup_close_ int from =
		openat(s->from_dir, s->from, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (from < 0 || fstat(from, &st) < 0)
		return -1;
	if (!S_ISREG(st.st_mode))
		return refuse(c, EBUSY, "it changes while it is moved");
	_cleanup_close_ int to = openat(s->to_dir, s->to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (to < 0 || copy_content(c, from, to, st.st_size) < 0)
		return -1;
	return finish(to, &st);
}

static int keep_times(const struct step *s, const struct stat *st)
{
	struct timespec times[] = { st->st_atim, st->st_mtim };

	return utimensat(s->to_dir, s->to, times, AT_SYMLINK_NOFOLLOW);
}

static int copy_symlink(const struct step *s, const struct stat *st)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(s->from_dir, s->from, target, sizeof(target) - 1);

	if (n < 0)
		return -1;
	target[n] = '\0';
	if (symlinkat(target, s->to_dir, s->to) < 0)
		return -1;
	return keep_times(s, st);
}

static int copy_node(const struct step *s, const struct stat *st)
{
	if (mknodat(s->to_dir, s->to, st->st_mode & S_IFMT, 0) < 0 ||
	    fchmodat(s->to_dir, s->to, st->st_mode & ALL_BITS, 0) < 0)
		return -1;
	return keep_times(s, st);
}

/* All but a folder. */
static int copy_leaf(struct copying *c, const struct step *s)
{
	struct stat st;

	if (fstatat(s->from_dir, s->from, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -1;
	switch (st.st_mode & S_IFMT) {
	case S_IFREG:
		return copy_file(c, s);
	case S_IFLNK:
		return copy_symlink(s, &st);
	case S_IFIFO:
	case S_IFSOCK:
		return copy_node(s, &st);
	default:
		return refuse(c, EPERM, "a device cannot be copied");
	}
}

static int enter(struct copying *c, struct dirs *from, struct dirs *to, const struct step *s)
{
	if (mkdirat(s->to_dir, s->to, 0700) < 0 || dirs_enter(to, s->to) < 0 || dirs_enter(from, s->from) < 0)
		return -1;
	if (dirs_is_mount(from))
		return refuse(c, EBUSY, "a mount point cannot be moved");
	/* the same folder through another mount */
	bool itself = dirs_last(from)->dev == to->all[1].dev && dirs_last(from)->ino == to->all[1].ino;
	return itself ? refuse(c, EINVAL, "a folder cannot be moved into itself") : 0;
}

static int leave(struct dirs *from, struct dirs *to)
{
	struct stat st;

	if (fstat(dirs_last(from)->fd, &st) < 0 || finish(dirs_last(to)->fd, &st) < 0)
		return -1;
	return dirs_leave(from) < 0 || dirs_leave(to) < 0 ? -1 : 0;
}

/* One entry of the last level. */
static int copy_entry(struct copying *c, struct dirs *from, struct dirs *to, const struct dirent64 *e)
{
	memcpy(c->where, e->d_name, strlen(e->d_name) + 1);
	struct step s = { dirs_last(from)->fd, dirs_last(to)->fd, c->where, c->where };
	if (go_on(c) < 0)
		return -1;
	return dirs_is_folder(from, e) ? enter(c, from, to, &s) : copy_leaf(c, &s);
}

static int copy_folder(struct copying *c, const struct step *s)
{
	_cleanup_dirs_ struct dirs from = { .count = 0 };
	_cleanup_dirs_ struct dirs to = { .count = 0 };
	const struct dirent64 *e;
	int from_top = fcntl(s->from_dir, F_DUPFD_CLOEXEC, 0), to_top = fcntl(s->to_dir, F_DUPFD_CLOEXEC, 0);

	if (dirs_begin(&from, from_top) < 0 || dirs_begin(&to, to_top) < 0 || enter(c, &from, &to, s) < 0)
		return -1;
	while (from.count > 1) {
		e = dirs_next(&from);
		if (e ? copy_entry(c, &from, &to, e) < 0 : errno != 0 || leave(&from, &to) < 0)
			return -1;
	}
	return 0;
}

int copying_run(struct copying *c, int from_dir, const char *from, int to_dir, const char *to)
{
	struct step s = { from_dir, to_dir, from, to };
	struct stat st;

	c->cancelled = false;
	c->why = NULL;
	c->where[0] = '\0';
	if (fstatat(from_dir, from, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -1;
	return S_ISDIR(st.st_mode) ? copy_folder(c, &s) : copy_leaf(c, &s);
}
