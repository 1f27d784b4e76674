/* SPDX-License-Identifier: MIT */
#include "api/handle_archive.h"

#include <string.h>

#include "api/archive_format.h"
#include "api/file_json.h"
#include "api/file_query.h"
#include "manager/files_stream.h"

#define HERE "."              /* the workspace */
#define REPORT_MAX (1u << 20) /* bytes of its errors; more are only counted */

static struct files_caller caller_of(const struct request *rq)
{
	return (struct files_caller){ rq->session, &rq->who, rq->client_fd, NULL };
}

/* ---- GET ---- */

static void download_free(void *ctx)
{
	files_reader_free(ctx);
}

static enum response_more download_next(void *ctx, struct buf *out)
{
	const char *bytes;
	size_t len;
	struct err e;
	int r = files_reader_next(ctx, &bytes, &len, &e);

	if (r == 1)
		return buf_add(out, bytes, len, &e) ? RESPONSE_ABORT : RESPONSE_MORE;
	return r == 0 ? RESPONSE_END : RESPONSE_ABORT;
}

int handle_archive_get(struct api *api, struct request *rq, struct response *rs, struct err *e)
{
	const struct files_caller c = caller_of(rq);
	const struct archive_format *format;
	_cleanup_free_ char *path = NULL;
	struct files_reader *r;

	(void)api;
	if (file_query_path(rq, HERE, &path, e) ||
	    archive_format_out(request_query(rq, "format"), request_header(rq, "Accept"), &format, e) ||
	    files_pack(&c, path, format->name, &r, e))
		return -e->code;
	response_bytes(rs, 200, format->type, RESPONSE_LENGTH_UNKNOWN, download_next, r, download_free);
	return 0;
}

/* ---- PUT ---- */

struct upload {
	struct files_writer *writer;
	struct buf errors; /* of the report, objects with commas */
	bool cut;          /* there was no room for all */
};

static void upload_free(void *ctx)
{
	struct upload *u = ctx;

	files_writer_free(u->writer);
	buf_clear(&u->errors);
	free(u);
}

static int add_refused(void *ctx, const struct file_entry *entry, struct err *e)
{
	struct upload *u = ctx;
	size_t before = u->errors.len;

	if (!u->cut && (!before || !buf_add(&u->errors, ",", 1, e)) &&
	    !file_json_result(&u->errors, entry->path, entry->path_len, &entry->err, e))
		return 0;
	/* The archive is in the sandbox by now: that shall be told, whatever its names are like. */
	buf_truncate(&u->errors, before);
	u->cut = true;
	return 0;
}

/* The report of a failure stands in its message. */
static int commit(struct upload *u, struct files_report *ret, struct err *e)
{
	if (files_unpack_commit(u->writer, add_refused, u, ret, e) == 0)
		return 0;
	if (!e->sys)
		return -e->code;
	struct err why = *e;
	err_set(e, why.code, "%s (%llu entries of %llu bytes were written, %llu were refused)", why.msg,
		(unsigned long long)ret->entries, (unsigned long long)ret->bytes,
		(unsigned long long)ret->refused);
	e->sys = why.sys;
	return -e->code;
}

static int upload_add(void *ctx, const void *bytes, size_t len, struct err *e)
{
	struct upload *u = ctx;
	struct files_report report;

	if (files_writer_add(u->writer, bytes, len, e) == 0)
		return 0;
	/* It takes no more: its last word says why. */
	if (e->code != ERR_CONFLICT || commit(u, &report, e))
		return -e->code;
	return err_set(e, ERR_UNPROCESSABLE, "something follows the end of the archive");
}

static int put_open(struct request *rq, struct err *e)
{
	const struct files_caller c = caller_of(rq);
	_cleanup_free_ char *path = NULL;
	const char *format;
	struct files_writer *w;

	if (file_query_path(rq, HERE, &path, e) ||
	    archive_format_in(request_query(rq, "format"), request_header(rq, "Content-Type"), &format, e) ||
	    files_unpack(&c, path, format, &w, e))
		return -e->code;
	struct upload *u = xcalloc(1, sizeof(*u));
	*u = (struct upload){ w, BUF_INIT(REPORT_MAX), false };
	rq->sink = (struct body_sink){ upload_add, upload_free, u };
	return 0;
}

int handle_archive_put(struct api *api, struct request *rq, struct response *rs, struct err *e)
{
	_cleanup_buf_ struct buf text = BUF_INIT(REPORT_MAX + 1024);
	struct upload *u = rq->sink.ctx;
	struct files_report report;

	(void)api;
	if (!u)
		return put_open(rq, e);
	if (commit(u, &report, e))
		return -e->code;
	if (buf_addf(&text, e, "{\"entries\":%llu,\"bytes\":%llu,\"refused\":%llu,\"errors\":[",
		     (unsigned long long)report.entries, (unsigned long long)report.bytes,
		     (unsigned long long)report.refused) ||
	    buf_add(&text, u->errors.data, u->errors.len, e) ||
	    buf_addf(&text, e, "],\"truncated\":%s}", report.truncated || u->cut ? "true" : "false"))
		return -e->code;
	response_text(rs, 200, NULL, &text);
	return 0;
}
