/* SPDX-License-Identifier: MIT */
#include "api/handle_process.h"

#include <string.h>

#include "api/exec_json.h"
#include "api/guard.h"
#include "api/process_json.h"
#include "base/json.h"

#define QUIET_MS 15000 /* a stream says so often that it is alive */
#define WAIT_MAX_MS 60000
#define GRACE_DEFAULT_MS 5000
#define GRACE_MAX_MS 60000
#define PROCESS_LINE_BYTES 32768 /* of output in a line of a stream: at most 6 bytes of JSON for each */

/* ---- start and list ---- */

static int decode(struct request *rq, struct process_body *body, struct err *e)
{
	const char *key;

	if (guard_idempotency_key(rq, &key, e) || process_json_decode(rq->body.data, rq->body.len, body, e))
		return -e->code;
	if (key) {
		id_hash(rq->body.data, rq->body.len, body->hash);
		body->rq.key = key;
		body->rq.request_hash = body->hash;
	}
	return 0;
}

int handle_process_start(struct api *api, struct request *rq, struct response *rs, struct err *e)
{
	_cleanup_(exec_unref_cleanup_) struct exec *x = NULL;
	_cleanup_(process_body_clear) struct process_body body = { 0 };

	(void)api;
	if (decode(rq, &body, e) || process_start(rq->session, &body.rq, &rq->who, &x, e))
		return -e->code;
	_cleanup_json_ json_t *state = process_get_state(x);
	response_json(rs, 201,
		      json_pack("{s:O, s:O, s:O}", "id", json_object_get(state, "id"), "pid",
				json_object_get(state, "pid"), "name", json_object_get(state, "name")));
	return 0;
}

int handle_process_list(struct api *api, struct request *rq, struct response *rs, struct err *e)
{
	(void)api;
	(void)e;
	response_json(rs, 200, json_pack("{s:o}", "processes", process_list(rq->session)));
	return 0;
}

/* ---- output ---- */

static int read_encoding(const struct request *rq, bool *ret_exact, struct err *e)
{
	const char *encoding = request_query(rq, "encoding");

	if (encoding && strcmp(encoding, "utf8") && strcmp(encoding, "base64"))
		return err_field(e, "encoding", "must be utf8 or base64");
	*ret_exact = encoding && !strcmp(encoding, "base64");
	return 0;
}

/* What all that read output have in their query. */
static int read_wish(const struct api *api, const struct request *rq, struct process_wish *ret, struct err *e)
{
	int64_t offset = 0, wait_ms = 0;

	if (request_query_int(rq, "offset", 0, INT64_MAX, &offset, e) ||
	    request_query_milli(rq, "wait_s", 0, WAIT_MAX_MS, &wait_ms, e) ||
	    read_encoding(rq, &ret->exact, e))
		return -e->code;
	ret->offset = (uint64_t)offset;
	ret->wait_ms = (int)wait_ms;
	ret->max = (size_t)api->settings->process_buffer;
	ret->client_fd = rq->client_fd;
	return 0;
}

/* One reply with what there is. */
static int answer(struct exec *x, const struct process_wish *w, struct buf *out, struct err *e)
{
	_cleanup_(process_piece_clear) struct process_piece piece = { 0 };
	bool ended = false;

	if (process_read(x, w, &piece, &ended, e))
		return -e->code;
	_cleanup_json_ json_t *state = process_get_state(x);
	*out = BUF_INIT(process_json_reply_max(w->max));
	return process_json_reply(out, state, &piece, ended, e);
}

static void respond(struct response *rs, struct buf *body)
{
	rs->status = 200;
	rs->body_len = body->len;
	rs->body = buf_take(body);
}

int handle_process_get(struct api *api, struct request *rq, struct response *rs, struct err *e)
{
	_cleanup_(exec_unref_cleanup_) struct exec *x = NULL;
	_cleanup_buf_ struct buf body = BUF_INIT(0);
	struct process_wish wish = { 0 };

	if (read_wish(api, rq, &wish, e) || process_find(rq->session, rq->process_id, &x, e) ||
	    answer(x, &wish, &body, e))
		return -e->code;
	respond(rs, &body);
	return 0;
}

