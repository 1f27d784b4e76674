/* SPDX-License-Identifier: MIT */
#include "runtime/agent/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#define FALLBACK_FDS_MAX 65536

void fd_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

int fd_nonblock(int fd)
{
	int flags = fcntl(fd, F_GETFL);
	return flags < 0 ? -1 : fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

/* close_range(2) came with Linux 5.9. */
static void close_between(int from, int to)
{
	if (from > to || syscall(SYS_close_range, from, to, 0) == 0)
		return;
	struct rlimit limit = { .rlim_cur = FALLBACK_FDS_MAX };
	(void)getrlimit(RLIMIT_NOFILE, &limit);
	int last = limit.rlim_cur < FALLBACK_FDS_MAX ? (int)limit.rlim_cur : FALLBACK_FDS_MAX;
	for (int fd = from; fd <= to && fd < last; fd++)
		close(fd);
}

static void sort(int *list, size_t count)
{
	for (size_t i = 1; i < count; i++)
		for (size_t j = i; j > 0 && list[j] < list[j - 1]; j--) {
			int swap = list[j];
			list[j] = list[j - 1];
			list[j - 1] = swap;
		}
}

void fd_keep_only(int *keep, size_t count)
{
	int next = STDERR_FILENO + 1;

	sort(keep, count);
	for (size_t i = 0; i < count; i++) {
		if (keep[i] < next)
			continue;
		close_between(next, keep[i] - 1);
		next = keep[i] + 1;
	}
	close_between(next, INT_MAX);
}

ssize_t fd_read_text(int dir_fd, const char *path, char *text, size_t size)
{
	_cleanup_close_ int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	ssize_t n = read(fd, text, size - 1);
	if (n < 0)
		return -1;
	text[n] = '\0';
	return n;
}

int fd_write_all(int fd, const void *bytes, size_t len)
{
	const char *at = bytes;

	while (len > 0) {
		ssize_t n = write(fd, at, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -1;
		at += n;
		len -= (size_t)n;
	}
	return 0;
}
