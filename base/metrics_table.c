/* SPDX-License-Identifier: MIT */
/* Names and units follow https://prometheus.io/docs/practices/naming/: base units, _total for what only
 * grows. */
#include "base/metrics.h"

#define VALUES(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define BOUNDS(...)                    \
	.bounds_us = (const int64_t[]) \
	{                              \
		__VA_ARGS__, 0         \
	}
#define CELLS(n) .cells = (atomic_int_least64_t[n]){ 0 }, .cell_count = (n)

#define MS 1000ll
#define S (1000 * MS)

/* What an unknown value counts as comes last. */
#define REASONS                                                                                      \
	VALUES("exited", "signalled", "timeout", "output_limit", "oom", "cancelled", "sandbox_lost", \
	       "start_failed", "unknown")
#define FILE_OPERATIONS                                                                          \
	VALUES("upload", "download", "list", "stat", "mkdir", "move", "delete", "read", "write", \
	       "archive_read", "archive_write", "other")
#define FILE_RESULTS \
	VALUES("ok", "not_found", "conflict", "refused", "no_space", "timeout", "unavailable", "failed")
#define ENGINE_CALLS                                                                                  \
	VALUES("container_create", "container_start", "container_inspect", "container_list",          \
	       "container_remove", "container_other", "exec_create", "exec_start", "events", "image", \
	       "volume_create", "volume_remove", "volume_list", "info", "other")
#define ENGINE_RESULTS VALUES("ok", "not_found", "conflict", "timeout", "unavailable", "failed")
#define HTTP_CODES                                                                                        \
	VALUES("200", "201", "202", "204", "206", "304", "400", "401", "403", "404", "405", "409", "410", \
	       "412", "413", "414", "415", "416", "422", "429", "500", "501", "502", "503", "504", "507", \
	       "other")

/* clang-format off */
const struct metric_row metrics_table[METRIC_COUNT_] = {
	[METRIC_COMMANDS] = { "berth_commands_total", "Commands that have ended, by the reason of their end.",
		METRIC_COUNTER, .of_tenant = true, .labels = { { "result", REASONS } }, CELLS(9) },
	[METRIC_COMMANDS_RUNNING] = { "berth_commands_running", "Commands that run now.",
		METRIC_GAUGE, .of_tenant = true, CELLS(1) },
	[METRIC_EXEC_SECONDS] = { "berth_exec_seconds", "How long commands ran, from their start to their end.",
		METRIC_HISTOGRAM, .of_tenant = true,
		BOUNDS(1 * MS, 2 * MS, 5 * MS, 10 * MS, 25 * MS, 50 * MS, 100 * MS, 250 * MS, 500 * MS, 1 * S, 2500 * MS, 5 * S, 10 * S, 30 * S, 60 * S, 300 * S, 1800 * S),
		CELLS(19) },
	[METRIC_QUEUE_WAIT_SECONDS] = { "berth_queue_wait_seconds", "How long commands stood in line for a slot of their session; those that got none count, too.",
		METRIC_HISTOGRAM, .of_tenant = true,
		BOUNDS(1 * MS, 5 * MS, 10 * MS, 50 * MS, 100 * MS, 500 * MS, 1 * S, 5 * S, 10 * S, 30 * S, 60 * S, 120 * S, 600 * S),
		CELLS(15) },
	[METRIC_PROCESSES_STARTED] = { "berth_processes_started_total", "Background processes that were started.",
		METRIC_COUNTER, .of_tenant = true, CELLS(1) },
	[METRIC_PROCESSES_RUNNING] = { "berth_processes_running", "Background processes that run now.",
		METRIC_GAUGE, .of_tenant = true, CELLS(1) },
	[METRIC_FILE_OPERATIONS] = { "berth_file_operations_total", "Operations on files, one for each path, by what became of them.",
		METRIC_COUNTER, .of_tenant = true, .labels = { { "operation", FILE_OPERATIONS }, { "result", FILE_RESULTS } }, CELLS(96) },
	[METRIC_FILE_BYTES] = { "berth_file_bytes_total", "Bytes of files and archives that went into sandboxes (in) and came out of them (out).",
		METRIC_COUNTER, .of_tenant = true, .labels = { { "direction", VALUES("in", "out") } }, CELLS(2) },
	[METRIC_SESSIONS] = { "berth_sessions", "Sessions that live, by their state.",
		METRIC_GAUGE, .of_tenant = true, .labels = { { "state", VALUES("creating", "ready", "paused", "stopping") } }, CELLS(4) },
	[METRIC_ENGINE_CALLS] = { "berth_engine_calls_total", "Calls of the container engine, by what became of them.",
		METRIC_COUNTER, .labels = { { "call", ENGINE_CALLS }, { "result", ENGINE_RESULTS } }, CELLS(90) },
	[METRIC_ENGINE_CALL_SECONDS] = { "berth_engine_call_seconds", "How long calls of the container engine took; the stream of events and those of links are left out.",
		METRIC_HISTOGRAM,
		BOUNDS(1 * MS, 2 * MS, 5 * MS, 10 * MS, 25 * MS, 50 * MS, 100 * MS, 250 * MS, 500 * MS, 1 * S, 2500 * MS, 5 * S, 10 * S, 30 * S, 60 * S),
		CELLS(17) },
	[METRIC_STORE_WRITES] = { "berth_store_writes_total", "Writes to the store; many of them share a commit.",
		METRIC_COUNTER, .labels = { { "result", VALUES("ok", "failed") } }, CELLS(2) },
	[METRIC_STORE_COMMIT_SECONDS] = { "berth_store_commit_seconds", "How long commits of the store took that worked, flush to the disk included.",
		METRIC_HISTOGRAM,
		BOUNDS(250, 500, 1 * MS, 2 * MS, 5 * MS, 10 * MS, 25 * MS, 50 * MS, 100 * MS, 250 * MS, 1 * S, 5 * S),
		CELLS(14) },
	[METRIC_HTTP_REQUESTS] = { "berth_http_requests_total", "Answers to HTTP requests, by status.",
		METRIC_COUNTER, .labels = { { "code", HTTP_CODES } }, CELLS(27) },
	[METRIC_UNAUTHORIZED] = { "berth_unauthorized_requests_total", "Requests without a valid token.",
		METRIC_COUNTER, CELLS(1) },
	[METRIC_CONNECTIONS] = { "berth_connections", "HTTP connections that are open.",
		METRIC_GAUGE, CELLS(1) },
};
/* clang-format on */
