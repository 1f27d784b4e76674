/* SPDX-License-Identifier: MIT */
/* handle_file.h - /files/upload, download, list, stat, mkdir, move, delete: see route_fn. */
#ifndef BERTH_HANDLE_FILE_H
#define BERTH_HANDLE_FILE_H

#include "api/routes.h"

int handle_file_upload(struct api *api, struct request *rq, struct response *rs, struct err *e);
int handle_file_download(struct api *api, struct request *rq, struct response *rs, struct err *e);
int handle_file_list(struct api *api, struct request *rq, struct response *rs, struct err *e);
int handle_file_stat(struct api *api, struct request *rq, struct response *rs, struct err *e);
int handle_file_mkdir(struct api *api, struct request *rq, struct response *rs, struct err *e);
int handle_file_move(struct api *api, struct request *rq, struct response *rs, struct err *e);
int handle_file_delete(struct api *api, struct request *rq, struct response *rs, struct err *e);

#endif
