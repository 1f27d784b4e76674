/* SPDX-License-Identifier: MIT */
/*
 * http.h - HTTP/1.1 over one kept connection with as little of its own as can be. Whatever fails ends the
 * program. One thread at a time.
 */
#ifndef BERTH_TESTS_BENCH_HTTP_H
#define BERTH_TESTS_BENCH_HTTP_H

#include "base/buf.h"

struct http;
struct http *http_open(const char *address) NODISCARD; /* /PATH of a socket, or 127.0.0.1:PORT */
void http_close(struct http *h);                       /* takes NULL */
DEFINE_CLEANUP(struct http *, http_close)

/* Sends a request and reads the head of its answer; returns the status. headers: whole lines, each with its
 * CRLF. */
int http_ask(struct http *h, const char *method, const char *path, const char *headers, const char *body);

/* The next bytes of the answer's body; 0 at its end. */
size_t http_read(struct http *h, void *out, size_t size);

/* The rest of it, into b from its start. */
void http_read_all(struct http *h, struct buf *b);

#endif
