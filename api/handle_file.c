/* SPDX-License-Identifier: MIT */
#include "api/handle_file.h"

#include <string.h>

#include "api/file_json.h"
#include "base/base64.h"
#include "manager/files_stream.h"

/* A list of FILES_PATHS_MAX paths with their escapes and their base64. */
#define LIST_BYTES_MAX (256u << 20)

static struct files_caller caller_of(const struct request *rq)
{
	return (struct files_caller){ rq->session, &rq->who, rq->client_fd, NULL };
}

/* Decodes, and drops the body, which may be large. */
static int decode(struct request *rq, enum file_json_kind kind, struct file_body *ret, struct err *e)
{
	if (file_json_decode(rq->body.data, rq->body.len, kind, ret, e))
		return -e->code;
	request_free_body(rq);
	return 0;
}

/* ---- a list that is written as it comes ---- */

#define COUNTED_STEP (1u << 20) /* a list up to here counts as nothing, then in such steps */

struct list {
	struct request *rq;
	struct buf text;
	size_t counted;  /* bytes, in the budget of all requests */
	bool with_error; /* entries have one */
	size_t count;
	bool full; /* there was no room for more */
};
#define LIST_INIT(request, maximum) \
	((struct list){ .rq = (request), .text = BUF_INIT(maximum), .counted = COUNTED_STEP })

static void list_clear(struct list *l)
{
	buf_clear(&l->text);
}

/* A long list is in memory until its reader, who may be slow, has all of it. */
static int count(struct list *l, size_t len, struct err *e)
{
	while (l->counted < len) {
		if (request_take_budget(l->rq, COUNTED_STEP, e))
			return -e->code;
		l->counted += COUNTED_STEP;
	}
	return 0;
}

static int comma(struct list *l, struct err *e)
{
	return l->count++ ? buf_add(&l->text, ",", 1, e) : 0;
}

static int add_entry(void *ctx, const struct file_entry *entry, struct err *e)
{
	struct list *l = ctx;
	size_t before = l->text.len;

	if (comma(l, e) == 0 && file_json_entry(&l->text, entry, l->with_error, e) == 0)
		return count(l, l->text.len, e);
	buf_truncate(&l->text, before);
	l->full = true;
	return -e->code;
}

static int add_result(void *ctx, const struct file_entry *entry, struct err *e)
{
	struct list *l = ctx;

	if (comma(l, e) || file_json_result(&l->text, entry->path, entry->path_len, &entry->err, e))
		return -e->code;
	return count(l, l->text.len, e);
}

static int open_list(struct list *l, const char *head, struct err *e)
{
	return buf_addf(&l->text, e, "%s", head);
}

static int close_list(struct list *l, struct response *rs, const char *tail, struct err *e)
{
	l->text.max += 64; /* a list that is full still ends */
	if (buf_addf(&l->text, e, "%s", tail))
		return -e->code;
	response_text(rs, 200, NULL, &l->text);
	return 0;
}

/* ---- list, stat, delete ---- */

int handle_file_list(struct api *api, struct request *rq, struct response *rs, struct err *e)
{
	_cleanup_(file_json_clear) struct file_body body = { 0 };
	_cleanup_(list_clear) struct list l = LIST_INIT(rq, (size_t)api->settings->max_body);
	const struct files_caller c = caller_of(rq);
	bool truncated = false;

	if (decode(rq, FILE_JSON_LIST, &body, e) || open_list(&l, "{\"entries\":[", e))
		return -e->code;
	const struct files_wanted what = { body.paths[0], body.recursive, (unsigned)body.max };
	if (files_list(&c, &what, add_entry, &l, &truncated, e) && !l.full)
		return -e->code;
	return close_list(&l, rs, truncated || l.full ? "],\"truncated\":true}" : "],\"truncated\":false}",
			  e);
}

int handle_file_stat(struct api *api, struct request *rq, struct response *rs, struct err *e)
{
	_cleanup_(file_json_clear) struct file_body body = { 0 };
	_cleanup_(list_clear) struct list l = LIST_INIT(rq, LIST_BYTES_MAX);
	const struct files_caller c = caller_of(rq);

	(void)api;
	l.with_error = true;
	if (decode(rq, FILE_JSON_STAT, &body, e) || open_list(&l, "[", e) ||
	    files_stat(&c, (const char *const *)body.paths, body.count, add_entry, &l, e))
		return -e->code;
	return close_list(&l, rs, "]", e);
}

int handle_file_delete(struct api *api, struct request *rq, struct response *rs, struct err *e)
{
	_cleanup_(file_json_clear) struct file_body body = { 0 };
	_cleanup_(list_clear) struct list l = LIST_INIT(rq, LIST_BYTES_MAX);
	const struct files_caller c = caller_of(rq);

	(void)api;
	if (decode(rq, FILE_JSON_DELETE, &body, e) || open_list(&l, "[", e) ||
	    files_delete(&c, (const char *const *)body.paths, body.count, body.recursive, add_result, &l, e))
		return -e->code;
	return close_list(&l, rs, "]", e);
}

/* ---- mkdir, move ---- */

int handle_file_mkdir(struct api *api, struct request *rq, struct response *rs, struct err *e)
{
	_cleanup_(file_json_clear) struct file_body body = { 0 };
	const struct files_caller c = caller_of(rq);

	(void)api;
	if (decode(rq, FILE_JSON_PATH, &body, e) || files_mkdir(&c, body.paths[0], e))
		return -e->code;
	response_json(rs, 200, json_pack("{s:b}", "ok", 1));
	return 0;
}

