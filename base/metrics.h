/* SPDX-License-Identifier: MIT */
/*
 * metrics.h - what this process has counted and measured since its start, and its text for Prometheus
 * (https://prometheus.io/docs/instrumenting/exposition_formats/, version 0.0.4).
 *
 * The table is base/metrics_table.c; docs/METRICS.md shows it and is compared with it by a test. Any thread;
 * counting takes no lock, allocates nothing and cannot fail. What was counted is gone with the process.
 */
#ifndef BERTH_METRICS_H
#define BERTH_METRICS_H

#include <stdatomic.h>

#include "base/buf.h"

enum metric {
	METRIC_COMMANDS,         /* result: the reason of its end */
	METRIC_COMMANDS_RUNNING, /* set by manager_set_gauges() */
	METRIC_EXEC_SECONDS,
	METRIC_QUEUE_WAIT_SECONDS,
	METRIC_PROCESSES_STARTED,
	METRIC_PROCESSES_RUNNING,
	METRIC_FILE_OPERATIONS, /* operation, result */
	METRIC_FILE_BYTES,      /* direction */
	METRIC_SESSIONS,        /* state; set by manager_set_gauges() */
	METRIC_ENGINE_CALLS,    /* call, result */
	METRIC_ENGINE_CALL_SECONDS,
	METRIC_STORE_WRITES, /* result */
	METRIC_STORE_COMMIT_SECONDS,
	METRIC_HTTP_REQUESTS, /* code */
	METRIC_UNAUTHORIZED,
	METRIC_CONNECTIONS,
	METRIC_COUNT_
};

/*
 * Adds n (of a gauge it may be negative). first and second: the values of its labels, NULL where it has none;
 * one that the table does not have counts as the last of those that it has.
 */
void metrics_add(enum metric m, const char *first, const char *second, int64_t n);
/* A gauge. */
void metrics_set(enum metric m, const char *first, int64_t n);
/* A histogram: microseconds, below 0 counts as 0. */
void metrics_observe_us(enum metric m, int64_t us);
/* Its value now; of a histogram the number of observations. */
int64_t metrics_get(enum metric m, const char *first, const char *second);

/* The value of a `result` label for what became of a call: "ok" for ERR_NONE, "not_found", "conflict", ... */
const char *metrics_result(enum err_code code);

/*
 * Adds the text of all metrics. tenant: the value of a `tenant` label on those that belong to one; NULL: no
 * such label. ERR_TOO_LARGE.
 */
#define METRICS_TEXT_MAX (1u << 20)
#define METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"
int metrics_write(struct buf *out, const char *tenant, struct err *e) NODISCARD;
/* Adds what the kernel says of this process, as process_*, and the version. */
int metrics_write_process(struct buf *out, struct err *e) NODISCARD;

/* ---- the table, for the text and for tests ---- */

enum metric_kind { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM };

#define METRIC_LABELS_MAX 2

struct metric_label {
	const char *name;          /* NULL: none */
	const char *const *values; /* NULL-terminated, at least one */
};

struct metric_row {
	const char *name, *help;
	enum metric_kind kind;
	bool of_tenant; /* it has a tenant label for those who may know */
	struct metric_label labels[METRIC_LABELS_MAX];
	const int64_t *bounds_us; /* of a histogram: upper bounds, ascending, 0 ends */
	/* One for each combination of labels, or one for each bound, one for more and one for the sum. */
	atomic_int_least64_t *cells;
	size_t cell_count;
};
extern const struct metric_row metrics_table[METRIC_COUNT_];

/* How many cells a row needs. */
size_t metrics_cells_needed(const struct metric_row *row);

#endif
