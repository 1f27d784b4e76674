/* SPDX-License-Identifier: MIT */
/* remote.h - files of a session over the API: raw bytes to and from local descriptors, and what is known of a
 * path. One thread. */
#ifndef BERTH_CLI_REMOTE_H
#define BERTH_CLI_REMOTE_H

#include "cli/cmd.h"
#include "cli/progress.h"

#define REMOTE_IDLE_MS 90000 /* a transfer that does not move for so long is given up */

/* A path in a query, "path=..." or, when it is no UTF-8, "path_b64=...". Owned by the caller. */
char *remote_query(const char *path) NODISCARD;
/* The same as a field of a body. */
void remote_put_path(json_t *object, const char *path);

/* "file", "dir", ... of cli->session's path, into ret; "" when there is none. */
int remote_type(struct cli *cli, const char *path, char ret[16], struct err *e) NODISCARD;

/* The bytes of a GET (path: of the API) into a descriptor. ERR_GONE: nobody reads them any more. */
int remote_get(struct cli *cli, const char *path, int fd, const char *what, bool quiet,
	       struct err *e) NODISCARD;
/* A descriptor's bytes into a PUT. length: -1 until its end. */
int remote_put(struct cli *cli, const char *path, int fd, int64_t length, const char *what, bool quiet,
	       struct err *e) NODISCARD;

#endif
