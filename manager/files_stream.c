/* SPDX-License-Identifier: MIT */
#include "manager/files_stream.h"

#include <string.h>

#include "base/log.h"
#include "manager/builtin.h"
#include "manager/internal.h"

/* What an open job is about. Texts are copied, since entries and callers do not last. */
struct about {
	struct files_caller caller;
	struct caller who;
	char *path;
	enum files_act act;
	bool quiet; /* a probe: not noted */
	struct file_entry entry;
	char *target;
	int64_t bytes;
	struct err err; /* what became of it */
};

static void about_init(struct about *a, const struct files_caller *c, const char *path, enum files_act act)
{
	a->who = *c->who;
	a->caller = *c;
	a->caller.who = &a->who;
	a->path = files_absolute(c, path);
	a->act = act;
}

static void about_clear(struct about *a)
{
	if (!a->quiet)
		files_note(&a->caller, a->act, a->path, &a->err, a->bytes);
	free(a->path);
	free(a->target);
}

static int failed(struct about *a, const struct err *e)
{
	a->err = *e;
	return -(int)e->code;
}

/* Keeps an entry. Its errno is the call's. */
static int keep_entry(struct about *a, const struct builtin_entry *from, struct err *e)
{
	files_entry(from, a->path, &a->entry);
	free(a->target);
	a->target = a->entry.target ? xstrndup(a->entry.target, a->entry.target_len) : NULL;
	a->entry.target = a->target;
	if (!a->entry.err.code)
		return 0;
	*e = a->entry.err;
	return -(int)e->code;
}

static int unasked(struct err *e)
{
	return err_set(e, ERR_SANDBOX, "the sandbox's agent sent what was not asked for");
}

/* ---- out ---- */

struct files_reader {
	struct about about;
	struct builtin_job *job;
	bool packs; /* stderr says what became of it */
	bool said;  /* it did */
	uint64_t left_out;
};

static int take_aside(struct files_reader *r, int what, const struct builtin_piece *piece, struct err *e)
{
	if (!r->packs || r->said)
		return unasked(e);
	if (what == BUILTIN_ENTRY) {
		r->left_out++;
		return 0;
	}
	r->said = true;
	if (piece->done.sys)
		return files_error(e, piece->done.sys, r->about.path, strlen(r->about.path),
				   piece->done.detail.at, piece->done.detail.len);
	return 0;
}

/* The next thing on stdout. */
static int next(struct files_reader *r, struct builtin_piece *piece, struct err *e)
{
	for (;;) {
		int what = builtin_next(r->job, piece, e);
		if (what == BUILTIN_END && r->packs && !r->said)
			return unasked(e);
		if (what < 0 || what == BUILTIN_END || !piece->aside)
			return what;
		int got = take_aside(r, what, piece, e);
		if (got < 0)
			return got;
	}
}

static int open_reader(struct files_reader *r, const struct builtin_ask *ask, struct err *e)
{
	struct builtin_piece piece;
	int got = builtin_start(r->about.caller.session, ask, &r->job, e);
	if (got == 0)
		got = next(r, &piece, e);
	if (got < 0)
		return got;
	return got == BUILTIN_ENTRY ? keep_entry(&r->about, &piece.entry, e) : unasked(e);
}

/* A reader that has opened, or else none. */
static int hand_out(struct files_reader *r, const struct builtin_ask *ask, struct files_reader **ret,
		    struct err *e)
{
	int got = open_reader(r, ask, e);
	if (got == 0) {
		*ret = r;
		return 0;
	}
	failed(&r->about, e);
	files_reader_free(r);
	return got;
}

static int read_file(const struct files_caller *c, const char *path, uint64_t offset, uint64_t length,
		     bool quiet, struct files_reader **ret, struct err *e)
{
	struct files_reader *r = xcalloc(1, sizeof(*r));
	about_init(&r->about, c, path, FILES_READ);
	r->about.quiet = quiet;
	char from[24], most[24];
	snprintf(from, sizeof(from), "%llu", (unsigned long long)offset);
	snprintf(most, sizeof(most), "%llu", (unsigned long long)length);
	const char *const args[] = { r->about.path, from, most, NULL };
	const struct builtin_ask ask = {
		.name = "read", .args = args, .raw = true, .client_fd = c->client_fd
	};
	return hand_out(r, &ask, ret, e);
}

int files_read(const struct files_caller *c, const char *path, uint64_t offset, uint64_t length,
	       struct files_reader **ret, struct err *e)
{
	return read_file(c, path, offset, length, false, ret, e);
}

int files_probe(const struct files_caller *c, const char *path, struct files_reader **ret, struct err *e)
{
	return read_file(c, path, 0, 1, true, ret, e);
}

int files_pack(const struct files_caller *c, const char *path, const char *format, struct files_reader **ret,
	       struct err *e)
{
	struct files_reader *r = xcalloc(1, sizeof(*r));
	about_init(&r->about, c, path, FILES_PACK);
	r->packs = true;
	const char *const args[] = { r->about.path, format, NULL };
	const struct builtin_ask ask = { .name = "pack",
					 .args = args,
					 .raw = true,
					 .split = true,
					 .slow = true,
					 .client_fd = c->client_fd };
	return hand_out(r, &ask, ret, e);
}

const struct file_entry *files_reader_get_entry(const struct files_reader *r)
{
	return &r->about.entry;
}

