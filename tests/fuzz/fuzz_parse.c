/* SPDX-License-Identifier: MIT */
/*
 * The readers of small texts: what is accepted is within the bounds and means the same when written plainly;
 * what is refused leaves the output alone. List items are not empty, without blanks around, and in the text.
 */
#include <ctype.h>
#include <string.h>

#include "base/parse.h"
#include "tests/fuzz/fuzz.h"

static void check_int(const char *text)
{
	int64_t v = 7, again = 0;
	char plain[32];
	struct err e;
	if (parse_int(text, -1000000, 1000000, &v, &e)) {
		MUST(v == 7);
		return;
	}
	MUST(v >= -1000000 && v <= 1000000);
	snprintf(plain, sizeof(plain), "%lld", (long long)v);
	MUST(!parse_int(plain, v, v, &again, &e) && again == v);
}

static void check_milli(const char *text)
{
	int64_t v = 7, again = 0;
	char plain[32];
	struct err e;
	if (parse_milli(text, 0, INT64_MAX, &v, &e)) {
		MUST(v == 7);
		return;
	}
	MUST(v >= 0);
	snprintf(plain, sizeof(plain), "%lld.%03lld", (long long)v / 1000, (long long)v % 1000);
	MUST(!parse_milli(plain, v, v, &again, &e) && again == v);
}

static void check_unit(int (*parse)(const char *, int64_t *, struct err *), const char *text)
{
	int64_t v = -7, again = 0;
	char plain[32];
	struct err e;
	if (parse(text, &v, &e)) {
		MUST(v == -7);
		return;
	}
	MUST(v >= 0 && isdigit((unsigned char)*text));
	snprintf(plain, sizeof(plain), "%lld", (long long)v);
	MUST(!parse(plain, &again, &e) && again == v);
}

static void check_list(const char *text)
{
	const char *cursor = text, *last = text, *item;
	size_t len = 0;
	while ((item = parse_list_next(&cursor, &len))) {
		MUST(item >= last && item + len <= text + strlen(text));
		MUST(len > 0 && !memchr(item, ',', len));
		MUST(!isspace((unsigned char)item[0]) && !isspace((unsigned char)item[len - 1]));
		last = item + len;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_free_ char *text = xstrndup((const char *)data, size);
	check_int(text);
	check_milli(text);
	check_unit(parse_bytes, text);
	check_unit(parse_duration_s, text);
	check_list(text);
	return 0;
}
