/* SPDX-License-Identifier: MIT */
#include "api/handle_content.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "api/file_json.h"
#include "api/file_query.h"
#include "api/http_etag.h"
#include "api/http_range.h"
#include "manager/files_stream.h"

#define TRIES 3 /* to read a version of a file of which the headers hold */

static struct files_caller caller_of(const struct request *rq)
{
	return (struct files_caller){ rq->session, &rq->who, rq->client_fd, NULL };
}

/* ---- GET ---- */

/* What is sent of which version. */
struct wish {
	bool probed; /* the next three are known */
	char tag[FILES_TAG_SIZE];
	uint64_t size;
	int64_t mtime_ms;
	bool ranged;
	uint64_t first, len; /* of a range; else 0 and 0 */
};

static bool is_head(const struct request *rq)
{
	return !strcmp(rq->method, "HEAD");
}

static bool asks_first(const struct request *rq)
{
	static const char *const headers[] = { "Range", "If-Match", "If-None-Match" };

	for (size_t i = 0; i < ARRAY_LEN(headers); i++)
		if (request_header(rq, headers[i]))
			return true;
	return is_head(rq);
}

static int probe(const struct files_caller *c, const char *path, struct wish *w, struct err *e)
{
	_cleanup_(files_reader_free_cleanup_) struct files_reader *r = NULL;

	if (files_probe(c, path, &r, e))
		return -e->code;
	const struct file_entry *entry = files_reader_get_entry(r);
	*w = (struct wish){ .probed = true, .size = entry->size, .mtime_ms = entry->mtime_ms };
	(void)snprintf(w->tag, sizeof(w->tag), "%s", entry->tag);
	return 0;
}

/* 1: it is of no news (304). */
static int check_conditions(const struct request *rq, const struct wish *w, struct err *e)
{
	const char *match = request_header(rq, "If-Match"), *none = request_header(rq, "If-None-Match");
	bool same;

	if (match && http_etag_match("If-Match", match, w->tag, false, &same, e))
		return -e->code;
	if (match && !same)
		return err_set(e, ERR_PRECONDITION, "the file is not of the version in If-Match");
	if (!none)
		return 0;
	return http_etag_match("If-None-Match", none, w->tag, true, &same, e) ? -e->code : same;
}

/* A date in If-Range is taken for another version: then the whole is sent, which is always right. */
static bool range_holds(const struct request *rq, const struct wish *w)
{
	const char *if_range = request_header(rq, "If-Range");
	struct err ignored;
	bool same = true;

	return !if_range || (http_etag_match("If-Range", if_range, w->tag, false, &same, &ignored) == 0 &&
			     same && *if_range == '"');
}

static int choose_range(const struct request *rq, struct response *rs, struct wish *w, struct err *e)
{
	struct http_range range;

	/* A file without a size, as those of /proc, has no ranges. */
	if (is_head(rq) || !w->size || !http_range_parse(request_header(rq, "Range"), &range) ||
	    !range_holds(rq, w))
		return 0;
	if (!http_range_apply(&range, w->size, &w->first, &w->len)) {
		response_header(rs, "Content-Range", "bytes */%llu", (unsigned long long)w->size);
		return err_set(e, ERR_RANGE, "the file has %llu bytes", (unsigned long long)w->size);
	}
	w->ranged = true;
	return 0;
}

static void add_headers(struct response *rs, const struct wish *w)
{
	time_t at = (time_t)(w->mtime_ms / 1000);
	char date[64];
	struct tm tm;

	gmtime_r(&at, &tm);
	(void)strftime(date, sizeof(date), "%a, %d %b %Y %H:%M:%S GMT", &tm);
	response_header(rs, "ETag", "\"%s\"", w->tag);
	response_header(rs, "Last-Modified", "%s", date);
	response_header(rs, "Accept-Ranges", "bytes");
	if (w->ranged)
		response_header(rs, "Content-Range", "bytes %llu-%llu/%llu", (unsigned long long)w->first,
				(unsigned long long)(w->first + w->len - 1), (unsigned long long)w->size);
}

struct download {
	struct files_reader *reader;
	const char *bytes; /* read and not sent yet */
	size_t len;
	uint64_t left; /* until its length is there; UINT64_MAX: not known */
};

static void download_free(void *ctx)
{
	struct download *d = ctx;

	files_reader_free(d->reader);
	free(d);
}

/* 1: d->bytes; 0: it was all. */
static int read_more(struct download *d)
{
	struct err e;

	return d->len ? 1 : files_reader_next(d->reader, &d->bytes, &d->len, &e);
}

/* The end is awaited before the last bytes are handed out: a body that looks whole is. */
static enum response_more download_next(void *ctx, struct buf *out)
{
	struct download *d = ctx;
	struct err e;
	int r = read_more(d);

	if (r == 1) {
		if (d->len > d->left || buf_add(out, d->bytes, d->len, &e))
			return RESPONSE_ABORT;
		d->left -= d->left == RESPONSE_LENGTH_UNKNOWN ? 0 : d->len;
		d->len = 0;
		r = d->left ? 1 : read_more(d);
		if (!d->left && r == 1)
			return RESPONSE_ABORT; /* more than it said */
	}
	return r == 1 ? RESPONSE_MORE : r == 0 ? RESPONSE_END : RESPONSE_ABORT;
}

