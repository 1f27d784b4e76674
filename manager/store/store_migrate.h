/* SPDX-License-Identifier: MIT */
/*
 * store_migrate.h - the numbered changes of the schema (migrations/NNNN_*.sql, embedded at build) and the
 * table that says which of them a file has seen. Inside manager/store only.
 */
#ifndef BERTH_STORE_MIGRATE_H
#define BERTH_STORE_MIGRATE_H

#include "manager/store/store_db.h"

struct store_migration {
	const char *name; /* "0001_sessions"; NULL ends the array */
	const char *sql;
	size_t len;
};

/* Made by the build from migrations/, in order. */
extern const struct store_migration store_migrations[];

/*
 * Applies what is missing, each in a transaction of its own. ERR_STORE when one that was applied has another
 * name or checksum now, or when the file has seen more than there are here. *ret_applied: how many were
 * applied.
 */
int store_migrate(struct store_db *d, const struct store_migration *all, int *ret_applied,
		  struct err *e) NODISCARD;

#endif
