/* SPDX-License-Identifier: MIT */
#include "api/handle_exec.h"

#include <string.h>

#include "api/exec_json.h"
#include "api/guard.h"
#include "api/listen.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"

#define QUIET_MS 15000     /* a stream says so often that it is alive */
#define END_GRACE_MS 60000 /* beyond an exec's own timeout, until nobody waits for its end any more */
#define GRACE_DEFAULT_MS 5000

/* Decodes, starts, and drops the body, which may be large while the command runs for long. Until then it
 * counts. */
static int start(struct api *api, struct request *rq, struct response *rs, bool stream,
		 struct exec_body *body, struct exec **ret, struct err *e)
{
	const char *key;

	if (guard_idempotency_key(rq, &key, e) ||
	    exec_json_decode(rq->body.data, rq->body.len, stream, api->settings->max_timeout_s, body, e))
		return -e->code;
	if (key) {
		id_hash(rq->body.data, rq->body.len, body->hash);
		body->rq.key = key;
		body->rq.request_hash = body->hash;
	}
	request_free_body(rq);
	int r = exec_start(rq->session, &body->rq, &rq->who, rq->client_fd, ret, e);
	/* The manager has its own copy now, and its own bound for these. */
	exec_json_drop(body);
	request_drop_body(rq);
	if (r)
		return r;
	response_header(rs, "X-Exec-Id", "%s", exec_get_id(*ret));
	return 0;
}

/* Until when the end of a command that was just started is waited for. */
static int64_t end_deadline(const struct api *api, const struct exec_request *rq)
{
	int64_t timeout_ms = rq->timeout_ms < 0 ? api->settings->default_timeout_s * 1000 : rq->timeout_ms;

	return clock_mono_ms() + timeout_ms + END_GRACE_MS;
}

/*
 * What goes on after the reply's headers, which are sent as soon as the command is accepted, so that a client
 * that loses the connection, or its berthd, knows the exec to ask for.
 */
struct later {
	struct exec *x;
	int client_fd;
	int64_t deadline_ms;

	/* a reply in one piece */
	char *text; /* NULL until the end */
	size_t len, sent;

	/* a stream */
	bool base64;
	bool spoke;       /* some output was sent */
	size_t replayed;  /* bytes of a kept output that were sent again */
	uint64_t dropped; /* bytes that the client did not get */
};

static struct later *later_new(const struct api *api, const struct request *rq,
			       const struct exec_request *spec, struct exec *x)
{
	struct later *l = xcalloc(1, sizeof(*l));

	*l = (struct later){ .x = x,
			     .client_fd = rq->client_fd,
			     .deadline_ms = end_deadline(api, spec),
			     .base64 = spec->base64 };
	return l;
}

static void later_free(void *ctx)
{
	struct later *l = ctx;

	exec_unref(l->x);
	listen_allow_stall(l->client_fd, LISTEN_STALL_MS);
	free(l->text);
	free(l);
}

/* ---- in one piece ---- */

/* Waits for the end of an exec, whose output the manager gathers. */
static bool await_end(struct later *l)
{
	struct exec_output piece;

	while (clock_left_ms(l->deadline_ms) > 0) {
		switch (exec_next(l->x, QUIET_MS, l->client_fd, &piece)) {
		case EXEC_END:
			return true;
		case EXEC_HANGUP:
		case EXEC_SHUTDOWN:
			return false;
		case EXEC_QUIET:
		case EXEC_OUTPUT:
			break;
		}
	}
	LOG(LOG_WARN, "the end of a command did not arrive in time", F("exec", exec_get_id(l->x)));
	return false;
}

/* Without an end the connection breaks: a 200 was promised, and a body that looks whole would be a lie. */
static enum response_more reply_next(void *ctx, struct buf *out)
{
	struct later *l = ctx;
	_cleanup_json_ json_t *reply = NULL;
	struct err e;
	size_t piece;

	if (!l->text) {
		reply = await_end(l) ? exec_get_reply(l->x) : NULL;
		if (!reply)
			return RESPONSE_ABORT;
		l->text = json_text(reply);
		l->len = strlen(l->text);
	}
	piece = MIN(l->len - l->sent, (size_t)RESPONSE_LINES_MAX);
	if (buf_add(out, l->text + l->sent, piece, &e))
		return RESPONSE_ABORT;
	l->sent += piece;
	return l->sent == l->len ? RESPONSE_END : RESPONSE_MORE;
}

int handle_exec_run(struct api *api, struct request *rq, struct response *rs, struct err *e)
{
	_cleanup_(exec_json_clear) struct exec_body body = { 0 };
	struct exec *x = NULL;

	if (start(api, rq, rs, false, &body, &x, e))
		return -e->code;
	response_later(rs, reply_next, later_new(api, rq, &body.rq, x), later_free);
	return 0;
}

/* ---- as a stream ---- */

