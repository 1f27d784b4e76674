/* SPDX-License-Identifier: MIT */
/*
 * store_read.h - a few read-only connections for all threads, and the two shapes of a read. Inside
 * manager/store only.
 */
#ifndef BERTH_STORE_READ_H
#define BERTH_STORE_READ_H

#include "manager/store/store_db.h"
#include "manager/store/store_row.h"

struct store_readers;

int store_readers_new(const char *path, struct store_readers **ret, struct err *e) NODISCARD;
void store_readers_free(struct store_readers *r); /* no read is under way */
DEFINE_CLEANUP(struct store_readers *, store_readers_free)

/* Parameters of a statement in order: a text, or a number when text is NULL. */
struct store_arg {
	const char *text;
	int64_t number;
};

struct store_query {
	const char *sql; /* its columns are those of the table, in its order */
	const struct store_table *table;
	const struct store_arg *args;
	size_t count;
};

/* ERR_NOT_FOUND when there is no row. */
int store_read_one(struct store_readers *r, const struct store_query *q, void *ret_row,
		   struct err *e) NODISCARD;
/* The statement has a LIMIT. *ret_rows is owned by the caller (store_rows_free). */
int store_read_all(struct store_readers *r, const struct store_query *q, void **ret_rows, size_t *ret_count,
		   struct err *e) NODISCARD;

#endif
