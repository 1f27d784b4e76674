/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "tests/unit/rows.h"

static const struct parse_row {
	const char *name, *text, *want; /* the value again as text; or, after '!', the message's end */
} parses[] = {
	{ "parse: an object", " {\"a\": [1, 2.5, true, null, \"x\"]}\n", "{\"a\":[1,2.5,true,null,\"x\"]}" },
	{ "parse: a scalar", "7", "7" },
	{ "parse: reals print as short as they were", "[0.1,1.8,64.0]", "[0.1,1.8,64.0]" },
	{ "parse: escapes become characters", "\"\\u20ac\\n\"", "\"\xe2\x82\xac\\n\"" },
	{ "parse: brackets in strings are no depth", "\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\\\"[{\"",
	  "\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\\\"[{\"" },
	{ "parse: 32 levels", "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]",
	  "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]" },
	{ "parse: 33 levels are refused",
	  "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[{}]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]", "!nested deeper than 32" },
	{ "parse: depth behind a string with a backslash", "[\"\\\\\",[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
	  "!nested deeper than 32" },
	{ "parse: nothing is refused", "", "!the text is empty" },
	{ "parse: blanks are refused", " \r\n\t", "!the text is empty" },
	{ "parse: invalid UTF-8 is refused", "{\"a\":\"\xff\"}", "!invalid UTF-8 at byte 6" },
	{ "parse: an encoded surrogate is refused", "\"\xed\xa0\x80\"", "!invalid UTF-8 at byte 1" },
	{ "parse: a lone escaped surrogate is refused", "\"\\ud800\"", "!'\\uD800' near '\"\\ud800\"'" },
	{ "parse: an escaped NUL is refused", "\"a\\u0000b\"", "!\\u0000 is not accepted" },
	{ "parse: a duplicate key is refused", "{\"a\":1,\n \"a\":2}",
	  "!line 2, column 4: a key stands twice in one object" },
	{ "parse: a duplicate written otherwise is refused", "{\"a\":1,\"\\u0061\":2}",
	  "!a key stands twice in one object" },
	{ "parse: a huge integer is refused", "[99999999999999999999]", "!a number is out of range" },
	{ "parse: a huge real is refused", "[1e999]", "!a number is out of range" },
	{ "parse: text behind the end is refused", "{} x", "!something follows the end" },
	{ "parse: two values are refused", "{}{}", "!something follows the end" },
	{ "parse: a text that stops is refused", "{\"a\":", "!the text ends too early" },
	{ "parse: single quotes are refused", "{'a':1}",
	  "!line 1, column 2: string or '}' expected near '''" },
	{ "parse: a trailing comma is refused", "[1,]", "!line 1, column 4: unexpected token near ']'" },
	{ "parse: NaN is refused", "[NaN]", "!line 1, column 4: invalid token near 'NaN'" },
	{ "parse: a comment is refused", "/* x */ {}", "!line 1, column 1: invalid token near '/'" },
	{ "parse: a leading zero is refused", "[007]", "!line 1, column 2: invalid token near '0'" },
	{ "parse: a raw newline in a string is refused", "\"a\nb\"", "!unexpected newline near '\"a'" },
};

static void check_parse(const char *text, size_t len, const char *want)
{
	struct err e = { 0 };
	_cleanup_json_ json_t *value = NULL;
	int r = json_text_parse(text, len, &value, &e);
	if (*want == '!') {
		assert_int_equal(r, -ERR_INVALID);
		assert_null(value);
		size_t tail = strlen(want + 1), have = strlen(e.msg);
		assert_string_equal(e.msg + (have > tail ? have - tail : 0), want + 1);
		return;
	}
	assert_int_equal(r, 0);
	_cleanup_free_ char *again = json_text(value);
	assert_string_equal(again, want);
}

static void parse_test(void **state)
{
	const struct parse_row *row = *state;
	/* A copy of exactly its length, so that a read past the end shows under ASan. */
	size_t len = strlen(row->text);
	_cleanup_free_ char *copy = malloc(len ? len : 1);
	memcpy(copy, row->text, len);
	check_parse(copy, len, row->want);
}

static void a_nul_byte_is_refused(void **state)
{
	(void)state;
	check_parse("{\"a\":\"\0\"}", 9, "!a NUL byte at byte 6");
	check_parse("{}\0", 3, "!a NUL byte at byte 2");
}

static void fill_text(char *text, size_t len, const char *piece)
{
	for (size_t i = 0; i < len; i++)
		text[i] = piece[i % strlen(piece)];
}

