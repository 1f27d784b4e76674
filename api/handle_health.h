/* SPDX-License-Identifier: MIT */
/* handle_health.h - GET /health: does Berth work? Without a token, so it says nothing of any session. */
#ifndef BERTH_HANDLE_HEALTH_H
#define BERTH_HANDLE_HEALTH_H

#include "api/api.h"
#include "api/response.h"

int handle_health_get(struct api *api, struct request *rq, struct response *rs, struct err *e);

#endif
