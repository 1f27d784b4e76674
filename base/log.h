/* SPDX-License-Identifier: MIT */
/*
 * log.h - one line, one event, on stdout: constant text plus typed fields, readable or JSON.
 *
 * Any thread; a line is written whole. Values are escaped (control, bidi, invalid UTF-8 appear
 * as escapes), so no input can forge a line. Never pass a token, an environment value, file
 * contents or command output. The format is set once in main before the first thread.
 */
#ifndef BERTH_LOG_H
#define BERTH_LOG_H

#include "base/base.h"

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

struct log_format {
	bool json;
	bool color;
	enum log_level level; /* lines above it are dropped */
};

void log_setup(const struct log_format *f); /* copied; before it: readable, no colours, LOG_INFO */
/*
 * color is "always", "never" or "auto" (NULL as auto): auto means a terminal on stdout and
 * no_color, the variable NO_COLOR, unset or empty (https://no-color.org).
 */
bool log_wants_color(const char *color, const char *no_color);

struct log_field {
	const char *name; /* NULL ends the list */
	const char *text; /* NULL: the number counts */
	int64_t number;
	bool shown; /* the text was escaped for display already */
};

static inline struct log_field log_field_text(const char *name, const char *text)
{
	return (struct log_field){ .name = name, .text = text ? text : "" };
}

/* A text that utf8_escape() has made: not escaped once more. */
static inline struct log_field log_field_shown(const char *name, const char *text)
{
	return (struct log_field){ .name = name, .text = text ? text : "", .shown = true };
}

static inline struct log_field log_field_int(const char *name, int64_t number)
{
	return (struct log_field){ .name = name, .number = number };
}

#define F(name, value) \
	_Generic((value), char *: log_field_text, const char *: log_field_text, default: log_field_int)(name, value)
#ifdef __cppcheck__ /* whose 2.10 does not know __VA_OPT__ */
#define LOG(level, event, ...) log_write(level, event, NULL)
#else
#define LOG(level, event, ...) \
	log_write(level, event, (const struct log_field[]){ __VA_ARGS__ __VA_OPT__(, ){ .name = NULL } })
#endif

/*
 * Waits up to 1 s for a reader of stdout that stalls; then lines are dropped until it reads on, and
 * the next one tells their count. A text is cut after LOG_TEXT_MAX bytes.
 */
#define LOG_TEXT_MAX 8192
void log_write(enum log_level level, const char *event, const struct log_field *fields);

#endif
