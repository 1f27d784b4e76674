/* SPDX-License-Identifier: MIT */
/*
 * Out: a walk that follows no symlink below the folder. Each file is stored whole, hard links are not told;
 * what is neither file, folder nor symlink is left out.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "runtime/agent/archives.h"
#include "runtime/agent/beneath.h"
#include "runtime/agent/codec.h"
#include "runtime/agent/entry.h"
#include "runtime/agent/fd.h"
#include "runtime/agent/findings.h"
#include "runtime/agent/tar_header.h"

/* folders found and not yet walked: their paths, each with its length behind it */
#define WAITING_BYTES (64ul << 20)
#define READ_BYTES (64 * 1024)
#define OPEN_FILE (O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC) /* a FIFO must not be waited for */

struct pack {
	int root;
	struct encoder out;
	struct findings findings;
	char *waiting;
	size_t waiting_used;
	bool failed; /* nobody takes the archive any more */
	uint8_t header[TAR_HEADER_MAX], bytes[READ_BYTES];
};

static void put(struct pack *p, const void *bytes, size_t len)
{
	if (!p->failed && encoder_write(&p->out, bytes, len) < 0)
		p->failed = true;
}

static void put_zeros(struct pack *p, uint64_t len)
{
	memset(p->bytes, 0, sizeof(p->bytes));
	while (len > 0 && !p->failed) {
		size_t n = len < sizeof(p->bytes) ? (size_t)len : sizeof(p->bytes);
		put(p, p->bytes, n);
		len -= n;
	}
}

static void put_header(struct pack *p, const char *path, const struct stat *st, enum tar_type type,
		       const char *target)
{
	struct tar_member m = {
		.type = type,
		.name = path,
		.target = target,
		.mode = st->st_mode & 0777,
		.size = type == TAR_FILE ? (uint64_t)st->st_size : 0,
		.mtime = st->st_mtim,
	};

	put(p, p->header, tar_header_encode(&m, p->header));
	p->findings.done.entries++;
}

/* As many bytes as the header has promised, whatever becomes of the file meanwhile. */
static void put_content(struct pack *p, const char *path, int fd, uint64_t size)
{
	uint64_t left = size;
	ssize_t n = 1;

	while (left > 0 && n > 0 && !p->failed) {
		n = read(fd, p->bytes, left < sizeof(p->bytes) ? (size_t)left : sizeof(p->bytes));
		if (n < 0 && errno == EINTR) {
			n = 1;
			continue;
		}
		if (n > 0) {
			put(p, p->bytes, (size_t)n);
			left -= (uint64_t)n;
		}
	}
	if (n == 0)
		findings_refuse(&p->findings, path, ESTALE,
				"it became shorter while it was read: zeros stand for the rest");
	else if (n < 0)
		findings_refuse(&p->findings, path, errno,
				"it could not be read to its end: zeros stand for the rest");
	put_zeros(p, left + (-size & (TAR_BLOCK - 1)));
	p->findings.done.bytes += size;
}

static void pack_opened(struct pack *p, int fd, const char *path)
{
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0) {
		findings_refuse(&p->findings, path, errno, NULL);
		return;
	}
	if (!S_ISREG(st.st_mode)) {
		findings_refuse(&p->findings, path, ESTALE, "it was replaced meanwhile");
		return;
	}
	put_header(p, path, &st, TAR_FILE, NULL);
	put_content(p, path, fd, (uint64_t)st.st_size);
}

static void pack_file(struct pack *p, int dir, const char *name, const char *path)
{
	_cleanup_close_ int fd = openat(dir, name, OPEN_FILE | O_NOFOLLOW);
	pack_opened(p, fd, path);
}

static void pack_link(struct pack *p, int dir, const char *name, const char *path, const struct stat *st)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(dir, name, target, sizeof(target));

	if (n < 0 || n == sizeof(target)) {
		findings_refuse(&p->findings, path, n < 0 ? errno : ENAMETOOLONG, NULL);
		return;
	}
	target[n] = '\0';
	put_header(p, path, st, TAR_SYMLINK, target);
}

/* Another folder waits for its turn. */
static void push(struct pack *p, const char *path)
{
	size_t len = strlen(path) + 1;
	uint16_t behind = (uint16_t)len;

	if (WAITING_BYTES - p->waiting_used < len + sizeof(behind)) {
		findings_refuse(&p->findings, path, ENOMEM, "too many folders");
		return;
	}
	memcpy(p->waiting + p->waiting_used, path, len);
	memcpy(p->waiting + p->waiting_used + len, &behind, sizeof(behind));
	p->waiting_used += len + sizeof(behind);
}

static bool pop(struct pack *p, char path[PATH_MAX])
{
	uint16_t len;

	if (p->waiting_used == 0)
		return false;
	p->waiting_used -= sizeof(len);
	memcpy(&len, p->waiting + p->waiting_used, sizeof(len));
	p->waiting_used -= len;
	memcpy(path, p->waiting + p->waiting_used, len);
	return true;
}

