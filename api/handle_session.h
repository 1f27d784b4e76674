/* SPDX-License-Identifier: MIT */
/* handle_session.h - the handlers of /v1/sessions: decode, call the manager, encode. */
#ifndef BERTH_HANDLE_SESSION_H
#define BERTH_HANDLE_SESSION_H

#include "api/api.h"
#include "api/response.h"

int handle_session_create(struct api *api, struct request *rq, struct response *rs, struct err *e);
int handle_session_list(struct api *api, struct request *rq, struct response *rs, struct err *e);
int handle_session_get(struct api *api, struct request *rq, struct response *rs, struct err *e);
int handle_session_patch(struct api *api, struct request *rq, struct response *rs, struct err *e);
int handle_session_delete(struct api *api, struct request *rq, struct response *rs, struct err *e);

#endif
