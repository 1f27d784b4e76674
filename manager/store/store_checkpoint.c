/* SPDX-License-Identifier: MIT */
#include "manager/store/store_checkpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

/* Pages of 4 KiB in the log: worth it when nothing else is to do; due; wait for readers to leave, so that the
 * log starts anew. */
#define IDLE_PAGES 100
#define DUE_PAGES 1000
#define RESTART_PAGES 1900

/* The file grows by chunks and keeps this much ahead, so that a full disk does not stop a checkpoint. */
#define CHUNK_BYTES (1 << 20)

/*
 * SQLite appends to the log and each flush of a file that grows commits the file system's journal too; one
 * whose bytes are there already is flushed alone. What stands after the last valid frame is never read
 * (https://sqlite.org/fileformat2.html#the_write_ahead_log), so zeros are as good as nothing. They are
 * written, not reserved with fallocate: turning a reserved extent into a written one is a journal commit
 * again.
 */
int store_checkpoint_reserve(const char *wal_path, struct err *e)
{
	static const char zeros[1 << 16];
	_cleanup_close_ int fd = open(wal_path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	struct stat s;
	if (fd < 0 || fstat(fd, &s) < 0)
		return err_sys(e, ERR_STORE, errno, "cannot open %s", wal_path);
	while (s.st_size < STORE_WAL_BYTES) {
		size_t want = MIN(sizeof(zeros), (size_t)(STORE_WAL_BYTES - s.st_size));
		ssize_t n = pwrite(fd, zeros, want, s.st_size);
		if (n <= 0)
			return err_sys(e, ERR_STORE, errno, "cannot reserve %d MiB in %s",
				       STORE_WAL_BYTES >> 20, wal_path);
		s.st_size += n;
	}
	return fsync(fd) == 0 ? 0 : err_sys(e, ERR_STORE, errno, "cannot flush %s", wal_path);
}

static int on_commit(void *ctx, sqlite3 *db, const char *name, int pages)
{
	(void)db;
	(void)name;
	struct store_checkpoint *c = ctx;
	c->pages = pages;
	return SQLITE_OK;
}

/* A checkpoint cuts the file to whole chunks: take the next one when the last is nearly used. Best effort by
 * its nature. */
static void keep_ahead(struct store_db *d)
{
	struct err e;
	sqlite3_stmt *stmt = NULL;
	if (store_db_prepare(d, "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size",
			     &stmt, &e) < 0 ||
	    store_db_step(d, stmt, SQLITE_OK, &e) != 1)
		return;
	sqlite3_int64 want = sqlite3_column_int64(stmt, 0) + CHUNK_BYTES;
	sqlite3_reset(stmt);
	sqlite3_file_control(d->db, "main", SQLITE_FCNTL_SIZE_HINT, &want);
}

void store_checkpoint_init(struct store_checkpoint *c, struct store_db *d)
{
	int chunk = CHUNK_BYTES;
	*c = (struct store_checkpoint){ 0 };
	sqlite3_file_control(d->db, "main", SQLITE_FCNTL_CHUNK_SIZE, &chunk);
	/* A log that had to grow is cut to its reserve when it starts anew, and no further. */
	sqlite3_exec(d->db, "PRAGMA journal_size_limit = 8388608", NULL, NULL, NULL);
	_Static_assert(STORE_WAL_BYTES == 8388608, "the pragma above");
	sqlite3_wal_hook(d->db, on_commit, c);
	keep_ahead(d);
}

int store_checkpoint_run(struct store_checkpoint *c, struct store_db *d, bool idle, struct err *e)
{
	if (c->pages < (idle ? IDLE_PAGES : DUE_PAGES))
		return 0;
	int mode = c->pages >= RESTART_PAGES ? SQLITE_CHECKPOINT_RESTART : SQLITE_CHECKPOINT_PASSIVE;
	int log = 0, done = 0;
	int rc = sqlite3_wal_checkpoint_v2(d->db, NULL, mode, &log, &done);
	if (rc == SQLITE_BUSY) /* a reader stayed longer than the connection waits: the next call goes on */
		return 0;
	if (rc != SQLITE_OK) {
		store_db_fail(d, rc, e);
		return err_wrap(e, "checkpoint");
	}
	if (done == log)
		c->pages = 0;
	keep_ahead(d);
	return 0;
}
