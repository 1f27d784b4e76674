/* SPDX-License-Identifier: MIT */
#include "runtime/agent/place.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define LINKS_MAX 40 /* MAXSYMLINKS of the kernel (path_resolution(7)) */
#define FOLDER (O_PATH | O_DIRECTORY | O_CLOEXEC)

void place_clear(struct place *p)
{
	fd_close(&p->dir);
}

/* Opens the first `len` bytes of the text as a folder; none is `at` itself, and a slash alone is the root. */
static int open_front(struct place *p, int at, size_t len)
{
	char kept = p->text[len];

	if (len == 0)
		return openat(at, p->text[0] == '/' ? "/" : ".", FOLDER);
	p->text[len] = '\0';
	int fd = openat(at, p->text, FOLDER);
	p->text[len] = kept;
	return fd;
}

/* The length of the front before the last slash within the first `len` bytes; 0 when there is none. */
static size_t shorten(const char *text, size_t len)
{
	while (len > 0 && text[len - 1] != '/')
		len--;
	while (len > 0 && text[len - 1] == '/')
		len--;
	return len;
}

static int find_below(struct place *p, int at, const char *path)
{
	size_t len = strlen(path);

	if (len == 0 || len >= PATH_MAX) {
		errno = len == 0 ? ENOENT : ENAMETOOLONG;
		return -1;
	}
	memmove(p->text, path, len + 1);
	const char *slash = strrchr(p->text, '/');
	for (size_t front = shorten(p->text, slash ? (size_t)(slash - p->text) + 1 : 0);;
	     front = shorten(p->text, front)) {
		int fd = open_front(p, at, front);
		if (fd < 0 && (errno != ENOENT || front == 0))
			return -1;
		if (fd < 0)
			continue;
		fd_close(&p->dir);
		p->dir = fd;
		p->rest = p->text + front;
		p->rest += strspn(p->rest, "/");
		return 0;
	}
}

int place_find(struct place *p, const char *path)
{
	p->dir = -1;
	return find_below(p, AT_FDCWD, path);
}

int place_find_folder(struct place *p, const char *path)
{
	char text[PATH_MAX];
	size_t len = strlen(path);

	while (len > 1 && path[len - 1] == '/')
		len--;
	if (len >= PATH_MAX) {
		p->dir = -1;
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(text, path, len);
	text[len] = '\0';
	return place_find(p, text);
}

bool place_is_whole(const struct place *p)
{
	return !strchr(p->rest, '/');
}

int place_follow(struct place *p)
{
	char target[PATH_MAX];

	for (int i = 0; i < LINKS_MAX; i++) {
		if (!place_is_whole(p))
			return 0;
		ssize_t n = readlinkat(p->dir, p->rest, target, sizeof(target) - 1);
		if (n < 0)
			return errno == EINVAL || errno == ENOENT ? 0 : -1;
		target[n] = '\0';
		if (find_below(p, p->dir, target) < 0)
			return -1;
		if (!place_is_whole(p)) {
			errno = ENOENT;
			return -1;
		}
	}
	errno = ELOOP;
	return -1;
}

int place_make(struct place *p)
{
	for (char *slash; (slash = strchr(p->rest, '/'));) {
		*slash = '\0';
		if (mkdirat(p->dir, p->rest, 0777) < 0 && errno != EEXIST)
			return -1;
		int fd = openat(p->dir, p->rest, FOLDER);
		if (fd < 0)
			return -1;
		fd_close(&p->dir);
		p->dir = fd;
		p->rest = slash + 1 + strspn(slash + 1, "/");
	}
	return 0;
}

bool place_has_name(const struct place *p)
{
	const char *slash = strrchr(p->rest, '/'), *name = slash ? slash + 1 : p->rest;

	return *name && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

int place_find_name(struct place *p, const char *path)
{
	struct stat st;

	if (place_find_folder(p, path) < 0)
		return -1;
	if (!place_is_whole(p)) {
		errno = ENOENT;
		return -1;
	}
	/* the kernel would follow a symlink with a slash behind it (path_resolution(7)) */
	if (path[strlen(path) - 1] == '/' && fstatat(p->dir, p->rest, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    !S_ISDIR(st.st_mode)) {
		errno = ENOTDIR;
		return -1;
	}
	return 0;
}
