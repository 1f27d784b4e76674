/* SPDX-License-Identifier: MIT */
#include "manager/store/store_read.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"

#define READERS 4
#define WAIT_MS 5000

struct store_readers {
	pthread_mutex_t lock;
	pthread_cond_t free_again;
	struct store_db *all[READERS];
	struct store_db *free[READERS]; /* by lock: a stack, so that few stay warm */
	size_t free_count;              /* by lock */
};

int store_readers_new(const char *path, struct store_readers **ret, struct err *e)
{
	_cleanup_(store_readers_free_cleanup_) struct store_readers *r = xcalloc(1, sizeof(*r));
	pthread_condattr_t attr;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&r->free_again, &attr);
	pthread_condattr_destroy(&attr);
	pthread_mutex_init(&r->lock, NULL);
	for (; r->free_count < READERS; r->free_count++) {
		if (store_db_open(path, false, &r->all[r->free_count], e) < 0)
			return -(int)e->code;
		r->free[r->free_count] = r->all[r->free_count];
	}
	*ret = STEAL_PTR(r);
	return 0;
}

void store_readers_free(struct store_readers *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < READERS; i++)
		store_db_close(r->all[i]);
	pthread_cond_destroy(&r->free_again);
	pthread_mutex_destroy(&r->lock);
	free(r);
}

static struct store_db *take(struct store_readers *r)
{
	int64_t until_ms = clock_mono_ms() + WAIT_MS;
	struct timespec at = { until_ms / 1000, (until_ms % 1000) * 1000000 };
	struct store_db *d = NULL;
	pthread_mutex_lock(&r->lock);
	while (!r->free_count && pthread_cond_timedwait(&r->free_again, &r->lock, &at) != ETIMEDOUT)
		;
	if (r->free_count)
		d = r->free[--r->free_count];
	pthread_mutex_unlock(&r->lock);
	return d;
}

static void give(struct store_readers *r, struct store_db *d)
{
	pthread_mutex_lock(&r->lock);
	r->free[r->free_count++] = d;
	pthread_cond_signal(&r->free_again);
	pthread_mutex_unlock(&r->lock);
}

struct rows {
	const struct store_table *table;
	char *items;
	size_t count, room;
};

static void rows_add(struct rows *rows, sqlite3_stmt *stmt)
{
	size_t size = rows->table->size;
	if (rows->count == rows->room) {
		rows->room = rows->room ? rows->room * 2 : 8;
		rows->items = realloc(rows->items, rows->room * size);
		if (!rows->items)
			abort();
	}
	store_row_read(rows->table, stmt, rows->items + rows->count++ * size);
}

static int bind_args(sqlite3_stmt *stmt, const struct store_query *q)
{
	int rc = SQLITE_OK;
	for (size_t i = 0; i < q->count && rc == SQLITE_OK; i++)
		rc = q->args[i].text ? sqlite3_bind_text(stmt, (int)i + 1, q->args[i].text, -1, SQLITE_STATIC)
				     : sqlite3_bind_int64(stmt, (int)i + 1, q->args[i].number);
	return rc;
}

static int query(struct store_db *d, const struct store_query *q, struct rows *rows, struct err *e)
{
	sqlite3_stmt *stmt = NULL;
	if (store_db_prepare(d, q->sql, &stmt, e) < 0)
		return -(int)e->code;
	int rc = bind_args(stmt, q);
	while ((rc = store_db_step(d, stmt, rc, e)) == 1) {
		rows_add(rows, stmt);
		rc = SQLITE_OK;
	}
	return rc;
}

int store_read_all(struct store_readers *r, const struct store_query *q, void **ret_rows, size_t *ret_count,
		   struct err *e)
{
	struct store_db *d = take(r);
	if (!d)
		return err_set(e, ERR_STORE, "no reader of the store came free within %d ms", WAIT_MS);
	struct rows rows = { .table = q->table };
	int rc = query(d, q, &rows, e);
	give(r, d);
	if (rc < 0) {
		store_rows_free(q->table, rows.items, rows.count);
		return rc;
	}
	*ret_rows = rows.items;
	*ret_count = rows.count;
	return 0;
}

int store_read_one(struct store_readers *r, const struct store_query *q, void *ret_row, struct err *e)
{
	void *rows = NULL;
	size_t found = 0;
	if (store_read_all(r, q, &rows, &found, e) < 0)
		return -(int)e->code;
	if (!found)
		return err_set(e, ERR_NOT_FOUND, "no such row");
	assert(found == 1);
	memcpy(ret_row, rows, q->table->size); /* its texts move with it */
	free(rows);
	return 0;
}
