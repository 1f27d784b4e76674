/* SPDX-License-Identifier: MIT */
/* Goes through the whole file system and tries each file and directory by hand: modes and flags prove
 * nothing. */
#include "hostile.h"

#include <ctype.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define WALK_FDS 64

static bool can_create_in(const char *dir)
{
	char path[4200];

	snprintf(path, sizeof(path), "%s/.hostile", dir);
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	bool file = fd >= 0;
	if (file) {
		close(fd);
		(void)unlink(path);
	}
	bool folder = mkdir(path, 0700) == 0;
	if (folder)
		(void)rmdir(path);
	bool link = symlink("x", path) == 0;
	if (link)
		(void)unlink(path);
	return file || folder || link;
}

static bool can_write(const char *path)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	if (fd >= 0)
		close(fd);
	return fd >= 0 || chmod(path, 0777) == 0;
}

/* A process writes its own files in /proc; those of PID 1 and what is no process's are looked at. */
static bool is_of_a_job(const char *path)
{
	if (strcmp(path, "/proc/self") == 0 || strcmp(path, "/proc/thread-self") == 0)
		return true;
	return strncmp(path, "/proc/", 6) == 0 && isdigit((unsigned char)path[6]) &&
	       strcmp(path, "/proc/1") != 0;
}

/* Engines lay the null device over what nobody shall see. */
static bool is_null_device(const struct stat *st)
{
	return S_ISCHR(st->st_mode) && st->st_rdev == makedev(1, 3);
}

static int visit(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)at;
	if (is_of_a_job(path))
		return FTW_SKIP_SUBTREE;
	if (type == FTW_SL || is_null_device(st))
		return FTW_CONTINUE;
	bool is_dir = type == FTW_D || type == FTW_DNR;
	if (is_dir ? can_create_in(path) : can_write(path))
		puts(path);
	return FTW_CONTINUE;
}

int walk_writable(int argc, char **argv)
{
	static char out[1 << 16];

	(void)argc;
	(void)argv;
	setvbuf(stdout, out, _IOFBF, sizeof(out));
	return nftw("/", visit, WALK_FDS, FTW_PHYS | FTW_ACTIONRETVAL);
}
