/* SPDX-License-Identifier: MIT */
#include "runtime/agent/dirs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/agent/fd.h"

#define FOLDER (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
#define ROOM_FIRST 16

static int make_room(struct dirs *d)
{
	if (d->count == DIRS_DEPTH_MAX) {
		errno = ENAMETOOLONG;
		return -1;
	}
	if (d->count < d->room)
		return 0;
	size_t room = d->room ? d->room * 2 : ROOM_FIRST;
	struct dirs_level *all = reallocarray(d->all, room, sizeof(*all));
	if (!all)
		return -1;
	d->all = all;
	d->room = room;
	return 0;
}

/* Takes the descriptor, and the name when there is one; both are the caller's still when it fails. */
static int push(struct dirs *d, int fd, char *name)
{
	struct stat st;

	if (fstat(fd, &st) < 0 || make_room(d) < 0)
		return -1;
	d->all[d->count++] =
		(struct dirs_level){ .fd = fd, .dev = st.st_dev, .ino = st.st_ino, .name = name };
	d->from = d->to = 0;
	if (d->count > DIRS_OPEN + 1)
		fd_close(&d->all[d->count - 1 - DIRS_OPEN].fd);
	return 0;
}

int dirs_begin(struct dirs *d, int fd)
{
	if (push(d, fd, NULL) == 0)
		return 0;
	int sys = errno;
	close(fd);
	errno = sys;
	return -1;
}

int dirs_enter(struct dirs *d, const char *name)
{
	size_t size = strlen(name) + 1;
	int fd = openat(dirs_last(d)->fd, name, FOLDER);

	if (fd < 0)
		return -1;
	char *copy = realloc(NULL, size);
	if (copy)
		memcpy(copy, name, size);
	if (copy && push(d, fd, copy) == 0)
		return 0;
	int sys = errno;
	close(fd);
	free(copy);
	errno = sys;
	return -1;
}

/* Opens the level above the last again, from the last. */
static int reopen(struct dirs *d)
{
	struct dirs_level *up = &d->all[d->count - 2];
	struct stat st;
	int fd = openat(dirs_last(d)->fd, "..", FOLDER);

	if (fd < 0)
		return -1;
	if (fstat(fd, &st) < 0 || st.st_dev != up->dev || st.st_ino != up->ino) {
		close(fd);
		errno = EBUSY; /* ESTALE is for conditions that a request has */
		return -1;
	}
	up->fd = fd;
	return 0;
}

int dirs_leave(struct dirs *d)
{
	struct dirs_level *last = dirs_last(d);
	int rc = d->count > 1 && d->all[d->count - 2].fd < 0 ? reopen(d) : 0;
	int sys = errno;

	fd_close(&last->fd);
	free(last->name);
	d->count--;
	d->from = d->to = 0;
	errno = sys;
	return rc;
}

struct dirs_level *dirs_last(const struct dirs *d)
{
	return &d->all[d->count - 1];
}

/*
 * After another level was read, or a part of this one was removed, the position is told by the last entry
 * that was handed out. File systems without stable positions may skip some then: who removes looks again.
 */
static ssize_t fill(struct dirs *d)
{
	struct dirs_level *last = dirs_last(d);

	if (lseek(last->fd, last->at, SEEK_SET) < 0)
		return -1;
	ssize_t n = syscall(SYS_getdents64, last->fd, d->bytes, sizeof(d->bytes));
	d->from = 0;
	d->to = n > 0 ? (size_t)n : 0;
	return n;
}

const struct dirent64 *dirs_next(struct dirs *d)
{
	for (;;) {
		if (d->from == d->to) {
			ssize_t n = fill(d);
			if (n <= 0) {
				errno = n == 0 ? 0 : errno;
				return NULL;
			}
		}
		const struct dirent64 *e = (const void *)(d->bytes + d->from);
		d->from += e->d_reclen;
		dirs_last(d)->at = e->d_off;
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			return e;
	}
}

bool dirs_is_folder(struct dirs *d, const struct dirent64 *e)
{
	struct stat st;

	if (e->d_type != DT_UNKNOWN)
		return e->d_type == DT_DIR;
	return fstatat(dirs_last(d)->fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

/* A bind mount of the same file system has the same device: only statx(2) tells it, since Linux 5.8. */
bool dirs_is_mount(const struct dirs *d)
{
	const struct dirs_level *last = dirs_last(d);
	struct statx s;

	if (d->count > 1 && last->dev != d->all[d->count - 2].dev)
		return true;
	return statx(last->fd, "", AT_EMPTY_PATH, STATX_TYPE, &s) == 0 &&
	       (s.stx_attributes & STATX_ATTR_MOUNT_ROOT);
}

void dirs_clear(struct dirs *d)
{
	while (d->count > 0) {
		struct dirs_level *last = dirs_last(d);
		fd_close(&last->fd);
		free(last->name);
		d->count--;
	}
	free(d->all);
	d->all = NULL;
}
