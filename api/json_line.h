/* SPDX-License-Identifier: MIT */
/* json_line.h - JSON written into a buffer: lines of NDJSON, and output in bulk. Pure. */
#ifndef BERTH_JSON_LINE_H
#define BERTH_JSON_LINE_H

#include <jansson.h>

#include "base/buf.h"

/* Each fails as buf_add; then a part may be there. */

/* A value and the end of the line; the value moves in. */
int json_line_add(struct buf *out, json_t *value, struct err *e) NODISCARD;
/* A JSON string of UTF-8, or of the base64 of any bytes. */
int json_line_data(struct buf *out, const char *bytes, size_t len, bool base64, struct err *e) NODISCARD;

#endif
