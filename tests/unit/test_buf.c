/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "base/buf.h"
#include "tests/unit/rows.h"

static void what_is_added_is_there(void **state)
{
	(void)state;
	struct err e;
	_cleanup_buf_ struct buf b = BUF_INIT(100);
	assert_null(b.data);
	assert_int_equal(buf_add(&b, "ab\0c", 4, &e), 0);
	assert_int_equal(buf_addf(&b, &e, "%d-%s", 7, "x"), 0);
	assert_int_equal(b.len, 7);
	assert_memory_equal(b.data, "ab\0c7-x", 8);
}

static void nothing_is_added_past_the_maximum(void **state)
{
	(void)state;
	struct err e = { 0 };
	_cleanup_buf_ struct buf b = BUF_INIT(4);
	assert_int_equal(buf_add(&b, "abcd", 4, &e), 0);
	assert_int_equal(buf_add(&b, "e", 1, &e), -ERR_TOO_LARGE);
	assert_int_equal(buf_addf(&b, &e, "%s", "e"), -ERR_TOO_LARGE);
	assert_int_equal(buf_add(&b, "", 0, &e), 0);
	assert_string_equal(b.data, "abcd");
	assert_int_equal(buf_add(&b, "x", SIZE_MAX, &e), -ERR_TOO_LARGE);
}

static void memory_stays_near_the_maximum(void **state)
{
	(void)state;
	struct err e;
	_cleanup_buf_ struct buf b = BUF_INIT(1000);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(buf_add(&b, "x", 1, &e), 0);
	assert_int_equal(b.room, 1001);
}

static void consuming_removes_from_the_front(void **state)
{
	(void)state;
	struct err e;
	_cleanup_buf_ struct buf b = BUF_INIT(10);
	buf_consume(&b, 3);
	assert_int_equal(buf_add(&b, "abcdef", 6, &e), 0);
	buf_consume(&b, 2);
	assert_string_equal(b.data, "cdef");
	buf_truncate(&b, 9);
	assert_int_equal(b.len, 4);
	buf_truncate(&b, 3);
	assert_string_equal(b.data, "cde");
	buf_consume(&b, 99);
	assert_int_equal(b.len, 0);
	assert_string_equal(b.data, "");
}

static void taking_moves_the_text_out(void **state)
{
	(void)state;
	struct err e;
	_cleanup_buf_ struct buf b = BUF_INIT(10);
	_cleanup_free_ char *none = buf_take(&b);
	assert_string_equal(none, "");
	assert_int_equal(buf_addf(&b, &e, "abc"), 0);
	_cleanup_free_ char *text = buf_take(&b);
	assert_string_equal(text, "abc");
	assert_null(b.data);
	assert_int_equal(b.len, 0);
	assert_int_equal(buf_addf(&b, &e, "again"), 0);
}

static void clearing_and_resetting_leave_it_usable(void **state)
{
	(void)state;
	struct err e;
	_cleanup_buf_ struct buf b = BUF_INIT(10);
	buf_reset(&b);
	buf_clear(&b);
	assert_int_equal(buf_addf(&b, &e, "abc"), 0);
	size_t room = b.room;
	buf_reset(&b);
	assert_int_equal(b.len, 0);
	assert_int_equal(b.room, room);
	buf_clear(&b);
	assert_null(b.data);
	assert_int_equal(b.max, 10);
	assert_int_equal(buf_addf(&b, &e, "%s", ""), 0);
	assert_string_equal(b.data, "");
}

int main(void)
{
	struct rows r = { 0 };
	rows_one(&r, "what is added is there, with a NUL behind it", what_is_added_is_there);
	rows_one(&r, "past the maximum nothing is added", nothing_is_added_past_the_maximum);
	rows_one(&r, "memory stays at the maximum and a NUL", memory_stays_near_the_maximum);
	rows_one(&r, "consuming removes from the front, truncating from the end",
		 consuming_removes_from_the_front);
	rows_one(&r, "taking moves the text out, never NULL", taking_moves_the_text_out);
	rows_one(&r, "clear and reset leave a usable buffer", clearing_and_resetting_leave_it_usable);
	return rows_run(&r, "buf");
}
