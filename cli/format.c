/* SPDX-License-Identifier: MIT */
#include "cli/format.h"

#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/utf8.h"

#define VALUE_MAX ((size_t)4096)
#define PATH_MAX_BYTES 64
#define COLUMNS_MAX 16

static json_t *value_at(const json_t *object, const char *path)
{
	const char *dot = strchr(path, '.');
	if (!dot)
		return json_object_get(object, path);
	char first[PATH_MAX_BYTES];
	snprintf(first, sizeof(first), "%.*s", (int)(dot - path), path);
	return value_at(json_object_get(object, first), dot + 1);
}

static char *number_text(const json_t *value)
{
	if (json_is_integer(value))
		return xasprintf("%lld", (long long)json_integer_value(value));
	return xasprintf("%g", json_real_value(value));
}

static char *object_text(json_t *object)
{
	_cleanup_buf_ struct buf text = BUF_INIT(4 * VALUE_MAX);
	const char *key = NULL;
	json_t *value = NULL;
	struct err ignored;
	json_object_foreach (object, key, value) {
		_cleanup_free_ char *k = utf8_escape(key, strlen(key), VALUE_MAX);
		_cleanup_free_ char *v = format_value(value);
		/* What does not fit any more is left out: this is for people. */
		if (buf_addf(&text, &ignored, "%s%s=%s", text.len ? " " : "", k, v))
			break;
	}
	return text.len ? buf_take(&text) : xstrdup("-");
}

static char *array_text(json_t *array)
{
	_cleanup_buf_ struct buf text = BUF_INIT(4 * VALUE_MAX);
	json_t *value = NULL;
	size_t i = 0;
	struct err ignored;
	json_array_foreach (array, i, value) {
		_cleanup_free_ char *one = format_value(value);
		if (buf_addf(&text, &ignored, "%s%s", i ? "," : "", one))
			break;
	}
	return text.len ? buf_take(&text) : xstrdup("-");
}

char *format_value(json_t *value)
{
	if (json_is_string(value) && json_string_length(value))
		return utf8_escape(json_string_value(value), json_string_length(value), VALUE_MAX);
	if (json_is_number(value))
		return number_text(value);
	if (json_is_boolean(value))
		return xstrdup(json_is_true(value) ? "yes" : "no");
	if (json_is_object(value))
		return object_text(value);
	if (json_is_array(value))
		return array_text(value);
	return xstrdup("-");
}

static const char *color_of(const char *path, const char *text)
{
	static const struct {
		const char *state, *color;
	} colors[] = { { "ready", "\033[32m" },    { "yes", "\033[32m" },    { "creating", "\033[33m" },
		       { "stopping", "\033[33m" }, { "failed", "\033[31m" }, { "no", "\033[31m" } };
	if (strcmp(path, "state") != 0 && strcmp(path, "ok") != 0)
		return "";
	for (size_t i = 0; i < ARRAY_LEN(colors); i++)
		if (!strcmp(colors[i].state, text))
			return colors[i].color;
	return "";
}

/* The text, and blanks up to the width in characters. */
static void put(FILE *out, const char *path, const char *text, size_t width, bool color)
{
	size_t len = utf8_count(text, strlen(text));
	const char *paint = color ? color_of(path, text) : "";
	fprintf(out, "%s%s%s", paint, text, *paint ? "\033[0m" : "");
	if (width > len)
		fprintf(out, "%*s", (int)(width - len), "");
}

static void measure(const struct format_column *columns, size_t count, const json_t *rows, size_t *ret_widths)
{
	for (size_t c = 0; c < count; c++) {
		ret_widths[c] = strlen(columns[c].title);
		for (size_t r = 0; r < json_array_size(rows); r++) {
			_cleanup_free_ char *text =
				format_value(value_at(json_array_get(rows, r), columns[c].path));
			ret_widths[c] = MAX(ret_widths[c], utf8_count(text, strlen(text)));
		}
	}
}

void format_table(FILE *out, const struct format_column *columns, size_t count, const json_t *rows,
		  bool color)
{
	size_t widths[COLUMNS_MAX] = { 0 };
	count = MIN(count, COLUMNS_MAX);
	measure(columns, count, rows, widths);
	for (size_t c = 0; c < count; c++)
		put(out, "", columns[c].title, c + 1 < count ? widths[c] + 2 : 0, false);
	fputc('\n', out);
	for (size_t r = 0; r < json_array_size(rows); r++) {
		for (size_t c = 0; c < count; c++) {
			_cleanup_free_ char *text =
				format_value(value_at(json_array_get(rows, r), columns[c].path));
			put(out, columns[c].path, text, c + 1 < count ? widths[c] + 2 : 0, color);
		}
		fputc('\n', out);
	}
}

void format_record(FILE *out, const struct format_column *columns, size_t count, const json_t *object,
		   bool color)
{
	size_t width = 0;
	for (size_t c = 0; c < count; c++)
		width = MAX(width, strlen(columns[c].title));
	for (size_t c = 0; c < count; c++) {
		_cleanup_free_ char *text = format_value(value_at(object, columns[c].path));
		if (!strcmp(text, "-"))
			continue;
		put(out, "", columns[c].title, width + 2, false);
		put(out, columns[c].path, text, 0, color);
		fputc('\n', out);
	}
}

void format_json(FILE *out, const json_t *value)
{
	size_t flags = isatty(fileno(out)) ? JSON_INDENT(2) : JSON_COMPACT;
	json_dumpf(value, out, flags | JSON_ENCODE_ANY);
	fputc('\n', out);
}
