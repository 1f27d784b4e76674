/* SPDX-License-Identifier: MIT */
#include "runtime/agent/removal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "runtime/agent/dirs.h"

/* A folder that others fill as fast as it is emptied is given up. */
#define TRIES_MAX 64

static const char *const PLACES[] = {
	"/", "/tmp", "/workspace", "/home/sandbox", "/conversation_history", "/dev/shm", ".",
};

static void add(struct removal_kept *kept, const struct stat *st)
{
	if (kept->count == REMOVAL_KEPT_MAX || removal_is_kept(kept, st))
		return;
	kept->all[kept->count].dev = st->st_dev;
	kept->all[kept->count++].ino = st->st_ino;
}

void removal_keep(struct removal_kept *kept, const char *path)
{
	struct stat st;

	if (stat(path, &st) == 0)
		add(kept, &st);
	if (lstat(path, &st) == 0)
		add(kept, &st);
}

void removal_keep_places(struct removal_kept *kept)
{
	for (size_t i = 0; i < sizeof(PLACES) / sizeof(PLACES[0]); i++)
		removal_keep(kept, PLACES[i]);
	for (char **var = environ; *var; var++)
		if (strncmp(*var, "HOME=", 5) == 0)
			removal_keep(kept, *var + 5);
}

bool removal_is_kept(const struct removal_kept *kept, const struct stat *st)
{
	for (size_t i = 0; i < kept->count; i++)
		if (kept->all[i].dev == st->st_dev && kept->all[i].ino == st->st_ino)
			return true;
	return false;
}

static int refuse(struct removal *r, int sys, const char *why)
{
	r->why = why;
	errno = sys;
	return -1;
}

/* May the folder that was opened last be emptied? */
static int judge(struct removal *r, struct dirs *d)
{
	const struct dirs_level *last = dirs_last(d);
	struct stat st = { .st_dev = last->dev, .st_ino = last->ino };

	if (r->kept && removal_is_kept(r->kept, &st))
		return refuse(r, EPERM, "it is never deleted");
	if (dirs_is_mount(d))
		return refuse(r, EBUSY, "it is a mount point");
	return 0;
}

static int enter(struct removal *r, struct dirs *d, const char *name)
{
	return dirs_enter(d, name) < 0 ? -1 : judge(r, d);
}

/* One entry of the last level. */
static int remove_entry(struct removal *r, struct dirs *d, const struct dirent64 *e)
{
	memcpy(r->where, e->d_name, strlen(e->d_name) + 1);
	if (!dirs_is_folder(d, e)) {
		if (unlinkat(dirs_last(d)->fd, r->where, 0) == 0 || errno == ENOENT)
			return 0;
		if (errno != EISDIR) /* it has become a folder */
			return -1;
	}
	dirs_last(d)->tries = 0;
	if (enter(r, d, r->where) == 0 || errno == ENOENT)
		return 0;
	/* it is no folder any more: looked at again in the next pass */
	return errno == ENOTDIR || errno == ELOOP ? 0 : -1;
}

/* The last level was read to its end: up, and away with it. What came in meanwhile is removed by another
 * pass. */
static int finish_level(struct removal *r, struct dirs *d)
{
	memcpy(r->where, dirs_last(d)->name, strlen(dirs_last(d)->name) + 1);
	if (dirs_leave(d) < 0)
		return -1;
	struct dirs_level *up = dirs_last(d);
	/* gone, or exchanged for what is no folder: the level above is not empty then, and is passed again */
	if (unlinkat(up->fd, r->where, AT_REMOVEDIR) == 0 || errno == ENOENT || errno == ENOTDIR)
		return 0;
	if (errno != ENOTEMPTY && errno != EEXIST)
		return -1;
	if (++up->tries > TRIES_MAX) {
		errno = ENOTEMPTY;
		return -1;
	}
	return enter(r, d, r->where);
}

/* From the folder that holds the name, as the top of the walk, until only that is left. */
static int remove_below(struct removal *r, struct dirs *d, const char *name)
{
	const struct dirent64 *e;

	if (enter(r, d, name) < 0)
		return -1;
	while (d->count > 1) {
		e = dirs_next(d);
		if (e ? remove_entry(r, d, e) < 0 : errno != 0 || finish_level(r, d) < 0)
			return -1;
	}
	return 0;
}

static int remove_folder(struct removal *r, int dir, const char *name)
{
	_cleanup_dirs_ struct dirs d = { .count = 0 };
	/* the walk never reads its top, which may be a folder that must not be read */
	int top = fcntl(dir, F_DUPFD_CLOEXEC, 0);

	if (top < 0 || dirs_begin(&d, top) < 0)
		return -1;
	int rc = remove_below(r, &d, name), sys = errno;
	if (strcmp(r->where, name) == 0 && d.count == 1)
		r->where[0] = '\0';
	errno = sys;
	return rc;
}

int removal_run(struct removal *r, int dir, const char *name)
{
	struct stat st;

	r->why = NULL;
	r->where[0] = '\0';
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -1;
	if (r->kept && removal_is_kept(r->kept, &st))
		return refuse(r, EPERM, "it is never deleted");
	if (!S_ISDIR(st.st_mode))
		return unlinkat(dir, name, 0);
	return r->recursive ? remove_folder(r, dir, name) : unlinkat(dir, name, AT_REMOVEDIR);
}
