/* SPDX-License-Identifier: MIT */
/* handle_process.h - the handlers of /processes: decode, call the manager, encode. */
#ifndef BERTH_HANDLE_PROCESS_H
#define BERTH_HANDLE_PROCESS_H

#include "api/api.h"
#include "api/response.h"

int handle_process_start(struct api *api, struct request *rq, struct response *rs, struct err *e);
int handle_process_list(struct api *api, struct request *rq, struct response *rs, struct err *e);
int handle_process_get(struct api *api, struct request *rq, struct response *rs, struct err *e);
int handle_process_stream(struct api *api, struct request *rq, struct response *rs, struct err *e);
int handle_process_stdin(struct api *api, struct request *rq, struct response *rs, struct err *e);
int handle_process_delete(struct api *api, struct request *rq, struct response *rs, struct err *e);

#endif
