/* SPDX-License-Identifier: MIT */
/*
 * response.h - what a handler answers: JSON, or a body that is made as the client reads. Pure; belongs to one
 * connection's thread.
 */
#ifndef BERTH_RESPONSE_H
#define BERTH_RESPONSE_H

#include <jansson.h>

#include "base/buf.h"

enum response_more {
	RESPONSE_MORE,  /* lines were added; call again */
	RESPONSE_END,   /* these were the last lines */
	RESPONSE_ABORT, /* the client is gone or must see a broken stream */
};
/* Adds the next lines to out, which is empty, waiting for them with a deadline of its own. */
typedef enum response_more (*response_next_fn)(void *ctx, struct buf *out);

#define RESPONSE_HEADERS_MAX 8
#define RESPONSE_LINES_MAX (512 * 1024) /* bytes that one call of response_next_fn may add */

struct response_header {
	const char *name; /* a constant */
	char value[128];
};

struct response {
	int status; /* HTTP; 0: not answered yet. An error keeps a status that was set before */
	char *body; /* owned */
	size_t body_len;
	struct response_header headers[RESPONSE_HEADERS_MAX];
	size_t header_count;
	bool close; /* the connection ends with this answer */

	response_next_fn next; /* NULL: the body is there */
	const char *type;      /* its content type; NULL: application/json, "": none */
	uint64_t length;       /* with next: how many bytes come, or RESPONSE_LENGTH_UNKNOWN */
	int64_t stall_ms;      /* with next: how long its reader may take no bytes, beyond the usual */
	void *ctx;
	void (*free_ctx)(void *ctx);
};

void response_clear(struct response *rs);

/* The value moves in. */
void response_json(struct response *rs, int status, json_t *value);

/* A body of another type, a constant; the text moves in. */
void response_text(struct response *rs, int status, const char *type, struct buf *text);

/* {error: {code, message, field?}}, Retry-After, WWW-Authenticate with a 401. */
void response_error(struct response *rs, const struct err *e);

/* The JSON of an error, a new reference. */
json_t *response_error_json(const struct err *e) NODISCARD;

/* A 200 whose JSON is made when its headers are out. ctx moves as below. */
void response_later(struct response *rs, response_next_fn next, void *ctx, void (*free_ctx)(void *ctx));

/* A 200 with NDJSON. ctx moves in and is given to free_ctx at the end, also after a hang-up. */
void response_stream(struct response *rs, response_next_fn next, void *ctx, void (*free_ctx)(void *ctx));

/*
 * Bytes, of which there are `length` (RESPONSE_LENGTH_UNKNOWN: it shows at the end); a stream that ends with
 * fewer is a broken one. Otherwise as response_stream(). `next` is not called for HEAD.
 */
#define RESPONSE_LENGTH_UNKNOWN UINT64_MAX
void response_bytes(struct response *rs, int status, const char *type, uint64_t length, response_next_fn next,
		    void *ctx, void (*free_ctx)(void *ctx));
/* No body. */
void response_empty(struct response *rs, int status);

/* name: a constant. At most RESPONSE_HEADERS_MAX; a value that is too long is cut. */
void response_header(struct response *rs, const char *name, const char *fmt, ...) PRINTF_LIKE(3, 4);

#endif
