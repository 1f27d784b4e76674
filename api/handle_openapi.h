/* SPDX-License-Identifier: MIT */
/* handle_openapi.h - GET /openapi.json: the description of the API, without a token, with ETag and
 * If-None-Match. */
#ifndef BERTH_HANDLE_OPENAPI_H
#define BERTH_HANDLE_OPENAPI_H

#include "api/api.h"
#include "api/response.h"

int handle_openapi_get(struct api *api, struct request *rq, struct response *rs, struct err *e);

#endif
