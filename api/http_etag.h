/* SPDX-License-Identifier: MIT */
/* http_etag.h - entity tags in conditional headers (RFC 9110, 8.8.3 and 13.1). Pure. */
#ifndef BERTH_HTTP_ETAG_H
#define BERTH_HTTP_ETAG_H

#include "base/err.h"

/*
 * Is the tag (without quotes) in a list such as  "a", W/"b"  or *? weak: W/"a" counts as "a" (If-None-Match);
 * a weak one is never the same otherwise (If-Match). ERR_INVALID names the field when it is no such list.
 */
int http_etag_match(const char *field, const char *header, const char *tag, bool weak, bool *ret,
		    struct err *e) NODISCARD;

/*
 * What a PUT may replace, by If-Match and If-None-Match, each NULL when absent: "" anything, "old" what is
 * there, "new" nothing, else the one tag that it must have. ERR_INVALID names the field: both are given,
 * several tags, If-None-Match with another value than *. ERR_PRECONDITION: a weak tag, which nothing matches.
 */
#define HTTP_ETAG_WANT_SIZE 72
int http_etag_want(const char *if_match, const char *if_none_match, char ret[HTTP_ETAG_WANT_SIZE],
		   struct err *e) NODISCARD;

#endif
