/* SPDX-License-Identifier: MIT */
#include "manager/files.h"

#include <errno.h>
#include <string.h>

#include "base/metrics.h"
#include "manager/builtin.h"
#include "manager/files_path.h"
#include "manager/internal.h"

#define SHOWN_MAX 4096           /* bytes of a path in audit rows */
#define BATCH_BYTES (512 * 1024) /* of paths in one job, whose spec is bounded */

/* ---- what is told ---- */

/* clang-format off */
static const struct {
	int sys;
	enum err_code code;
} codes[] = {
	{ ENOENT,    ERR_NOT_FOUND },
	{ EACCES,    ERR_FORBIDDEN },
	{ EPERM,     ERR_FORBIDDEN },
	{ EROFS,     ERR_FORBIDDEN },
	{ EEXIST,    ERR_CONFLICT },
	{ ENOTEMPTY, ERR_CONFLICT },
	{ EBUSY,     ERR_CONFLICT },
	{ ENOSPC,    ERR_NO_SPACE },
	{ EDQUOT,    ERR_NO_SPACE },
	{ ESTALE,    ERR_PRECONDITION },
	{ EFBIG,     ERR_TOO_LARGE },
	{ E2BIG,     ERR_TOO_LARGE },
};
/* clang-format on */

int files_error(struct err *e, int sys, const char *about, size_t about_len, const char *why, size_t why_len)
{
	enum err_code code = ERR_UNPROCESSABLE;
	for (size_t i = 0; i < ARRAY_LEN(codes); i++)
		if (codes[i].sys == sys)
			code = codes[i].code;
	_cleanup_free_ char *path = utf8_escape(about ? about : "", about ? about_len : 0, 160);
	_cleanup_free_ char *detail = utf8_escape(why ? why : "", why ? why_len : 0, 120);
	const char *said = strerrordesc_np(sys);
	err_set(e, code, "%s: %s", path, *detail ? detail : said ? said : "failed");
	e->sys = sys;
	return -(int)code;
}

void files_entry(const struct builtin_entry *from, const char *path, struct file_entry *ret)
{
	const char *type = builtin_type_name(from->type);
	*ret = (struct file_entry){
		.path = path            ? path
			: from->path.at ? from->path.at
					: "",
		.path_len = path ? strlen(path) : from->path.len,
		.type = type ? type : "",
		.mode = from->mode,
		.size = from->size,
		.mtime_ms = from->mtime_ns / 1000000 - (from->mtime_ns % 1000000 < 0),
		.target = from->target.at,
		.target_len = from->target.len,
		.is_new = from->detail.len == 3 && !memcmp(from->detail.at, "new", 3),
	};
	builtin_tag(from, ret->tag);
	if (from->sys)
		files_error(&ret->err, from->sys, ret->path, ret->path_len, from->detail.at,
			    from->detail.len);
}

char *files_absolute(const struct files_caller *c, const char *path)
{
	return files_path_absolute(c->session->manager->settings->workspace, path);
}

/* clang-format off */
static const struct {
	const char *counted, *audited; /* audited NULL: nothing is changed or taken out */
	const char *direction;         /* of its bytes */
} acts[] = {
	[FILES_STAT]   = { "stat",          NULL,          NULL },
	[FILES_LIST]   = { "list",          NULL,          NULL },
	[FILES_MKDIR]  = { "mkdir",         "file.mkdir",  NULL },
	[FILES_MOVE]   = { "move",          "file.move",   NULL },
	[FILES_DELETE] = { "delete",        "file.delete", NULL },
	[FILES_READ]   = { "read",          "file.read",   "out" },
	[FILES_WRITE]  = { "write",         "file.write",  "in" },
	[FILES_PACK]   = { "archive_read",  "archive.out", "out" },
	[FILES_UNPACK] = { "archive_write", "archive.in",  "in" },
};
/* clang-format on */

void files_note(const struct files_caller *c, enum files_act act, const char *path, const struct err *err,
		int64_t bytes)
{
	metrics_add(METRIC_FILE_OPERATIONS, c->as ? c->as : acts[act].counted, metrics_result(err->code), 1);
	if (acts[act].direction)
		metrics_add(METRIC_FILE_BYTES, acts[act].direction, NULL, bytes);
	if (!acts[act].audited)
		return;
	char detail[64];
	_cleanup_free_ char *shown = utf8_escape(path, strlen(path), SHOWN_MAX);
	snprintf(detail, sizeof(detail), "%lld bytes", (long long)bytes);
	struct audit_row row =
		audit_of(c->who, acts[act].audited, c->session->id, shown,
			 err->code ? err_name(err->code) : "ok", acts[act].direction ? detail : NULL);
	store_audit_later(c->session->manager->store, &row);
}

