/* SPDX-License-Identifier: MIT */
/*
 * exchange.h - one request and its answer on a connection of libmicrohttpd: gathers the headers and the
 * body, has them dispatched, and hands the answer over. Each connection has a thread of its own,
 * which all of this runs on and which may block.
 */
#ifndef BERTH_EXCHANGE_H
#define BERTH_EXCHANGE_H

#include "api/api.h"
#include "api/conns.h"

struct exchange;
struct MHD_Connection;

/* At the first line of a request. target: as sent, borrowed; NULL: there was none. */
struct exchange *exchange_new(struct api *api, struct conn *conn, const char *target) NODISCARD;
void exchange_free(struct exchange *x);

/*
 * The library's three kinds of calls: when the headers are there, for each piece of the body, and at its end
 * (*size is 0 in the first and the last). -1: the connection is to be dropped.
 */
int exchange_step(struct exchange *x, struct MHD_Connection *mhd, const char *method, const char *version,
		  const char *bytes, size_t *size) NODISCARD;

#endif
