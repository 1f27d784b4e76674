/* SPDX-License-Identifier: MIT */
/*
 * A file that is there as a whole or not at all: its content goes to a file without a name (open(2),
 * O_TMPFILE) in the deepest folder of its path that is there, so that a kill leaves nothing; only the end of
 * stdin gives it its name. Where there are no files without a name it has a temporary one.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/agent/cancel.h"
#include "runtime/agent/entry.h"
#include "runtime/agent/files.h"
#include "runtime/agent/place.h"
#include "runtime/agent/report.h"
#include "runtime/agent/temp.h"
#include "runtime/agent/text.h"

#define PIECE 65536
#define MODE_DEFAULT 0644
#define RWX 0777
#define LOCK_TRIES 500
#define LOCK_TRY_MS 10

struct writing {
	struct place at;
	const char *path, *want;
	mode_t mode;          /* of the new file */
	bool there;           /* there is a file at the place */
	int fd;               /* the new file */
	char temp[TEMP_NAME]; /* its name in at.dir; "" when it has none */
	int temp_dir;
	int cancel;
	bool cancelled;
	const char *detail;
};

static int refuse(struct writing *w, int sys, const char *detail)
{
	w->detail = detail;
	errno = sys;
	return -1;
}

static int read_mode(struct writing *w, const char *text)
{
	uint64_t mode = MODE_DEFAULT;

	if (*text && (!text_number(&text, 8, &mode) || *text || mode > 07777))
		return refuse(w, EINVAL, "the mode must be octal");
	w->mode = mode & RWX & ~022;
	return 0;
}

static bool has_tag(const struct stat *st, const char *want)
{
	struct builtin_entry entry;
	char tag[BUILTIN_TAG_SIZE];

	entry_of(&entry, "", st);
	builtin_tag(&entry, tag);
	return strcmp(tag, want) == 0;
}

/* Is what stands at the place what the caller wants to stand there? */
static int check_want(struct writing *w, const struct stat *st)
{
	if (!*w->want)
		return 0;
	if (strcmp(w->want, "new") == 0)
		return w->there ? refuse(w, EEXIST, NULL) : 0;
	if (!w->there)
		return refuse(w, ESTALE, "there is no such file");
	if (strcmp(w->want, "old") == 0 || has_tag(st, w->want))
		return 0;
	return refuse(w, ESTALE, "the file has changed");
}

static int look(struct writing *w)
{
	struct stat st;

	w->there = place_is_whole(&w->at) && fstatat(w->at.dir, w->at.rest, &st, AT_SYMLINK_NOFOLLOW) == 0;
	if (w->there && S_ISDIR(st.st_mode))
		return refuse(w, EISDIR, NULL);
	if (w->there && !S_ISREG(st.st_mode))
		return refuse(w, EINVAL, "not a regular file");
	/* a rename would do it, but nobody expects a file without write permission to be replaced */
	if (w->there && faccessat(w->at.dir, w->at.rest, W_OK, 0) < 0)
		return -1;
	if (w->there)
		w->mode = st.st_mode & RWX;
	return check_want(w, &st);
}

static int find(struct writing *w)
{
	if (place_find(&w->at, w->path) < 0)
		return -1;
	if (!place_has_name(&w->at))
		return refuse(w, EISDIR, NULL);
	return place_follow(&w->at) < 0 ? -1 : look(w);
}