/* ---- jobs whose output is a list ---- */

/* Gets one entry of a job's. */
typedef int (*record_fn)(void *ctx, const struct builtin_entry *entry, struct err *e);

/* Runs a job to its end. ret_done may be NULL: then it must not say one. */
static int run(const struct files_caller *c, const char *name, const char *const *args, record_fn fn,
	       void *ctx, bool *ret_truncated, struct err *e)
{
	const struct builtin_ask ask = {
		.name = name,
		.args = args,
		.slow = true,
		.client_fd = c->client_fd,
	};
	_cleanup_(builtin_free_cleanup_) struct builtin_job *b = NULL;
	struct builtin_piece piece;
	bool done = !ret_truncated;
	int r = builtin_start(c->session, &ask, &b, e);
	while (r == 0) {
		r = builtin_next(b, &piece, e);
		if (r == BUILTIN_END)
			return done ? 0
				    : err_set(e, ERR_SANDBOX, "the sandbox's agent sent no end of its list");
		if (r == BUILTIN_ENTRY)
			r = fn(ctx, &piece.entry, e);
		else if (r == BUILTIN_DONE && ret_truncated && piece.done.sys)
			r = files_error(e, piece.done.sys, args[0], strlen(args[0]), piece.done.detail.at,
					piece.done.detail.len);
		else if (r == BUILTIN_DONE && ret_truncated) {
			*ret_truncated = piece.done.truncated;
			done = true;
			r = 0;
		} else if (r > 0)
			r = err_set(e, ERR_SANDBOX, "the sandbox's agent sent what was not asked for");
	}
	return r;
}

/* ---- one entry ---- */

struct one {
	const char *path;
	int count;
	struct err err; /* of the entry */
};

static int take_one(void *ctx, const struct builtin_entry *entry, struct err *e)
{
	struct one *one = ctx;
	struct file_entry made;
	if (one->count++)
		return err_set(e, ERR_SANDBOX, "the sandbox's agent sent too many entries");
	files_entry(entry, one->path, &made);
	one->err = made.err;
	return 0;
}

/* A job that says one entry: what became of it. */
static int run_one(const struct files_caller *c, const char *name, const char *const *args, struct err *e)
{
	struct one one = { .path = args[0] };
	int r = run(c, name, args, take_one, &one, NULL, e);
	if (r == 0 && !one.count)
		r = err_set(e, ERR_SANDBOX, "the sandbox's agent did not say what became of it");
	if (r == 0 && one.err.code) {
		*e = one.err;
		r = -(int)e->code;
	}
	return r;
}

int files_mkdir(const struct files_caller *c, const char *path, struct err *e)
{
	_cleanup_free_ char *full = files_absolute(c, path);
	const char *const args[] = { full, NULL };
	struct err none = { 0 };
	int r = run_one(c, "mkdir", args, e);
	files_note(c, FILES_MKDIR, full, r < 0 ? e : &none, 0);
	return r;
}

static int refuse_kept(struct err *e, const char *path)
{
	static const char why[] = "is one of the places that always stay";
	return files_error(e, EPERM, path, strlen(path), why, strlen(why));
}

static bool is_kept(const struct files_caller *c, const char *full)
{
	return files_path_is_kept(c->session->manager->settings->workspace, full);
}

int files_move(const struct files_caller *c, const char *from, const char *to, struct err *e)
{
	_cleanup_free_ char *source = files_absolute(c, from);
	_cleanup_free_ char *target = files_absolute(c, to);
	const char *const args[] = { source, target, NULL };
	struct err none = { 0 };
	int r = is_kept(c, source) ? refuse_kept(e, source) : run_one(c, "move", args, e);
	_cleanup_free_ char *subject = xasprintf("%s -> %s", source, target);
	files_note(c, FILES_MOVE, subject, r < 0 ? e : &none, 0);
	return r;
}

/* ---- list ---- */

struct listing {
	file_entry_fn fn;
	void *ctx;
	unsigned left;
	const char *path;
	bool begun;
};

static int take_listed(void *ctx, const struct builtin_entry *entry, struct err *e)
{
	struct listing *l = ctx;
	struct file_entry made;
	files_entry(entry, NULL, &made);
	bool first = !l->begun;
	l->begun = true;
	if (first && made.err.code && made.path_len == strlen(l->path) &&
	    !memcmp(made.path, l->path, made.path_len)) {
		*e = made.err; /* the path itself */
		return -(int)e->code;
	}
	if (!l->left--)
		return err_set(e, ERR_SANDBOX, "the sandbox's agent sent too many entries");
	return l->fn(l->ctx, &made, e);
}