int handle_file_move(struct api *api, struct request *rq, struct response *rs, struct err *e)
{
	_cleanup_(file_json_clear) struct file_body body = { 0 };
	const struct files_caller c = caller_of(rq);

	(void)api;
	if (decode(rq, FILE_JSON_MOVE, &body, e) || files_move(&c, body.paths[0], body.paths[1], e))
		return -e->code;
	response_json(rs, 200, json_pack("{s:b}", "ok", 1));
	return 0;
}

/* ---- upload ---- */

/* Of these no further file can have another fate: the whole request fails. */
static bool is_fatal(const struct err *e)
{
	return e->code == ERR_GONE || e->code == ERR_STOPPING || e->code == ERR_UNAVAILABLE ||
	       e->code == ERR_SANDBOX || e->code == ERR_LIMIT || e->code == ERR_TIMEOUT ||
	       e->code == ERR_OVERLOADED ||
	       (e->code == ERR_CONFLICT && !e->sys); /* paused, or the client has gone */
}

static int put(const struct files_caller *c, const char *path, const char *bytes, size_t len, struct err *e)
{
	_cleanup_(files_writer_free_cleanup_) struct files_writer *w = NULL;
	const struct file_entry *entry;

	if (files_write(c, path, "", "", &w, e))
		return -e->code;
	/* One that takes no more has said why: the commit tells. */
	if (files_writer_add(w, bytes, len, e) && e->code != ERR_CONFLICT)
		return -e->code;
	return files_write_commit(w, &entry, e);
}

static int upload_one(const struct files_caller *c, const struct file_body *body, size_t index,
		      struct list *l, struct err *e)
{
	_cleanup_free_ char *bytes = NULL, *full = files_absolute(c, body->paths[index]);
	size_t len = 0;
	struct err why = { 0 };

	if (file_json_content(body, index, &bytes, &len, &why) == 0 && put(c, full, bytes, len, &why) &&
	    is_fatal(&why)) {
		*e = why;
		return -e->code;
	}
	return comma(l, e) || file_json_result(&l->text, full, strlen(full), &why, e) ? -e->code : 0;
}

int handle_file_upload(struct api *api, struct request *rq, struct response *rs, struct err *e)
{
	_cleanup_(file_json_clear) struct file_body body = { 0 };
	_cleanup_(list_clear) struct list l = LIST_INIT(rq, LIST_BYTES_MAX);
	struct files_caller c = caller_of(rq);

	(void)api;
	c.as = "upload";
	if (decode(rq, FILE_JSON_UPLOAD, &body, e) || open_list(&l, "[", e))
		return -e->code;
	for (size_t i = 0; i < body.count; i++)
		if (upload_one(&c, &body, i, &l, e))
			return -e->code;
	return close_list(&l, rs, "]", e);
}

/* ---- download ---- */

/* Base64 of a stream: three bytes at a time, the rest is held back. */
static int add_base64(struct buf *out, struct buf *held, const char *bytes, size_t len, bool last,
		      struct err *e)
{
	if (buf_add(held, bytes, len, e))
		return -e->code;
	size_t whole = last ? held->len : held->len - held->len % 3;
	_cleanup_free_ char *text = base64_encode(held->data ? held->data : "", whole);
	buf_consume(held, whole);
	return buf_add(out, text, strlen(text), e);
}

static int too_large(struct err *e)
{
	return err_set(e, ERR_TOO_LARGE,
		       "the reply would be larger than SANDBOX_MAX_BODY: use GET /files/content");
}

static int get(const struct files_caller *c, const char *path, struct list *l, struct buf *out, struct err *e)
{
	_cleanup_(files_reader_free_cleanup_) struct files_reader *r = NULL;
	_cleanup_buf_ struct buf held = BUF_INIT(1u << 20);
	const char *bytes;
	size_t len;
	int more;

	if (files_read(c, path, 0, 0, &r, e))
		return -e->code;
	if (files_reader_get_entry(r)->size > out->max / 4 * 3)
		return too_large(e);
	while ((more = files_reader_next(r, &bytes, &len, e)) == 1) {
		if (add_base64(out, &held, bytes, len, false, e))
			return too_large(e);
		if (count(l, l->text.len + out->len, e))
			return -e->code;
	}
	if (more < 0)
		return more;
	return add_base64(out, &held, "", 0, true, e) ? too_large(e) : 0;
}

static int download_one(const struct files_caller *c, const char *given, struct list *l, struct err *e)
{
	_cleanup_free_ char *path = files_absolute(c, given);
	size_t before = l->text.len;
	struct err why = { 0 };
	_cleanup_buf_ struct buf content = BUF_INIT(l->text.max - MIN(l->text.max, before));
	int r = get(c, path, l, &content, &why);

	if (r && is_fatal(&why)) {
		*e = why;
		return -e->code;
	}
	if (comma(l, e))
		return -e->code;
	if (file_json_download(&l->text, path, r ? NULL : &content, &why, e) == 0)
		return 0;
	/* The file itself fits, the names and quotes around it do not. */
	buf_truncate(&l->text, before);
	l->text.max += 32768;
	too_large(&why);
	r = before > 1 ? buf_add(&l->text, ",", 1, e) : 0;
	return r ? r : file_json_download(&l->text, path, NULL, &why, e);
}

int handle_file_download(struct api *api, struct request *rq, struct response *rs, struct err *e)
{
	_cleanup_(file_json_clear) struct file_body body = { 0 };
	_cleanup_(list_clear) struct list l = LIST_INIT(rq, (size_t)api->settings->max_body);
	struct files_caller c = caller_of(rq);

	c.as = "download";
	if (decode(rq, FILE_JSON_DOWNLOAD, &body, e) || open_list(&l, "[", e))
		return -e->code;
	request_drop_body(rq); /* from now on it is the reply that counts */
	for (size_t i = 0; i < body.count; i++)
		if (download_one(&c, body.paths[i], &l, e))
			return -e->code;
	return close_list(&l, rs, "]", e);
}
