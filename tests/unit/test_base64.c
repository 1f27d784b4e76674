/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "base/base64.h"
#include "tests/unit/rows.h"

static const struct pair_row {
	const char *name, *plain, *text;
} pairs[] = {
	/* RFC 4648, section 10 */
	{ "nothing", "", "" },
	{ "one byte", "f", "Zg==" },
	{ "two bytes", "fo", "Zm8=" },
	{ "three bytes", "foo", "Zm9v" },
	{ "six bytes", "foobar", "Zm9vYmFy" },
	{ "both characters that are no letters", "\xfb\xff\xbf", "+/+/" },
};

static void pair_test(void **state)
{
	const struct pair_row *row = *state;
	struct err e;
	size_t len = 99;
	_cleanup_free_ char *text = base64_encode(row->plain, strlen(row->plain)), *bytes = NULL;
	assert_string_equal(text, row->text);
	assert_int_equal(base64_decode(row->text, strlen(row->text), &bytes, &len, &e), 0);
	assert_int_equal(len, strlen(row->plain));
	assert_string_equal(bytes, row->plain);
}

static const struct refusal_row {
	const char *name, *text;
} refusals[] = {
	{ "refused: no padding", "Zg" },
	{ "refused: half of the padding", "Zg=" },
	{ "refused: too much padding", "Zm9v====" },
	{ "refused: three of padding", "Z===" },
	{ "refused: padding alone", "====" },
	{ "refused: padding inside", "Zg==Zm9v" },
	{ "refused: a newline", "Zm9v\nYmFy" },
	{ "refused: a blank before", " Zm9" },
	{ "refused: the letters for URLs", "-_-_" },
	{ "refused: bytes above ASCII", "Zm9\xff" },
};

static void refusal_test(void **state)
{
	const struct refusal_row *row = *state;
	struct err e = { 0 };
	size_t len = 99;
	char *bytes = NULL;
	assert_int_equal(base64_decode(row->text, strlen(row->text), &bytes, &len, &e), -ERR_INVALID);
	assert_null(bytes);
	assert_int_equal(len, 99);
}

static void any_bytes_come_back(void **state)
{
	(void)state;
	uint8_t all[256];
	for (size_t i = 0; i < sizeof(all); i++)
		all[i] = (uint8_t)i;
	for (size_t n = 0; n <= sizeof(all); n++) {
		struct err e;
		size_t len;
		_cleanup_free_ char *text = base64_encode(all, n), *bytes = NULL;
		assert_int_equal(base64_decode(text, strlen(text), &bytes, &len, &e), 0);
		assert_int_equal(len, n);
		assert_memory_equal(bytes, all, n);
		assert_int_equal(bytes[n], 0);
	}
}

int main(void)
{
	struct rows r = { 0 };
	ROWS(&r, pair_test, pairs);
	ROWS(&r, refusal_test, refusals);
	rows_one(&r, "any bytes of any length come back", any_bytes_come_back);
	return rows_run(&r, "base64");
}
