/* SPDX-License-Identifier: MIT */
#include "api/handle_exec.h"

#include "api/exec_json.h"
#include "api/guard.h"
#include "api/listen.h"
#include "base/clock.h"
#include "base/json.h"

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

static int no_end(const char *id, const char *why, struct err *e)
{
	return err_set(e, ERR_TIMEOUT, "%s; the command may go on: ask for /execs/%s", why, id);
}

/* Waits for the end of an exec, whose output the manager gathers. */
static int await_end(struct exec *x, int64_t deadline_ms, int client_fd, struct err *e)
{
	struct exec_output piece;

	while (clock_left_ms(deadline_ms) > 0) {
		switch (exec_next(x, QUIET_MS, client_fd, &piece)) {
		case EXEC_END:
			return 0;
		case EXEC_HANGUP:
			return no_end(exec_get_id(x), "the client has gone", e);
		case EXEC_SHUTDOWN:
			return no_end(exec_get_id(x), "berthd is stopping", e);
		case EXEC_QUIET:
		case EXEC_OUTPUT:
			break;
		}
	}
	return no_end(exec_get_id(x), "the command's end did not arrive in time", e);
}

int handle_exec_run(struct api *api, struct request *rq, struct response *rs, struct err *e)
{
	_cleanup_(exec_unref_cleanup_) struct exec *x = NULL;
	_cleanup_(exec_json_clear) struct exec_body body = { 0 };
	json_t *reply;

	if (start(api, rq, rs, false, &body, &x, e) ||
	    await_end(x, end_deadline(api, &body.rq), rq->client_fd, e))
		return -e->code;
	reply = exec_get_reply(x);
	if (!reply)
		return err_set(e, ERR_INTERNAL, "an exec ended without a reply");
	response_json(rs, 200, reply);
	return 0;
}

/* ---- stream ---- */

struct stream {
	struct exec *x;
	int client_fd;
	int64_t deadline_ms;
	bool base64;
	bool spoke;       /* some output was sent */
	size_t replayed;  /* bytes of a kept output that were sent again */
	uint64_t dropped; /* bytes that the client did not get */
};

static void stream_free(void *ctx)
{
	struct stream *s = ctx;

	exec_unref(s->x);
	listen_allow_stall(s->client_fd, LISTEN_STALL_MS);
	free(s);
}

static enum response_more stream_output(struct stream *s, const struct exec_output *piece, struct buf *out)
{
	struct err e;

	s->spoke = true;
	s->dropped += piece->dropped;
	return exec_json_output_line(out, piece, s->base64, &e) ? RESPONSE_ABORT : RESPONSE_MORE;
}

static enum response_more stream_end(struct stream *s, struct buf *out)
{
	_cleanup_json_ json_t *reply = exec_get_reply(s->x);
	struct err e;

	if (!reply)
		return RESPONSE_ABORT;
	/* With an Idempotency-Key that was seen before, the output went to the first request: repeat what was
	 * kept. */
	if (!s->spoke && exec_json_replay_line(out, reply, &s->replayed, &e))
		return RESPONSE_ABORT;
	if (out->len)
		return RESPONSE_MORE;
	return exec_json_exit_line(out, reply, s->spoke ? &s->dropped : NULL, &e) ? RESPONSE_ABORT
										  : RESPONSE_END;
}

static enum response_more stream_break(struct stream *s, const char *why, struct buf *out)
{
	struct err reason, e;

	no_end(exec_get_id(s->x), why, &reason);
	return exec_json_error_line(out, &reason, &e) ? RESPONSE_ABORT : RESPONSE_END;
}

static enum response_more stream_quiet(struct stream *s, struct buf *out)
{
	struct err e;

	if (clock_left_ms(s->deadline_ms) == 0)
		return stream_break(s, "the command's end did not arrive in time", out);
	return buf_addf(out, &e, "%s", EXEC_JSON_QUIET) ? RESPONSE_ABORT : RESPONSE_MORE;
}

static enum response_more stream_next(void *ctx, struct buf *out)
{
	struct stream *s = ctx;
	struct exec_output piece;

	switch (exec_next(s->x, QUIET_MS, s->client_fd, &piece)) {
	case EXEC_OUTPUT:
		return stream_output(s, &piece, out);
	case EXEC_QUIET:
		return stream_quiet(s, out);
	case EXEC_END:
		return stream_end(s, out);
	case EXEC_SHUTDOWN:
		return stream_break(s, "berthd is stopping", out);
	case EXEC_HANGUP:
		break;
	}
	return RESPONSE_ABORT;
}

int handle_exec_stream(struct api *api, struct request *rq, struct response *rs, struct err *e)
{
	_cleanup_(exec_json_clear) struct exec_body body = { 0 };
	struct exec *x = NULL;
	struct stream *s;

	if (start(api, rq, rs, true, &body, &x, e))
		return -e->code;
	s = xcalloc(1, sizeof(*s));
	*s = (struct stream){
		.x = x,
		.client_fd = rq->client_fd,
		.deadline_ms = end_deadline(api, &body.rq),
		.base64 = body.rq.base64,
	};
	/* A reader may be slow as long as the command may run; one that has vanished is noticed by then, too.
	 */
	rs->stall_ms = clock_left_ms(s->deadline_ms);
	listen_allow_stall(rq->client_fd, rs->stall_ms);
	response_stream(rs, stream_next, s, stream_free);
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
