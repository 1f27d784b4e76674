/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "tests/unit/rows.h"

static const struct format_row {
	const char *name;
	int64_t wall_ms;
	const char *want;
} formats[] = {
	{ "the epoch", 0, "1970-01-01T00:00:00.000Z" },
	{ "milliseconds have three digits", 1767225600007, "2026-01-01T00:00:00.007Z" },
	{ "a leap day", 1709164799999, "2024-02-28T23:59:59.999Z" },
	{ "before the epoch", -1, "1969-12-31T23:59:59.999Z" },
};

static void format_test(void **state)
{
	const struct format_row *row = *state;
	char text[CLOCK_TEXT_SIZE];
	clock_format(row->wall_ms, text);
	assert_string_equal(text, row->want);
}

static void the_monotonic_clock_never_goes_back(void **state)
{
	(void)state;
	int64_t last = clock_mono_us();
	for (int i = 0; i < 1000; i++) {
		int64_t now = clock_mono_us();
		assert_true(now >= last);
		last = now;
	}
	assert_true(clock_mono_ms() >= last / 1000);
	assert_true(clock_wall_ms() > 1700000000000);
}

static void what_is_left_is_never_negative(void **state)
{
	(void)state;
	assert_int_equal(clock_left_ms(clock_mono_ms() - 5000), 0);
	int64_t left = clock_left_ms(clock_mono_ms() + 60000);
	assert_in_range(left, 50000, 60000);
	/* Deadlines that pass while they are being looked at. */
	for (int64_t end = clock_mono_ms() + 50; clock_mono_ms() <= end;)
		for (int i = 0; i < 100; i++)
			assert_true(clock_left_ms(clock_mono_ms()) >= 0);
}

int main(void)
{
	struct rows r = { 0 };
	ROWS(&r, format_test, formats);
	rows_one(&r, "the monotonic clock never goes back", the_monotonic_clock_never_goes_back);
	rows_one(&r, "what is left of a deadline is never negative", what_is_left_is_never_negative);
	return rows_run(&r, "clock");
}
