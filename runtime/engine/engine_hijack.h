/* SPDX-License-Identifier: MIT */
/*
 * engine_hijack.h - a request whose connection becomes a stream of raw bytes both ways.
 *
 * One libcurl handle in its connect-only mode, so that unix sockets, tcp and TLS are one code. A
 * handle is never used for anything after.
 */
#ifndef BERTH_ENGINE_HIJACK_H
#define BERTH_ENGINE_HIJACK_H

#include "runtime/engine/engine_priv.h"

/*
 * Sends a POST that asks for an upgrade and reads the head of the answer. On success (101, or 200
 * from those that do not say it) *ret_handle is owned by the caller and early has the bytes that
 * came behind the head. A refusal is the error of engine_json_error().
 */
int engine_hijack(struct engine *g, const char *path, const char *body, int64_t deadline_ms,
		  CURL **ret_handle, struct buf *early, struct err *e) NODISCARD;

/* The end of a reply's head in data, its length with the empty line; 0 while it is not there. Pure. */
size_t engine_hijack_head(const char *data, size_t len);
/* The status in a head, -1 when it is none. Pure. */
int engine_hijack_status(const char *head, size_t len);

#endif
