/* SPDX-License-Identifier: MIT */
/* The queries about sessions. */
#include <string.h>

#include "base/buf.h"
#include "manager/store/store_impl.h"

#define COLUMNS "id, state" STORE_SESSION_MORE(STORE_NAME)
#define SELECT "SELECT " COLUMNS " FROM session "
#define ENDED "('gone', 'failed')"
#define PURGE_STEP 200 /* so that the writer is never long away from commands that start */

void session_row_clear(struct session_row *row)
{
	store_row_clear(&store_sessions, row);
}

void session_rows_free(struct session_row *rows, size_t count)
{
	store_rows_free(&store_sessions, rows, count);
}

/* ---- writes ---- */

static int apply_insert(struct store_db *d, struct store_ticket *t, struct err *e)
{
	static const char sql[] =
		"INSERT INTO session (" COLUMNS ") VALUES (?, ?" STORE_SESSION_MORE(STORE_PLACE) ")";
	sqlite3_stmt *stmt = NULL;
	if (store_db_prepare(d, sql, &stmt, e) < 0)
		return -(int)e->code;
	return store_apply_step(d, t, stmt, store_row_bind(&store_sessions, stmt, &t->session), e);
}

int store_session_insert(struct store *st, const struct session_row *row, const struct audit_row *audit,
			 struct err *e)
{
	struct store_ticket *t = store_ticket_new(apply_insert, audit);
	store_row_copy(&store_sessions, row, &t->session);
	t->grows = true;
	return store_writer_do(st->writer, t, NULL, e);
}

/* Why an update has met no row. */
static int explain_miss(struct store_db *d, struct store_ticket *t, struct err *e)
{
	sqlite3_stmt *stmt = NULL;
	if (store_db_prepare(d, "SELECT state FROM session WHERE id = ?", &stmt, e) < 0)
		return -(int)e->code;
	int rc = store_db_step(d, stmt, sqlite3_bind_text(stmt, 1, t->session.id, -1, SQLITE_STATIC), e);
	if (rc < 0)
		return rc;
	if (rc == 0)
		return err_set(e, ERR_NOT_FOUND, "no such session");
	err_set(e, ERR_CONFLICT, "the session is %s, no longer %s",
		(const char *)sqlite3_column_text(stmt, 0), t->text);
	sqlite3_reset(stmt);
	return -(int)e->code;
}

/* The id keeps its place outside the list: a change of it would have SQLite look through all its execs. */
static int apply_update(struct store_db *d, struct store_ticket *t, struct err *e)
{
	static const char sql[] =
		"UPDATE session SET (state" STORE_SESSION_MORE(STORE_NAME) ") = (?2" STORE_SESSION_MORE(
			STORE_SET) ") WHERE id = ?1 AND state = coalesce(?, state)";
	sqlite3_stmt *stmt = NULL;
	if (store_db_prepare(d, sql, &stmt, e) < 0)
		return -(int)e->code;
	int rc = store_row_bind(&store_sessions, stmt, &t->session);
	rc = rc ? rc : sqlite3_bind_text(stmt, (int)store_sessions.count + 1, t->text, -1, SQLITE_STATIC);
	if (store_apply_step(d, t, stmt, rc, e) < 0)
		return -(int)e->code;
	return t->changed ? 0 : explain_miss(d, t, e);
}

int store_session_update(struct store *st, const struct session_row *row, const char *expected_state,
			 const struct audit_row *audit, struct err *e)
{
	struct store_ticket *t = store_ticket_new(apply_update, audit);
	store_row_copy(&store_sessions, row, &t->session);
	t->text = expected_state ? xstrdup(expected_state) : NULL;
	return store_writer_do(st->writer, t, NULL, e);
}

static int apply_number(struct store_db *d, struct store_ticket *t, const char *sql, const char *id,
			struct err *e)
{
	sqlite3_stmt *stmt = NULL;
	if (store_db_prepare(d, sql, &stmt, e) < 0)
		return -(int)e->code;
	int rc = sqlite3_bind_text(stmt, 1, id, -1, SQLITE_STATIC);
	rc = rc ? rc : sqlite3_bind_int64(stmt, 2, t->number);
	return store_apply_step(d, t, stmt, rc, e);
}

/* A session that has lost its idle limit meanwhile gets no deadline. */
static int apply_touch(struct store_db *d, struct store_ticket *t, struct err *e)
{
	return apply_number(d, t,
			    "UPDATE session SET idle_ms = ?2 WHERE id = ?1 AND idle_s > 0 AND idle_ms < ?2",
			    t->touched, e);
}

void store_session_touch(struct store *st, const char *id, int64_t idle_ms)
{
	struct store_ticket *t = store_ticket_new(apply_touch, NULL);
	t->touched = xstrdup(id);
	t->number = idle_ms;
	store_writer_touch(st->writer, t);
}

static int apply_generation(struct store_db *d, struct store_ticket *t, struct err *e)
{
	return apply_number(d, t,
			    "UPDATE session SET link_generation = max(link_generation, ?2) WHERE id = ?1",
			    t->key, e);
}

