/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/utf8.h"
#include "tests/unit/rows.h"

static void the_code_comes_back_negative(void **state)
{
	(void)state;
	struct err e = { 0 };
	assert_int_equal(err_set(&e, ERR_CONFLICT, "volume %s is in use", "v1"), -ERR_CONFLICT);
	assert_int_equal(e.code, ERR_CONFLICT);
	assert_string_equal(e.msg, "volume v1 is in use");
	assert_string_equal(e.field, "");
	assert_int_equal(e.sys, 0);
}

static void the_system_error_stands_behind_the_message(void **state)
{
	(void)state;
	struct err e = { 0 };
	assert_int_equal(err_sys(&e, ERR_STORE, ENOSPC, "cannot write %s", "x.db"), -ERR_STORE);
	assert_string_equal(e.msg, "cannot write x.db: No space left on device");
	assert_int_equal(e.sys, ENOSPC);
}

static void a_field_error_is_invalid_argument(void **state)
{
	(void)state;
	struct err e = { 0 };
	assert_int_equal(err_field(&e, "limits.pids", "must be at least %d", 16), -ERR_INVALID);
	assert_string_equal(e.field, "limits.pids");
	assert_string_equal(e.msg, "must be at least 16");
}

static void wrapping_puts_context_before_and_keeps_the_rest(void **state)
{
	(void)state;
	struct err e = { 0 };
	err_field(&e, "image", "not found");
	e.retry_after_s = 7;
	e.sys = ENOENT;
	assert_int_equal(err_wrap(&e, "session %s", "s_1"), -ERR_INVALID);
	assert_string_equal(e.msg, "session s_1: not found");
	assert_string_equal(e.field, "image");
	assert_int_equal(e.retry_after_s, 7);
	assert_int_equal(e.sys, ENOENT);
}

static void the_old_message_may_be_an_argument(void **state)
{
	(void)state;
	struct err e = { 0 };
	err_set(&e, ERR_ENGINE, "no such image");
	err_set(&e, ERR_NOT_FOUND, "image: %s", e.msg);
	assert_string_equal(e.msg, "image: no such image");
	err_wrap(&e, "[%s]", e.msg);
	assert_string_equal(e.msg, "[image: no such image]: image: no such image");
}

static void any_length_is_cut_to_valid_utf8(void **state)
{
	(void)state;
	char text[1000];
	for (size_t shift = 0; shift < 4; shift++) {
		struct err e = { 0 };
		memset(text, 'x', shift);
		for (size_t i = shift; i + 3 < sizeof(text); i += 3)
			memcpy(text + i, "\xe2\x82\xac", 4);
		err_field(&e, text, "%s", text);
		assert_true(utf8_is_valid(e.msg, strlen(e.msg)));
		assert_true(utf8_is_valid(e.field, strlen(e.field)));
		assert_int_equal(strlen(e.msg), sizeof(e.msg) - 1);
		err_wrap(&e, "%s", text);
		assert_true(utf8_is_valid(e.msg, strlen(e.msg)));
	}
}

static void foreign_bytes_cannot_break_the_line(void **state)
{
	(void)state;
	struct err e = { 0 };
	err_set(&e, ERR_ENGINE, "engine said: %s", "a\nb\x1b[2J\xff\xc3");
	assert_string_equal(e.msg, "engine said: a b [2J??");
}

static void every_code_has_a_row_of_its_own(void **state)
{
	(void)state;
	for (int a = ERR_NONE + 1; a < ERR_COUNT_; a++) {
		assert_non_null(err_name(a));
		assert_int_equal(strspn(err_name(a), "abcdefghijklmnopqrstuvwxyz_"), strlen(err_name(a)));
		assert_in_range(err_http_status(a), 400, 599);
		assert_in_range(err_exit_status(a), 2, 99);
		for (int b = a + 1; b < ERR_COUNT_; b++)
			assert_string_not_equal(err_name(a), err_name(b));
	}
}

static void an_unknown_code_is_internal(void **state)
{
	(void)state;
	assert_string_equal(err_name(ERR_NONE), "internal");
	assert_string_equal(err_name(ERR_COUNT_), "internal");
	assert_int_equal(err_http_status((enum err_code)4711), 500);
	assert_int_equal(err_exit_status((enum err_code) - 1), err_exit_status(ERR_INTERNAL));
}

int main(void)
{
	struct rows r = { 0 };
	rows_one(&r, "the code comes back negative", the_code_comes_back_negative);
	rows_one(&r, "the system's error stands behind the message",
		 the_system_error_stands_behind_the_message);
	rows_one(&r, "a field error is an invalid argument", a_field_error_is_invalid_argument);
	rows_one(&r, "wrapping puts context before and keeps the rest",
		 wrapping_puts_context_before_and_keeps_the_rest);
	rows_one(&r, "the old message may be an argument of the new one", the_old_message_may_be_an_argument);
	rows_one(&r, "a message of any length is cut to valid UTF-8", any_length_is_cut_to_valid_utf8);
	rows_one(&r, "foreign bytes cannot break the line", foreign_bytes_cannot_break_the_line);
	rows_one(&r, "every code has its own name and an HTTP and exit status",
		 every_code_has_a_row_of_its_own);
	rows_one(&r, "an unknown code counts as internal", an_unknown_code_is_internal);
	return rows_run(&r, "err");
}
