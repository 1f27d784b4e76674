/* SPDX-License-Identifier: MIT */
/*
 * store_row.h - the rows of the store as tables of columns: one list serves the SQL text, binding, reading,
 * copying and freeing. Pure but for the statement it is given; inside manager/store only.
 */
#ifndef BERTH_STORE_ROW_H
#define BERTH_STORE_ROW_H

#include <sqlite3.h>

#include "manager/store/store.h"

/* clang-format off */
#define STORE_SESSION_MORE(X) \
	X(TEXT, name) X(TEXT, labels) X(TEXT, env) X(TEXT, image) X(TEXT, image_id) X(TEXT, image_env) X(INT, memory_mb) X(INT, cpu_milli) \
	X(INT, pids) X(INT, ttl_s) X(INT, idle_s) X(TEXT, network) X(TEXT, isolation) X(TEXT, workspace_kind) \
	X(TEXT, workspace_name) X(INT, workspace_mb) X(TEXT, reason) X(TEXT, detail) X(TEXT, token_hash) X(TEXT, sandbox) \
	X(TEXT, container) X(RISING, link_generation) X(INT, created_ms) X(INT, ready_ms) X(INT, expires_ms) \
	X(INT, idle_ms) X(INT, ended_ms)
#define STORE_SESSION_COLUMNS(X) X(TEXT, id) X(TEXT, state) STORE_SESSION_MORE(X)

#define STORE_EXEC_MORE(X) \
	X(TEXT, command) X(TEXT, key) X(TEXT, request_hash) X(TEXT, options) X(TEXT, reply) X(TEXT, reason) \
	X(INT, started_ms) X(INT, ended_ms) X(INT, kind) X(TEXT, name) X(INT, pid) X(INT, kept)
#define STORE_EXEC_COLUMNS(X) X(TEXT, id) X(TEXT, session) STORE_EXEC_MORE(X)

#define STORE_AUDIT_MORE(X) \
	X(TEXT, address) X(TEXT, action) X(TEXT, session) X(TEXT, exec) X(TEXT, subject) X(TEXT, outcome) X(TEXT, detail)
#define STORE_AUDIT_COLUMNS(X) X(INT, at_ms) X(TEXT, actor) STORE_AUDIT_MORE(X)
/* clang-format on */

/* Parts of SQL from such a list, each with a comma before it. */
#define STORE_NAME(kind, name) ", " #name
#define STORE_PLACE(kind, name) ", ?"
#define STORE_SET(kind, name) ", " STORE_SET_##kind(name)
#define STORE_SET_TEXT(name) "?"
#define STORE_SET_INT(name) "?"
#define STORE_SET_RISING(name) "max(" #name ", ?)"

struct store_column {
	size_t offset;
	bool text; /* char *, else int64_t */
};

struct store_table {
	const struct store_column *columns;
	size_t count;
	size_t size; /* of the struct */
};

extern const struct store_table store_sessions, store_execs, store_audits;

/* Every text of *to becomes a copy owned by it. */
void store_row_copy(const struct store_table *table, const void *from, void *to);
/* Frees every text and zeroes the struct. */
void store_row_clear(const struct store_table *table, void *row);
void store_rows_free(const struct store_table *table, void *rows, size_t count);

/* Columns to the parameters 1..count; the row must live until the statement is reset. Returns SQLite's code.
 */
int store_row_bind(const struct store_table *table, sqlite3_stmt *stmt, const void *row);
/* The current result row, copied. */
void store_row_read(const struct store_table *table, sqlite3_stmt *stmt, void *row);

#endif