int store_session_generation(struct store *st, const char *id, int64_t generation, struct err *e)
{
	struct store_ticket *t = store_ticket_new(apply_generation, NULL);
	t->key = xstrdup(id);
	t->number = generation;
	int64_t changed = 0;
	if (store_writer_do(st->writer, t, &changed, e) < 0)
		return -(int)e->code;
	return changed ? 0 : err_set(e, ERR_NOT_FOUND, "no such session");
}

static int apply_purge(struct store_db *d, struct store_ticket *t, struct err *e)
{
	static const char sql[] =
		"DELETE FROM session WHERE rowid IN (SELECT rowid FROM session WHERE state IN " ENDED
		" AND ended_ms < ? LIMIT ?)";
	sqlite3_stmt *stmt = NULL;
	if (store_db_prepare(d, sql, &stmt, e) < 0)
		return -(int)e->code;
	int rc = sqlite3_bind_int64(stmt, 1, t->number);
	rc = rc ? rc : sqlite3_bind_int64(stmt, 2, PURGE_STEP);
	return store_apply_step(d, t, stmt, rc, e);
}

int store_session_purge(struct store *st, int64_t ended_before_ms, struct err *e)
{
	int64_t changed;
	do {
		changed = 0;
		struct store_ticket *t = store_ticket_new(apply_purge, NULL);
		t->number = ended_before_ms;
		if (store_writer_do(st->writer, t, &changed, e) < 0)
			return -(int)e->code;
	} while (changed == PURGE_STEP);
	return 0;
}

/* ---- reads ---- */

static int get_by(struct store *st, const char *sql, const char *key, struct session_row *ret, struct err *e)
{
	struct store_arg arg = { key, 0 };
	struct store_query q = { sql, &store_sessions, &arg, 1 };
	int rc = store_read_one(st->readers, &q, ret, e);
	return rc < 0 && e->code == ERR_NOT_FOUND ? err_set(e, ERR_NOT_FOUND, "no such session") : rc;
}

int store_session_get(struct store *st, const char *id, struct session_row *ret, struct err *e)
{
	return get_by(st, SELECT "WHERE id = ?", id, ret, e);
}

int store_session_by_token(struct store *st, const char *token_hash, struct session_row *ret, struct err *e)
{
	return get_by(st, SELECT "WHERE token_hash = ?", token_hash, ret, e);
}

/* ---- the list ---- */

/* A query that grows by conditions; texts are constants, what comes from outside is bound. */
struct listing {
	struct buf sql;
	struct store_arg args[8];
	size_t count;
	struct err err; /* of the buffer: the texts fit by far */
};

static void listing_add(struct listing *q, const char *sql)
{
	if (buf_add(&q->sql, sql, strlen(sql), &q->err) < 0)
		abort();
}

static void listing_text(struct listing *q, const char *sql, const char *text)
{
	listing_add(q, sql);
	q->args[q->count++].text = text;
}

static void listing_number(struct listing *q, const char *sql, int64_t number)
{
	listing_add(q, sql);
	q->args[q->count++].number = number;
}

static bool is_ended(const char *state)
{
	return state && (strcmp(state, "gone") == 0 || strcmp(state, "failed") == 0);
}

/* With a label the walk goes along the labels' own order (CROSS JOIN keeps SQLite to it), else along the
 * sessions'. */
static void listing_label(struct listing *q, const struct session_filter *f)
{
	listing_text(q,
		     "SELECT " COLUMNS
		     " FROM session_label AS l CROSS JOIN session ON id = l.session WHERE l.key = ?",
		     f->label_key);
	if (f->label_value)
		listing_text(q, " AND l.value = ?", f->label_value);
	listing_number(q, " AND l.ended = ?", is_ended(f->state));
}

static void listing_build(struct listing *q, const struct session_filter *f, int64_t after_ms)
{
	bool label = f->label_key != NULL;
	if (label)
		listing_label(q, f);
	else
		listing_add(q, SELECT "WHERE true");
	if (f->state)
		listing_text(q, " AND state = ?", f->state);
	else
		listing_add(q, " AND state NOT IN " ENDED);
	if (f->name)
		listing_text(q, " AND name = ?", f->name);
	if (f->after) {
		listing_number(q, label ? " AND (l.at_ms, l.session) > (?" : " AND (created_ms, id) > (?",
			       after_ms);
		listing_text(q, ", ?)", f->after);
	}
	listing_number(q, label ? " ORDER BY l.at_ms, l.session LIMIT ?" : " ORDER BY created_ms, id LIMIT ?",
		       f->limit);
}

int store_session_list(struct store *st, const struct session_filter *f, struct session_row **ret_rows,
		       size_t *ret_count, struct err *e)
{
	struct session_row last = { 0 };
	if (f->limit < 1 || f->limit > 1000)
		return err_field(e, "limit", "must be from 1 to 1000");
	if (f->after && store_session_get(st, f->after, &last, e) < 0)
		return e->code == ERR_NOT_FOUND
			       ? err_field(e, "cursor", "is too old: start from the beginning")
			       : -(int)e->code;
	struct listing l = { .sql = BUF_INIT(4096) };
	listing_build(&l, f, last.created_ms);
	session_row_clear(&last);
	void *rows = NULL;
	struct store_query q = { l.sql.data, &store_sessions, l.args, l.count };
	int rc = store_read_all(st->readers, &q, &rows, ret_count, e);
	buf_clear(&l.sql);
	if (rc == 0)
		*ret_rows = rows;
	return rc;
}
