/* SPDX-License-Identifier: MIT */
/*
 * client.h - Berth's HTTP API as a client sees it: one call, with JSON, a stream of JSON lines, or raw bytes
 * in either direction. Every call has a deadline, every reply a bound. One thread.
 */
#ifndef BERTH_CLI_CLIENT_H
#define BERTH_CLI_CLIENT_H

#include "base/id.h"
#include "base/json.h"
#include "cli/interrupt.h"

struct client;

/* address as in struct config; token may be NULL; both are borrowed. */
int client_new(const char *address, const char *token, struct client **ret, struct err *e) NODISCARD;
void client_free(struct client *c);
DEFINE_CLEANUP(struct client *, client_free)

/* From now on a signal ends a call (or asks its on_signal). Borrowed. */
void client_watch(struct client *c, struct interrupt *i);

struct client_reply {
	int status;            /* of HTTP; 0 before it is known */
	json_t *body;          /* NULL when there was none, or lines */
	char exec_id[ID_SIZE]; /* the header X-Exec-Id; "" when there was none */
	int64_t length;        /* the header Content-Length; -1 when there was none */
};
void client_reply_clear(struct client_reply *r);
#define _cleanup_reply_ _cleanup_(client_reply_clear)

/* A whole line of a stream, borrowed. Not 0 with *e filled ends the call with that. */
typedef int (*client_line_fn)(void *ctx, const json_t *line, struct err *e);
/* Raw bytes of a 2xx, borrowed. Not 0 with *e filled ends the call with that. */
typedef int (*client_bytes_fn)(void *ctx, const struct client_reply *so_far, const char *bytes, size_t len,
			       struct err *e);
/* Fills room with the next bytes of a request's body: how many, 0 at its end, or a negative code with *e
 * filled, which ends the call so that the server does not take what it has for the whole. */
typedef ssize_t (*client_read_fn)(void *ctx, char *room, size_t size, struct err *e);
/*
 * A signal has come during the call; `so_far` holds what is known of the reply. Returns for how many ms the
 * call may go on; 0 ends it. Other calls may be made from here.
 */
typedef int (*client_signal_fn)(void *ctx, const struct client_reply *so_far);

struct client_request {
	const char *method;     /* "GET" ... */
	const char *path;       /* below the address, "/v1/..."; client_path() */
	const json_t *body;     /* NULL: none */
	int timeout_ms;         /* for the whole call; of a stream: until it begins */
	int idle_ms;            /* of a stream, or of raw bytes: it is given up when none moved for so long */
	client_line_fn on_line; /* a 200 is a stream of JSON lines; NULL: it is one JSON value */
	client_bytes_fn on_bytes;   /* a 2xx is raw bytes */
	client_read_fn on_read;     /* the body is raw bytes; then `body` is NULL */
	int64_t read_length;        /* so many; -1: not known before its end */
	client_signal_fn on_signal; /* NULL: the first signal ends the call */
	void *ctx;
};

/*
 * Returns 0 for a 2xx. *ret is filled as far as it came, also on failure; clear it in any case. An answer of
 * the server that is an error becomes its code, field and text; ERR_UNAVAILABLE: nobody answers there, or the
 * connection broke; ERR_TIMEOUT; ERR_UNAUTHORIZED also when no token is known; ERR_INTERNAL when what answers
 * is no Berth. After a signal: any code, and the interrupt says so.
 */
int client_call(struct client *c, const struct client_request *rq, struct client_reply *ret,
		struct err *e) NODISCARD;

/* "/v1/sessions/%s/…" with each %s escaped as one path segment or query value. Owned by the caller. */
char *client_path(const char *format, ...) NODISCARD;

#endif
