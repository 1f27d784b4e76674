/* SPDX-License-Identifier: MIT */
/* http_range.h - the Range header (RFC 9110, 14.2): one range of bytes. Pure. */
#ifndef BERTH_HTTP_RANGE_H
#define BERTH_HTTP_RANGE_H

#include "base/err.h"

struct http_range {
	uint64_t first, last; /* inclusive; last UINT64_MAX: to the end */
	bool is_suffix;       /* the last `last` bytes */
};

/*
 * False when there is none to be served: no header, another unit, several ranges, or no range at all. Such a
 * header is left out of account, as 14.2 allows, and the whole is sent.
 */
bool http_range_parse(const char *header, struct http_range *ret);

/* Which bytes of a file of this size it means, at least one. False: none (416). */
bool http_range_apply(const struct http_range *range, uint64_t size, uint64_t *ret_first, uint64_t *ret_len);

#endif
