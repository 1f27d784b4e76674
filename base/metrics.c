/* SPDX-License-Identifier: MIT */
#include "base/metrics.h"

#include <assert.h>
#include <string.h>

static size_t count_values(const struct metric_label *label)
{
	size_t n = 0;

	while (label->name && label->values[n])
		n++;
	return n;
}

static size_t count_bounds(const struct metric_row *row)
{
	size_t n = 0;

	while (row->bounds_us[n])
		n++;
	return n;
}

size_t metrics_cells_needed(const struct metric_row *row)
{
	size_t n = 1;

	if (row->kind == METRIC_HISTOGRAM)
		return count_bounds(row) + 2;
	for (size_t i = 0; i < METRIC_LABELS_MAX && row->labels[i].name; i++)
		n *= count_values(&row->labels[i]);
	return n;
}

/* ---- counting ---- */

static size_t index_of(const struct metric_label *label, const char *value)
{
	size_t i = 0;

	if (!label->name)
		return 0;
	while (label->values[i + 1] && (!value || strcmp(label->values[i], value)))
		i++;
	return i;
}

static atomic_int_least64_t *cell_of(enum metric m, const char *first, const char *second)
{
	const struct metric_row *row = &metrics_table[m];
	size_t at = index_of(&row->labels[0], first);

	if (row->labels[1].name)
		at = at * count_values(&row->labels[1]) + index_of(&row->labels[1], second);
	assert(row->kind != METRIC_HISTOGRAM && at < row->cell_count);
	return &row->cells[at];
}

void metrics_add(enum metric m, const char *first, const char *second, int64_t n)
{
	atomic_fetch_add_explicit(cell_of(m, first, second), n, memory_order_relaxed);
}

void metrics_set(enum metric m, const char *first, int64_t n)
{
	atomic_store_explicit(cell_of(m, first, NULL), n, memory_order_relaxed);
}

static int64_t load(const struct metric_row *row, size_t at)
{
	return atomic_load_explicit(&row->cells[at], memory_order_relaxed);
}

void metrics_observe_us(enum metric m, int64_t us)
{
	const struct metric_row *row = &metrics_table[m];
	size_t at = 0;

	assert(row->kind == METRIC_HISTOGRAM);
	us = MAX(us, 0);
	while (row->bounds_us[at] && us > row->bounds_us[at])
		at++;
	atomic_fetch_add_explicit(&row->cells[at], 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&row->cells[row->cell_count - 1], us, memory_order_relaxed);
}

int64_t metrics_get(enum metric m, const char *first, const char *second)
{
	const struct metric_row *row = &metrics_table[m];
	int64_t sum = 0;

	if (row->kind != METRIC_HISTOGRAM)
		return atomic_load_explicit(cell_of(m, first, second), memory_order_relaxed);
	for (size_t i = 0; i + 1 < row->cell_count; i++)
		sum += load(row, i);
	return sum;
}

const char *metrics_result(enum err_code code)
{
	static const char *const results[ERR_COUNT_] = {
		[ERR_NONE] = "ok",
		[ERR_NOT_FOUND] = "not_found",
		[ERR_CONFLICT] = "conflict",
		[ERR_PRECONDITION] = "conflict",
		[ERR_INVALID] = "refused",
		[ERR_FORBIDDEN] = "refused",
		[ERR_UNPROCESSABLE] = "refused",
		[ERR_TOO_LARGE] = "refused",
		[ERR_RANGE] = "refused",
		[ERR_LIMIT] = "refused",
		[ERR_NO_SPACE] = "no_space",
		[ERR_TIMEOUT] = "timeout",
		[ERR_UNAVAILABLE] = "unavailable",
	};
	const char *text = (unsigned)code < ERR_COUNT_ ? results[code] : NULL;

	return text ? text : "failed";
}

/* ---- the text ---- */

struct pair {
	const char *name, *value; /* value NULL: left out */
};

/* A backslash and a newline are escaped everywhere, a quote in the value of a label. */
static int add_escaped(struct buf *out, const char *text, bool quoted, struct err *e)
{
	int r = 0;

	for (; *text && !r; text++) {
		if (*text == '\n')
			r = buf_add(out, "\\n", 2, e);
		else if (*text == '\\' || (quoted && *text == '"'))
			r = buf_addf(out, e, "\\%c", *text);
		else
			r = buf_add(out, text, 1, e);
	}
	return r;
}

