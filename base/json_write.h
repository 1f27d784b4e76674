/* SPDX-License-Identifier: MIT */
/* json_write.h - JSON strings appended to a text, for what is too much to be made of values first. Pure. */
#ifndef BERTH_JSON_WRITE_H
#define BERTH_JSON_WRITE_H

#include "base/buf.h"

/* Each adds one string, quotes and all. ERR_TOO_LARGE as buf_add(); then a part of it may be there. */

/* Of UTF-8. */
int json_write_text(struct buf *out, const char *text, size_t len, struct err *e) NODISCARD;
/* Of what has nothing to escape. */
int json_write_plain(struct buf *out, const char *text, size_t len, struct err *e) NODISCARD;
/* Of bytes that may be no UTF-8: replacement characters. */
int json_write_lossy(struct buf *out, const char *bytes, size_t len, struct err *e) NODISCARD;

#endif
