/* SPDX-License-Identifier: MIT */
/* file_query.h - the path in a query: path, or path_b64 for bytes that no query can have. Pure. */
#ifndef BERTH_FILE_QUERY_H
#define BERTH_FILE_QUERY_H

#include "api/request.h"

/* Owned by the caller. otherwise: when neither is given; NULL: one must be. ERR_INVALID. */
int file_query_path(const struct request *rq, const char *otherwise, char **ret, struct err *e) NODISCARD;

/* `mode` as octal text of 1 to 4 digits up to 0777, "" when it is not given. ERR_INVALID. */
int file_query_mode(const struct request *rq, const char **ret, struct err *e) NODISCARD;

#endif
