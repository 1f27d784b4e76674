/* SPDX-License-Identifier: MIT */
/* handle_exec.h - the handlers of /exec, /exec/stream and /execs: decode, call the manager, encode. */
#ifndef BERTH_HANDLE_EXEC_H
#define BERTH_HANDLE_EXEC_H

#include "api/api.h"
#include "api/response.h"

int handle_exec_run(struct api *api, struct request *rq, struct response *rs, struct err *e);
int handle_exec_stream(struct api *api, struct request *rq, struct response *rs, struct err *e);
int handle_exec_list(struct api *api, struct request *rq, struct response *rs, struct err *e);
int handle_exec_get(struct api *api, struct request *rq, struct response *rs, struct err *e);
int handle_exec_cancel(struct api *api, struct request *rq, struct response *rs, struct err *e);

#endif
