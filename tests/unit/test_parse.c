/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "base/buf.h"
#include "base/parse.h"
#include "tests/unit/rows.h"

#define REFUSED INT64_MIN /* the row expects ERR_INVALID */
#define UNTOUCHED 424242

static void check(const char *text, int r, int64_t got, int64_t want, const struct err *e)
{
	(void)text;
	assert_int_equal(r, want == REFUSED ? -ERR_INVALID : 0);
	assert_int_equal(got, want == REFUSED ? UNTOUCHED : want);
	if (r)
		assert_int_equal(strncmp(e->msg, "must be ", 8), 0);
}

struct text_row {
	const char *name, *text;
	int64_t want;
};

static const struct text_row ints[] = {
	{ "int: digits", "42", 42 },
	{ "int: zero", "0", 0 },
	{ "int: a leading minus", "-7", -7 },
	{ "int: the lower bound is allowed", "-100", -100 },
	{ "int: the upper bound is allowed", "1000", 1000 },
	{ "int: below the lower bound is refused", "-101", REFUSED },
	{ "int: above the upper bound is refused", "1001", REFUSED },
	{ "int: more than 64 bits are refused", "18446744073709551617", REFUSED },
	{ "int: nothing is refused", "", REFUSED },
	{ "int: a lone minus is refused", "-", REFUSED },
	{ "int: two minus are refused", "--1", REFUSED },
	{ "int: a plus is refused", "+1", REFUSED },
	{ "int: a blank before is refused", " 1", REFUSED },
	{ "int: a blank behind is refused", "1 ", REFUSED },
	{ "int: a newline behind is refused", "1\n", REFUSED },
	{ "int: hex is refused", "0x10", REFUSED },
	{ "int: a fraction is refused", "1.0", REFUSED },
	{ "int: other digits than ASCII are refused", "\xd9\xa1", REFUSED },
};

static void int_test(void **state)
{
	const struct text_row *row = *state;
	struct err e = { 0 };
	int64_t v = UNTOUCHED;
	int r = parse_int(row->text, -100, 1000, &v, &e);
	check(row->text, r, v, row->want, &e);
}

static const struct text_row byte_sizes[] = {
	{ "bytes: no unit is bytes", "1000", 1000 },
	{ "bytes: b", "7b", 7 },
	{ "bytes: k is 1024", "3k", 3072 },
	{ "bytes: m", "512m", 512LL << 20 },
	{ "bytes: g", "4g", 4LL << 30 },
	{ "bytes: either case, optional b", "4GB", 4LL << 30 },
	{ "bytes: the largest", "8589934591g", 8589934591LL << 30 },
	{ "bytes: more than 63 bits are refused", "8589934592g", REFUSED },
	{ "bytes: a negative size is refused", "-1", REFUSED },
	{ "bytes: an unknown unit is refused", "1t", REFUSED },
	{ "bytes: a unit twice is refused", "1kk", REFUSED },
	{ "bytes: b twice is refused", "1bb", REFUSED },
	{ "bytes: a unit alone is refused", "m", REFUSED },
	{ "bytes: a fraction is refused", "1.5g", REFUSED },
	{ "bytes: a blank before the unit is refused", "1 g", REFUSED },
	{ "bytes: nothing is refused", "", REFUSED },
};

static void bytes_test(void **state)
{
	const struct text_row *row = *state;
	struct err e = { 0 };
	int64_t v = UNTOUCHED;
	int r = parse_bytes(row->text, &v, &e);
	check(row->text, r, v, row->want, &e);
}

