/* SPDX-License-Identifier: MIT */
/*
 * fake_files.c - manager/files.h and files_stream.h over a few files in memory. Some paths behave badly:
 *   /refused  cannot be opened for writing          /full   takes 512 KiB, then the disk is full
 *   /short    says 1 MiB and has half of it         /later  fails after its first bytes
 *   /proc     says that it is empty, and is not     /waste  endless, as an archive
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "base/buf.h"
#include "manager/files_stream.h"

#define FILES_MAX 64
#define FILE_MAX (64u << 20)
#define HALF (512u << 10)

static struct {
	pthread_mutex_t lock;
	struct {
		char *path, *bytes;
		size_t len;
		unsigned version;
	} files[FILES_MAX];
	size_t count;
	unsigned versions;
} disk = { .lock = PTHREAD_MUTEX_INITIALIZER };

static size_t find_locked(const char *path)
{
	size_t i = 0;

	while (i < disk.count && strcmp(disk.files[i].path, path) != 0)
		i++;
	return i;
}

static int absent(struct err *e, const char *path)
{
	return err_set(e, ERR_NOT_FOUND, "%s: No such file or directory", path);
}

static void describe(const char *path, size_t size, unsigned version, struct file_entry *ret)
{
	*ret = (struct file_entry){
		.path = path, .path_len = strlen(path), .type = "file", .mode = 0644, .size = size
	};
	(void)snprintf(ret->tag, sizeof(ret->tag), "tag-%u", version);
}

/* ---- out ---- */

struct files_reader {
	char *path;
	struct file_entry entry;
	char *bytes;
	size_t at, len;
	bool fails, endless;
};

/* A piece of what there is; the whole is longer when it is to break off. */
static void misbehave(struct files_reader *r)
{
	if (!strcmp(r->path, "/proc"))
		r->entry.size = 0;
	if (!strcmp(r->path, "/short"))
		r->entry.size = 2ull * HALF;
	r->fails = !strcmp(r->path, "/later");
}

static int open_reader(const char *path, uint64_t offset, uint64_t length, struct files_reader **ret,
		       struct err *e)
{
	pthread_mutex_lock(&disk.lock);
	size_t i = find_locked(path);
	if (i == disk.count) {
		pthread_mutex_unlock(&disk.lock);
		return absent(e, path);
	}
	struct files_reader *r = xcalloc(1, sizeof(*r));
	size_t size = disk.files[i].len, from = MIN(offset, size);
	r->path = xstrdup(path);
	describe(r->path, size, disk.files[i].version, &r->entry);
	r->len = length ? MIN(length, size - from) : size - from;
	r->bytes = xcalloc(1, r->len + 1);
	memcpy(r->bytes, disk.files[i].bytes + from, r->len);
	pthread_mutex_unlock(&disk.lock);
	misbehave(r);
	*ret = r;
	return 0;
}

int files_read(const struct files_caller *c, const char *path, uint64_t offset, uint64_t length,
	       struct files_reader **ret, struct err *e)
{
	(void)c;
	return open_reader(path, offset, length, ret, e);
}

int files_probe(const struct files_caller *c, const char *path, struct files_reader **ret, struct err *e)
{
	(void)c;
	return open_reader(path, 0, 1, ret, e);
}

int files_pack(const struct files_caller *c, const char *path, const char *format, struct files_reader **ret,
	       struct err *e)
{
	(void)c;
	(void)format;
	if (open_reader(path, 0, 0, ret, e))
		return -e->code;
	(*ret)->endless = !strcmp(path, "/waste");
	return 0;
}

const struct file_entry *files_reader_get_entry(const struct files_reader *r)
{
	return &r->entry;
}

int files_reader_next(struct files_reader *r, const char **ret_bytes, size_t *ret_len, struct err *e)
{
	if (r->endless)
		r->at = 0;
	if (r->at && r->fails)
		return err_set(e, ERR_SANDBOX, "it breaks off");
	*ret_bytes = r->bytes + r->at;
	*ret_len = MIN(r->len - r->at, 32768u);
	r->at += *ret_len;
	return *ret_len > 0;
}

void files_reader_free(struct files_reader *r)
{
	if (!r)
		return;
	free(r->path);
	free(r->bytes);
	free(r);
}

/* ---- in ---- */

