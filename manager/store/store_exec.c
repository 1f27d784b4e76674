/* SPDX-License-Identifier: MIT */
/* The queries about execs. */
#include "manager/store/store_impl.h"

#define COLUMNS "id, session" STORE_EXEC_MORE(STORE_NAME)
#define SELECT "SELECT " COLUMNS " FROM exec "
#define RUNNING_MAX 100000
#define PURGE_STEP 200

void exec_row_clear(struct exec_row *row)
{
	store_row_clear(&store_execs, row);
}

void exec_rows_free(struct exec_row *rows, size_t count)
{
	store_rows_free(&store_execs, rows, count);
}

/* ---- writes ---- */

static int apply_insert(struct store_db *d, struct store_ticket *t, struct err *e)
{
	static const char sql[] =
		"INSERT INTO exec (" COLUMNS ") VALUES (?, ?" STORE_EXEC_MORE(STORE_PLACE) ")";
	sqlite3_stmt *stmt = NULL;
	if (store_db_prepare(d, sql, &stmt, e) < 0)
		return -(int)e->code;
	return store_apply_step(d, t, stmt, store_row_bind(&store_execs, stmt, &t->exec), e);
}

struct store_ticket *store_exec_insert(struct store *st, const struct exec_row *row,
				       const struct audit_row *audit)
{
	struct store_ticket *t = store_ticket_new(apply_insert, audit);
	store_row_copy(&store_execs, row, &t->exec);
	t->grows = t->counted = true;
	store_writer_queue(st->writer, t);
	return t;
}

int store_wait(struct store_ticket *t, int timeout_ms, struct err *e)
{
	return store_writer_wait(t, timeout_ms, NULL, e);
}

static int apply_end(struct store_db *d, struct store_ticket *t, struct err *e)
{
	static const char sql[] =
		"UPDATE exec SET reason = ?2, reply = ?3, ended_ms = ?4 WHERE id = ?1 AND ended_ms = 0";
	sqlite3_stmt *stmt = NULL;
	if (store_db_prepare(d, sql, &stmt, e) < 0)
		return -(int)e->code;
	int rc = sqlite3_bind_text(stmt, 1, t->exec.id, -1, SQLITE_STATIC);
	rc = rc ? rc : sqlite3_bind_text(stmt, 2, t->exec.reason, -1, SQLITE_STATIC);
	rc = rc ? rc : sqlite3_bind_text(stmt, 3, t->exec.reply, -1, SQLITE_STATIC);
	rc = rc ? rc : sqlite3_bind_int64(stmt, 4, t->exec.ended_ms);
	return store_apply_step(d, t, stmt, rc, e);
}

/* Replies are large: they wait for room, so that the reserve of a full disk stays with the deletes. */
/* NOLINTNEXTLINE(readability-function-size): the parameters are those of store.h */
void store_exec_end(struct store *st, const char *id, const char *reason, const char *reply, int64_t ended_ms,
		    const struct audit_row *audit, store_done_fn on_durable, void *ctx)
{
	struct store_ticket *t = store_ticket_new(apply_end, audit);
	t->exec.id = xstrdup(id);
	t->exec.reason = reason ? xstrdup(reason) : NULL;
	t->exec.reply = reply ? xstrdup(reply) : NULL;
	t->exec.ended_ms = ended_ms;
	t->done = on_durable;
	t->ctx = ctx;
	t->grows = true;
	store_writer_later(st->writer, t);
}

static int apply_started(struct store_db *d, struct store_ticket *t, struct err *e)
{
	sqlite3_stmt *stmt = NULL;
	if (store_db_prepare(d, "UPDATE exec SET pid = ?2 WHERE id = ?1", &stmt, e) < 0)
		return -(int)e->code;
	int rc = sqlite3_bind_text(stmt, 1, t->exec.id, -1, SQLITE_STATIC);
	rc = rc ? rc : sqlite3_bind_int64(stmt, 2, t->exec.pid);
	return store_apply_step(d, t, stmt, rc, e);
}

void store_exec_started(struct store *st, const char *id, int64_t pid)
{
	struct store_ticket *t = store_ticket_new(apply_started, NULL);
	t->exec.id = xstrdup(id);
	t->exec.pid = pid;
	store_writer_later(st->writer, t);
}

static int apply_forget(struct store_db *d, struct store_ticket *t, struct err *e)
{
	sqlite3_stmt *stmt = NULL;
	if (store_db_prepare(d, "UPDATE exec SET kept = 0 WHERE id = ?1", &stmt, e) < 0)
		return -(int)e->code;
	return store_apply_step(d, t, stmt, sqlite3_bind_text(stmt, 1, t->exec.id, -1, SQLITE_STATIC), e);
}

