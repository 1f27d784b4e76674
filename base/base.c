/* SPDX-License-Identifier: MIT */
#include "base/base.h"

#include <stdarg.h>
#include <string.h>

void *xcalloc(size_t count, size_t size)
{
	void *p = calloc(count ? count : 1, size ? size : 1);
	if (!p)
		abort();
	return p;
}

char *xstrdup(const char *text)
{
	return xstrndup(text, strlen(text));
}

char *xstrndup(const char *text, size_t len)
{
	size_t used = strnlen(text, len);
	char *copy = xcalloc(used + 1, 1);
	memcpy(copy, text, used);
	return copy;
}

char *xasprintf(const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;
	va_start(ap, fmt);
	int n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n < 0)
		abort();
	return text;
}