struct files_writer {
	char *path;
	struct buf bytes;
	struct file_entry entry;
	bool full;
};

int files_write(const struct files_caller *c, const char *path, const char *mode, const char *want,
		struct files_writer **ret, struct err *e)
{
	(void)c;
	(void)mode;
	(void)want;
	if (!strcmp(path, "/refused"))
		return err_set(e, ERR_FORBIDDEN, "%s: Permission denied", path);
	struct files_writer *w = xcalloc(1, sizeof(*w));
	w->path = xstrdup(path);
	w->bytes = BUF_INIT(FILE_MAX);
	*ret = w;
	return 0;
}

int files_unpack(const struct files_caller *c, const char *path, const char *format,
		 struct files_writer **ret, struct err *e)
{
	return files_write(c, path, "", format, ret, e);
}

int files_writer_add(struct files_writer *w, const void *bytes, size_t len, struct err *e)
{
	w->full = !strcmp(w->path, "/full") && w->bytes.len + len > HALF;
	if (w->full)
		return err_set(e, ERR_CONFLICT, "it takes no more");
	return buf_add(&w->bytes, bytes, len, e);
}

int files_write_commit(struct files_writer *w, const struct file_entry **ret, struct err *e)
{
	if (w->full)
		return err_set(e, ERR_NO_SPACE, "%s: No space left on device", w->path);
	pthread_mutex_lock(&disk.lock);
	size_t i = find_locked(w->path);
	bool is_new = i == disk.count;
	if (i == FILES_MAX)
		abort();
	if (is_new)
		disk.files[disk.count++].path = xstrdup(w->path);
	free(disk.files[i].bytes);
	disk.files[i].len = w->bytes.len;
	disk.files[i].bytes = buf_take(&w->bytes);
	disk.files[i].version = ++disk.versions;
	describe(w->path, disk.files[i].len, disk.versions, &w->entry);
	pthread_mutex_unlock(&disk.lock);
	w->entry.is_new = is_new;
	*ret = &w->entry;
	return 0;
}

int files_unpack_commit(struct files_writer *w, file_entry_fn fn, void *ctx, struct files_report *ret,
			struct err *e)
{
	struct file_entry refused;

	describe("/x/../y", 0, 0, &refused);
	err_set(&refused.err, ERR_UNPROCESSABLE, "it leaves the folder");
	*ret = (struct files_report){ .entries = 1, .bytes = w->bytes.len, .refused = 1 };
	return fn(ctx, &refused, e);
}

void files_writer_free(struct files_writer *w)
{
	if (!w)
		return;
	free(w->path);
	buf_clear(&w->bytes);
	free(w);
}

/* ---- the rest ---- */

char *files_absolute(const struct files_caller *c, const char *path)
{
	(void)c;
	return xstrdup(path);
}

int files_stat(const struct files_caller *c, const char *const *paths, size_t count, file_entry_fn fn,
	       void *ctx, struct err *e)
{
	struct file_entry entry;
	int r = 0;

	(void)c;
	for (size_t i = 0; i < count && !r; i++) {
		pthread_mutex_lock(&disk.lock);
		size_t at = find_locked(paths[i]);
		bool there = at < disk.count;
		describe(paths[i], there ? disk.files[at].len : 0, there ? disk.files[at].version : 0,
			 &entry);
		pthread_mutex_unlock(&disk.lock);
		if (!there)
			absent(&entry.err, paths[i]);
		r = fn(ctx, &entry, e);
	}
	return r;
}

int files_list(const struct files_caller *c, const struct files_wanted *what, file_entry_fn fn, void *ctx,
	       bool *ret_truncated, struct err *e)
{
	*ret_truncated = false;
	return files_stat(c, &what->path, 1, fn, ctx, e);
}

int files_mkdir(const struct files_caller *c, const char *path, struct err *e)
{
	(void)c;
	(void)path;
	(void)e;
	return 0;
}

int files_move(const struct files_caller *c, const char *from, const char *to, struct err *e)
{
	(void)c;
	(void)to;
	return err_set(e, ERR_CONFLICT, "%s: busy", from);
}

int files_delete(const struct files_caller *c, const char *const *paths, size_t count, bool recursive,
		 file_entry_fn fn, void *ctx, struct err *e)
{
	(void)recursive;
	return files_stat(c, paths, count, fn, ctx, e);
}
