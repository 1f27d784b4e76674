/* SPDX-License-Identifier: MIT */
#include "tests/unit/store_help.h"

#include <string.h>

void must(int rc, const struct err *e)
{
	if (rc < 0)
		fail_msg("%s: %s", err_name(e->code), e->msg);
}

void store_place(struct place *p)
{
	struct err e;
	snprintf(p->dir, sizeof(p->dir), "/tmp/berth-store-XXXXXX");
	assert_non_null(mkdtemp(p->dir));
	must(store_open(p->dir, &p->st, &e), &e);
}

void store_place_end(struct place *p)
{
	static const char *const names[] = { "berth.db", "berth.db-wal", "berth.db-shm", "lock" };
	store_close(p->st);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		_cleanup_free_ char *path = xasprintf("%s/%s", p->dir, names[i]);
		unlink(path);
	}
	assert_int_equal(rmdir(p->dir), 0); /* nothing else was left in it */
}

void store_place_again(struct place *p)
{
	struct err e;
	store_close(p->st);
	p->st = NULL;
	must(store_open(p->dir, &p->st, &e), &e);
}

struct session_row store_session_of(int n, const char *state, char id[32])
{
	snprintf(id, 32, "s_%d", n);
	return (struct session_row){
		.id = id, .state = T(state), .labels = T("{}"), .env = T("{}"), .created_ms = 1000 + n
	};
}

struct exec_row store_exec_of(const char *session, const char *id)
{
	return (struct exec_row){ .id = T(id), .session = T(session), .command = T("true"), .started_ms = 5 };
}

void store_add_session(struct store *st, int n, const char *state)
{
	struct err e;
	char id[32];
	struct session_row row = store_session_of(n, state, id);
	must(store_session_insert(st, &row, NULL, &e), &e);
}

void store_flush(struct store *st)
{
	struct err e;
	must(store_set_value(st, "flush", "", &e), &e);
}

static sqlite3 *open_file(const struct place *p, int flags)
{
	sqlite3 *db = NULL;
	_cleanup_free_ char *path = xasprintf("%s/berth.db", p->dir);
	assert_int_equal(sqlite3_open_v2(path, &db, flags, NULL), SQLITE_OK);
	sqlite3_busy_timeout(db, 10000);
	sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	return db;
}

int64_t store_peek(const struct place *p, const char *sql)
{
	sqlite3 *db = open_file(p, SQLITE_OPEN_READONLY);
	sqlite3_stmt *stmt = NULL;
	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK);
	int64_t got = sqlite3_step(stmt) == SQLITE_ROW ? sqlite3_column_int64(stmt, 0) : -1;
	sqlite3_finalize(stmt);
	sqlite3_close(db);
	return got;
}

void store_poke(const struct place *p, const char *sql)
{
	sqlite3 *db = open_file(p, SQLITE_OPEN_READWRITE);
	char *why = NULL;
	if (sqlite3_exec(db, sql, NULL, NULL, &why) != SQLITE_OK)
		fail_msg("%s: %s", sql, why);
	sqlite3_close(db);
}
