/* SPDX-License-Identifier: MIT */
/*
 * guard.h - what a request's headers must not say. Pure; done before anything else, since the HTTP
 * library lets several of these through.
 */
#ifndef BERTH_GUARD_H
#define BERTH_GUARD_H

#include "api/request.h"

/* Which Host and Origin headers are let in. Texts are borrowed for good; lists are comma separated, NULL:
 * empty. */
struct guard_policy {
	char listen_host[64];        /* without brackets */
	bool listens_anywhere;       /* on a wildcard address: any literal IP address may be its name */
	const char *allowed_hosts;   /* names or name:port */
	const char *allowed_origins; /* scheme://host[:port] */
};

#define GUARD_CHUNKED INT64_MAX

/*
 * Where does the request end? ERR_INVALID / ERR_UNSUPPORTED when two readers could answer that
 * differently (request smuggling): then the connection must be closed. *ret_length: bytes
 * of the body, 0: none, GUARD_CHUNKED: known at its end.
 */
int guard_framing(const struct request *rq, int64_t *ret_length, struct err *e) NODISCARD;

/* Host and Origin, against web pages that reach for a local daemon. ERR_INVALID, ERR_FORBIDDEN. */
int guard_origin(const struct guard_policy *p, const struct request *rq, struct err *e) NODISCARD;

/* application/json in UTF-8, not compressed: ERR_MEDIA_TYPE. */
int guard_content_type(const struct request *rq, struct err *e) NODISCARD;

/* A body of bytes as they are: neither compressed nor a part of something: ERR_MEDIA_TYPE, ERR_INVALID. */
int guard_plain_body(const struct request *rq, struct err *e) NODISCARD;

/* The Idempotency-Key, NULL when there is none. ERR_INVALID unless it is 1..200 visible ASCII characters. */
int guard_idempotency_key(const struct request *rq, const char **ret, struct err *e) NODISCARD;

#endif