int files_list(const struct files_caller *c, const struct files_wanted *what, file_entry_fn fn, void *ctx,
	       bool *ret_truncated, struct err *e)
{
	_cleanup_free_ char *full = files_absolute(c, what->path);
	_cleanup_free_ char *most = xasprintf("%u", what->max);
	const char *const args[] = { full, what->recursive ? "1" : "0", most, NULL };
	struct listing l = { .fn = fn, .ctx = ctx, .left = what->max, .path = full };
	struct err none = { 0 };
	int r = run(c, "list", args, take_listed, &l, ret_truncated, e);
	files_note(c, FILES_LIST, full, r < 0 ? e : &none, 0);
	return r;
}

/* ---- an entry for each of many paths ---- */

struct batch {
	const struct files_caller *caller;
	const char *name;
	enum files_act act;
	const char *flag; /* the first argument; NULL: none */
	bool keeps;       /* places that stay are left out */
	file_entry_fn fn;
	void *ctx;
	const char **args; /* room for all paths, the flag and the NULL */
	char **paths;      /* absolute, of the batch */
	size_t count, taken, bytes;
};

static int tell(struct batch *b, const struct file_entry *entry, struct err *e)
{
	files_note(b->caller, b->act, entry->path, &entry->err, 0);
	return b->fn(b->ctx, entry, e);
}

static int take_each(void *ctx, const struct builtin_entry *entry, struct err *e)
{
	struct batch *b = ctx;
	struct file_entry made;
	if (b->taken == b->count)
		return err_set(e, ERR_SANDBOX, "the sandbox's agent sent too many entries");
	files_entry(entry, b->paths[b->taken++], &made);
	return tell(b, &made, e);
}

static void empty(struct batch *b)
{
	for (size_t i = 0; i < b->count; i++)
		free(b->paths[i]);
	b->count = b->taken = b->bytes = 0;
}

static int flush(struct batch *b, struct err *e)
{
	size_t n = 0;
	if (!b->count)
		return 0;
	if (b->flag)
		b->args[n++] = b->flag;
	for (size_t i = 0; i < b->count; i++)
		b->args[n++] = b->paths[i];
	b->args[n] = NULL;
	int r = run(b->caller, b->name, b->args, take_each, b, NULL, e);
	if (r == 0 && b->taken < b->count)
		r = err_set(e, ERR_SANDBOX, "the sandbox's agent sent too few entries");
	empty(b);
	return r;
}

static int add(struct batch *b, const char *path, struct err *e)
{
	char *full = files_absolute(b->caller, path);
	size_t len = strlen(full) + PROTO_FIELD_HEADER;
	bool kept = b->keeps && is_kept(b->caller, full);
	if ((kept || b->bytes + len > BATCH_BYTES) && flush(b, e) < 0) {
		free(full);
		return -(int)e->code;
	}
	if (kept) {
		struct file_entry entry = { .path = full, .path_len = strlen(full), .type = "" };
		refuse_kept(&entry.err, full);
		int r = tell(b, &entry, e);
		free(full);
		return r;
	}
	b->paths[b->count++] = full;
	b->bytes += len;
	return 0;
}

static int run_batches(struct batch *b, const char *const *paths, size_t count, struct err *e)
{
	int r = 0;
	b->args = xcalloc(count + 2, sizeof(*b->args));
	b->paths = xcalloc(count + 1, sizeof(*b->paths));
	for (size_t i = 0; i < count && r == 0; i++)
		r = add(b, paths[i], e);
	if (r == 0)
		r = flush(b, e);
	empty(b);
	free(b->args);
	free(b->paths);
	return r;
}

int files_stat(const struct files_caller *c, const char *const *paths, size_t count, file_entry_fn fn,
	       void *ctx, struct err *e)
{
	struct batch b = { .caller = c, .name = "stat", .act = FILES_STAT, .fn = fn, .ctx = ctx };
	return run_batches(&b, paths, count, e);
}

int files_delete(const struct files_caller *c, const char *const *paths, size_t count, bool recursive,
		 file_entry_fn fn, void *ctx, struct err *e)
{
	struct batch b = { .caller = c,
			   .name = "delete",
			   .act = FILES_DELETE,
			   .flag = recursive ? "1" : "0",
			   .keeps = true,
			   .fn = fn,
			   .ctx = ctx };
	return run_batches(&b, paths, count, e);
}
