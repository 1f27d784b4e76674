/* SPDX-License-Identifier: MIT */
/*
 * store_writer.h - the queue of writes and the one thread that commits them. Any thread may queue; inside
 * manager/store only.
 *
 * A write is a ticket: copies of what it needs and a function that runs on the writer thread inside a
 * savepoint. Two kinds: those somebody waits for are committed at once and fail to the one who waits; those
 * for later ride along with the next commit or go after some milliseconds, and are kept and tried again while
 * the disk refuses. Bounds: waited ones and audit rows for later share one count; ends of execs are as many
 * as execs run (none starts while the disk refuses); touches are one per session.
 */
#ifndef BERTH_STORE_WRITER_H
#define BERTH_STORE_WRITER_H

#include <pthread.h>

#include "manager/store/store_db.h"
#include "manager/store/store_row.h"

struct store_writer;

/* Runs on the writer thread inside a savepoint; sets t->changed to the number of rows. */
typedef int (*store_apply_fn)(struct store_db *d, struct store_ticket *t, struct err *e);

struct store_ticket {
	/* What to do: set by the maker, each text owned by the ticket. */
	store_apply_fn apply;
	bool grows;   /* refused on a disk that is nearly full, so that ends and deletes still fit */
	bool counted; /* against the bound of the queue */
	struct session_row session;
	struct exec_row exec;
	struct audit_row audit; /* written after apply, unless action is NULL or nothing changed */
	char *touched;          /* the session, of a touch */
	char *key, *text;
	int64_t number, most;
	store_done_fn done;
	void *ctx;

	/* What became of it: by the writer's lock. */
	int64_t changed;
	struct err err; /* code 0: committed */
	bool later;     /* nobody waits */
	bool taken, finished, abandoned;
	pthread_cond_t cond;
	struct store_writer *writer;
	struct store_ticket *next;
};

/* audit may be NULL. */
struct store_ticket *store_ticket_new(store_apply_fn apply, const struct audit_row *audit) NODISCARD;

/* The writer owns the connection from here on. dir: borrowed, whose free space is watched. */
int store_writer_new(struct store_db *d, const char *dir, struct store_writer **ret, struct err *e) NODISCARD;
/* Commits what is queued, once; what that fails is given up. */
void store_writer_free(struct store_writer *w);

/* A write that is waited for: give the ticket to store_writer_wait(). */
void store_writer_queue(struct store_writer *w, struct store_ticket *t);
/* One that is not: the ticket is the writer's now. */
void store_writer_later(struct store_writer *w, struct store_ticket *t);
/* Likewise, a touch: joined with one for the same session (t->touched) that has not been written yet. */
void store_writer_touch(struct store_writer *w, struct store_ticket *t);
/* As store_wait(); *ret_changed may be NULL. */
int store_writer_wait(struct store_ticket *t, int timeout_ms, int64_t *ret_changed, struct err *e) NODISCARD;
/* Queue and wait with the usual deadline. */
int store_writer_do(struct store_writer *w, struct store_ticket *t, int64_t *ret_changed,
		    struct err *e) NODISCARD;

/* Room for writes that grow, and did the last commit work? */
int store_writer_health(struct store_writer *w, struct err *e) NODISCARD;

/* With less free than this, writes that grow are refused. */
#define STORE_FLOOR_BYTES (4 << 20)

#endif
