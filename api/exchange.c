/* SPDX-License-Identifier: MIT */
#include "api/exchange.h"

#include <microhttpd.h>
#include <string.h>

#include "api/dispatch.h"
#include "api/late.h"
#include "base/clock.h"
#include "base/metrics.h"

/*
 * A refused request's body up to this size is read and thrown away, which keeps the connection; a longer one
 * is answered at once and the connection closed, since the library cannot answer in the midst of a body.
 */
#define SWALLOW_MAX 65536

struct exchange {
	struct api *api;   /* borrowed */
	struct conn *conn; /* borrowed */
	char *target;      /* NULL: none */
	struct request rq;
	struct response rs;
	struct err err; /* why it is refused, if it is */
	bool refused, begun;
	bool headers_failed; /* struct err was filled while headers were gathered */
	uint64_t body_seen;
	struct buf lines; /* of a stream, made but not sent yet */
	size_t lines_sent;
	uint64_t sent; /* bytes of a stream */
	bool stream_ended;
};

struct exchange *exchange_new(struct api *api, struct conn *conn, const char *target)
{
	struct exchange *x = xcalloc(1, sizeof(*x));

	x->api = api;
	x->conn = conn;
	x->target = target ? xstrndup(target, REQUEST_TARGET_MAX + 1) : NULL;
	x->lines = BUF_INIT(RESPONSE_LINES_MAX);
	x->rq.client_fd = conn_get_fd(conn);
	x->rq.crowded = conn_is_crowded(conn);
	x->rq.who.address = conn_get_address(conn);
	x->rq.budget = &api->body_bytes;
	return x;
}

void exchange_free(struct exchange *x)
{
	if (!x)
		return;
	response_clear(&x->rs); /* first: a stream may use what the request holds */
	request_clear(&x->rq);
	buf_clear(&x->lines);
	free(x->target);
	free(x);
}

/* ---- the answer ---- */

static enum response_more fill_lines(struct exchange *x)
{
	enum response_more more;

	buf_reset(&x->lines);
	x->lines_sent = 0;
	more = x->rs.next(x->rs.ctx, &x->lines);
	x->stream_ended = more == RESPONSE_END;
	return more;
}

/* A body that is shorter than it was said to be must not look whole. */
static ssize_t at_stream_end(const struct exchange *x)
{
	bool whole = x->rs.length == RESPONSE_LENGTH_UNKNOWN || x->rs.length == x->sent;

	return whole ? MHD_CONTENT_READER_END_OF_STREAM : MHD_CONTENT_READER_END_WITH_ERROR;
}

/* The library asks for the next bytes of a stream; each return is sent as one chunk at once. */
static ssize_t read_stream(void *ctx, uint64_t position, char *out, size_t size)
{
	struct exchange *x = ctx;
	size_t len;

	(void)position;
	conn_work(x->conn);
	while (x->lines_sent == x->lines.len) {
		if (x->stream_ended)
			return at_stream_end(x);
		if (fill_lines(x) == RESPONSE_ABORT)
			return MHD_CONTENT_READER_END_WITH_ERROR;
	}
	len = MIN(size, x->lines.len - x->lines_sent);
	memcpy(out, x->lines.data + x->lines_sent, len);
	x->lines_sent += len;
	x->sent += len;
	conn_expect_reader(x->conn, len, x->rs.stall_ms);
	return (ssize_t)len;
}

#define STREAM_BLOCK 32768
#define LATER_BLOCK 4096 /* of one JSON, which waits long and is short: many may wait at once */

static struct MHD_Response *make_response(struct exchange *x)
{
	if (x->rs.next)
		return MHD_create_response_from_callback(
			x->rs.length == RESPONSE_LENGTH_UNKNOWN ? MHD_SIZE_UNKNOWN : x->rs.length,
			x->rs.type ? STREAM_BLOCK : LATER_BLOCK, read_stream, x, NULL);
	return MHD_create_response_from_buffer(x->rs.body_len, STEAL_PTR(x->rs.body), MHD_RESPMEM_MUST_FREE);
}

static void add_headers(const struct exchange *x, struct MHD_Response *response)
{
	const char *type = x->rs.type ? x->rs.type : "application/json";

	/* X-Exec-Id and its like come first. */
	for (size_t i = 0; i < x->rs.header_count; i++)
		(void)MHD_add_response_header(response, x->rs.headers[i].name, x->rs.headers[i].value);
	if (*type)
		(void)MHD_add_response_header(response, "Content-Type", type);
	(void)MHD_add_response_header(response, "Cache-Control", "no-store");
	(void)MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
	if (x->rs.close || atomic_load(&x->api->stopping))
		(void)MHD_add_response_header(response, "Connection", "close");
}

