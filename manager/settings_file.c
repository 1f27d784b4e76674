/* SPDX-License-Identifier: MIT */
#include "manager/settings_file.h"

#include <string.h>

#include "base/utf8.h"

#define KEYS_MAX 256

struct reader {
	settings_file_fn each;
	void *ctx;
	char *keys[KEYS_MAX]; /* seen */
	size_t count;
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* A copy without the blanks around it. */
static char *trimmed(const char *text, size_t len)
{
	while (len && is_blank(text[0])) {
		text++;
		len--;
	}
	while (len && is_blank(text[len - 1]))
		len--;
	return xstrndup(text, len);
}

static int check_key(struct reader *r, const char *key, int line, struct err *e)
{
	if (!*key || key[strspn(key, "abcdefghijklmnopqrstuvwxyz0123456789_")])
		return err_set(e, ERR_INVALID, "line %d: a key is of small letters, digits and underscores",
			       line);
	for (size_t i = 0; i < r->count; i++)
		if (strcmp(r->keys[i], key) == 0)
			return err_set(e, ERR_INVALID, "line %d: %.64s stands there a second time", line,
				       key);
	if (r->count == KEYS_MAX)
		return err_set(e, ERR_INVALID, "line %d: more than %d keys", line, KEYS_MAX);
	r->keys[r->count++] = xstrdup(key);
	return 0;
}

static int check_characters(const char *text, size_t len, int line, struct err *e)
{
	if (!utf8_is_valid(text, len))
		return err_set(e, ERR_INVALID, "line %d: not valid UTF-8", line);
	for (size_t i = 0; i < len; i++)
		if (((unsigned char)text[i] < 0x20 && !is_blank(text[i])) || text[i] == 0x7f)
			return err_set(e, ERR_INVALID, "line %d: a control character", line);
	return 0;
}

static int read_line(struct reader *r, const char *text, size_t len, int line, struct err *e)
{
	if (check_characters(text, len, line, e) < 0)
		return -(int)e->code;
	_cleanup_free_ char *whole = trimmed(text, len);
	if (!*whole || *whole == '#')
		return 0;
	char *equals = strchr(whole, '=');
	if (!equals)
		return err_set(e, ERR_INVALID, "line %d: not of the form key = value", line);
	_cleanup_free_ char *key = trimmed(whole, (size_t)(equals - whole)),
			    *value = trimmed(equals + 1, strlen(equals + 1));
	if (strpbrk(value, "\r\t"))
		return err_set(e, ERR_INVALID, "line %d: a control character", line);
	return check_key(r, key, line, e) < 0 ? -(int)e->code : r->each(r->ctx, key, value, line, e);
}

int settings_file_parse(const char *text, size_t len, settings_file_fn each, void *ctx, struct err *e)
{
	struct reader r = { .each = each, .ctx = ctx };
	int rc = 0, line = 1;
	if (len > SETTINGS_FILE_MAX)
		return err_set(e, ERR_INVALID, "more than %d bytes", SETTINGS_FILE_MAX);
	for (const char *at = text, *end = text + len; at < end && rc == 0; line++) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		const char *stop = newline ? newline : end;
		rc = read_line(&r, at, (size_t)(stop - at), line, e);
		at = newline ? newline + 1 : end;
	}
	for (size_t i = 0; i < r.count; i++)
		free(r.keys[i]);
	return rc < 0 ? -(int)e->code : 0;
}
