/* SPDX-License-Identifier: MIT */
/* handle_archive.h - GET and PUT /files/archive. See route_fn and ROUTE_BODY_STREAM. */
#ifndef BERTH_HANDLE_ARCHIVE_H
#define BERTH_HANDLE_ARCHIVE_H

#include "api/routes.h"

int handle_archive_get(struct api *api, struct request *rq, struct response *rs, struct err *e);
int handle_archive_put(struct api *api, struct request *rq, struct response *rs, struct err *e);

#endif
