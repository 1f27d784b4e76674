/* SPDX-License-Identifier: MIT */
#include "api/json_line.h"

#include <string.h>

#include "base/base64.h"
#include "base/json.h"
#include "base/json_write.h"

/* The value moves in. */
int json_line_add(struct buf *out, json_t *value, struct err *e)
{
	_cleanup_json_ json_t *owned = value;
	_cleanup_free_ char *text = json_text(owned);

	return buf_add(out, text, strlen(text), e) ? -(int)e->code : buf_add(out, "\n", 1, e);
}

int json_line_data(struct buf *out, const char *bytes, size_t len, bool base64, struct err *e)
{
	if (!base64)
		return json_write_text(out, bytes, len, e);
	_cleanup_free_ char *text = base64_encode(bytes, len);
	return json_write_plain(out, text, strlen(text), e);
}
