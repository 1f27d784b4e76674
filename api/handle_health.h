/* SPDX-License-Identifier: MIT */
/* handle_health.h - does Berth work, and a session? */
#ifndef BERTH_HANDLE_HEALTH_H
#define BERTH_HANDLE_HEALTH_H

#include "api/api.h"
#include "api/response.h"

/*
 * GET /health, open to all: of the default session and of the whole, but not of any other session. With a
 * session's token: of that session alone. A token that is not known is as good as none.
 */
int handle_health_get(struct api *api, struct request *rq, struct response *rs, struct err *e);

/* GET /v1/sessions/{session}/health: the six fields of a server with one sandbox. */
int handle_health_session(struct api *api, struct request *rq, struct response *rs, struct err *e) NODISCARD;

#endif
