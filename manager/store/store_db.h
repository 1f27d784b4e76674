/* SPDX-License-Identifier: MIT */
/*
 * store_db.h - one SQLite connection and the statements it has prepared. Used by one thread at a time; inside
 * manager/store only.
 */
#ifndef BERTH_STORE_DB_H
#define BERTH_STORE_DB_H

#include <sqlite3.h>

#include "base/err.h"

#define STORE_KEPT_MAX 64 /* distinct SQL texts: all are constants or made of few constant parts */

struct store_db {
	sqlite3 *db;
	sqlite3_stmt *kept[STORE_KEPT_MAX];
	size_t kept_count;
};

/* The writer's connection makes the file's settings; a reader's is read-only and never checkpoints. */
#define STORE_MEMORY "file:" /* what the path of a database in memory begins with */
int store_db_open(const char *path, bool writer, struct store_db **ret, struct err *e) NODISCARD;
void store_db_close(struct store_db *d);
DEFINE_CLEANUP(struct store_db *, store_db_close)

/* Fills *e from the connection's last error: a broken constraint has its own code, all else is ERR_STORE. */
int store_db_fail(struct store_db *d, int rc, struct err *e);

/* Several statements without parameters or rows. */
int store_db_script(struct store_db *d, const char *sql, struct err *e) NODISCARD;

/* The statement of this text, prepared once, without bound values; borrowed. */
int store_db_prepare(struct store_db *d, const char *sql, sqlite3_stmt **ret, struct err *e) NODISCARD;

/*
 * Binds are checked here: rc is what binding returned. Steps once: 1 when there is a row, 0 at the end, else
 * an error. After 0 and after an error the statement is reset; after 1 the caller steps on or resets.
 */
int store_db_step(struct store_db *d, sqlite3_stmt *stmt, int rc, struct err *e) NODISCARD;

/* A statement without parameters and rows that is used often. */
int store_db_run(struct store_db *d, const char *sql, struct err *e) NODISCARD;

#endif