static void many_values_are_refused(void **state)
{
	(void)state;
	size_t len = 2 * JSON_VALUES_MAX + 4;
	_cleanup_free_ char *text = malloc(len);
	fill_text(text, len, "[,");
	fill_text(text + 1, len - 2, "1,");
	text[len - 1] = ']';
	check_parse(text, len, "!more than 250000 values");
}

/* 16 MiB at a speed that no algorithm with a square in it reaches, however slow the machine or the sanitizer.
 */
static void large_texts_take_linear_time(void **state)
{
	(void)state;
	static const char *const pieces[] = { "a", "\\n", "\\\\", "[", "\xe2\x82\xac", "\\u20ac" };
	size_t len = (16 << 20) / 6 * 6 + 2;
	_cleanup_free_ char *text = malloc(len);
	int64_t start = clock_mono_ms();
	for (size_t i = 0; i < ARRAY_LEN(pieces); i++) {
		struct err e = { 0 };
		_cleanup_json_ json_t *value = NULL;
		fill_text(text + 1, len - 2, pieces[i]);
		text[0] = text[len - 1] = '"';
		assert_int_equal(json_text_parse(text, len, &value, &e), 0);
	}
	assert_true(clock_mono_ms() - start < 120000);
}

struct all {
	const char *text;
	int64_t number, milli;
	bool flag;
	json_t *object, *texts, *map;
};

static const struct json_field fields[] = {
	/* clang-format off */
	{ "text",   JSON_K_TEXT,     offsetof(struct all, text),   1, 5, false },
	{ "number", JSON_K_INT,      offsetof(struct all, number), -5, 100, true },
	{ "milli",  JSON_K_MILLI,    offsetof(struct all, milli),  100, 64000, false },
	{ "flag",   JSON_K_BOOL,     offsetof(struct all, flag),   0, 0, false },
	{ "object", JSON_K_OBJECT,   offsetof(struct all, object), 0, 0, false },
	{ "texts",  JSON_K_TEXTS,    offsetof(struct all, texts),  1, 2, false },
	{ "map",    JSON_K_TEXT_MAP, offsetof(struct all, map),    0, 2, false },
	/* clang-format on */
};

static const struct refusal_row {
	const char *name, *text, *path, *field, *msg;
} refusals[] = {
	{ "fields: a text that is no object", "[1]", "", "", "the text must be an object" },
	{ "fields: a part that is no object", "7", "limits", "limits", "limits must be an object" },
	{ "fields: an unknown field", "{\"number\":1,\"nmber\":2}", "", "nmber",
	  "nmber is not a known field" },
	{ "fields: an unknown field comes before a missing one", "{\"x\":1}", "a.b", "a.b.x",
	  "a.b.x is not a known field" },
	{ "fields: an unknown field of hostile name", "{\"a\\u001b\\u202e\":1}", "", "a\\x1b\\u{202E}",
	  "a\\x1b\\u{202E} is not a known field" },
	{ "fields: a missing one", "{}", "", "number", "number is missing" },
	{ "fields: null is missing", "{\"number\":null}", "l", "l.number", "l.number is missing" },
	{ "fields: a number in a string", "{\"number\":\"1\"}", "", "number",
	  "number must be a whole number" },
	{ "fields: a fraction", "{\"number\":1.0}", "", "number", "number must be a whole number" },
	{ "fields: a number too small", "{\"number\":-6}", "", "number", "number must be from -5 to 100" },
	{ "fields: a number too large", "{\"number\":101}", "", "number", "number must be from -5 to 100" },
	{ "fields: a text that is a number", "{\"number\":1,\"text\":5}", "", "text",
	  "text must be a string" },
	{ "fields: a text too short", "{\"number\":1,\"text\":\"\"}", "", "text",
	  "text must have from 1 to 5 bytes" },
	{ "fields: a text too long", "{\"number\":1,\"text\":\"aaa\xe2\x82\xac\"}", "", "text",
	  "text must have from 1 to 5 bytes" },
	{ "fields: a milli that is no number", "{\"number\":1,\"milli\":\"1\"}", "", "milli",
	  "milli must be a number" },
	{ "fields: a milli too small", "{\"number\":1,\"milli\":0.0994}", "", "milli",
	  "milli must be from 0.100 to 64" },
	{ "fields: a milli too large", "{\"number\":1,\"milli\":1e300}", "", "milli",
	  "milli must be from 0.100 to 64" },
	{ "fields: a milli far below", "{\"number\":1,\"milli\":-1e300}", "", "milli",
	  "milli must be from 0.100 to 64" },
	{ "fields: a flag that is a number", "{\"number\":1,\"flag\":1}", "", "flag",
	  "flag must be true or false" },
	{ "fields: an object that is an array", "{\"number\":1,\"object\":[]}", "", "object",
	  "object must be an object" },
	{ "fields: texts that are a text", "{\"number\":1,\"texts\":\"a\"}", "", "texts",
	  "texts must be an array of strings" },
	{ "fields: texts with a number", "{\"number\":1,\"texts\":[\"a\",1]}", "", "texts",
	  "texts must be an array of strings" },
	{ "fields: no texts", "{\"number\":1,\"texts\":[]}", "", "texts",
	  "texts must have from 1 to 2 items" },
	{ "fields: too many texts", "{\"number\":1,\"texts\":[\"\",\"\",\"\"]}", "", "texts",
	  "texts must have from 1 to 2 items" },
	{ "fields: a map with a number", "{\"number\":1,\"map\":{\"a\":1}}", "", "map",
	  "map must be an object of strings" },
	{ "fields: a map that is an array", "{\"number\":1,\"map\":[]}", "", "map",
	  "map must be an object of strings" },
	{ "fields: a map too large", "{\"number\":1,\"map\":{\"a\":\"\",\"b\":\"\",\"c\":\"\"}}", "", "map",
	  "map must have from 0 to 2 entries" },
};

