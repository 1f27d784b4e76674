/* SPDX-License-Identifier: MIT */
/*
 * dispatch.h - the way of a request through guards, routes and authorisation to its handler, and
 * of an error back to the client. Knows nothing of the HTTP library.
 */
#ifndef BERTH_DISPATCH_H
#define BERTH_DISPATCH_H

#include "api/api.h"
#include "api/response.h"

/*
 * Judges a request whose method, target text and headers are there, before its body is read.
 * *ret_length: bytes of the body to expect (see guard_framing). On failure rs has the headers and the status
 * that belong to the error, and rs->close when the connection cannot be used any more.
 */
int dispatch_begin(struct api *api, struct request *rq, const char *target, struct response *rs,
		   int64_t *ret_length, struct err *e) NODISCARD;

/* Makes the sink of a body that streams, of a request that dispatch_begin() let through. May wait. */
int dispatch_open(struct api *api, struct request *rq, struct response *rs, struct err *e) NODISCARD;

/* The most that the body of this request may have, in bytes. */
size_t dispatch_body_max(const struct api *api, const struct request *rq);

/* Runs the handler of a request that dispatch_begin() let through; rs is filled in any case. */
void dispatch_run(struct api *api, struct request *rq, struct response *rs);

/* Answers with an error: counts or audits it as what it is. */
void dispatch_refuse(struct api *api, struct request *rq, struct response *rs, const struct err *e);

#endif
