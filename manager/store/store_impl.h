/* SPDX-License-Identifier: MIT */
/* store_impl.h - the parts a store is made of, for the files of manager/store that put queries to it. */
#ifndef BERTH_STORE_IMPL_H
#define BERTH_STORE_IMPL_H

#include "manager/store/store_read.h"
#include "manager/store/store_writer.h"

struct store {
	char *dir, *path;
	int lock_fd;
	struct store_writer *writer;
	struct store_readers *readers;
};

/* A statement whose parameters are bound (rc), as an act of a ticket: sets t->changed. */
int store_apply_step(struct store_db *d, struct store_ticket *t, sqlite3_stmt *stmt, int rc,
		     struct err *e) NODISCARD;

#endif
