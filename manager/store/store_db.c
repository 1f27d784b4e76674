/* SPDX-License-Identifier: MIT */
#include "manager/store/store_db.h"

#include <assert.h>
#include <string.h>

/* Another connection can hold a lock only for the blink of a WAL recovery or restart. */
#define BUSY_MS 5000

/*
 * synchronous=FULL: each commit is flushed (https://sqlite.org/pragma.html#pragma_synchronous).
 * temp_store: the journals of savepoints need no room on a full disk.
 */
static const char common_settings[] = "PRAGMA temp_store = MEMORY; PRAGMA cache_size = -1024;";
static const char writer_settings[] =
	"PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA wal_autocheckpoint = 0;";

struct constraint {
	int rc;
	enum err_code code;
	const char *text;
};

static const struct constraint constraints[] = {
	{ SQLITE_CONSTRAINT_UNIQUE, ERR_CONFLICT, "a row with this key exists" },
	{ SQLITE_CONSTRAINT_PRIMARYKEY, ERR_CONFLICT, "a row with this id exists" },
	{ SQLITE_CONSTRAINT_FOREIGNKEY, ERR_NOT_FOUND, "the row it belongs to does not exist" },
};

int store_db_fail(struct store_db *d, int rc, struct err *e)
{
	for (size_t i = 0; i < ARRAY_LEN(constraints); i++)
		if (constraints[i].rc == rc)
			return err_set(e, constraints[i].code, "%s", constraints[i].text);
	if ((rc & 0xff) == SQLITE_CONSTRAINT)
		return err_set(e, ERR_INTERNAL, "the store refuses the row: %s", sqlite3_errmsg(d->db));
	const char *text =
		d->db && sqlite3_extended_errcode(d->db) == rc ? sqlite3_errmsg(d->db) : sqlite3_errstr(rc);
	err_set(e, ERR_STORE, "the store failed: %s (SQLite %d)", text, rc);
	e->sys = d->db ? sqlite3_system_errno(d->db) : 0;
	return -(int)e->code;
}

int store_db_script(struct store_db *d, const char *sql, struct err *e)
{
	int rc = sqlite3_exec(d->db, sql, NULL, NULL, NULL);
	return rc ? store_db_fail(d, rc, e) : 0;
}

/* The pragma answers with the mode in force instead of failing. */
static int enter_wal(struct store_db *d, struct err *e)
{
	sqlite3_stmt *stmt = NULL;
	if (store_db_prepare(d, "PRAGMA journal_mode = WAL", &stmt, e) < 0)
		return -(int)e->code;
	int rc = store_db_step(d, stmt, SQLITE_OK, e);
	if (rc < 0)
		return rc;
	const char *mode = (const char *)sqlite3_column_text(stmt, 0);
	bool wal = rc == 1 && mode && strcmp(mode, "wal") == 0;
	sqlite3_reset(stmt);
	return wal ? 0
		   : err_set(e, ERR_STORE, "its file system cannot share memory (needed for SQLite's WAL)");
}

static bool is_memory(const char *path)
{
	return strncmp(path, STORE_MEMORY, strlen(STORE_MEMORY)) == 0;
}

static int configure(struct store_db *d, const char *path, bool writer, struct err *e)
{
	sqlite3_busy_timeout(d->db, BUSY_MS);
	sqlite3_db_config(d->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	if (store_db_script(d, common_settings, e) < 0)
		return -(int)e->code;
	if (is_memory(path))
		return store_db_script(d, "PRAGMA journal_mode = MEMORY; PRAGMA foreign_keys = ON;", e);
	if (writer)
		return enter_wal(d, e) < 0 ? -(int)e->code : store_db_script(d, writer_settings, e);
	/* SQLite before 3.51.3 can lose commits when two connections checkpoint
	 * (https://sqlite.org/wal.html#walresetbug). */
	sqlite3_db_config(d->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	return 0;
}

int store_db_open(const char *path, bool writer, struct store_db **ret, struct err *e)
{
	_cleanup_(store_db_close_cleanup_) struct store_db *d = xcalloc(1, sizeof(*d));
	int flags = (writer ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY) | SQLITE_OPEN_NOMUTEX |
		    SQLITE_OPEN_EXRESCODE;
	if (is_memory(path))
		flags |= SQLITE_OPEN_URI | (writer ? SQLITE_OPEN_CREATE : 0);
	int rc = sqlite3_open_v2(path, &d->db, flags, NULL);
	if (rc != SQLITE_OK) {
		store_db_fail(d, rc, e);
		return err_wrap(e, "cannot open %s", path);
	}
	if (configure(d, path, writer, e) < 0)
		return err_wrap(e, "cannot use %s", path);
	*ret = STEAL_PTR(d);
	return 0;
}

void store_db_close(struct store_db *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < d->kept_count; i++)
		sqlite3_finalize(d->kept[i]);
	sqlite3_close(d->db);
	free(d);
}

static sqlite3_stmt *kept_of(const struct store_db *d, const char *sql)
{
	for (size_t i = 0; i < d->kept_count; i++)
		if (strcmp(sqlite3_sql(d->kept[i]), sql) == 0)
			return d->kept[i];
	return NULL;
}

int store_db_prepare(struct store_db *d, const char *sql, sqlite3_stmt **ret, struct err *e)
{
	sqlite3_stmt *stmt = kept_of(d, sql);
	if (!stmt) {
		assert(d->kept_count < STORE_KEPT_MAX);
		int rc = sqlite3_prepare_v3(d->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &stmt, NULL);
		if (rc != SQLITE_OK)
			return store_db_fail(d, rc, e);
		d->kept[d->kept_count++] = stmt;
	}
	sqlite3_clear_bindings(stmt);
	*ret = stmt;
	return 0;
}

int store_db_step(struct store_db *d, sqlite3_stmt *stmt, int rc, struct err *e)
{
	if (rc == SQLITE_OK)
		rc = sqlite3_step(stmt);
	if (rc == SQLITE_ROW)
		return 1;
	/* The message is the connection's: take it before the reset. */
	int result = rc == SQLITE_DONE ? 0 : store_db_fail(d, rc, e);
	sqlite3_reset(stmt);
	return result;
}

int store_db_run(struct store_db *d, const char *sql, struct err *e)
{
	sqlite3_stmt *stmt = NULL;
	return store_db_prepare(d, sql, &stmt, e) < 0 ? -(int)e->code : store_db_step(d, stmt, SQLITE_OK, e);
}