static int open_new(struct writing *w)
{
	w->fd = openat(w->at.dir, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
	if (w->fd >= 0)
		return 0;
	/* a file system that cannot says EOPNOTSUPP, a kernel that cannot EISDIR, one that is none of both
	 * EINVAL */
	if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)
		return -1;
	temp_name(w->temp);
	w->temp_dir = fcntl(w->at.dir, F_DUPFD_CLOEXEC, 0);
	w->fd = openat(w->temp_dir, w->temp, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
	if (w->fd < 0)
		w->temp[0] = '\0';
	return w->fd < 0 ? -1 : 0;
}

/* All of stdin. */
static int take_content(struct writing *w)
{
	char piece[PIECE];
	ssize_t n;

	do {
		if (!cancel_wait(w->cancel, STDIN_FILENO, -1)) {
			w->cancelled = true;
			return -1;
		}
		n = read(STDIN_FILENO, piece, sizeof(piece));
		if (n > 0 && fd_write_all(w->fd, piece, (size_t)n) < 0)
			return -1;
	} while (n > 0 || (n < 0 && errno == EINTR));
	return n < 0 ? -1 : 0;
}

/* Two writers that want what they have seen must not both find it: the folder is locked among them. */
static int lock_folder(struct writing *w)
{
	/* the lock goes with the process */
	int fd = openat(w->at.dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -1;
	for (int i = 0; i < LOCK_TRIES; i++) {
		if (flock(fd, LOCK_EX | LOCK_NB) == 0)
			return 0;
		if (errno != EWOULDBLOCK)
			return -1;
		if (!cancel_wait(w->cancel, -1, LOCK_TRY_MS)) {
			w->cancelled = true;
			return -1;
		}
	}
	return refuse(w, EBUSY, "somebody has locked the folder");
}

/* Gives the new file a name that nothing has. */
static int place_as(struct writing *w, const char *name)
{
	char nameless[32];

	if (w->temp[0])
		return renameat2(w->temp_dir, w->temp, w->at.dir, name, RENAME_NOREPLACE);
	snprintf(nameless, sizeof(nameless), "/proc/self/fd/%d", w->fd);
	return linkat(AT_FDCWD, nameless, w->at.dir, name, AT_SYMLINK_FOLLOW);
}

/* Gives it the name of a file that is replaced. */
static int place_over(struct writing *w)
{
	if (!w->temp[0]) {
		char temp[TEMP_NAME];

		temp_name(temp);
		if (place_as(w, temp) < 0)
			return -1;
		memcpy(w->temp, temp, sizeof(temp));
		w->temp_dir = fcntl(w->at.dir, F_DUPFD_CLOEXEC, 0);
	}
	return renameat(w->temp_dir, w->temp, w->at.dir, w->at.rest);
}

static int give_name(struct writing *w)
{
	bool any = !*w->want, is_new = strcmp(w->want, "new") == 0;

	if (any || is_new) {
		if (place_as(w, w->at.rest) == 0) {
			w->there = false;
			return 0;
		}
		if (errno != EEXIST || is_new)
			return -1;
	}
	w->there = true;
	return place_over(w);
}

static int commit(struct writing *w)
{
	if (fchmod(w->fd, w->mode) < 0 || fsync(w->fd) < 0 || place_make(&w->at) < 0)
		return -1;
	if (*w->want && strcmp(w->want, "new") != 0 && lock_folder(w) < 0)
		return -1;
	if (look(w) < 0 || fchmod(w->fd, w->mode) < 0 || give_name(w) < 0)
		return -1;
	w->temp[0] = '\0'; /* it is the file now */
	return 0;
}

static int write_file(struct writing *w, char **argv, struct stat *ret)
{
	w->path = argv[0];
	w->want = argv[2];
	if (read_mode(w, argv[1]) < 0)
		return -1;
	w->cancel = cancel_open();
	if (w->cancel < 0 || find(w) < 0 || open_new(w) < 0 || take_content(w) < 0 || commit(w) < 0)
		return -1;
	return fstat(w->fd, ret);
}

int file_write_run(int argc, char **argv)
{
	struct writing w = { .at.dir = -1, .fd = -1, .temp_dir = -1, .cancel = -1 };
	struct report r;
	struct builtin_entry entry;
	struct stat st;

	(void)argc;
	int rc = write_file(&w, argv, &st), sys = errno;
	if (w.temp[0])
		(void)unlinkat(w.temp_dir, w.temp, 0);
	if (w.cancelled)
		return CANCEL_EXIT;
	report_init(&r, STDOUT_FILENO);
	if (rc < 0) {
		(void)report_failure(&r, w.path, sys, w.detail);
		return report_flush(&r) < 0;
	}
	entry_of(&entry, w.path, &st);
	if (!w.there)
		entry.detail = entry_detail("new");
	(void)report_entry(&r, &entry);
	return report_flush(&r) < 0;
}