static enum response_more stream_output(struct later *l, const struct exec_output *piece, struct buf *out)
{
	struct err e;

	l->spoke = true;
	l->dropped += piece->dropped;
	return exec_json_output_line(out, piece, l->base64, &e) ? RESPONSE_ABORT : RESPONSE_MORE;
}

static enum response_more stream_end(struct later *l, struct buf *out)
{
	_cleanup_json_ json_t *reply = exec_get_reply(l->x);
	struct err e;

	if (!reply)
		return RESPONSE_ABORT;
	/* With an Idempotency-Key that was seen before, the output went to the first request: repeat what was
	 * kept. */
	if (!l->spoke && exec_json_replay_line(out, reply, &l->replayed, &e))
		return RESPONSE_ABORT;
	if (out->len)
		return RESPONSE_MORE;
	return exec_json_exit_line(out, reply, l->spoke ? &l->dropped : NULL, &e) ? RESPONSE_ABORT
										  : RESPONSE_END;
}

static enum response_more stream_break(struct later *l, const char *why, struct buf *out)
{
	struct err reason, e;

	err_set(&reason, ERR_TIMEOUT, "%s; the command may go on: ask for /execs/%s", why, exec_get_id(l->x));
	return exec_json_error_line(out, &reason, &e) ? RESPONSE_ABORT : RESPONSE_END;
}

static enum response_more stream_quiet(struct later *l, struct buf *out)
{
	struct err e;

	if (clock_left_ms(l->deadline_ms) == 0)
		return stream_break(l, "the command's end did not arrive in time", out);
	return buf_addf(out, &e, "%s", EXEC_JSON_QUIET) ? RESPONSE_ABORT : RESPONSE_MORE;
}

static enum response_more stream_next(void *ctx, struct buf *out)
{
	struct later *l = ctx;
	struct exec_output piece;

	switch (exec_next(l->x, QUIET_MS, l->client_fd, &piece)) {
	case EXEC_OUTPUT:
		return stream_output(l, &piece, out);
	case EXEC_QUIET:
		return stream_quiet(l, out);
	case EXEC_END:
		return stream_end(l, out);
	case EXEC_SHUTDOWN:
		return stream_break(l, "berthd is stopping", out);
	case EXEC_HANGUP:
		break;
	}
	return RESPONSE_ABORT;
}

int handle_exec_stream(struct api *api, struct request *rq, struct response *rs, struct err *e)
{
	_cleanup_(exec_json_clear) struct exec_body body = { 0 };
	struct exec *x = NULL;

	if (start(api, rq, rs, true, &body, &x, e))
		return -e->code;
	response_stream(rs, stream_next, later_new(api, rq, &body.rq, x), later_free);
	/* A reader may be slow as long as the command may run; one that has vanished is noticed by then, too.
	 */
	rs->stall_ms = clock_left_ms(end_deadline(api, &body.rq));
	listen_allow_stall(rq->client_fd, rs->stall_ms);
	return 0;
}

/* ---- execs ---- */

int handle_exec_list(struct api *api, struct request *rq, struct response *rs, struct err *e)
{
	int64_t limit = 100;
	json_t *list;

	(void)api;
	if (request_query_int(rq, "limit", 1, 1000, &limit, e) ||
	    exec_list(rq->session, (int)limit, &list, e))
		return -e->code;
	response_json(rs, 200, json_pack("{s:o}", "execs", list));
	return 0;
}

/* Its state; with the fields of its reply once it has ended. */
static json_t *state_and_reply(struct exec *x)
{
	json_t *state = exec_get_state(x);
	_cleanup_json_ json_t *reply = exec_get_reply(x);

	if (reply)
		json_object_update_missing(state, reply);
	return state;
}

int handle_exec_get(struct api *api, struct request *rq, struct response *rs, struct err *e)
{
	_cleanup_(exec_unref_cleanup_) struct exec *x = NULL;
	int64_t wait_ms = 0;

	(void)api;
	if (request_query_milli(rq, "wait_s", 0, 60000, &wait_ms, e) ||
	    exec_find(rq->session, rq->exec_id, &x, e))
		return -e->code;
	if (wait_ms)
		(void)exec_wait(x, (int)wait_ms,
				rq->client_fd); /* either way the state says where it stands */
	response_json(rs, 200, state_and_reply(x));
	return 0;
}

int handle_exec_cancel(struct api *api, struct request *rq, struct response *rs, struct err *e)
{
	_cleanup_(exec_unref_cleanup_) struct exec *x = NULL;
	int64_t grace_ms = GRACE_DEFAULT_MS;

	(void)api;
	if (request_query_milli(rq, "grace_s", 0, 60000, &grace_ms, e) ||
	    exec_find(rq->session, rq->exec_id, &x, e))
		return -e->code;
	exec_cancel(x, (int)grace_ms);
	response_json(rs, 202, state_and_reply(x));
	return 0;
}
