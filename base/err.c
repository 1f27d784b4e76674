/* SPDX-License-Identifier: MIT */
#define ERR_C_
#include "base/err.h"

#include <stdarg.h>
#include <string.h>

#include "base/utf8.h"

struct err_row {
	const char *name;
	int http, cli;
};

static const struct err_row rows[ERR_COUNT_] = {
#define ERR_ROW_(code, wire, status, exit_status) [code] = { wire, status, exit_status },
	ERR_CODES(ERR_ROW_)
#undef ERR_ROW_
};

/* Engines, files and clients put their words into messages: what is no UTF-8 or no text becomes '?'. */
static void tidy(char *text)
{
	size_t len = strlen(text);
	for (size_t i = utf8_valid_len(text, len); i < len; i += utf8_valid_len(text + i, len - i))
		text[i++] = '?';
	for (char *p = text; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			*p = ' ';
}

/* The arguments may point into *e, so the texts are made before it changes. */
static PRINTF_LIKE(5, 0) void fill(struct err *e, enum err_code code, int sys, const char *field,
				   const char *fmt, va_list ap)
{
	struct err made = { .code = code, .sys = sys };
	snprintf(made.field, sizeof(made.field), "%s", field);
	vsnprintf(made.msg, sizeof(made.msg), fmt, ap);
	tidy(made.field);
	tidy(made.msg);
	*e = made;
}

/* Puts ": " and more behind the message, as far as there is room. */
static void append(struct err *e, const char *more)
{
	size_t used = strlen(e->msg);
	snprintf(e->msg + used, sizeof(e->msg) - used, ": %s", more);
	tidy(e->msg);
}

int err_set(struct err *e, enum err_code code, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	fill(e, code, 0, "", fmt, ap);
	va_end(ap);
	return -(int)code;
}

int err_sys(struct err *e, enum err_code code, int sys_errno, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	fill(e, code, sys_errno, "", fmt, ap);
	va_end(ap);
	char text[96];
	/* The GNU strerror_r returns the text and may leave the buffer unused. */
	append(e, strerror_r(sys_errno, text, sizeof(text)));
	return -(int)code;
}

int err_field(struct err *e, const char *field, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	fill(e, ERR_INVALID, 0, field, fmt, ap);
	va_end(ap);
	return -(int)ERR_INVALID;
}

int err_wrap(struct err *e, const char *fmt, ...)
{
	struct err inner = *e;
	va_list ap;
	va_start(ap, fmt);
	fill(e, inner.code, inner.sys, inner.field, fmt, ap);
	va_end(ap);
	e->retry_after_s = inner.retry_after_s;
	append(e, inner.msg);
	return -(int)e->code;
}

static const struct err_row *row_of(enum err_code code)
{
	return code > ERR_NONE && code < ERR_COUNT_ ? &rows[code] : &rows[ERR_INTERNAL];
}

const char *err_name(enum err_code code)
{
	return row_of(code)->name;
}

int err_http_status(enum err_code code)
{
	return row_of(code)->http;
}

int err_exit_status(enum err_code code)
{
	return row_of(code)->cli;
}
