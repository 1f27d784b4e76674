/* SPDX-License-Identifier: MIT */
#include <pthread.h>
#include <string.h>

#include "base/metrics.h"
#include "tests/unit/rows.h"

/* ---- the table ---- */

static bool is_word(const char *text)
{
	return *text && strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_") == strlen(text);
}

static bool ends_with(const char *text, const char *end)
{
	size_t a = strlen(text), b = strlen(end);
	return a >= b && !strcmp(text + a - b, end);
}

static void every_row_is_sound(void **state)
{
	(void)state;
	for (size_t i = 0; i < METRIC_COUNT_; i++) {
		const struct metric_row *row = &metrics_table[i];
		assert_true(is_word(row->name) && !strncmp(row->name, "berth_", 6));
		assert_int_equal(ends_with(row->name, "_total"), row->kind == METRIC_COUNTER);
		assert_int_equal(ends_with(row->name, "_seconds"), row->kind == METRIC_HISTOGRAM);
		assert_true(ends_with(row->help, "."));
		assert_int_equal(row->bounds_us != NULL, row->kind == METRIC_HISTOGRAM);
		assert_int_equal(row->cell_count, metrics_cells_needed(row));
		for (size_t k = 0; row->bounds_us && row->bounds_us[k + 1]; k++)
			assert_true(row->bounds_us[k] < row->bounds_us[k + 1] || !row->bounds_us[k + 1]);
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(row->name, metrics_table[k].name);
	}
}

/* Without a token nothing may tell of a tenant, a session or an image. */
static void no_label_names_anybody(void **state)
{
	(void)state;
	static const char *const known[] = { "result", "operation", "direction", "state", "call", "code" };
	for (size_t i = 0; i < METRIC_COUNT_; i++)
		for (size_t k = 0; k < METRIC_LABELS_MAX && metrics_table[i].labels[k].name; k++) {
			bool found = false;
			for (size_t n = 0; n < ARRAY_LEN(known); n++)
				found = found || !strcmp(known[n], metrics_table[i].labels[k].name);
			assert_true(found);
		}
}

/* ---- counting ---- */

static void an_unknown_value_counts_as_the_last(void **state)
{
	(void)state;
	int64_t before = metrics_get(METRIC_COMMANDS, "unknown", NULL);
	metrics_add(METRIC_COMMANDS, "a reason of tomorrow", NULL, 1);
	metrics_add(METRIC_COMMANDS, NULL, NULL, 1);
	assert_int_equal(metrics_get(METRIC_COMMANDS, "unknown", NULL), before + 2);
	before = metrics_get(METRIC_FILE_OPERATIONS, "other", "failed");
	metrics_add(METRIC_FILE_OPERATIONS, "?", "?", 1);
	assert_int_equal(metrics_get(METRIC_FILE_OPERATIONS, "other", "failed"), before + 1);
}

static void every_combination_has_a_cell_of_its_own(void **state)
{
	(void)state;
	const struct metric_row *row = &metrics_table[METRIC_FILE_OPERATIONS];
	int64_t n = 1;
	for (const char *const *a = row->labels[0].values; *a; a++)
		for (const char *const *b = row->labels[1].values; *b; b++)
			metrics_add(METRIC_FILE_OPERATIONS, *a, *b,
				    n++ - metrics_get(METRIC_FILE_OPERATIONS, *a, *b));
	n = 1;
	for (const char *const *a = row->labels[0].values; *a; a++)
		for (const char *const *b = row->labels[1].values; *b; b++)
			assert_int_equal(metrics_get(METRIC_FILE_OPERATIONS, *a, *b), n++);
}

static void every_error_has_a_result(void **state)
{
	(void)state;
	assert_string_equal(metrics_result(ERR_NONE), "ok");
	assert_string_equal(metrics_result(ERR_NOT_FOUND), "not_found");
	assert_string_equal(metrics_result(ERR_NO_SPACE), "no_space");
	assert_string_equal(metrics_result((enum err_code) - 1), "failed");
	for (int code = 1; code < ERR_COUNT_; code++)
		assert_string_not_equal(metrics_result(code), "ok");
}

#define THREADS 4
#define EACH 20000

static void *count_much(void *arg)
{
	(void)arg;
	for (int i = 0; i < EACH; i++) {
		metrics_add(METRIC_FILE_BYTES, "in", NULL, 2);
		metrics_observe_us(METRIC_EXEC_SECONDS, i);
	}
	return NULL;
}