static int add_labels(struct buf *out, const struct pair *pairs, size_t count, struct err *e)
{
	const char *before = "{";
	int r = 0;

	for (size_t i = 0; i < count && !r; i++) {
		if (!pairs[i].value)
			continue;
		r = buf_addf(out, e, "%s%s=\"", before, pairs[i].name);
		r = r ? r : add_escaped(out, pairs[i].value, true, e);
		r = r ? r : buf_add(out, "\"", 1, e);
		before = ",";
	}
	return r || *before == '{' ? r : buf_add(out, "}", 1, e);
}

/* One line; tail: "_bucket" and its like. */
static int add_sample(struct buf *out, const struct metric_row *row, const char *tail,
		      const struct pair *pairs, size_t count, const char *value, struct err *e)
{
	int r = buf_addf(out, e, "%s%s", row->name, tail);

	r = r ? r : add_labels(out, pairs, count, e);
	return r ? r : buf_addf(out, e, " %s\n", value);
}

#define NUMBER_SIZE 32

static void number(int64_t n, char text[NUMBER_SIZE])
{
	(void)snprintf(text, NUMBER_SIZE, "%lld", (long long)n);
}

static int add_plain(struct buf *out, const struct metric_row *row, const char *tenant, struct err *e)
{
	size_t second = MAX(count_values(&row->labels[1]), 1ul);
	int r = 0;

	for (size_t i = 0; i < row->cell_count && !r; i++) {
		const struct pair pairs[] = {
			{ row->labels[0].name,
			  row->labels[0].name ? row->labels[0].values[i / second] : NULL },
			{ row->labels[1].name,
			  row->labels[1].name ? row->labels[1].values[i % second] : NULL },
			{ "tenant", tenant },
		};
		char value[NUMBER_SIZE];

		number(load(row, i), value);
		r = add_sample(out, row, "", pairs, ARRAY_LEN(pairs), value, e);
	}
	return r;
}

/* The count is the sum of the very buckets that were written, whatever is counted meanwhile. */
static int add_histogram(struct buf *out, const struct metric_row *row, const char *tenant, struct err *e)
{
	size_t bounds = count_bounds(row);
	int64_t count = 0, sum = load(row, row->cell_count - 1);
	char bound[NUMBER_SIZE] = "+Inf", value[NUMBER_SIZE];
	const struct pair pairs[] = { { "tenant", tenant }, { "le", bound } };
	int r = 0;

	for (size_t i = 0; i <= bounds && !r; i++) {
		count += load(row, i);
		number(count, value);
		(void)snprintf(bound, sizeof(bound), "%s", "+Inf");
		if (i < bounds)
			(void)snprintf(bound, sizeof(bound), "%g", (double)row->bounds_us[i] / 1e6);
		r = add_sample(out, row, "_bucket", pairs, 2, value, e);
	}
	r = r ? r : add_sample(out, row, "_count", pairs, 1, value, e);
	(void)snprintf(value, sizeof(value), "%lld.%06lld", (long long)(sum / 1000000),
		       (long long)(sum % 1000000));
	return r ? r : add_sample(out, row, "_sum", pairs, 1, value, e);
}

int metrics_write(struct buf *out, const char *tenant, struct err *e)
{
	static const char *const kinds[] = { "counter", "gauge", "histogram" };
	int r = 0;

	for (size_t i = 0; i < METRIC_COUNT_ && !r; i++) {
		const struct metric_row *row = &metrics_table[i];
		const char *whose = row->of_tenant ? tenant : NULL;

		r = buf_addf(out, e, "# HELP %s ", row->name);
		r = r ? r : add_escaped(out, row->help, false, e);
		r = r ? r : buf_addf(out, e, "\n# TYPE %s %s\n", row->name, kinds[row->kind]);
		if (!r)
			r = row->kind == METRIC_HISTOGRAM ? add_histogram(out, row, whose, e)
							  : add_plain(out, row, whose, e);
	}
	return r;
}
