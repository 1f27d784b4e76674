/* SPDX-License-Identifier: MIT */
#include "cli/say.h"

#include <stdarg.h>
#include <string.h>

#include "base/utf8.h"

#define LINE_MAX_BYTES 2048

/* A server's text may hold what a terminal would obey. */
static PRINTF_LIKE(1, 0) void put(const char *format, va_list ap)
{
	char text[LINE_MAX_BYTES];
	vsnprintf(text, sizeof(text), format, ap);
	_cleanup_free_ char *line = utf8_escape(text, strlen(text), LINE_MAX_BYTES);
	fprintf(stderr, "berth: %s\n", line);
}

void say(const char *format, ...)
{
	va_list ap;
	va_start(ap, format);
	put(format, ap);
	va_end(ap);
}

void note(const char *format, ...)
{
	if (!isatty(STDERR_FILENO))
		return;
	va_list ap;
	va_start(ap, format);
	put(format, ap);
	va_end(ap);
}
