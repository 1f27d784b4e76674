/* SPDX-License-Identifier: MIT */
/*
 * store_checkpoint.h - when the write-ahead log goes back into the file, and the room both have ahead. The
 * writer thread's alone; inside manager/store only.
 */
#ifndef BERTH_STORE_CHECKPOINT_H
#define BERTH_STORE_CHECKPOINT_H

#include "manager/store/store_db.h"

struct store_checkpoint {
	int pages; /* in the log, as of the last commit */
};

/* Bytes of the log that are allocated ahead: flushes are quick, and it is the reserve of a full disk. */
#define STORE_WAL_BYTES (8 << 20)

/*
 * Gives the log its bytes; ERR_STORE with the disk's reason. After the first write to a new file (SQLite
 * removes the log of an empty one) and while no other thread writes.
 */
int store_checkpoint_reserve(const char *wal_path, struct err *e) NODISCARD;

/* *c must stay where it is while the connection is open. */
void store_checkpoint_init(struct store_checkpoint *c, struct store_db *d);

/* After each batch, and with idle when there was none for a while. Fails like a commit, and is tried again by
 * the next call. */
int store_checkpoint_run(struct store_checkpoint *c, struct store_db *d, bool idle, struct err *e) NODISCARD;

#endif