int store_exec_forget(struct store *st, const char *id, const struct audit_row *audit, struct err *e)
{
	struct store_ticket *t = store_ticket_new(apply_forget, audit);
	t->exec.id = xstrdup(id);
	return store_writer_do(st->writer, t, NULL, e);
}

void store_exec_forget_later(struct store *st, const char *id)
{
	struct store_ticket *t = store_ticket_new(apply_forget, NULL);
	t->exec.id = xstrdup(id);
	store_writer_later(st->writer, t);
}

static int apply_purge(struct store_db *d, struct store_ticket *t, struct err *e)
{
	static const char sql[] =
		"DELETE FROM exec WHERE rowid IN "
		"(SELECT rowid FROM exec WHERE ended_ms > 0 AND ended_ms < ?1 AND kept = 0 UNION ALL "
		"SELECT rowid FROM (SELECT rowid, row_number() OVER "
		"(PARTITION BY session ORDER BY ended_ms DESC) AS place "
		"FROM exec WHERE ended_ms > 0 AND kept = 0) WHERE place > ?3 LIMIT ?2)";
	sqlite3_stmt *stmt = NULL;
	if (store_db_prepare(d, sql, &stmt, e) < 0)
		return -(int)e->code;
	int rc = sqlite3_bind_int64(stmt, 1, t->number);
	rc = rc ? rc : sqlite3_bind_int64(stmt, 2, PURGE_STEP);
	rc = rc ? rc : sqlite3_bind_int64(stmt, 3, t->most);
	return store_apply_step(d, t, stmt, rc, e);
}

int store_exec_purge(struct store *st, int64_t ended_before_ms, struct err *e)
{
	int64_t changed;
	do {
		changed = 0;
		struct store_ticket *t = store_ticket_new(apply_purge, NULL);
		t->number = ended_before_ms;
		t->most = st->dir ? STORE_EXECS_KEPT : STORE_EXECS_KEPT_MEMORY;
		if (store_writer_do(st->writer, t, &changed, e) < 0)
			return -(int)e->code;
	} while (changed == PURGE_STEP);
	return 0;
}

/* ---- reads ---- */

static int get_by(struct store *st, const char *sql, const char *session, const char *key,
		  struct exec_row *ret, struct err *e)
{
	struct store_arg args[] = { { session, 0 }, { key, 0 } };
	struct store_query q = { sql, &store_execs, args, ARRAY_LEN(args) };
	int rc = store_read_one(st->readers, &q, ret, e);
	return rc < 0 && e->code == ERR_NOT_FOUND ? err_set(e, ERR_NOT_FOUND, "no such exec") : rc;
}

int store_exec_get(struct store *st, const char *session, const char *id, struct exec_row *ret, struct err *e)
{
	return get_by(st, SELECT "WHERE session = ? AND id = ?", session, id, ret, e);
}

int store_exec_by_key(struct store *st, const char *session, const char *key, struct exec_row *ret,
		      struct err *e)
{
	return get_by(st, SELECT "WHERE session = ? AND key = ?", session, key, ret, e);
}

static int list_by(struct store *st, const struct store_query *q, struct exec_row **ret_rows,
		   size_t *ret_count, struct err *e)
{
	void *rows = NULL;
	int rc = store_read_all(st->readers, q, &rows, ret_count, e);
	if (rc == 0)
		*ret_rows = rows;
	return rc;
}

int store_exec_list(struct store *st, const char *session, int limit, struct exec_row **ret_rows,
		    size_t *ret_count, struct err *e)
{
	static const char sql[] =
		"SELECT id, session, command, key, request_hash, options, NULL, reason, "
		"started_ms, ended_ms, kind, name, pid, kept FROM exec "
		"WHERE session = ? AND kind = 0 ORDER BY started_ms DESC, rowid DESC LIMIT ?";
	struct store_arg args[] = { { session, 0 }, { NULL, limit } };
	struct store_query q = { sql, &store_execs, args, ARRAY_LEN(args) };
	return list_by(st, &q, ret_rows, ret_count, e);
}

int store_exec_live(struct store *st, struct exec_row **ret_rows, size_t *ret_count, struct err *e)
{
	struct store_arg arg = { NULL, RUNNING_MAX };
	struct store_query q = { SELECT "WHERE ended_ms = 0 OR kept = 1 ORDER BY started_ms, rowid LIMIT ?",
				 &store_execs, &arg, 1 };
	return list_by(st, &q, ret_rows, ret_count, e);
}
