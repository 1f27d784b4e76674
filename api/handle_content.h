/* SPDX-License-Identifier: MIT */
/* handle_content.h - GET and PUT /files/content: one file's bytes. See route_fn and ROUTE_BODY_STREAM. */
#ifndef BERTH_HANDLE_CONTENT_H
#define BERTH_HANDLE_CONTENT_H

#include "api/routes.h"

int handle_content_get(struct api *api, struct request *rq, struct response *rs, struct err *e);
int handle_content_put(struct api *api, struct request *rq, struct response *rs, struct err *e);

#endif
