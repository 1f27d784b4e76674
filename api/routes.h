/* SPDX-License-Identifier: MIT */
/*
 * routes.h - the table of everything that can be asked for. It drives dispatch, 404, 405, who may
 * ask, and what a request may carry. Pure.
 */
#ifndef BERTH_ROUTES_H
#define BERTH_ROUTES_H

#include "api/api.h"
#include "api/response.h"

/* Fills rs and returns 0, or fails with *e and rs untouched but for headers. Blocks as it needs to. */
typedef int (*route_fn)(struct api *api, struct request *rq, struct response *rs, struct err *e);

enum route_access {
	ROUTE_OPEN,  /* no token */
	ROUTE_ADMIN, /* the admin token */
	/*
	 * The admin token, or the token of the very session in the path, which may have ended: then there is
	 * no rq->session.
	 */
	ROUTE_OWN,
	/*
	 * As ROUTE_OWN, of a session that lives; and the path stands below /v1/sessions/{session} as well as
	 * at the root, where the session is that of the token. rq->session is there.
	 */
	ROUTE_BELOW,
};

enum route_body {
	ROUTE_BODY_NONE,
	ROUTE_BODY_OPTIONAL, /* JSON, as the next one */
	ROUTE_BODY_REQUIRED,
	/*
	 * Bytes of any number. The handler is called twice: once the headers are there it makes rq->sink,
	 * which the bytes go to, or refuses before they come; at their end it answers.
	 */
	ROUTE_BODY_STREAM,
};

#define ROUTE_QUERY_MAX 6

struct route {
	const char *method, *path; /* {session}, {exec} and {process} stand for one segment */
	enum route_access access;
	enum route_body body;
	size_t body_max; /* bytes; 0: SANDBOX_MAX_BODY */
	route_fn handler;
	const char *name;                   /* in audit rows */
	const char *query[ROUTE_QUERY_MAX]; /* the parameters it takes, NULL-terminated */
};

/* The table. */
const struct route *routes_get(size_t *ret_count);

/*
 * Finds the route of rq's method and segments and sets rq->route, and session_id, exec_id and process_id
 * where its path has them. GET serves HEAD.
 * ERR_NOT_FOUND; ERR_METHOD with the value of Allow in allow; ERR_INVALID for an unknown query parameter.
 */
#define ROUTES_ALLOW_SIZE 64
int routes_find(struct request *rq, char allow[ROUTES_ALLOW_SIZE], struct err *e) NODISCARD;

#endif