static const char *odd_type(mode_t mode)
{
	return S_ISFIFO(mode) ? "a FIFO" : S_ISSOCK(mode) ? "a socket" : "a device";
}

static void pack_one(struct pack *p, int dir, const char *name, const char *path)
{
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		findings_refuse(&p->findings, path, errno, NULL);
	else if (S_ISDIR(st.st_mode))
		push(p, path);
	else if (S_ISREG(st.st_mode))
		pack_file(p, dir, name, path);
	else if (S_ISLNK(st.st_mode))
		pack_link(p, dir, name, path, &st);
	else
		findings_refuse(&p->findings, path, EINVAL, odd_type(st.st_mode));
}

static void pack_names(struct pack *p, DIR *dir, const char *folder)
{
	char path[PATH_MAX + NAME_MAX + 2];
	struct dirent *d;

	while (!p->failed && (errno = 0, d = readdir(dir))) {
		if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
			continue;
		int len = snprintf(path, sizeof(path), "%s%s%s", folder, *folder ? "/" : "", d->d_name);
		if (len >= PATH_MAX)
			findings_refuse(&p->findings, path, ENAMETOOLONG, "its path is too long");
		else
			pack_one(p, dirfd(dir), d->d_name, path);
	}
	if (!p->failed && errno != 0)
		findings_refuse(&p->findings, folder, errno, "the folder could not be read to its end");
}

static void pack_folder(struct pack *p, const char *path)
{
	struct stat st;
	int fd = beneath_open(p->root, path, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
	DIR *dir = fd >= 0 && fstat(fd, &st) == 0 ? fdopendir(fd) : NULL;

	if (!dir) {
		findings_refuse(&p->findings, path, errno, NULL);
		fd_close(&fd);
		return;
	}
	if (*path)
		put_header(p, path, &st, TAR_DIR, NULL);
	pack_names(p, dir, path);
	closedir(dir);
}

static void pack_tree(struct pack *p)
{
	char path[PATH_MAX];

	push(p, "");
	while (!p->failed && pop(p, path))
		pack_folder(p, path);
}

/* The archive of a single file has it under its own name. */
static void pack_single(struct pack *p, const char *path)
{
	const char *slash = strrchr(path, '/');
	_cleanup_close_ int fd = open(path, OPEN_FILE);
	pack_opened(p, fd, slash ? slash + 1 : path);
}

/* Opens what is to be packed, itself by any way, and says what it is. The errno. */
static int open_root(struct pack *p, const char *path, struct builtin_entry *entry)
{
	struct stat st;
	char target[PATH_MAX];

	p->root = open(path, O_PATH | O_CLOEXEC);
	if (p->root < 0 || fstat(p->root, &st) < 0) {
		int sys = errno;
		(void)entry_look(entry, path, AT_FDCWD, path, target);
		return entry->sys = sys;
	}
	entry_of(entry, path, &st);
	if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode)) {
		entry->detail = entry_detail(odd_type(st.st_mode));
		return entry->sys = EINVAL;
	}
	/* what is below may be left out, but an archive of nothing would be told to be the whole */
	return entry->sys = access(path, S_ISDIR(st.st_mode) ? R_OK | X_OK : R_OK) < 0 ? errno : 0;
}

static int say(const struct builtin_entry *entry)
{
	struct report r;

	report_init(&r, STDOUT_FILENO);
	return report_entry(&r, entry) < 0 || report_flush(&r) < 0 ? -1 : 0;
}

static int pack(struct pack *p, const char *path, enum builtin_type type)
{
	if (type == BUILTIN_DIR)
		pack_tree(p);
	else
		pack_single(p, path);
	put_zeros(p, 2ul * TAR_BLOCK);
	if (p->failed || encoder_finish(&p->out) < 0)
		return -1;
	return findings_tell(&p->findings, STDERR_FILENO);
}

int pack_run(int argc, char **argv)
{
	struct pack p = { .root = -1 };
	struct builtin_entry entry;
	int codec = codec_find(argv[1]);

	(void)argc;
	if (codec < 0 || codec == CODEC_LOOK)
		entry = (struct builtin_entry){ .path = entry_path(argv[0]),
						.sys = EINVAL,
						.detail = entry_detail("no such format") };
	else
		(void)open_root(&p, argv[0], &entry);
	if (say(&entry) < 0 || entry.sys != 0)
		return entry.sys == 0;
	p.waiting = mmap(NULL, WAITING_BYTES, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p.waiting == MAP_FAILED || findings_init(&p.findings) < 0 ||
	    encoder_init(&p.out, STDOUT_FILENO, (enum codec)codec) < 0)
		return 1;
	int rc = pack(&p, argv[0], entry.type);
	encoder_clear(&p.out);
	return rc < 0;
}
