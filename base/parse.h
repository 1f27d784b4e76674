/* SPDX-License-Identifier: MIT */
/* parse.h - strict readers of small texts. Pure. Each takes the whole text or nothing. */
#ifndef BERTH_PARSE_H
#define BERTH_PARSE_H

#include "base/err.h"

/* Decimal digits with an optional leading '-'; no blanks, no '+'. ERR_INVALID outside min..max. */
int parse_int(const char *text, int64_t min, int64_t max, int64_t *ret, struct err *e) NODISCARD;

/* A count of bytes: digits and an optional k, m, g (powers of 1024, either case, optional b). */
int parse_bytes(const char *text, int64_t *ret, struct err *e) NODISCARD;

/* A decimal number such as 1.5, in thousandths; at most three decimals. */
int parse_milli(const char *text, int64_t min, int64_t max, int64_t *ret, struct err *e) NODISCARD;

/* A duration: 90, 90s, 15m, 2h, 1d; in seconds. */
int parse_duration_s(const char *text, int64_t *ret, struct err *e) NODISCARD;

/*
 * The next item of a comma separated list, blanks around it cut off: returns its start and
 * length, NULL at the end. *cursor starts at the text. Empty items are skipped.
 */
const char *parse_list_next(const char **cursor, size_t *ret_len);

#endif
