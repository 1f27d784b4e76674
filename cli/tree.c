/* SPDX-License-Identifier: MIT */
#include "cli/tree.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "cli/say.h"

#define PIECE ((size_t)64 * 1024)
#define PENDING_MAX ((size_t)1 << 20) /* bytes of the stream not yet taken: one header, one piece */
#define NAMED_MAX 20                  /* of what is left out */

bool tree_link_leaves(const char *name, const char *target)
{
	long depth = 0; /* of the folder that the link lies in */
	bool down = false;
	if (*target == '/')
		return true;
	for (const char *p = name; *p; p++)
		depth += *p == '/' && p[1];
	for (const char *at = target; *at; at += strspn(at, "/")) {
		size_t len = strcspn(at, "/");
		if (len == 2 && !memcmp(at, "..", 2)) {
			/* What was gone down into may be another link, and then up is somewhere else. */
			if (down || --depth < 0)
				return true;
		} else if (len != 1 || *at != '.') {
			down = true;
		}
		at += len;
	}
	return false;
}

static void leave_out(size_t *count, const char *name, const char *why)
{
	if (++*count <= NAMED_MAX)
		say("left out: %s: %s", name ? name : "an entry without a usable name", why);
	else if (*count == NAMED_MAX + 1)
		say("more is left out");
}

/* NULL: it may be copied; else why not. name: relative to the folder. */
static const char *judge(struct archive_entry *entry, const char *name)
{
	const char *target = archive_entry_symlink(entry);
	if (!name || archive_entry_hardlink(entry))
		return name ? "a hard link" : "not usable here";
	switch (archive_entry_filetype(entry)) {
	case AE_IFREG:
	case AE_IFDIR:
		return NULL;
	case AE_IFLNK:
		return target && !tree_link_leaves(name, target) ? NULL
								 : "a link that leads out of the folder";
	default:
		return "neither a file, a folder nor a link";
	}
}

/* ---- out ---- */

struct tree {
	struct archive *disk, *tar;
	struct archive_entry *entry;
	size_t root_len; /* of the folder's name and the slash */
	bool in_entry, ended;
	size_t left_out;
	struct buf pending;
	char piece[PIECE];
};

static la_ssize_t on_tar(struct archive *a, void *ctx, const void *bytes, size_t len)
{
	struct tree *t = ctx;
	struct err e;
	if (!buf_add(&t->pending, bytes, len, &e))
		return (la_ssize_t)len;
	archive_set_error(a, ENOMEM, "%s", e.msg);
	return -1;
}

static int failed(struct archive *a, struct err *e)
{
	const char *text = archive_error_string(a);
	return err_set(e, ERR_INVALID, "%s", text ? text : "the folder cannot be read");
}

int tree_open(const char *folder, struct tree **ret, struct err *e)
{
	struct tree *t = xcalloc(1, sizeof(*t));
	t->pending = BUF_INIT(PENDING_MAX);
	t->disk = archive_read_disk_new();
	t->tar = archive_write_new();
	t->entry = archive_entry_new();
	t->root_len = strlen(folder) + (folder[strlen(folder) - 1] != '/');
	archive_read_disk_set_symlink_physical(t->disk);
	archive_write_set_format_pax(t->tar); /* the restricted one drops parts of a second */
	archive_write_set_bytes_per_block(t->tar, 0);
	if (archive_write_open(t->tar, t, NULL, on_tar, NULL) != ARCHIVE_OK ||
	    archive_read_disk_open(t->disk, folder) != ARCHIVE_OK) {
		int rc = failed(archive_errno(t->disk) ? t->disk : t->tar, e);
		tree_free(t);
		return rc;
	}
	*ret = t;
	return 0;
}

/* The sandbox learns nothing of who owns what here. */
static void make_plain(struct archive_entry *entry, const char *name)
{
	archive_entry_copy_pathname(entry, name);
	archive_entry_set_uid(entry, 0);
	archive_entry_set_gid(entry, 0);
	archive_entry_copy_uname(entry, NULL);
	archive_entry_copy_gname(entry, NULL);
	archive_entry_set_perm(entry, archive_entry_perm(entry) & 0777);
	archive_entry_acl_clear(entry);
	archive_entry_xattr_clear(entry);
}

static int next_entry(struct tree *t, struct err *e)
{
	int rc = archive_read_next_header2(t->disk, t->entry);
	if (rc == ARCHIVE_EOF) {
		t->ended = true;
		return archive_write_close(t->tar) == ARCHIVE_OK ? 0 : failed(t->tar, e);
	}
	if (rc == ARCHIVE_FATAL)
		return failed(t->disk, e);
	const char *full = archive_entry_pathname(t->entry);
	archive_read_disk_descend(t->disk);
	if (full && strlen(full) < t->root_len + 1)
		return 0; /* the folder itself */
	_cleanup_free_ char *name = full ? xstrdup(full + t->root_len) : NULL;
	const char *why = rc == ARCHIVE_FAILED ? archive_error_string(t->disk) : judge(t->entry, name);
	/* A file that cannot be opened tells so only when it is read: too late for its header. */
	if (!why && full && archive_entry_filetype(t->entry) == AE_IFREG && access(full, R_OK))
		why = strerrordesc_np(errno);
	if (why) {
		leave_out(&t->left_out, name, why);
		return 0;
	}
	make_plain(t->entry, name);
	t->in_entry = true;
	return archive_write_header(t->tar, t->entry) >= ARCHIVE_WARN ? 0 : failed(t->tar, e);
}