static void refusal_test(void **state)
{
	const struct refusal_row *row = *state;
	struct err e = { 0 };
	_cleanup_json_ json_t *value = NULL;
	struct all all = { .text = "default", .number = 42 };
	struct all before = all;
	assert_int_equal(json_text_parse(row->text, strlen(row->text), &value, &e), 0);
	assert_int_equal(json_fields(value, row->path, fields, ARRAY_LEN(fields), &all, &e), -ERR_INVALID);
	assert_string_equal(e.field, row->field);
	assert_string_equal(e.msg, row->msg);
	assert_memory_equal(&all, &before, sizeof(all));
}

static void every_kind_is_filled(void **state)
{
	(void)state;
	const char text[] = "{\"text\":\"hello\",\"number\":-5,\"milli\":1.5,\"flag\":true,"
			    "\"object\":{\"x\":1},\"texts\":[\"a\",\"b\"],\"map\":{\"K\":\"V\"}}";
	struct err e = { 0 };
	_cleanup_json_ json_t *value = NULL;
	struct all all = { 0 };
	assert_int_equal(json_text_parse(text, strlen(text), &value, &e), 0);
	assert_int_equal(json_fields(value, "", fields, ARRAY_LEN(fields), &all, &e), 0);
	assert_string_equal(all.text, "hello");
	assert_int_equal(all.number, -5);
	assert_int_equal(all.milli, 1500);
	assert_true(all.flag);
	assert_int_equal(json_object_size(all.object), 1);
	assert_int_equal(json_array_size(all.texts), 2);
	assert_string_equal(json_string_value(json_object_get(all.map, "K")), "V");
}

static void absent_and_null_keep_the_default(void **state)
{
	(void)state;
	const char text[] =
		"{\"number\":1,\"text\":null,\"milli\":null,\"flag\":null,\"object\":null,\"map\":null}";
	struct err e = { 0 };
	_cleanup_json_ json_t *value = NULL;
	struct all all = { .text = "default", .milli = 2000, .flag = true };
	assert_int_equal(json_text_parse(text, strlen(text), &value, &e), 0);
	assert_int_equal(json_fields(value, "", fields, ARRAY_LEN(fields), &all, &e), 0);
	assert_string_equal(all.text, "default");
	assert_int_equal(all.milli, 2000);
	assert_true(all.flag);
	assert_null(all.object);
	assert_null(all.texts);
	assert_null(all.map);
	assert_int_equal(all.number, 1);
}

static void any_bytes_become_a_string(void **state)
{
	(void)state;
	_cleanup_json_ json_t *value = json_string_lossy("a\0\xff\xe2\x82", 5);
	_cleanup_json_ json_t *none = json_string_lossy(NULL, 0);
	_cleanup_free_ char *text = json_text(value);
	assert_string_equal(text, "\"a\\u0000\xef\xbf\xbd\xef\xbf\xbd\"");
	assert_string_equal(json_string_value(none), "");
}

int main(void)
{
	struct rows r = { 0 };
	ROWS(&r, parse_test, parses);
	rows_one(&r, "parse: a NUL byte is refused", a_nul_byte_is_refused);
	rows_one(&r, "parse: more values than the maximum are refused", many_values_are_refused);
	rows_one(&r, "parse: large texts take linear time", large_texts_take_linear_time);
	ROWS(&r, refusal_test, refusals);
	rows_one(&r, "fields: every kind is filled", every_kind_is_filled);
	rows_one(&r, "fields: absent and null keep the default", absent_and_null_keep_the_default);
	rows_one(&r, "lossy: any bytes become a valid string", any_bytes_become_a_string);
	return rows_run(&r, "json");
}