static void count(int status)
{
	char code[16];

	(void)snprintf(code, sizeof(code), "%d", status);
	metrics_add(METRIC_HTTP_REQUESTS, code, NULL, 1);
}

static int answer(struct exchange *x, struct MHD_Connection *mhd)
{
	struct MHD_Response *response;
	enum MHD_Result queued;

	if (x->refused)
		dispatch_refuse(x->api, &x->rq, &x->rs, &x->err);
	count(x->rs.status);
	conn_expect_reader(x->conn, x->rs.body_len, 0);
	response = make_response(x);
	if (!response)
		return -1;
	add_headers(x, response);
	queued = MHD_queue_response(mhd, (unsigned)x->rs.status, response);
	MHD_destroy_response(response); /* the queue has its own reference */
	return queued == MHD_YES ? 0 : -1;
}

/* ---- the request ---- */

static enum MHD_Result take_header(void *ctx, enum MHD_ValueKind kind, const char *name, const char *value)
{
	struct exchange *x = ctx;

	(void)kind;
	if (!request_add_header(&x->rq, name, value, &x->err))
		return MHD_YES;
	x->headers_failed = true;
	return MHD_NO;
}

/*
 * For a body that is under way and may be long: the library takes no answer before its end, and closes a
 * socket with unread bytes, which may take the answer with it.
 */
static int refuse_amid(struct exchange *x)
{
	conn_work(x->conn);
	x->rs.close = true;
	dispatch_refuse(x->api, &x->rq, &x->rs, &x->err);
	count(x->rs.status);
	late_answer(x->rq.client_fd, &x->rs, MHD_get_reason_phrase_for((unsigned)x->rs.status));
	return -1;
}

enum answers { ANSWER_LATER, ANSWER_NOW, ANSWER_AMID };

/* When? Who waits for "100 Continue" is spared the body, and one without an end is not waited for. */
static enum answers when(const struct exchange *x, int64_t length)
{
	if (!x->refused)
		return ANSWER_LATER;
	if (x->rs.close || !length || request_header(&x->rq, "Expect"))
		return ANSWER_NOW;
	return length > SWALLOW_MAX ? ANSWER_AMID : ANSWER_LATER;
}

/* When the answer is due. */
static enum answers begin(struct exchange *x, struct MHD_Connection *mhd, const char *method,
			  const char *version)
{
	int64_t length = 0;

	conn_begin(x->conn);
	x->begun = true;
	x->rq.method = method;
	x->rq.http10 = strcmp(version, "HTTP/1.0") == 0;
	(void)MHD_get_connection_values(mhd, MHD_HEADER_KIND, take_header, x);
	/* Whether a body follows may stand in a header that was left out. */
	x->rs.close = x->headers_failed;
	conn_work(x->conn); /* a session may be made first */
	x->refused = x->headers_failed ||
		     dispatch_begin(x->api, &x->rq, x->target ? x->target : "", &x->rs, &length, &x->err) ||
		     dispatch_open(x->api, &x->rq, &x->rs, &x->err);
	conn_begin(x->conn); /* the body's time begins now */
	x->rq.body.max = dispatch_body_max(x->api, &x->rq);
	return when(x, length);
}

static int pour_body(struct exchange *x, const char *bytes, size_t size)
{
	int64_t begun = clock_mono_ms();

	conn_work(x->conn);
	int r = x->rq.sink.add(x->rq.sink.ctx, bytes, size, &x->err);
	conn_expect_more(x->conn, x->body_seen, clock_mono_ms() - begun);
	return r;
}

/* A refused body is not stored, and its deadline does not move any more. -1: the connection is done with. */
static int take_body(struct exchange *x, const char *bytes, size_t size)
{
	if (x->refused)
		return 0;
	x->body_seen += size;
	if (x->rq.sink.ctx)
		return pour_body(x, bytes, size) ? refuse_amid(x) : 0;
	conn_expect_body(x->conn, x->body_seen);
	if (!request_add_body(&x->rq, bytes, size, &x->err))
		return 0;
	x->refused = true;
	request_drop_body(&x->rq);
	return 0;
}

int exchange_step(struct exchange *x, struct MHD_Connection *mhd, const char *method, const char *version,
		  const char *bytes, size_t *size)
{
	if (!x->begun) {
		enum answers due = begin(x, mhd, method, version);
		return due == ANSWER_LATER ? 0 : due == ANSWER_NOW ? answer(x, mhd) : refuse_amid(x);
	}
	if (*size) {
		int r = take_body(x, bytes, *size);
		*size = 0; /* or the library calls again at once */
		return r;
	}
	conn_work(x->conn);
	if (!x->refused)
		dispatch_run(x->api, &x->rq, &x->rs);
	return answer(x, mhd);
}
