/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "base/utf8.h"
#include "tests/unit/rows.h"

#define R "\xef\xbf\xbd" /* U+FFFD */

/* The wanted texts are those of the Unicode standard, 3.9, tables 3-8 to 3-11, and of its rule applied. */
static const struct feed_row {
	const char *name, *in, *want;
} feeds[] = {
	{ "feed: ASCII stays", "hello, world\n\t\x1b[0m", "hello, world\n\t\x1b[0m" },
	{ "feed: whole characters stay", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80",
	  "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80" },
	{ "feed: the first and last of each length",
	  "\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf\xf0\x90\x80\x80\xf4\x8f\xbf\xbf",
	  "\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf\xf0\x90\x80\x80\xf4\x8f\xbf\xbf" },
	{ "feed: table 3-8, overlong forms", "\xc0\xaf\xe0\x80\xbf\xf0\x81\x82\x41", R R R R R R R R "A" },
	{ "feed: table 3-9, surrogates", "\xed\xa0\x80\xed\xbf\xbf\xed\xaf\x41", R R R R R R R R "A" },
	{ "feed: table 3-10, above U+10FFFF", "\xf4\x91\x92\x93\xff\x41\x80\xbf\x42", R R R R R "A" R R "B" },
	{ "feed: table 3-11, cut sequences", "\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41", R R R R "A" },
	{ "feed: a lone continuation byte", "a\x80z", "a" R "z" },
	{ "feed: a lead byte before ASCII", "\xe2z", R "z" },
	{ "feed: two lead bytes", "\xe2\x82\xe2\x82\xac", R "\xe2\x82\xac" },
	{ "feed: a character cut at the end", "a\xf0\x9f\x98", "a" R },
	{ "feed: latin-1 text", "caf\xe9 au lait", "caf" R " au lait" },
	{ "feed: a broken byte behind eight of ASCII",
	  "12345678\xff"
	  "12345678",
	  "12345678" R "12345678" },
	{ "feed: nothing", "", "" },
};

static void feed_test(void **state)
{
	const struct feed_row *row = *state;
	size_t len = strlen(row->in);
	struct err e;
	for (size_t cut = 0; cut <= len; cut++) { /* in two parts, and the second byte by byte */
		_cleanup_buf_ struct buf out = BUF_INIT(1000);
		struct utf8_stream s = { 0 };
		assert_int_equal(utf8_feed(&s, row->in, cut, &out, &e), 0);
		for (size_t i = cut; i < len; i++)
			assert_int_equal(utf8_feed(&s, row->in + i, 1, &out, &e), 0);
		assert_int_equal(utf8_finish(&s, &out, &e), 0);
		assert_string_equal(out.data ? out.data : "", row->want);
		assert_int_equal(s.held_len, 0);
	}
}

static void nul_stays_nul(void **state)
{
	(void)state;
	struct err e;
	_cleanup_buf_ struct buf out = BUF_INIT(10);
	struct utf8_stream s = { 0 };
	assert_int_equal(utf8_feed(&s, "a\0\xe2\0b", 5, &out, &e), 0);
	assert_int_equal(out.len, 7);
	assert_memory_equal(out.data, "a\0" R "\0b", 7);
}

static void a_full_buffer_changes_nothing(void **state)
{
	(void)state;
	struct err e;
	_cleanup_buf_ struct buf out = BUF_INIT(4);
	struct utf8_stream s = { 0 };
	assert_int_equal(utf8_feed(&s, "a\xe2\x82", 3, &out, &e), 0);
	assert_int_equal(utf8_feed(&s, "\xac!", 2, &out, &e), -ERR_TOO_LARGE);
	assert_string_equal(out.data, "a");
	assert_int_equal(s.held_len, 2);
	assert_int_equal(utf8_feed(&s, "\xac", 1, &out, &e), 0);
	assert_string_equal(out.data, "a\xe2\x82\xac");
}

static const struct valid_row {
	const char *name, *text;
	size_t len, want;
} valids[] = {
	{ "valid: nothing", "", 0, 0 },
	{ "valid: text", "gr\xc3\xbc\xc3\x9f", 6, 6 },
	{ "valid: no NUL", "ab\0cd", 5, 2 },
	{ "valid: no overlong NUL", "ab\xc0\x80", 4, 2 },
	{ "valid: no surrogate", "\xed\xa0\x80", 3, 0 },
	{ "valid: no cut character", "ab\xe2\x82", 4, 2 },
	{ "valid: nothing above U+10FFFF", "\xf4\x90\x80\x80", 4, 0 },
};