static void nothing_is_lost_between_threads(void **state)
{
	(void)state;
	pthread_t threads[THREADS];
	int64_t bytes = metrics_get(METRIC_FILE_BYTES, "in", NULL);
	int64_t observed = metrics_get(METRIC_EXEC_SECONDS, NULL, NULL);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, count_much, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(metrics_get(METRIC_FILE_BYTES, "in", NULL) - bytes, 2 * THREADS * EACH);
	assert_int_equal(metrics_get(METRIC_EXEC_SECONDS, NULL, NULL) - observed, THREADS * EACH);
}

/* ---- the text ---- */

static char *text_of(const char *tenant)
{
	struct buf out = BUF_INIT(METRICS_TEXT_MAX);
	struct err e;
	assert_int_equal(metrics_write(&out, tenant, &e), 0);
	return buf_take(&out);
}

/* The number behind the line that starts with this; -1: there is none. */
static double value_of(const char *text, const char *start)
{
	double value = -1;
	for (const char *line = text; line && *line; line = strchr(line, '\n'), line += line != NULL)
		if (!strncmp(line, start, strlen(start)) && line[strlen(start)] == ' ')
			assert_int_equal(sscanf(line + strlen(start), "%lf", &value), 1);
	return value;
}

static void a_histogram_is_cumulative_and_its_end_is_its_count(void **state)
{
	(void)state;
	static const int64_t observed[] = { -5, 0, 1000, 1001, 5000, 700000, 3600000000 };
	for (size_t i = 0; i < ARRAY_LEN(observed); i++)
		metrics_observe_us(METRIC_QUEUE_WAIT_SECONDS, observed[i]);
	_cleanup_free_ char *text = text_of(NULL);
	const struct {
		const char *line;
		double want;
	} wants[] = {
		{ "berth_queue_wait_seconds_bucket{le=\"0.001\"}", 3 },
		{ "berth_queue_wait_seconds_bucket{le=\"0.005\"}", 5 },
		{ "berth_queue_wait_seconds_bucket{le=\"0.5\"}", 5 },
		{ "berth_queue_wait_seconds_bucket{le=\"1\"}", 6 },
		{ "berth_queue_wait_seconds_bucket{le=\"600\"}", 6 },
		{ "berth_queue_wait_seconds_bucket{le=\"+Inf\"}", 7 },
		{ "berth_queue_wait_seconds_count", 7 },
		{ "berth_queue_wait_seconds_sum", 3600.707001 },
	};
	for (size_t i = 0; i < ARRAY_LEN(wants); i++)
		assert_true(value_of(text, wants[i].line) == wants[i].want);
}

static void every_family_is_described_once(void **state)
{
	(void)state;
	_cleanup_free_ char *text = text_of(NULL);
	static const char *const kinds[] = { "counter", "gauge", "histogram" };
	for (size_t i = 0; i < METRIC_COUNT_; i++) {
		const struct metric_row *row = &metrics_table[i];
		_cleanup_free_ char *head = xasprintf("# HELP %s %s\n# TYPE %s %s\n%s", row->name, row->help,
						      row->name, kinds[row->kind], row->name);
		const char *at = strstr(text, head);
		assert_non_null(at);
		assert_null(strstr(at + 1, head));
	}
	assert_null(strstr(text, "tenant"));
	assert_int_equal(text[strlen(text) - 1], '\n');
}

static void a_tenant_is_escaped_and_only_where_it_belongs(void **state)
{
	(void)state;
	_cleanup_free_ char *text = text_of("a\"b\\c\nd");
	metrics_set(METRIC_COMMANDS_RUNNING, NULL, 3);
	_cleanup_free_ char *again = text_of("a\"b\\c\nd");
	assert_true(value_of(again, "berth_commands_running{tenant=\"a\\\"b\\\\c\\nd\"}") == 3);
	assert_non_null(strstr(text, "berth_commands_total{result=\"exited\",tenant=\"a\\\"b\\\\c\\nd\"} "));
	assert_non_null(strstr(text, "berth_exec_seconds_bucket{tenant=\"a\\\"b\\\\c\\nd\",le=\"+Inf\"} "));
	assert_non_null(strstr(text, "berth_engine_calls_total{call=\"info\",result=\"ok\"} "));
	assert_true(value_of(text, "berth_connections") >= 0);
}

