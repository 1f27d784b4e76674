/* SPDX-License-Identifier: MIT */
#include "manager/store/store_row.h"

#include <string.h>

#define TEXT true
#define INT false
#define RISING false

#define COLUMN(kind, name) { offsetof(struct ROW, name), kind },

#define ROW session_row
static const struct store_column session_columns[] = { STORE_SESSION_COLUMNS(COLUMN) };
#undef ROW
#define ROW exec_row
static const struct store_column exec_columns[] = { STORE_EXEC_COLUMNS(COLUMN) };
#undef ROW
#define ROW audit_row
static const struct store_column audit_columns[] = { STORE_AUDIT_COLUMNS(COLUMN) };
#undef ROW

const struct store_table store_sessions = { session_columns, ARRAY_LEN(session_columns),
					    sizeof(struct session_row) };
const struct store_table store_execs = { exec_columns, ARRAY_LEN(exec_columns), sizeof(struct exec_row) };
const struct store_table store_audits = { audit_columns, ARRAY_LEN(audit_columns), sizeof(struct audit_row) };

/* memcpy, since a column is char * in one struct and const char * in another. */
static char *text_of(const void *row, const struct store_column *c)
{
	char *text;
	memcpy(&text, (const char *)row + c->offset, sizeof(text));
	return text;
}

static int64_t number_of(const void *row, const struct store_column *c)
{
	int64_t number;
	memcpy(&number, (const char *)row + c->offset, sizeof(number));
	return number;
}

static void put_text(void *row, const struct store_column *c, const char *text)
{
	char *copy = text ? xstrdup(text) : NULL;
	memcpy((char *)row + c->offset, &copy, sizeof(copy));
}

static void put_number(void *row, const struct store_column *c, int64_t number)
{
	memcpy((char *)row + c->offset, &number, sizeof(number));
}

void store_row_copy(const struct store_table *table, const void *from, void *to)
{
	memset(to, 0, table->size);
	for (size_t i = 0; i < table->count; i++) {
		const struct store_column *c = &table->columns[i];
		if (c->text)
			put_text(to, c, text_of(from, c));
		else
			put_number(to, c, number_of(from, c));
	}
}

void store_row_clear(const struct store_table *table, void *row)
{
	for (size_t i = 0; i < table->count; i++)
		if (table->columns[i].text)
			free(text_of(row, &table->columns[i]));
	memset(row, 0, table->size);
}

void store_rows_free(const struct store_table *table, void *rows, size_t count)
{
	for (size_t i = 0; i < count; i++)
		store_row_clear(table, (char *)rows + i * table->size);
	free(rows);
}

int store_row_bind(const struct store_table *table, sqlite3_stmt *stmt, const void *row)
{
	int rc = SQLITE_OK;
	for (size_t i = 0; i < table->count && rc == SQLITE_OK; i++) {
		const struct store_column *c = &table->columns[i];
		/* A NULL text is bound as NULL (sqlite3_bind_text). */
		rc = c->text ? sqlite3_bind_text(stmt, (int)i + 1, text_of(row, c), -1, SQLITE_STATIC)
			     : sqlite3_bind_int64(stmt, (int)i + 1, number_of(row, c));
	}
	return rc;
}

void store_row_read(const struct store_table *table, sqlite3_stmt *stmt, void *row)
{
	memset(row, 0, table->size);
	for (size_t i = 0; i < table->count; i++) {
		const struct store_column *c = &table->columns[i];
		if (c->text)
			put_text(row, c, (const char *)sqlite3_column_text(stmt, (int)i));
		else
			put_number(row, c, sqlite3_column_int64(stmt, (int)i));
	}
}
