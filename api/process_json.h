/* SPDX-License-Identifier: MIT */
/* process_json.h - bodies of /processes to structs, and the replies that carry output. Pure. */
#ifndef BERTH_PROCESS_JSON_H
#define BERTH_PROCESS_JSON_H

#include "api/request.h"
#include "base/id.h"
#include "manager/process.h"

#define PROCESS_NAME_MAX 128 /* bytes */

/* A decoded body of a start. The request borrows from the rest. */
struct process_body {
	struct exec_request rq;
	json_t *json;
	char hash[ID_HASH_SIZE]; /* what rq.request_hash points to, when it is set */
};
void process_body_clear(struct process_body *body);
/* ERR_INVALID names the field. */
int process_json_decode(const char *text, size_t len, struct process_body *ret, struct err *e) NODISCARD;

/* A decoded body for stdin. The input borrows from the rest. */
struct process_stdin_body {
	struct process_input in;
	json_t *json;
	char *bytes; /* decoded from data_b64; NULL: none */
};
void process_stdin_clear(struct process_stdin_body *body);
int process_json_stdin(const char *text, size_t len, struct process_stdin_body *ret, struct err *e) NODISCARD;

/* The most that a reply with so many bytes of output can be. */
size_t process_json_reply_max(size_t output_max);
/*
 * The reply of GET: of a process in this state (process_get_state()) with a piece of its output. ended: as
 * process_read() says; only then it tells how it ended.
 */
int process_json_reply(struct buf *out, json_t *state, const struct process_piece *piece, bool ended,
		       struct err *e) NODISCARD;
/* A line of the stream; one without output says that it lives. */
int process_json_line(struct buf *out, const struct process_piece *piece, struct err *e) NODISCARD;

#endif