int handle_process_delete(struct api *api, struct request *rq, struct response *rs, struct err *e)
{
	_cleanup_(exec_unref_cleanup_) struct exec *x = NULL;
	_cleanup_buf_ struct buf body = BUF_INIT(0);
	struct process_wish wish = { 0 };
	int64_t grace_ms = GRACE_DEFAULT_MS;

	if (read_wish(api, rq, &wish, e) ||
	    request_query_milli(rq, "grace_s", 0, GRACE_MAX_MS, &grace_ms, e) ||
	    process_find(rq->session, rq->process_id, &x, e) ||
	    process_stop(x, (int)grace_ms, rq->client_fd, e) || answer(x, &wish, &body, e) ||
	    process_forget(x, &rq->who, e))
		return -e->code;
	respond(rs, &body);
	return 0;
}

/* ---- stream ---- */

struct stream {
	struct exec *x;
	struct process_wish wish;
	bool ended; /* only the last line is missing */
};

static void stream_free(void *ctx)
{
	struct stream *s = ctx;

	exec_unref(s->x);
	free(s);
}

static enum response_more stream_end(struct stream *s, struct buf *out)
{
	_cleanup_json_ json_t *reply = exec_get_reply(s->x);
	struct err e;

	return !reply || exec_json_exit_line(out, reply, NULL, &e) ? RESPONSE_ABORT : RESPONSE_END;
}

/* A sandbox that cannot be reached just now may come back: the stream lives on. */
static bool may_pass(const struct err *why)
{
	return why->code == ERR_TIMEOUT || why->code == ERR_SANDBOX || why->code == ERR_UNAVAILABLE ||
	       why->code == ERR_ENGINE;
}

static enum response_more stream_next(void *ctx, struct buf *out)
{
	struct stream *s = ctx;
	_cleanup_(process_piece_clear) struct process_piece piece = { 0 };
	struct err why, e;

	if (s->ended)
		return stream_end(s, out);
	int r = process_read(s->x, &s->wish, &piece, &s->ended, &why);
	if (r < 0 && !may_pass(&why))
		return exec_json_error_line(out, &why, &e) ? RESPONSE_ABORT : RESPONSE_END;
	if (r < 0) {
		process_piece_end(&piece, false);
		s->ended = false;
	}
	s->wish.offset = piece.next_offset;
	if (s->ended && process_piece_is_empty(&piece))
		return stream_end(s, out);
	return process_json_line(out, &piece, &e) ? RESPONSE_ABORT : RESPONSE_MORE;
}

int handle_process_stream(struct api *api, struct request *rq, struct response *rs, struct err *e)
{
	struct exec *x = NULL;
	struct process_wish wish = { 0 };

	if (read_wish(api, rq, &wish, e) || process_find(rq->session, rq->process_id, &x, e))
		return -e->code;
	struct stream *s = xcalloc(1, sizeof(*s));
	wish.wait_ms = QUIET_MS;
	wish.max = PROCESS_LINE_BYTES;
	*s = (struct stream){ .x = x, .wish = wish };
	response_stream(rs, stream_next, s, stream_free);
	return 0;
}

/* ---- stdin ---- */

int handle_process_stdin(struct api *api, struct request *rq, struct response *rs, struct err *e)
{
	_cleanup_(exec_unref_cleanup_) struct exec *x = NULL;
	_cleanup_(process_stdin_clear) struct process_stdin_body body = { 0 };
	size_t taken = 0;

	(void)api;
	if (process_json_stdin(rq->body.data, rq->body.len, &body, e) ||
	    process_find(rq->session, rq->process_id, &x, e))
		return -e->code;
	request_free_body(rq); /* it counts as held until the end of the request */
	body.in.client_fd = rq->client_fd;
	if (process_write(x, &body.in, &taken, e)) {
		size_t used = strlen(e->msg);
		(void)snprintf(e->msg + used, sizeof(e->msg) - used, "; %zu of %zu bytes were taken", taken,
			       body.in.len);
		return -e->code;
	}
	response_json(rs, 200, json_pack("{s:b, s:I}", "ok", 1, "bytes", (json_int_t)taken));
	return 0;
}
