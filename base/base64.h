/* SPDX-License-Identifier: MIT */
/* base64.h - RFC 4648, section 4, strict: padding needed, nothing between. Pure. */
#ifndef BERTH_BASE64_H
#define BERTH_BASE64_H

#include "base/err.h"

/* Owned by the caller. len: at most 1 GiB. */
char *base64_encode(const void *bytes, size_t len) NODISCARD;

/* *ret is owned by the caller, with a NUL after its *ret_len bytes. ERR_INVALID. */
int base64_decode(const char *text, size_t len, char **ret, size_t *ret_len, struct err *e) NODISCARD;

#endif
