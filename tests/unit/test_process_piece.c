/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "manager/process_piece.h"
#include "tests/unit/rows.h"

#define FFFD "\xef\xbf\xbd"

static const struct piece_row {
	const char *name;
	const char *in;
	size_t max;
	bool exact, final;
	const char *want;
	uint64_t next;
} pieces[] = {
	{ "nothing is nothing", "", 10, false, false, "", 0 },
	{ "text is text", "abc", 10, false, false, "abc", 3 },
	{ "whole characters are told", "a\xc3\xa4", 10, false, false, "a\xc3\xa4", 3 },
	{ "a character that is cut waits for the rest", "a\xc3", 10, false, false, "a", 1 },
	{ "so does one of four bytes", "\xf0\x9f\x98", 10, false, false, "", 0 },
	{ "at the end it is told", "a\xf0\x9f\x98", 10, false, true, "a" FFFD, 4 },
	{ "broken bytes are replaced one by one", "\xff\x80z", 10, false, false, FFFD FFFD "z", 3 },
	{ "a broken part does not wait", "\xe2\x82(", 10, false, false, FFFD "(", 3 },
	{ "the maximum counts bytes of output", "abcdef", 4, false, false, "abcd", 4 },
	{ "and does not cut a character either", "abc\xc3\xa4", 4, false, false, "abc", 3 },
	{ "nor at the end of it all", "abc\xc3\xa4", 4, false, false, "abc", 3 },
	{ "exact bytes are as they are", "a\xc3", 10, true, false, "a\xc3", 2 },
	{ "and are cut anywhere", "a\xc3\xa4", 2, true, false, "a\xc3", 2 },
};

/* The same for every way in which the bytes may arrive. */
static void piece_test(void **state)
{
	const struct piece_row *row = *state;
	size_t len = strlen(row->in);
	for (size_t step = 1; step <= len + 1; step++) {
		struct process_piece p;
		process_piece_init(&p, 100, row->max, row->exact);
		for (size_t at = 0; at < len; at += step)
			assert_true(process_piece_add(&p, p.at, row->in + (p.at - 100),
						      MIN(step, len - (size_t)(p.at - 100))));
		process_piece_end(&p, row->final);
		assert_int_equal(p.data.len, strlen(row->want));
		assert_memory_equal(p.data.data ? p.data.data : "", row->want, p.data.len);
		assert_int_equal(p.next_offset, 100 + row->next);
		assert_int_equal(p.lost_bytes, 0);
		process_piece_clear(&p);
	}
}

static void losses_are_counted(void **state)
{
	(void)state;
	struct process_piece p;
	process_piece_init(&p, 10, 100, false);
	assert_true(process_piece_is_empty(&p));
	assert_true(process_piece_add(&p, 50, "ab", 2));
	assert_int_equal(p.lost_bytes, 40);
	assert_false(process_piece_add(&p, 60, "cd", 2)); /* the next piece's */
	process_piece_end(&p, false);
	assert_int_equal(p.next_offset, 52);
	assert_string_equal(p.data.data, "ab");
	process_piece_clear(&p);
}

static void half_a_character_is_lost_with_the_other_half(void **state)
{
	(void)state;
	struct process_piece p;
	process_piece_init(&p, 0, 100, false);
	assert_true(process_piece_add(&p, 0, "\xf0\x9f", 2));
	assert_true(process_piece_is_empty(&p));
	assert_true(process_piece_add(&p, 8, "x", 1));
	process_piece_end(&p, false);
	assert_int_equal(p.lost_bytes, 8);
	assert_int_equal(p.next_offset, 9);
	assert_string_equal(p.data.data, "x");
	process_piece_clear(&p);
}

int main(void)
{
	struct rows r = { 0 };
	ROWS(&r, piece_test, pieces);
	rows_one(&r, "what has left the ring is counted, once", losses_are_counted);
	rows_one(&r, "half a character is lost with the other half",
		 half_a_character_is_lost_with_the_other_half);
	return rows_run(&r, "process_piece");
}
