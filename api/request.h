/* SPDX-License-Identifier: MIT */
/*
 * request.h - one HTTP request as handlers see it, and the strict reader of its target. Pure;
 * knows nothing of the library that read it from the socket.
 *
 * A request belongs to one connection's thread.
 */
#ifndef BERTH_REQUEST_H
#define BERTH_REQUEST_H

#include <jansson.h>
#include <stdatomic.h>

#include "base/buf.h"
#include "manager/manager.h"

#define REQUEST_TARGET_MAX 8192 /* bytes of path and query as sent */
#define REQUEST_SEGMENTS_MAX 8
#define REQUEST_QUERY_MAX 16
#define REQUEST_HEADERS_MAX 64
#define REQUEST_BODIES_MAX (512u << 20) /* bytes of bodies in memory at once */

struct route;

/*
 * Where a body goes as it arrives, made by a route's `open`. add waits until the bytes are taken; free ends
 * it, whole or not.
 */
struct body_sink {
	int (*add)(void *ctx, const void *bytes, size_t len, struct err *e);
	void (*free)(void *ctx);
	void *ctx; /* NULL: there is none */
};

struct request_pair {
	const char *name, *value; /* never NULL */
};

struct request {
	const char *method;                         /* borrowed */
	bool http10;                                /* HTTP/1.0: no Host needed */
	const char *target;                         /* as sent, borrowed; NULL: not read (yet) */
	char *storage;                              /* what the decoded target points into */
	const char *segments[REQUEST_SEGMENTS_MAX]; /* of the path, decoded */
	size_t segment_count;
	struct request_pair query[REQUEST_QUERY_MAX]; /* decoded, names are unique */
	size_t query_count;
	struct request_pair headers[REQUEST_HEADERS_MAX]; /* borrowed, in the order they came */
	size_t header_count;
	struct buf body;       /* its max is set by the adapter */
	atomic_size_t *budget; /* bytes of all bodies in memory, borrowed; NULL: not counted */
	size_t budget_taken;   /* of it, by this request */
	int client_fd;         /* to watch for a hang-up; -1: none */
	bool crowded;          /* the connection is one too many: only open routes are served */

	/* filled by the dispatcher */
	const struct route *route;
	const char *session_id;           /* from the path, NULL: none */
	const char *exec_id, *process_id; /* likewise */
	struct caller who;                /* actor NULL: not known (yet) */
	bool is_admin;
	struct body_sink sink;
	struct session *session; /* owned; there whenever the route lies below a session */
};

void request_clear(struct request *rq);

/*
 * Reads a target in origin form ("/path?query") as it was sent; it must outlive rq. ERR_INVALID: absolute
 * form, characters that must be escaped, bad escapes, NUL, control characters, bytes that are no UTF-8, an
 * escaped slash, dot segments, a name given twice. ERR_URI_TOO_LONG, ERR_NOT_FOUND (more segments than any
 * route has).
 */
int request_set_target(struct request *rq, const char *target, struct err *e) NODISCARD;

/* ERR_INVALID when there are more than REQUEST_HEADERS_MAX. */
int request_add_header(struct request *rq, const char *name, const char *value, struct err *e) NODISCARD;

/* The first header of this name (any case), the value of a query parameter: NULL when absent. */
const char *request_header(const struct request *rq, const char *name);
const char *request_query(const struct request *rq, const char *name);

/* A query parameter in thousandths or as a number; *ret keeps its value when it is absent. ERR_INVALID names
 * it. */
int request_query_milli(const struct request *rq, const char *name, int64_t min, int64_t max, int64_t *ret,
			struct err *e) NODISCARD;
int request_query_int(const struct request *rq, const char *name, int64_t min, int64_t max, int64_t *ret,
		      struct err *e) NODISCARD;

/*
 * Adds bytes to the body. ERR_TOO_LARGE beyond body.max; ERR_LIMIT when the bodies of all requests together
 * would pass REQUEST_BODIES_MAX.
 */
int request_add_body(struct request *rq, const void *bytes, size_t len, struct err *e) NODISCARD;
/* Counts so many bytes of a reply as those of a body, until the request is cleared. ERR_OVERLOADED. */
int request_take_budget(struct request *rq, size_t len, struct err *e) NODISCARD;
/* Frees the body and gives its share of the budget back. */
void request_free_body(struct request *rq); /* its bytes; it counts as held still */
void request_drop_body(struct request *rq);

/* The body as JSON, owned by the caller. An empty body is an empty object (where a route takes one). */
int request_json(const struct request *rq, json_t **ret, struct err *e) NODISCARD;

#endif