static void too_small_a_buffer_is_an_error(void **state)
{
	(void)state;
	for (size_t max = 0; max < 4000; max += 37) {
		_cleanup_buf_ struct buf out = BUF_INIT(max);
		struct err e = { 0 };
		assert_int_equal(metrics_write(&out, "t", &e), -ERR_TOO_LARGE);
	}
}

static void the_process_is_described(void **state)
{
	(void)state;
	struct buf out = BUF_INIT(METRICS_TEXT_MAX);
	struct err e;
	assert_int_equal(metrics_write_process(&out, &e), 0);
	_cleanup_free_ char *text = buf_take(&out);
	assert_true(value_of(text, "process_resident_memory_bytes") > 100000);
	assert_true(value_of(text, "process_open_fds") >= 3);
	assert_true(value_of(text, "process_max_fds") > value_of(text, "process_open_fds"));
	assert_true(value_of(text, "process_threads") >= 1);
	assert_true(value_of(text, "process_cpu_seconds_total") >= 0);
	assert_true(value_of(text, "process_start_time_seconds") > 1.6e9);
	assert_true(value_of(text, "berth_build_info{version=\"" BERTH_VERSION "\"}") == 1);
}

/* ---- docs/METRICS.md ---- */

static void add_values(struct buf *out, const struct metric_label *label, struct err *e)
{
	assert_int_equal(buf_addf(out, e, "`%s`: ", label->name), 0);
	for (const char *const *v = label->values; *v; v++)
		assert_int_equal(buf_addf(out, e, "%s%s", v == label->values ? "" : " ", *v), 0);
}

static char *documented(const struct metric_row *row)
{
	static const char *const kinds[] = { "counter", "gauge", "histogram" };
	struct buf out = BUF_INIT(4096);
	struct err e;
	assert_int_equal(buf_addf(&out, &e, "| `%s` | %s | ", row->name, kinds[row->kind]), 0);
	for (size_t i = 0; i < METRIC_LABELS_MAX && row->labels[i].name; i++) {
		assert_int_equal(buf_addf(&out, &e, "%s", i ? "; " : ""), 0);
		add_values(&out, &row->labels[i], &e);
	}
	assert_int_equal(buf_addf(&out, &e, " | %s | %s |\n", row->of_tenant ? "yes" : "", row->help), 0);
	return buf_take(&out);
}

static void the_page_is_the_table(void **state)
{
	(void)state;
	_cleanup_fclose_ FILE *f = fopen("docs/METRICS.md", "re");
	static char page[65536];
	size_t rows = 0;
	assert_non_null(f);
	page[fread(page, 1, sizeof(page) - 1, f)] = '\0';
	for (size_t i = 0; i < METRIC_COUNT_; i++) {
		_cleanup_free_ char *line = documented(&metrics_table[i]);
		if (!strstr(page, line))
			print_message("docs/METRICS.md misses: %s", line);
		assert_non_null(strstr(page, line));
	}
	for (const char *at = page; (at = strstr(at, "\n| `berth_")); at++)
		rows++;
	assert_int_equal(rows, METRIC_COUNT_ + 1); /* berth_build_info */
}

int main(void)
{
	struct rows r = { 0 };
	rows_one(&r, "metrics: every row is sound", every_row_is_sound);
	rows_one(&r, "metrics: no label names a tenant, a session or an image", no_label_names_anybody);
	rows_one(&r, "metrics: an unknown value counts as the last one", an_unknown_value_counts_as_the_last);
	rows_one(&r, "metrics: each combination of labels counts for itself",
		 every_combination_has_a_cell_of_its_own);
	rows_one(&r, "metrics: every error has a result", every_error_has_a_result);
	rows_one(&r, "metrics: nothing is lost between threads", nothing_is_lost_between_threads);
	rows_one(&r, "metrics: a histogram is cumulative, and its end is its count",
		 a_histogram_is_cumulative_and_its_end_is_its_count);
	rows_one(&r, "metrics: every family is described once", every_family_is_described_once);
	rows_one(&r, "metrics: a tenant is escaped, and named only where it belongs",
		 a_tenant_is_escaped_and_only_where_it_belongs);
	rows_one(&r, "metrics: a text that does not fit is an error", too_small_a_buffer_is_an_error);
	rows_one(&r, "metrics: the process is described", the_process_is_described);
	rows_one(&r, "metrics: docs/METRICS.md shows the table as it is", the_page_is_the_table);
	return rows_run(&r, "metrics");
}
