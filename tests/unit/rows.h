/* SPDX-License-Identifier: MIT */
/*
 * rows.h - tables as cmocka tests: one row, one reported test.
 *
 *	static const struct sum_row { const char *name; int a, b, want; } sums[] = {
 *		{ "negative numbers are added", -1, -2, -3 },
 *	};
 *	static void sum_test(void **state)
 *	{
 *		const struct sum_row *row = *state;
 *		assert_int_equal(row->a + row->b, row->want);
 *	}
 *	int main(void)
 *	{
 *		struct rows r = { 0 };
 *		ROWS(&r, sum_test, sums);
 *		rows_one(&r, "a promise without a table", other_test);
 *		return rows_run(&r, "sum");
 *	}
 *
 * A row's first member is its name: the promise it tests.
 */
#ifndef BERTH_TESTS_ROWS_H
#define BERTH_TESTS_ROWS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct rows {
	struct CMUnitTest *tests;
	size_t count;
};

static inline void rows_add(struct rows *r, const char *name, CMUnitTestFunction fn, const void *row)
{
	r->tests = reallocarray(r->tests, r->count + 1, sizeof(*r->tests));
	if (!r->tests)
		abort();
	r->tests[r->count++] =
		(struct CMUnitTest){ .name = name, .test_func = fn, .initial_state = (void *)row };
}

static inline void rows_table(struct rows *r, CMUnitTestFunction fn, const void *table, size_t size,
			      size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const char *row = (const char *)table + i * size, *name;
		memcpy(&name, row, sizeof(name));
		rows_add(r, name, fn, row);
	}
}
#define ROWS(r, fn, table) rows_table(r, fn, table, sizeof((table)[0]), sizeof(table) / sizeof((table)[0]))

static inline void rows_one(struct rows *r, const char *name, CMUnitTestFunction fn)
{
	rows_add(r, name, fn, NULL);
}

/* The exit status of main. */
static inline int rows_run(struct rows *r, const char *group)
{
	int failed = _cmocka_run_group_tests(group, r->tests, r->count, NULL, NULL);
	free(r->tests);
	return failed != 0;
}

#endif
