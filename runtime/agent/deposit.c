/* SPDX-License-Identifier: MIT */
#include "runtime/agent/deposit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "runtime/agent/fd.h"

#define TRIES 16
#define PROC_NAME 32

static int open_named(struct deposit *d)
{
	for (int i = 0; i < TRIES; i++) {
		temp_name(d->temporary);
		d->fd = openat(d->dir, d->temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			       0600);
		if (d->fd >= 0)
			return 0;
		if (errno != EEXIST)
			break;
	}
	d->temporary[0] = '\0';
	return -1;
}

int deposit_open(struct deposit *d, int dir)
{
	d->dir = dir;
	d->temporary[0] = '\0';
	d->fd = openat(dir, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
	/* EISDIR is what kernels say that know no O_TMPFILE, EOPNOTSUPP what such file systems do */
	return d->fd >= 0 ? 0 : errno == EOPNOTSUPP || errno == EISDIR ? open_named(d) : -1;
}

/* Gives the file that has none a name (open(2), O_TMPFILE). */
static int name_it(const struct deposit *d, const char *name)
{
	char path[PROC_NAME];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", d->fd);
	return linkat(AT_FDCWD, path, d->dir, name, AT_SYMLINK_FOLLOW);
}

static int name_it_for_now(struct deposit *d)
{
	for (int i = 0; i < TRIES; i++) {
		temp_name(d->temporary);
		if (name_it(d, d->temporary) == 0)
			return 0;
		if (errno != EEXIST)
			break;
	}
	d->temporary[0] = '\0';
	return -1;
}

int deposit_publish(struct deposit *d, const char *name)
{
	if (d->temporary[0] == '\0') {
		if (name_it(d, name) == 0)
			return 0;
		if (errno != EEXIST || name_it_for_now(d) < 0)
			return -1;
	}
	if (renameat(d->dir, d->temporary, d->dir, name) < 0)
		return -1;
	d->temporary[0] = '\0';
	return 0;
}

void deposit_close(struct deposit *d)
{
	if (d->temporary[0] != '\0')
		(void)unlinkat(d->dir, d->temporary, 0);
	fd_close(&d->fd);
}

static int replace_by_link(int dir, const char *name, const char *target)
{
	char temporary[TEMP_NAME];
	int rc, tries = TRIES;

	do {
		temp_name(temporary);
		rc = symlinkat(target, dir, temporary);
	} while (rc < 0 && errno == EEXIST && --tries > 0);
	if (rc < 0 || renameat(dir, temporary, dir, name) == 0)
		return rc;
	int sys = errno;
	(void)unlinkat(dir, temporary, 0);
	errno = sys;
	return -1;
}

int deposit_link(int dir, const char *name, const char *target, const struct timespec times[2])
{
	if (symlinkat(target, dir, name) < 0 && (errno != EEXIST || replace_by_link(dir, name, target) < 0))
		return -1;
	return utimensat(dir, name, times, AT_SYMLINK_NOFOLLOW);
}
