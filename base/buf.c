/* SPDX-License-Identifier: MIT */
#include "base/buf.h"

#include <stdarg.h>
#include <string.h>

void buf_clear(struct buf *b)
{
	free(b->data);
	*b = BUF_INIT(b->max);
}

void buf_reset(struct buf *b)
{
	buf_truncate(b, 0);
}

void buf_truncate(struct buf *b, size_t len)
{
	if (len >= b->len)
		return;
	b->len = len;
	b->data[len] = 0;
}

/* Room for len more bytes and a NUL. */
static int reserve(struct buf *b, size_t len, struct err *e)
{
	if (len > b->max - b->len)
		return err_set(e, ERR_TOO_LARGE, "more than %zu bytes", b->max);
	size_t need = b->len + len + 1;
	if (need <= b->room)
		return 0;
	size_t room = MIN(MAX(MAX(b->room * 2, need), 64), b->max + 1);
	char *data = realloc(b->data, room);
	if (!data)
		abort();
	b->data = data;
	b->room = room;
	return 0;
}

int buf_add(struct buf *b, const void *bytes, size_t len, struct err *e)
{
	if (reserve(b, len, e))
		return -(int)e->code;
	if (len)
		memcpy(b->data + b->len, bytes, len);
	b->len += len;
	b->data[b->len] = 0;
	return 0;
}

int buf_addf(struct buf *b, struct err *e, const char *fmt, ...)
{
	va_list ap, again;
	va_start(ap, fmt);
	va_copy(again, ap);
	int n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0)
		abort();
	int r = reserve(b, (size_t)n, e);
	if (!r) {
		vsnprintf(b->data + b->len, (size_t)n + 1, fmt, again);
		b->len += (size_t)n;
	}
	va_end(again);
	return r;
}

void buf_consume(struct buf *b, size_t len)
{
	len = MIN(len, b->len);
	if (!len)
		return;
	memmove(b->data, b->data + len, b->len - len);
	b->len -= len;
	b->data[b->len] = 0;
}

char *buf_take(struct buf *b)
{
	char *text = b->data ? STEAL_PTR(b->data) : xstrdup("");
	*b = BUF_INIT(b->max);
	return text;
}