static int send_file(struct files_reader *r, struct response *rs, struct wish *w, struct err *e)
{
	const struct file_entry *entry = files_reader_get_entry(r);
	struct download *d = xcalloc(1, sizeof(*d));

	d->reader = r;
	d->left = w->ranged ? w->len : entry->size;
	/* One of /proc says that it is empty, and is not. */
	if (!d->left) {
		int more = files_reader_next(r, &d->bytes, &d->len, e);
		if (more < 0) {
			download_free(d);
			return more;
		}
		d->left = more ? RESPONSE_LENGTH_UNKNOWN : 0;
	}
	add_headers(rs, w);
	response_bytes(rs, w->ranged ? 206 : 200, "application/octet-stream", d->left, download_next, d,
		       download_free);
	return 0;
}

/* One try. 1: the file has changed in between. */
static int get_once(const struct files_caller *c, const struct request *rq, const char *path,
		    struct response *rs, struct err *e)
{
	struct wish w = { 0 };
	struct files_reader *r = NULL;
	int fresh = asks_first(rq) ? probe(c, path, &w, e) : 0;

	if (fresh == 0 && w.probed)
		fresh = check_conditions(rq, &w, e);
	if (fresh < 0 || choose_range(rq, rs, &w, e))
		return -e->code;
	if (fresh == 1) {
		add_headers(rs, &w);
		response_empty(rs, 304);
		return 0;
	}
	if (is_head(rq)) {
		add_headers(rs, &w);
		response_bytes(rs, 200, "application/octet-stream", w.size, download_next, NULL, NULL);
		return 0;
	}
	if (files_read(c, path, w.first, w.len, &r, e))
		return -e->code;
	const struct file_entry *entry = files_reader_get_entry(r);
	if (w.probed && strcmp(entry->tag, w.tag) != 0 && (w.size || entry->size)) {
		files_reader_free(r);
		return 1;
	}
	(void)snprintf(w.tag, sizeof(w.tag), "%s", entry->tag);
	w.mtime_ms = entry->mtime_ms;
	return send_file(r, rs, &w, e);
}

int handle_content_get(struct api *api, struct request *rq, struct response *rs, struct err *e)
{
	const struct files_caller c = caller_of(rq);
	_cleanup_free_ char *path = NULL;
	int r = 1;

	(void)api;
	if (file_query_path(rq, NULL, &path, e))
		return -e->code;
	for (int i = 0; i < TRIES && r == 1; i++)
		r = get_once(&c, rq, path, rs, e);
	return r == 1 ? err_set(e, ERR_CONFLICT, "the file changes while it is asked for") : r;
}

/* ---- PUT ---- */

struct upload {
	struct files_writer *writer;
	bool only_new;
};

static void upload_free(void *ctx)
{
	struct upload *u = ctx;

	files_writer_free(u->writer);
	free(u);
}

/* To the client If-None-Match is a condition, not a conflict. */
static int told(const struct upload *u, struct err *e)
{
	if (u->only_new && e->code == ERR_CONFLICT && e->sys == EEXIST)
		return err_set(e, ERR_PRECONDITION, "there is a file already");
	return -e->code;
}

static int upload_add(void *ctx, const void *bytes, size_t len, struct err *e)
{
	struct upload *u = ctx;
	const struct file_entry *entry;

	if (files_writer_add(u->writer, bytes, len, e) == 0)
		return 0;
	/* It takes no more: its last word says why. */
	if (e->code != ERR_CONFLICT || files_write_commit(u->writer, &entry, e))
		return told(u, e);
	return err_set(e, ERR_SANDBOX, "the sandbox did not take all of the file");
}

/* A condition that does not hold is told before the body is sent; the writer judges it once more. */
static int check_want(const struct files_caller *c, const char *path, const char *want, struct err *e)
{
	struct wish w;
	bool same;
	int r = *want ? probe(c, path, &w, e) : 0;

	if (!*want)
		return 0;
	if (!strcmp(want, "new"))
		return r == -ERR_NOT_FOUND ? 0
		       : r                 ? r
					   : err_set(e, ERR_PRECONDITION, "there is a file already");
	if (r)
		return r == -ERR_NOT_FOUND ? err_set(e, ERR_PRECONDITION, "there is no such file") : r;
	same = !strcmp(want, "old") || !strcmp(want, w.tag);
	return same ? 0 : err_set(e, ERR_PRECONDITION, "the file is not of the version in If-Match");
}

static int put_open(struct request *rq, struct err *e)
{
	const struct files_caller c = caller_of(rq);
	_cleanup_free_ char *path = NULL;
	char want[HTTP_ETAG_WANT_SIZE];
	const char *mode;

	if (file_query_path(rq, NULL, &path, e) || file_query_mode(rq, &mode, e) ||
	    http_etag_want(request_header(rq, "If-Match"), request_header(rq, "If-None-Match"), want, e) ||
	    check_want(&c, path, want, e))
		return -e->code;
	struct files_writer *w;
	if (files_write(&c, path, mode, want, &w, e))
		return -e->code;
	struct upload *u = xcalloc(1, sizeof(*u));
	*u = (struct upload){ w, !strcmp(want, "new") };
	rq->sink = (struct body_sink){ upload_add, upload_free, u };
	return 0;
}

int handle_content_put(struct api *api, struct request *rq, struct response *rs, struct err *e)
{
	_cleanup_buf_ struct buf text = BUF_INIT(65536);
	struct upload *u = rq->sink.ctx;
	const struct file_entry *entry;

	(void)api;
	if (!u)
		return put_open(rq, e);
	if (files_write_commit(u->writer, &entry, e))
		return told(u, e);
	if (file_json_entry(&text, entry, false, e))
		return -e->code;
	response_header(rs, "ETag", "\"%s\"", entry->tag);
	response_text(rs, entry->is_new ? 201 : 200, NULL, &text);
	return 0;
}
