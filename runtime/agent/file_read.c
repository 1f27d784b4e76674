/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "runtime/agent/entry.h"
#include "runtime/agent/fd.h"
#include "runtime/agent/files.h"
#include "runtime/agent/report.h"
#include "runtime/agent/text.h"

#define PIECE 65536
#define SEND_MAX (1u << 30) /* of one sendfile(2) */

struct reading {
	const char *path;
	uint64_t offset, length; /* length 0: to the end */
	int fd;
	struct stat st;
	const char *detail; /* why it cannot be read */
};

static int refuse(struct reading *r, int sys, const char *detail)
{
	r->detail = detail;
	errno = sys;
	return -1;
}

/*
 * A FIFO that is opened wakes its writer, and a device may do anything: what it is is seen first, through a
 * descriptor that is no opening, and then that very file is opened (open(2), O_PATH).
 */
static int open_regular(struct reading *r)
{
	char again[32];
	_cleanup_close_ int seen = open(r->path, O_PATH | O_CLOEXEC);

	if (seen < 0 || fstat(seen, &r->st) < 0)
		return -1;
	if (S_ISDIR(r->st.st_mode))
		return refuse(r, EISDIR, NULL);
	if (!S_ISREG(r->st.st_mode))
		return refuse(r, EINVAL, "not a regular file");
	snprintf(again, sizeof(again), "/proc/self/fd/%d", seen);
	r->fd = open(again, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return r->fd < 0 ? -1 : fstat(r->fd, &r->st);
}

/* Files of sysfs say a page, whatever is in them. */
static void forget_false_size(struct reading *r)
{
	struct statfs fs;

	if (fstatfs(r->fd, &fs) == 0 && fs.f_type == SYSFS_MAGIC)
		r->st.st_size = 0;
}

static int open_file(struct reading *r, char **argv)
{
	const char *offset = argv[1], *length = argv[2];
	char byte;

	r->path = argv[0];
	if (!text_number(&offset, 10, &r->offset) || *offset || !text_number(&length, 10, &r->length) ||
	    *length || r->offset > INT64_MAX)
		return refuse(r, EINVAL, "offset and length must be numbers");
	if (open_regular(r) < 0)
		return -1;
	forget_false_size(r);
	if (r->st.st_size > 0 && r->offset >= (uint64_t)r->st.st_size)
		return 0;
	/* some files of /proc open well and cannot be read: that shall be known before the entry is sent */
	return pread(r->fd, &byte, 1, (off_t)r->offset) < 0 ? -1 : 0;
}

static uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* By read and write: for files that sendfile(2) does not take. How many were sent; fewer at the end. */
static uint64_t copy_out(const struct reading *r, uint64_t from, uint64_t len)
{
	char piece[PIECE];
	uint64_t sent = 0;

	while (sent < len) {
		ssize_t n = pread(r->fd, piece, min_u64(len - sent, sizeof(piece)), (off_t)(from + sent));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0 || fd_write_all(STDOUT_FILENO, piece, (size_t)n) < 0)
			break;
		sent += (uint64_t)n;
	}
	return sent;
}

/* Without a copy through our memory, where the kernel can. */
static uint64_t send_out(const struct reading *r, uint64_t len)
{
	off_t at = (off_t)r->offset;
	uint64_t sent = 0;

	while (sent < len) {
		ssize_t n = sendfile(STDOUT_FILENO, r->fd, &at, min_u64(len - sent, SEND_MAX));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return sent + copy_out(r, r->offset + sent, len - sent);
		if (n == 0)
			break;
		sent += (uint64_t)n;
	}
	return sent;
}

/* 0 when all was sent that the entry promised. */
static int send_content(const struct reading *r)
{
	uint64_t wanted = r->length ? r->length : UINT64_MAX, size = (uint64_t)r->st.st_size;

	if (size == 0) {
		(void)copy_out(r, r->offset, min_u64(wanted, BUILTIN_SIZELESS_MAX));
		return 0;
	}
	uint64_t len = r->offset < size ? min_u64(wanted, size - r->offset) : 0;
	return send_out(r, len) < len;
}

int file_read_run(int argc, char **argv)
{
	struct reading r = { .fd = -1 };
	struct report out;
	struct builtin_entry entry;

	(void)argc;
	report_init(&out, STDOUT_FILENO);
	if (open_file(&r, argv) < 0) {
		(void)report_failure(&out, argv[0], errno, r.detail);
		return report_flush(&out) < 0;
	}
	entry_of(&entry, r.path, &r.st);
	if (report_entry(&out, &entry) < 0 || report_flush(&out) < 0)
		return 1;
	return send_content(&r);
}