static const struct text_row millis[] = {
	{ "milli: a whole number", "2", 2000 },
	{ "milli: one decimal", "1.5", 1500 },
	{ "milli: three decimals", "0.125", 125 },
	{ "milli: the lower bound", "0.1", 100 },
	{ "milli: the upper bound", "64.000", 64000 },
	{ "milli: below the bound is refused", "0.099", REFUSED },
	{ "milli: above the bound is refused", "64.001", REFUSED },
	{ "milli: four decimals are refused", "1.0000", REFUSED },
	{ "milli: a dot without decimals is refused", "1.", REFUSED },
	{ "milli: a dot without a number is refused", ".5", REFUSED },
	{ "milli: a comma is refused", "1,5", REFUSED },
	{ "milli: a negative number is refused", "-1", REFUSED },
	{ "milli: more than 63 bits are refused", "9223372036854775.808", REFUSED },
	{ "milli: nothing is refused", "", REFUSED },
};

static void milli_test(void **state)
{
	const struct text_row *row = *state;
	struct err e = { 0 };
	int64_t v = UNTOUCHED;
	int r = parse_milli(row->text, 100, 64000, &v, &e);
	check(row->text, r, v, row->want, &e);
}

static const struct text_row durations[] = {
	{ "duration: no unit is seconds", "90", 90 },
	{ "duration: s", "90s", 90 },
	{ "duration: m", "15m", 900 },
	{ "duration: h", "2H", 7200 },
	{ "duration: d", "1d", 86400 },
	{ "duration: zero", "0", 0 },
	{ "duration: more than 63 bits are refused", "106751991167301d", REFUSED },
	{ "duration: a compound is refused", "1h30m", REFUSED },
	{ "duration: milliseconds are refused", "5ms", REFUSED },
	{ "duration: a negative one is refused", "-5s", REFUSED },
	{ "duration: nothing is refused", "", REFUSED },
};

static void duration_test(void **state)
{
	const struct text_row *row = *state;
	struct err e = { 0 };
	int64_t v = UNTOUCHED;
	int r = parse_duration_s(row->text, &v, &e);
	check(row->text, r, v, row->want, &e);
}

static const struct list_row {
	const char *name, *text, *want; /* want: items joined by '|' */
} lists[] = {
	{ "list: items in order", "a,b,c", "a|b|c|" },
	{ "list: blanks around items are cut off", " a b ,\tc\n", "a b|c|" },
	{ "list: empty items are skipped", ",, a,,", "a|" },
	{ "list: nothing has no items", "", "" },
	{ "list: commas and blanks have no items", " , ,", "" },
};

static void list_test(void **state)
{
	const struct list_row *row = *state;
	struct err e;
	_cleanup_buf_ struct buf got = BUF_INIT(64);
	const char *cursor = row->text, *item;
	size_t len;
	assert_int_equal(buf_add(&got, "", 0, &e), 0);
	while ((item = parse_list_next(&cursor, &len)))
		assert_int_equal(buf_addf(&got, &e, "%.*s|", (int)len, item), 0);
	assert_string_equal(got.data, row->want);
	assert_null(parse_list_next(&cursor, &len));
}

static void the_extremes_of_64_bits(void **state)
{
	(void)state;
	struct err e = { 0 };
	int64_t v = 0;
	assert_int_equal(parse_int("9223372036854775807", INT64_MIN, INT64_MAX, &v, &e), 0);
	assert_true(v == INT64_MAX);
	assert_int_equal(parse_int("9223372036854775808", INT64_MIN, INT64_MAX, &v, &e), -ERR_INVALID);
	assert_int_equal(parse_milli("9223372036854775.807", 0, INT64_MAX, &v, &e), 0);
	assert_true(v == INT64_MAX);
	assert_int_equal(parse_milli("9223372036854775.808", 0, INT64_MAX, &v, &e), -ERR_INVALID);
}

int main(void)
{
	struct rows r = { 0 };
	ROWS(&r, int_test, ints);
	ROWS(&r, bytes_test, byte_sizes);
	ROWS(&r, milli_test, millis);
	ROWS(&r, duration_test, durations);
	ROWS(&r, list_test, lists);
	rows_one(&r, "the extremes of 64 bits are read, one more is refused", the_extremes_of_64_bits);
	return rows_run(&r, "parse");
}