static int next_piece(struct tree *t, struct err *e)
{
	bool has_data = archive_entry_filetype(t->entry) == AE_IFREG && archive_entry_size(t->entry) > 0;
	la_ssize_t n = has_data ? archive_read_data(t->disk, t->piece, sizeof(t->piece)) : 0;
	if (n < 0)
		return failed(t->disk, e);
	if (n > 0)
		return archive_write_data(t->tar, t->piece, (size_t)n) >= 0 ? 0 : failed(t->tar, e);
	t->in_entry = false;
	return archive_write_finish_entry(t->tar) >= ARCHIVE_WARN ? 0 : failed(t->tar, e);
}

ssize_t tree_read(struct tree *t, char *room, size_t size, struct err *e)
{
	while (!t->pending.len && !t->ended) {
		int rc = t->in_entry ? next_piece(t, e) : next_entry(t, e);
		if (rc)
			return rc;
	}
	size_t len = MIN(size, t->pending.len);
	if (len)
		memcpy(room, t->pending.data, len);
	buf_consume(&t->pending, len);
	return (ssize_t)len;
}

size_t tree_left_out(const struct tree *t)
{
	return t->left_out;
}

void tree_free(struct tree *t)
{
	if (!t)
		return;
	archive_read_free(t->disk);
	archive_write_free(t->tar);
	archive_entry_free(t->entry);
	buf_clear(&t->pending);
	free(t);
}

/* ---- in ---- */

struct tree_in {
	pthread_t thread;
	int fd; /* the reading end */
	size_t left_out;
	int rc;
	struct err e;
};

static int copy_data(struct archive *in, struct archive *disk, struct err *e)
{
	const void *bytes;
	size_t len;
	la_int64_t offset;
	int rc;
	while ((rc = archive_read_data_block(in, &bytes, &len, &offset)) == ARCHIVE_OK)
		if (archive_write_data_block(disk, bytes, len, offset) < 0)
			return failed(disk, e);
	return rc == ARCHIVE_EOF ? 0 : failed(in, e);
}

static int unpack_one(struct tree_in *t, struct archive *in, struct archive *disk,
		      struct archive_entry *entry)
{
	const char *name = archive_entry_pathname(entry);
	const char *why = judge(entry, name);
	archive_entry_set_perm(entry, archive_entry_perm(entry) & 0777);
	if (!why && archive_write_header(disk, entry) != ARCHIVE_OK)
		why = archive_error_string(disk);
	if (why) {
		leave_out(&t->left_out, name, why);
		return 0;
	}
	if (archive_entry_size(entry) > 0 && copy_data(in, disk, &t->e))
		return -(int)t->e.code;
	return archive_write_finish_entry(disk) >= ARCHIVE_WARN ? 0 : failed(disk, &t->e);
}

static int unpack(struct tree_in *t, struct archive *in, struct archive *disk)
{
	struct archive_entry *entry;
	int rc = 0, got;
	while (!rc && (got = archive_read_next_header(in, &entry)) != ARCHIVE_EOF)
		rc = got >= ARCHIVE_WARN ? unpack_one(t, in, disk, entry) : failed(in, &t->e);
	if (!rc && archive_write_close(disk) < ARCHIVE_WARN)
		rc = failed(disk, &t->e);
	return rc;
}

static void *unpack_main(void *arg)
{
	struct tree_in *t = arg;
	struct archive *in = archive_read_new(), *disk = archive_write_disk_new();
	archive_read_support_format_tar(in);
	archive_write_disk_set_options(disk, ARCHIVE_EXTRACT_TIME | ARCHIVE_EXTRACT_SECURE_SYMLINKS |
						     ARCHIVE_EXTRACT_SECURE_NODOTDOT |
						     ARCHIVE_EXTRACT_SECURE_NOABSOLUTEPATHS);
	t->rc = archive_read_open_fd(in, t->fd, PIECE) == ARCHIVE_OK ? unpack(t, in, disk)
								     : failed(in, &t->e);
	archive_read_free(in);
	archive_write_free(disk);
	/* An archive may have ended before its padding has; after a failure the writer gets EPIPE. */
	char padding[4096];
	while (!t->rc && read(t->fd, padding, sizeof(padding)) > 0)
		;
	close(t->fd);
	return NULL;
}

int tree_in_start(const char *folder, struct tree_in **ret, int *ret_fd, struct err *e)
{
	int fds[2];
	if (chdir(folder))
		return err_sys(e, ERR_INVALID, errno, "%s", folder);
	if (pipe2(fds, O_CLOEXEC))
		return err_sys(e, ERR_INTERNAL, errno, "no pipe");
	struct tree_in *t = xcalloc(1, sizeof(*t));
	t->fd = fds[0];
	int sys = pthread_create(&t->thread, NULL, unpack_main, t);
	if (sys) {
		close(fds[0]);
		close(fds[1]);
		free(t);
		return err_sys(e, ERR_INTERNAL, sys, "no thread");
	}
	*ret = t;
	*ret_fd = fds[1];
	return 0;
}

int tree_in_finish(struct tree_in *t, size_t *ret_left_out, struct err *e)
{
	pthread_join(t->thread, NULL);
	int rc = t->rc;
	*ret_left_out = t->left_out;
	if (rc)
		*e = t->e;
	free(t);
	return rc;
}
