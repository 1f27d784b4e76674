/* SPDX-License-Identifier: MIT */
/* exec_json.h - bodies of /exec to structs, and the lines of /exec/stream. Pure. */
#ifndef BERTH_EXEC_JSON_H
#define BERTH_EXEC_JSON_H

#include "api/request.h"
#include "base/id.h"

/* A decoded body. The request borrows from the rest. */
struct exec_body {
	struct exec_request rq;
	json_t *json;
	char *stdin_bytes;       /* decoded from stdin_b64, NULL: none */
	char hash[ID_HASH_SIZE]; /* what rq.request_hash points to, when it is set */
};
void exec_json_clear(struct exec_body *body);
/* Frees the texts; the numbers and flags of the request stay. */
void exec_json_drop(struct exec_body *body);

/* ERR_INVALID names the field. `stream`: the body of /exec/stream. */
int exec_json_decode(const char *text, size_t len, bool stream, int64_t max_timeout_s, struct exec_body *ret,
		     struct err *e) NODISCARD;

#define EXEC_JSON_QUIET "{\"type\":\"output\",\"data\":\"\"}\n"

/*
 * Each adds one line of NDJSON. ERR_TOO_LARGE as buf_add; then part of a line may be there. The text of a
 * piece without base64 is UTF-8 (struct exec_output).
 */
int exec_json_output_line(struct buf *out, const struct exec_output *piece, bool base64,
			  struct err *e) NODISCARD;
/* The next piece of the output that a reply kept, as a line; nothing at its end. *at: bytes told so far. */
int exec_json_replay_line(struct buf *out, const json_t *reply, size_t *at, struct err *e) NODISCARD;
/*
 * The reply's fields without its output. dropped: the bytes that this stream did not bring; NULL: the reply's
 * own cut counts, since its output was what the stream brought.
 */
int exec_json_exit_line(struct buf *out, const json_t *reply, const uint64_t *dropped,
			struct err *e) NODISCARD;
int exec_json_error_line(struct buf *out, const struct err *why, struct err *e) NODISCARD;

#endif
