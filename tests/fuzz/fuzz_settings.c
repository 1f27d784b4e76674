/* SPDX-License-Identifier: MIT */
/*
 * The configuration file: what is refused has a message that names a line; what is accepted has plain keys,
 * none twice, and values of one line without blanks around them, and written out again it reads the same.
 */
#include <string.h>

#include "base/buf.h"
#include "base/utf8.h"
#include "manager/settings_file.h"
#include "tests/fuzz/fuzz.h"

struct seen {
	struct buf text; /* "key = value" lines */
	int line, count;
};

static int each(void *ctx, const char *key, const char *value, int line, struct err *e)
{
	struct seen *s = ctx;
	size_t len = strlen(value);
	MUST(*key && key[strspn(key, "abcdefghijklmnopqrstuvwxyz0123456789_")] == 0);
	MUST(line > s->line);
	MUST(utf8_is_valid(value, len) && !strpbrk(value, "\r\n\t\x7f"));
	MUST(!len || (value[0] != ' ' && value[len - 1] != ' '));
	s->line = line;
	s->count++;
	return buf_addf(&s->text, e, "%s = %s\n", key, value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct seen first = { .text = BUF_INIT(1 << 20) }, second = first;
	struct err e = { 0 };
	if (settings_file_parse((const char *)data, size, each, &first, &e) < 0) {
		MUST(e.code == ERR_INVALID && *e.msg);
		MUST(strncmp(e.msg, "line ", 5) == 0 || size > SETTINGS_FILE_MAX);
		MUST(utf8_is_valid(e.msg, strlen(e.msg)) && !strpbrk(e.msg, "\n\r"));
	} else if (first.text.len && first.text.len <= SETTINGS_FILE_MAX) {
		MUST(settings_file_parse(first.text.data, first.text.len, each, &second, &e) == 0);
		MUST(second.count == first.count);
		MUST(strcmp(first.text.data, second.text.data) == 0);
	}
	buf_clear(&first.text);
	buf_clear(&second.text);
	return 0;
}