static void valid_test(void **state)
{
	const struct valid_row *row = *state;
	assert_int_equal(utf8_valid_len(row->text, row->len), row->want);
	assert_int_equal(utf8_is_valid(row->text, row->len), row->want == row->len);
}

static const struct offset_row {
	const char *name;
	size_t n, start, end;
} offsets[] = {
	/* in "a€😀z": a 1 byte, € 3, 😀 4, z 1 */
	{ "offset: no character", 0, 0, 9 }, { "offset: one", 1, 1, 8 },
	{ "offset: two", 2, 4, 4 },          { "offset: three", 3, 8, 1 },
	{ "offset: all", 4, 9, 0 },          { "offset: more than there are", 5, 9, 0 },
};

static void offset_test(void **state)
{
	const struct offset_row *row = *state;
	const char text[] = "a\xe2\x82\xac\xf0\x9f\x98\x80z";
	assert_int_equal(utf8_count(text, 9), 4);
	assert_int_equal(utf8_offset(text, 9, row->n), row->start);
	assert_int_equal(utf8_offset_from_end(text, 9, row->n), row->end);
}

static const struct escape_row {
	const char *name, *in;
	size_t max;
	const char *want;
} escapes[] = {
	{ "escape: plain text stays", "ls -l 'x' \"y\" $z", 100, "ls -l 'x' \"y\" $z" },
	{ "escape: letters of any script stay",
	  "gr\xc3\xbc\xc3\x9f \xe6\x97\xa5\xe6\x9c\xac \xf0\x9f\x98\x80", 100,
	  "gr\xc3\xbc\xc3\x9f \xe6\x97\xa5\xe6\x9c\xac \xf0\x9f\x98\x80" },
	{ "escape: line ends and tabs by name", "a\nb\tc\rd", 100, "a\\nb\\tc\\rd" },
	{ "escape: a backslash is doubled", "a\\nb", 100, "a\\\\nb" },
	{ "escape: control characters", "\x1b[31m\x07\x7f", 100, "\\x1b[31m\\x07\\x7f" },
	{ "escape: C1 controls",
	  "\xc2\x9b"
	  "31m\xc2\x85",
	  100, "\\u{009B}31m\\u{0085}" },
	{ "escape: bidi overrides and isolates", "\xe2\x80\xae\xe2\x81\xa6\xd8\x9c", 100,
	  "\\u{202E}\\u{2066}\\u{061C}" },
	{ "escape: zero width and soft hyphen", "\xe2\x80\x8b\xef\xbb\xbf\xc2\xad", 100,
	  "\\u{200B}\\u{FEFF}\\u{00AD}" },
	{ "escape: line separators", "\xe2\x80\xa8\xe2\x80\xa9", 100, "\\u{2028}\\u{2029}" },
	{ "escape: invisible tags", "\xf3\xa0\x81\x81", 100, "\\u{E0041}" },
	{ "escape: broken bytes", "a\xff\xe2\x82z", 100, "a\\xff\\xe2\\x82z" },
	{ "escape: what fits exactly is not cut", "abcd", 4, "abcd" },
	{ "escape: a cut shows", "abcde", 4, "abcd\xe2\x80\xa6" },
	{ "escape: no cut inside a character", "abc\xe2\x82\xac", 5, "abc\xe2\x80\xa6" },
	{ "escape: no cut inside an escape", "abc\n", 4, "abc\xe2\x80\xa6" },
	{ "escape: no room at all", "abc", 0, "\xe2\x80\xa6" },
	{ "escape: nothing", "", 0, "" },
};

static void escape_test(void **state)
{
	const struct escape_row *row = *state;
	_cleanup_free_ char *got = utf8_escape(row->in, strlen(row->in), row->max);
	assert_string_equal(got, row->want);
}

static void a_nul_is_escaped(void **state)
{
	(void)state;
	_cleanup_free_ char *got = utf8_escape("a\0b", 3, 100);
	assert_string_equal(got, "a\\x00b");
}

int main(void)
{
	struct rows r = { 0 };
	ROWS(&r, feed_test, feeds);
	rows_one(&r, "feed: NUL stays NUL", nul_stays_nul);
	rows_one(&r, "feed: a full buffer leaves state and output as before", a_full_buffer_changes_nothing);
	ROWS(&r, valid_test, valids);
	ROWS(&r, offset_test, offsets);
	ROWS(&r, escape_test, escapes);
	rows_one(&r, "escape: a NUL inside", a_nul_is_escaped);
	return rows_run(&r, "utf8");
}