int files_reader_next(struct files_reader *r, const char **ret_bytes, size_t *ret_len, struct err *e)
{
	struct builtin_piece piece;
	int what = next(r, &piece, e);
	if (what < 0)
		return failed(&r->about, e);
	if (what == BUILTIN_END)
		return 0;
	if (what != BUILTIN_BYTES)
		return unasked(e);
	*ret_bytes = piece.bytes;
	*ret_len = piece.len;
	r->about.bytes += (int64_t)piece.len;
	return 1;
}

void files_reader_free(struct files_reader *r)
{
	if (!r)
		return;
	builtin_free(r->job);
	if (r->left_out)
		LOG(LOG_INFO, "left out of an archive", F("session", r->about.caller.session->id),
		    log_field_shown("path", r->about.path), F("entries", (int64_t)r->left_out));
	about_clear(&r->about);
	free(r);
}

/* ---- in ---- */

struct files_writer {
	struct about about;
	struct builtin_job *job;
	bool ended; /* committed or failed */
};

static int open_writer(const struct files_caller *c, const char *path, enum files_act act,
		       struct builtin_ask *ask, const char **args, struct files_writer **ret, struct err *e)
{
	struct files_writer *w = xcalloc(1, sizeof(*w));
	about_init(&w->about, c, path, act);
	args[0] = w->about.path;
	ask->args = args;
	ask->has_stdin = true;
	ask->slow = true;
	ask->client_fd = -1; /* a client that has gone is noticed where its bytes are read */
	int r = builtin_start(c->session, ask, &w->job, e);
	if (r == 0) {
		*ret = w;
		return 0;
	}
	failed(&w->about, e);
	w->ended = true;
	files_writer_free(w);
	return r;
}

int files_write(const struct files_caller *c, const char *path, const char *mode, const char *want,
		struct files_writer **ret, struct err *e)
{
	const char *args[] = { NULL, mode, want, NULL };
	struct builtin_ask ask = { .name = "write" };
	return open_writer(c, path, FILES_WRITE, &ask, args, ret, e);
}

int files_unpack(const struct files_caller *c, const char *path, const char *format,
		 struct files_writer **ret, struct err *e)
{
	const char *args[] = { NULL, format, NULL };
	struct builtin_ask ask = { .name = "unpack" };
	return open_writer(c, path, FILES_UNPACK, &ask, args, ret, e);
}

static int writer_failed(struct files_writer *w, const struct err *e)
{
	w->ended = true;
	return failed(&w->about, e);
}

int files_writer_add(struct files_writer *w, const void *bytes, size_t len, struct err *e)
{
	int r = builtin_write(w->job, bytes, len, e);
	w->about.bytes += r == 0 ? (int64_t)len : 0;
	/* It takes no more: the commit, which the caller makes next in any case, tells why. */
	return r == 0 || r == -ERR_CONFLICT ? r : writer_failed(w, e);
}

static int read_result(struct files_writer *w, struct err *e)
{
	struct builtin_piece piece;
	bool there = false;
	for (;;) {
		int what = builtin_next(w->job, &piece, e);
		if (what < 0)
			return what;
		if (what == BUILTIN_END)
			return there ? 0 : unasked(e);
		if (what != BUILTIN_ENTRY || piece.aside || there)
			return unasked(e);
		there = true;
		int r = keep_entry(&w->about, &piece.entry, e);
		if (r < 0)
			return r;
	}
}

int files_write_commit(struct files_writer *w, const struct file_entry **ret, struct err *e)
{
	builtin_close(w->job);
	if (read_result(w, e) < 0)
		return writer_failed(w, e);
	w->ended = true;
	*ret = &w->about.entry;
	return 0;
}

static int read_report(struct files_writer *w, file_entry_fn fn, void *ctx, struct files_report *ret,
		       struct err *e)
{
	struct builtin_piece piece;
	struct file_entry entry;
	unsigned left = BUILTIN_REPORT_MAX;
	bool done = false;
	for (;;) {
		int what = builtin_next(w->job, &piece, e);
		if (what < 0)
			return what;
		if (what == BUILTIN_END)
			return done ? 0 : unasked(e);
		if (piece.aside || done || (what == BUILTIN_ENTRY && !left--))
			return unasked(e);
		if (what == BUILTIN_ENTRY) {
			files_entry(&piece.entry, NULL, &entry);
			int r = fn(ctx, &entry, e);
			if (r < 0)
				return r;
			continue;
		}
		done = true;
		*ret = (struct files_report){ .entries = piece.done.entries,
					      .bytes = piece.done.bytes,
					      .refused = piece.done.refused,
					      .truncated = piece.done.refused > BUILTIN_REPORT_MAX - left };
		if (piece.done.sys)
			return files_error(e, piece.done.sys, w->about.path, strlen(w->about.path),
					   piece.done.detail.at, piece.done.detail.len);
	}
}

int files_unpack_commit(struct files_writer *w, file_entry_fn fn, void *ctx, struct files_report *ret,
			struct err *e)
{
	*ret = (struct files_report){ 0 };
	builtin_close(w->job);
	int r = read_report(w, fn, ctx, ret, e);
	if (r < 0)
		return writer_failed(w, e);
	w->ended = true;
	return 0;
}

void files_writer_free(struct files_writer *w)
{
	if (!w)
		return;
	builtin_free(w->job);
	if (!w->ended)
		err_set(&w->about.err, ERR_CONFLICT, "it was cut off");
	about_clear(&w->about);
	free(w);
}
