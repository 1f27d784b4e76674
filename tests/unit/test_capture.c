/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "base/utf8.h"
#include "manager/capture.h"
#include "tests/unit/rows.h"

static const struct keep_row {
	const char *name;
	size_t limit;
	bool exact;
	const char *in;
	const char *want;
	bool truncated;
	uint64_t dropped;
} keeps[] = {
	{ "nothing is nothing", 10, false, "", "", false, 0 },
	{ "output of the limit's length is whole", 6, false, "abcdef", "abcdef", false, 0 },
	{ "one character more loses the middle", 6, false, "abcdefg", "abc\n[... 1 bytes dropped ...]\nefg",
	  true, 1 },
	{ "an odd limit rounds down", 5, false, "abcdefg", "ab\n[... 3 bytes dropped ...]\nfg", true, 3 },
	{ "the limit counts characters, not bytes", 6, false,
	  "\xc3\xa4\xc3\xb6\xc3\xbc\xc3\x84\xc3\x96\xc3\x9c",
	  "\xc3\xa4\xc3\xb6\xc3\xbc\xc3\x84\xc3\x96\xc3\x9c", false, 0 },
	{ "it cuts at characters", 4, false, "\xc3\xa4\xc3\xb6\xc3\xbc\xc3\x84\xc3\x96\xc3\x9c",
	  "\xc3\xa4\xc3\xb6\n[... 4 bytes dropped ...]\n\xc3\x96\xc3\x9c", true, 4 },
	{ "broken bytes become replacement characters", 10, false,
	  "a\xff"
	  "b",
	  "a\xef\xbf\xbd"
	  "b",
	  false, 0 },
	{ "exact bytes have no line", 6, true, "abcdefgh", "abcfgh", true, 2 },
	{ "exact bytes are not decoded", 6, true,
	  "a\xff"
	  "b",
	  "a\xff"
	  "b",
	  false, 0 },
};

/* The same result for every way in which the bytes may be cut. */
static void keep_test(void **state)
{
	const struct keep_row *row = *state;
	size_t len = strlen(row->in);
	for (size_t piece = 1; piece <= len + 1; piece++) {
		struct capture c;
		struct capture_result got;
		capture_init(&c, row->limit, row->exact);
		for (size_t at = 0; at < len;) {
			size_t n = MIN(piece, len - at);
			capture_add(&c, row->in + at, n);
			at += n;
		}
		capture_finish(&c, &got);
		assert_string_equal(got.text, row->want);
		assert_int_equal(got.len, strlen(got.text));
		assert_int_equal(got.truncated, row->truncated);
		assert_int_equal(got.dropped_bytes, row->dropped);
		free(got.text);
		capture_clear(&c);
	}
}

static void gaps_are_told(void **state)
{
	(void)state;
	struct capture c;
	struct capture_result got;
	capture_init(&c, 8, false);
	capture_add(&c, "abcdef", 6);
	capture_lose(&c, 1000);
	capture_add(&c, "uvwxyz", 6);
	capture_finish(&c, &got);
	assert_string_equal(got.text, "abcd\n[... 1004 bytes dropped ...]\nwxyz");
	assert_int_equal(got.dropped_bytes, 1004);
	free(got.text);
	capture_clear(&c);
}

static void memory_is_bounded(void **state)
{
	(void)state;
	static char block[4096];
	struct capture c;
	struct capture_result got;
	capture_init(&c, 1000, false);
	memset(block, 'x', sizeof(block));
	for (int i = 0; i < 1000; i++)
		capture_add(&c, block, sizeof(block));
	assert_true(c.head.room + c.tail.room < 16 * 1000 + 1000);
	capture_finish(&c, &got);
	assert_int_equal(got.dropped_bytes, 1000 * sizeof(block) - 1000);
	free(got.text);
	capture_clear(&c);
}

int main(void)
{
	struct rows r = { 0 };
	ROWS(&r, keep_test, keeps);
	rows_one(&r, "a gap counts as dropped", gaps_are_told);
	rows_one(&r, "four megabytes for a limit of a thousand take no more than some kilobytes",
		 memory_is_bounded);
	return rows_run(&r, "capture");
}
