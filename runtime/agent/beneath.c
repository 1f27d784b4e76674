/* SPDX-License-Identifier: MIT */
#include "runtime/agent/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "runtime/agent/fd.h"

#define FOLDER (O_PATH | O_DIRECTORY)

static bool is_link(int dir, const char *name)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode);
}

static int step(int dir, const char *name, int flags, bool make)
{
	flags |= O_NOFOLLOW | O_CLOEXEC;
	int fd = openat(dir, name, flags);
	if (fd < 0 && errno == ENOENT && make) {
		if (mkdirat(dir, name, 0777) < 0 && errno != EEXIST)
			return -1;
		fd = openat(dir, name, flags);
	}
	if (fd < 0 && errno == ENOTDIR && is_link(dir, name))
		errno = ELOOP; /* O_DIRECTORY speaks first (open(2)) */
	return fd;
}

static int walk(int root, const char *path, int flags, bool make)
{
	char name[NAME_MAX + 1];
	int dir = openat(root, ".", (*path ? FOLDER : flags) | O_CLOEXEC);

	while (dir >= 0 && *path) {
		size_t len = strcspn(path, "/");
		if (len > NAME_MAX) {
			close(dir);
			errno = ENAMETOOLONG;
			return -1;
		}
		memcpy(name, path, len);
		name[len] = '\0';
		path += len + (path[len] == '/');
		int next = step(dir, name, *path ? FOLDER : flags, make), sys = errno;
		close(dir);
		errno = sys;
		dir = next;
	}
	return dir;
}

/* Not there (Linux before 5.6, or a filter that does not know it), or it saw a rename on its way. */
static bool must_walk(int sys)
{
	return sys == ENOSYS || sys == EPERM || sys == EAGAIN;
}

int beneath_open(int root, const char *path, int flags)
{
	struct open_how how = {
		.flags = (unsigned)(flags | O_CLOEXEC),
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS,
	};

	int fd = (int)syscall(SYS_openat2, root, *path ? path : ".", &how, sizeof(how));
	if (fd < 0 && must_walk(errno))
		fd = walk(root, path, flags, false);
	return fd;
}

int beneath_make(int root, const char *path)
{
	int fd = beneath_open(root, path, FOLDER);

	return fd < 0 && errno == ENOENT ? walk(root, path, FOLDER, true) : fd;
}
