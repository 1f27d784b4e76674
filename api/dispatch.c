/* SPDX-License-Identifier: MIT */
#include "api/dispatch.h"

#include <string.h>

#include "api/auth.h"
#include "api/guard.h"
#include "api/routes.h"
#include "base/id.h"
#include "base/log.h"
#include "base/metrics.h"

size_t dispatch_body_max(const struct api *api, const struct request *rq)
{
	if (!rq->route || rq->route->body == ROUTE_BODY_NONE || rq->route->body == ROUTE_BODY_STREAM)
		return 0;
	return rq->route->body_max ? rq->route->body_max : (size_t)api->settings->max_body;
}

static int find_route(struct api *api, struct request *rq, struct response *rs, struct err *e)
{
	char allow[ROUTES_ALLOW_SIZE];

	if (!routes_find(rq, allow, e))
		return 0;
	auth_identify(api, rq); /* for the row of the refusal */
	/* what a later release has there is not here, either */
	if (settings_is_local(api->settings) && rq->segment_count && !strcmp(rq->segments[0], "v1"))
		return err_set(e, ERR_LOCAL_MODE, "berthd runs in its one sandbox (SANDBOX_RUNTIME=local)");
	if (e->code == ERR_METHOD)
		response_header(rs, "Allow", "%s", allow);
	return -e->code;
}

static int check_body(const struct api *api, const struct request *rq, int64_t length, struct err *e)
{
	size_t max = dispatch_body_max(api, rq);

	if (rq->route->body == ROUTE_BODY_STREAM)
		return guard_plain_body(rq, e);
	if (rq->route->body == ROUTE_BODY_NONE)
		return length ? err_set(e, ERR_INVALID, "this request takes no body") : 0;
	if (!length)
		return rq->route->body == ROUTE_BODY_REQUIRED
			       ? err_set(e, ERR_INVALID, "a JSON body is needed")
			       : 0;
	if (length != GUARD_CHUNKED && (uint64_t)length > max)
		return err_set(e, ERR_TOO_LARGE, "the body is larger than %zu bytes", max);
	return guard_content_type(rq, e);
}

/* What is open (the health check) is answered always: connections are held back for it. */
static int check_capacity(struct api *api, const struct request *rq, struct response *rs, struct err *e)
{
	bool stopping = atomic_load(&api->stopping);

	rs->close = rs->close || rq->crowded; /* the reserve is for as many as possible */
	if (rq->route->access == ROUTE_OPEN || (!stopping && !rq->crowded))
		return 0;
	rs->close = true;
	if (stopping)
		err_set(e, ERR_STOPPING, "berthd is stopping");
	else
		err_set(e, ERR_OVERLOADED, "too many connections");
	e->retry_after_s = stopping ? 5 : 1;
	return -e->code;
}

int dispatch_begin(struct api *api, struct request *rq, const char *target, struct response *rs,
		   int64_t *ret_length, struct err *e)
{
	if (guard_framing(rq, ret_length, e)) {
		rs->close = true;
		return -e->code;
	}
	if (guard_origin(&api->guard, rq, e) || request_set_target(rq, target, e) ||
	    find_route(api, rq, rs, e) || check_capacity(api, rq, rs, e) || auth_check(api, rq, e))
		return -e->code;
	return check_body(api, rq, *ret_length, e);
}

int dispatch_open(struct api *api, struct request *rq, struct response *rs, struct err *e)
{
	return rq->route->body == ROUTE_BODY_STREAM ? rq->route->handler(api, rq, rs, e) : 0;
}

/* A trail of who was refused what is kept; to wait too long is no refusal, and no fault of ours is. */
static bool is_worth_a_row(const struct request *rq, const struct err *e)
{
	return rq->who.actor && e->code != ERR_UNAUTHORIZED && e->code != ERR_TIMEOUT &&
	       e->code != ERR_INTERNAL;
}

/* What is not there is named by its path, all else by what was to be done. */
static void note_refused(struct api *api, const struct request *rq, const struct err *e)
{
	const char *session = rq->session ? session_get_id(rq->session) : rq->session_id;
	char path[256];

	if (session && !id_is("s_", session))
		session = NULL; /* any text that a client likes */
	(void)snprintf(path, sizeof(path), "%.16s %.*s", rq->method, (int)strcspn(rq->target, "?"),
		       rq->target);
	manager_note_refused(api->manager, &rq->who, session,
			     rq->route && e->code != ERR_NOT_FOUND ? rq->route->name : path, e);
}

void dispatch_refuse(struct api *api, struct request *rq, struct response *rs, const struct err *e)
{

	if (e->code == ERR_UNAUTHORIZED) {
		metrics_add(METRIC_UNAUTHORIZED, NULL, NULL, 1);
		manager_note_unauthorized(api->manager, rq->who.address);
	}
	if (is_worth_a_row(rq, e))
		note_refused(api, rq, e);
	if (e->code == ERR_INTERNAL)
		LOG(LOG_ERROR, "request failed", F("action", rq->route ? rq->route->name : ""),
		    F("error", e->msg));
	response_error(rs, e);
}

void dispatch_run(struct api *api, struct request *rq, struct response *rs)
{
	struct err e = { 0 };

	if (rq->route->handler(api, rq, rs, &e))
		dispatch_refuse(api, rq, rs, &e);
}
