/* SPDX-License-Identifier: MIT */
#include "manager/store/store_migrate.h"

#include <string.h>

#include "base/clock.h"
#include "base/id.h"

static const char make_table[] =
	"CREATE TABLE IF NOT EXISTS schema_migrations (version INTEGER PRIMARY KEY, "
	"name TEXT NOT NULL, checksum TEXT NOT NULL, applied_ms INTEGER NOT NULL) STRICT";

/* The row that was read against the migration of its number. */
static int compare(sqlite3_stmt *row, const struct store_migration *m, struct err *e)
{
	const char *name = (const char *)sqlite3_column_text(row, 1);
	const char *checksum = (const char *)sqlite3_column_text(row, 2);
	if (!m->name)
		return err_set(
			e, ERR_STORE,
			"the store was written by a newer release (it has migration %s): update berthd",
			name);
	char hash[ID_HASH_SIZE];
	id_hash(m->sql, m->len, hash);
	if (strcmp(name, m->name) != 0 || strcmp(checksum, hash) != 0)
		return err_set(e, ERR_STORE,
			       "migration %s of the store is not this release's %s: its text has changed",
			       name, m->name);
	return 0;
}

/* How many of `all` the file has seen; versions count from 1 without a gap. */
static int count_applied(struct store_db *d, const struct store_migration *all, size_t *ret, struct err *e)
{
	sqlite3_stmt *stmt = NULL;
	if (store_db_prepare(d, "SELECT version, name, checksum FROM schema_migrations ORDER BY version",
			     &stmt, e) < 0)
		return -(int)e->code;
	size_t n = 0;
	int rc;
	while ((rc = store_db_step(d, stmt, SQLITE_OK, e)) == 1) {
		if (sqlite3_column_int64(stmt, 0) != (int64_t)n + 1)
			rc = err_set(e, ERR_STORE, "the store lacks migration %zu", n + 1);
		else
			rc = compare(stmt, &all[n], e);
		if (rc < 0)
			break;
		n++;
	}
	sqlite3_reset(stmt);
	if (rc == 0)
		*ret = n;
	return rc;
}

static int record(struct store_db *d, const struct store_migration *m, size_t version, struct err *e)
{
	sqlite3_stmt *stmt = NULL;
	if (store_db_prepare(d, "INSERT INTO schema_migrations VALUES (?, ?, ?, ?)", &stmt, e) < 0)
		return -(int)e->code;
	char hash[ID_HASH_SIZE];
	id_hash(m->sql, m->len, hash);
	int rc = sqlite3_bind_int64(stmt, 1, (int64_t)version);
	rc = rc ? rc : sqlite3_bind_text(stmt, 2, m->name, -1, SQLITE_STATIC);
	rc = rc ? rc : sqlite3_bind_text(stmt, 3, hash, -1, SQLITE_TRANSIENT);
	rc = rc ? rc : sqlite3_bind_int64(stmt, 4, clock_wall_ms());
	return store_db_step(d, stmt, rc, e);
}

static int apply(struct store_db *d, const struct store_migration *m, size_t version, struct err *e)
{
	if (store_db_script(d, "BEGIN IMMEDIATE", e) == 0 && store_db_script(d, m->sql, e) == 0 &&
	    record(d, m, version, e) == 0 && store_db_script(d, "COMMIT", e) == 0)
		return 0;
	if (!sqlite3_get_autocommit(d->db))
		sqlite3_exec(d->db, "ROLLBACK", NULL, NULL, NULL); /* the error that counts is in *e */
	return err_wrap(e, "migration %s", m->name);
}

int store_migrate(struct store_db *d, const struct store_migration *all, int *ret_applied, struct err *e)
{
	size_t seen = 0;
	if (store_db_script(d, make_table, e) < 0 || count_applied(d, all, &seen, e) < 0)
		return -(int)e->code;
	size_t n = seen;
	for (; all[n].name; n++)
		if (apply(d, &all[n], n + 1, e) < 0)
			return -(int)e->code;
	*ret_applied = (int)(n - seen);
	return 0;
}
