/* SPDX-License-Identifier: MIT */
/* session_json.h - sessions to JSON, and the bodies and queries about them to structs. Pure. */
#ifndef BERTH_SESSION_JSON_H
#define BERTH_SESSION_JSON_H

#include "api/request.h"

/* A session as clients see it, a new reference: no environment, no token. */
json_t *session_json(const struct session_row *row) NODISCARD;

/* {sessions, next}: next is the cursor of the page that follows, null when this one was not full. */
json_t *session_json_list(const struct session_row *rows, size_t count, int limit) NODISCARD;

/* The body of a create; texts and objects are borrowed from it. ERR_INVALID names the field. */
int session_json_create(const json_t *body, struct session_request *ret, struct err *e) NODISCARD;
int session_json_patch(const json_t *body, struct session_patch *ret, struct err *e) NODISCARD;

/* The query of a list. *label_storage holds what ret points to, owned by the caller. */
int session_json_filter(const struct request *rq, struct session_filter *ret, char **label_storage,
			struct err *e) NODISCARD;

#endif
