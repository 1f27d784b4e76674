/* SPDX-License-Identifier: MIT */
#include "manager/store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "manager/store/store_checkpoint.h"
#include "manager/store/store_impl.h"
#include "manager/store/store_migrate.h"

#define AUDIT_PURGE_STEP 500 /* so that the writer is never long away from commands that start */

/* ---- opening ---- */

/* One berthd per folder: two SQLite libraries on one file are no trouble, two managers are. */
static int lock_dir(struct store *st, struct err *e)
{
	_cleanup_free_ char *path = xasprintf("%s/lock", st->dir);
	if (mkdir(st->dir, 0700) < 0 && errno != EEXIST)
		return err_sys(e, ERR_STORE, errno, "cannot make the folder %s", st->dir);
	st->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (st->lock_fd < 0)
		return err_sys(e, ERR_STORE, errno, "cannot open %s", path);
	if (flock(st->lock_fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? err_set(e, ERR_STORE, "another berthd uses %s", st->dir)
					    : err_sys(e, ERR_STORE, errno, "cannot lock %s", path);
	return 0;
}

/*
 * Made here, since SQLite would make it readable for others; its companions inherit the mode. Closed before
 * SQLite opens it: closing any descriptor of a file drops the process's locks on it (fcntl(2),
 * https://sqlite.org/howtocorrupt.html).
 */
static int make_file(const char *path, struct err *e)
{
	_cleanup_close_ int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return err_sys(e, ERR_STORE, errno, "cannot open %s", path);
	return fchmod(fd, 0600) == 0 ? 0 : err_sys(e, ERR_STORE, errno, "cannot protect %s", path);
}

static int open_writer(struct store *st, struct err *e)
{
	_cleanup_free_ char *wal = xasprintf("%s-wal", st->path);
	_cleanup_(store_db_close_cleanup_) struct store_db *d = NULL;
	int applied = 0;
	if (store_db_open(st->path, true, &d, e) < 0 || store_migrate(d, store_migrations, &applied, e) < 0 ||
	    (st->dir && store_checkpoint_reserve(wal, e) < 0) ||
	    store_writer_new(d, st->dir, &st->writer, e) < 0)
		return -(int)e->code;
	d = NULL; /* the writer's now */
	if (applied && st->dir)
		LOG(LOG_INFO, "store migrated", F("file", st->path), F("migrations", applied));
	return 0;
}

/* A database that the connections of this process share by its name (SQLite's VFS "memdb", since 3.36). */
static char *memory_path(void)
{
	char id[ID_SIZE];
	id_new("m_", id);
	return xasprintf(STORE_MEMORY "/%s?vfs=memdb", id);
}

int store_open(const char *dir, struct store **ret, struct err *e)
{
	_cleanup_(store_close_cleanup_) struct store *st = xcalloc(1, sizeof(*st));
	st->lock_fd = -1;
	st->dir = dir ? xstrdup(dir) : NULL;
	st->path = dir ? xasprintf("%s/berth.db", dir) : memory_path();
	if ((dir && (lock_dir(st, e) < 0 || make_file(st->path, e) < 0)) || open_writer(st, e) < 0 ||
	    store_readers_new(st->path, &st->readers, e) < 0)
		return -(int)e->code;
	*ret = STEAL_PTR(st);
	return 0;
}

void store_close(struct store *st)
{
	if (!st)
		return;
	store_readers_free(st->readers); /* first: the last connection to close writes the log back */
	store_writer_free(st->writer);
	if (st->lock_fd >= 0)
		close(st->lock_fd);
	free(st->path);
	free(st->dir);
	free(st);
}

/* ---- health and figures ---- */

int store_check(struct store *st, struct err *e)
{
	if (store_writer_health(st->writer, e) == 0)
		return 0;
	char now[CLOCK_TEXT_SIZE];
	clock_format(clock_wall_ms(), now);
	if (store_set_value(st, "checked", now, e) < 0)
		return -(int)e->code;
	return store_writer_health(st->writer, e);
}

int store_apply_step(struct store_db *d, struct store_ticket *t, sqlite3_stmt *stmt, int rc, struct err *e)
{
	rc = store_db_step(d, stmt, rc, e);
	if (rc == 0)
		t->changed = sqlite3_changes64(d->db);
	return rc;
}

/* ---- named values ---- */

struct value_row {
	char *value;
};

static const struct store_column value_columns[] = { { offsetof(struct value_row, value), true } };
static const struct store_table values = { value_columns, ARRAY_LEN(value_columns),
					   sizeof(struct value_row) };

int store_get_value(struct store *st, const char *key, char **ret, struct err *e)
{
	struct store_arg arg = { key, 0 };
	struct store_query q = { "SELECT value FROM value WHERE key = ?", &values, &arg, 1 };
	struct value_row row = { 0 };
	int rc = store_read_one(st->readers, &q, &row, e);
	if (rc < 0 && e->code != ERR_NOT_FOUND)
		return rc;
	*ret = row.value;
	return 0;
}

static int apply_value(struct store_db *d, struct store_ticket *t, struct err *e)
{
	static const char sql[] = "INSERT INTO value (key, value) VALUES (?, ?) "
				  "ON CONFLICT (key) DO UPDATE SET value = excluded.value";
	sqlite3_stmt *stmt = NULL;
	if (store_db_prepare(d, sql, &stmt, e) < 0)
		return -(int)e->code;
	int rc = sqlite3_bind_text(stmt, 1, t->key, -1, SQLITE_STATIC);
	rc = rc ? rc : sqlite3_bind_text(stmt, 2, t->text, -1, SQLITE_STATIC);
	return store_apply_step(d, t, stmt, rc, e);
}

int store_set_value(struct store *st, const char *key, const char *value, struct err *e)
{
	struct store_ticket *t = store_ticket_new(apply_value, NULL);
	t->key = xstrdup(key);
	t->text = xstrdup(value);
	return store_writer_do(st->writer, t, NULL, e);
}

/* ---- audit rows alone ---- */

int store_audit(struct store *st, const struct audit_row *row, struct err *e)
{
	struct store_ticket *t = store_ticket_new(NULL, row);
	t->grows = true;
	return store_writer_do(st->writer, t, NULL, e);
}

void store_audit_later(struct store *st, const struct audit_row *row)
{
	struct store_ticket *t = store_ticket_new(NULL, row);
	t->grows = t->counted = true;
	store_writer_later(st->writer, t);
}

/* Looks at the oldest rows only: there is no index of their times, which every row would pay for. */
static int apply_audit_purge(struct store_db *d, struct store_ticket *t, struct err *e)
{
	static const char sql[] = "DELETE FROM audit WHERE id IN (SELECT id FROM "
				  "(SELECT id, at_ms FROM audit ORDER BY id LIMIT ?2) WHERE at_ms < ?1)";
	sqlite3_stmt *stmt = NULL;
	if (store_db_prepare(d, sql, &stmt, e) < 0)
		return -(int)e->code;
	int rc = sqlite3_bind_int64(stmt, 1, t->number);
	rc = rc ? rc : sqlite3_bind_int64(stmt, 2, AUDIT_PURGE_STEP);
	return store_apply_step(d, t, stmt, rc, e);
}

int store_audit_purge(struct store *st, int64_t before_ms, struct err *e)
{
	int64_t changed = AUDIT_PURGE_STEP;
	for (int i = 0; i < STORE_AUDIT_PURGE_MAX / AUDIT_PURGE_STEP && changed == AUDIT_PURGE_STEP; i++) {
		changed = 0;
		struct store_ticket *t = store_ticket_new(apply_audit_purge, NULL);
		t->number = before_ms;
		if (store_writer_do(st->writer, t, &changed, e) < 0)
			return -(int)e->code;
	}
	return 0;
}
