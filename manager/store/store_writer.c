/* SPDX-License-Identifier: MIT */
#include "manager/store/store_writer.h"

#include <errno.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "manager/store/store_audit.h"
#include "manager/store/store_checkpoint.h"

#define QUEUE_MAX 4096
#define BATCH_MAX 512
#define LATER_MS 20
#define RETRY_MS 1000
#define IDLE_MS 1000
#define WAIT_MS 10000

struct list {
	struct store_ticket *first, **end;
};

struct store_writer {
	struct store_db *db; /* the thread's alone */
	const char *dir;
	struct store_checkpoint checkpoint; /* the thread's alone */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	/* by lock: */
	struct list queue, touches;
	struct list held; /* for later, and the disk refused them */
	size_t counted;   /* tickets in queue and held that count */
	size_t waited;    /* tickets in queue that somebody waits for */
	int64_t due_ms;   /* when those for later must go; INT64_MAX: there are none */
	int64_t retry_ms; /* when those held are due; INT64_MAX: there are none */
	bool stop;
	struct err last; /* of the last commit */
};

static void list_init(struct list *l)
{
	*l = (struct list){ NULL, &l->first };
}

static void list_add(struct list *l, struct store_ticket *t)
{
	t->next = NULL;
	*l->end = t;
	l->end = &t->next;
}

static struct store_ticket *list_pop(struct list *l)
{
	struct store_ticket *t = l->first;
	if (!t)
		return NULL;
	l->first = t->next;
	if (!l->first)
		l->end = &l->first;
	return t;
}

static void cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t attr;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &attr);
	pthread_condattr_destroy(&attr);
}

/* False when the deadline (monotonic) has passed. */
static bool cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, int64_t deadline_ms)
{
	struct timespec at = { deadline_ms / 1000, (deadline_ms % 1000) * 1000000 };
	return pthread_cond_timedwait(cond, lock, &at) != ETIMEDOUT;
}

/* ---- tickets ---- */

struct store_ticket *store_ticket_new(store_apply_fn apply, const struct audit_row *audit)
{
	struct store_ticket *t = xcalloc(1, sizeof(*t));
	t->apply = apply;
	if (audit)
		store_row_copy(&store_audits, audit, &t->audit);
	if (audit && !t->audit.at_ms)
		t->audit.at_ms = clock_wall_ms();
	cond_init(&t->cond);
	return t;
}

static void ticket_free(struct store_ticket *t)
{
	session_row_clear(&t->session);
	exec_row_clear(&t->exec);
	store_row_clear(&store_audits, &t->audit);
	free(t->touched);
	free(t->key);
	free(t->text);
	pthread_cond_destroy(&t->cond);
	free(t);
}

/* The end of a ticket nobody waits for; outside the lock. */
static void ticket_settle(struct store_ticket *t)
{
	if (t->done)
		t->done(t->ctx, t->err.code == ERR_NONE);
	if (t->err.code)
		LOG(LOG_ERROR, "a write was given up", F("action", t->audit.action), F("error", t->err.msg));
	ticket_free(t);
}

/* ---- one batch, on the writer thread ---- */

static int check_room(const char *dir, struct err *e)
{
	struct statvfs v;
	if (!dir || statvfs(dir, &v) < 0 || !v.f_blocks) /* some file systems do not say */
		return 0;
	if (v.f_flag & ST_RDONLY)
		return err_set(e, ERR_STORE, "the disk of %s is read-only", dir);
	if ((uint64_t)v.f_bavail * v.f_frsize < STORE_FLOOR_BYTES)
		return err_set(e, ERR_STORE, "the disk of %s is full: less than %d MiB are left", dir,
			       STORE_FLOOR_BYTES >> 20);
	return 0;
}

static int insert_audit(struct store_db *d, const struct audit_row *row, struct err *e)
{
	static const char sql[] = "INSERT INTO audit (at_ms, actor" STORE_AUDIT_MORE(
		STORE_NAME) ") VALUES (?, ?" STORE_AUDIT_MORE(STORE_PLACE) ")";
	sqlite3_stmt *stmt = NULL;
	if (store_db_prepare(d, sql, &stmt, e) < 0)
		return -(int)e->code;
	return store_db_step(d, stmt, store_row_bind(&store_audits, stmt, row), e);
}

/* SQLite may have ended the whole transaction because of an error
 * (https://sqlite.org/c3ref/get_autocommit.html). */
static bool transaction_lost(const struct store_db *d)
{
	return sqlite3_get_autocommit(d->db) != 0;
}

static void give_up_transaction(struct store_db *d)
{
	if (!transaction_lost(d))
		sqlite3_exec(d->db, "ROLLBACK", NULL, NULL,
			     NULL); /* the error that led here is the one that counts */
}

static int apply_one(const struct store_writer *w, struct store_ticket *t, struct err *e)
{
	struct store_db *d = w->db;
	t->changed = 0;
	if (store_db_run(d, "SAVEPOINT one", e) < 0)
		return -(int)e->code;
	int rc = t->apply ? t->apply(d, t, e) : 0;
	if (rc == 0 && t->audit.action && (t->changed || !t->apply))
		rc = w->dir ? insert_audit(d, &t->audit, e) : store_audit_print(&t->audit, e);
	if (transaction_lost(d))
		return rc;
	struct err own;
	if ((rc < 0 && store_db_run(d, "ROLLBACK TO one", &own) < 0) ||
	    store_db_run(d, "RELEASE one", &own) < 0) {
		give_up_transaction(d); /* half of the write could be in it */
		*e = rc < 0 ? *e : own;
		rc = -(int)e->code;
	}
	return rc;
}

/* Each ticket's own failure is in it; returns the failure of them all. */
static int apply_all(struct store_writer *w, struct list *batch, struct err *e)
{
	struct err full = { 0 };
	check_room(w->dir, &full);
	if (store_db_run(w->db, "BEGIN IMMEDIATE", e) < 0)
		return -(int)e->code;
	for (struct store_ticket *t = batch->first; t; t = t->next) {
		t->err = (struct err){ 0 };
		if (t->grows && full.code)
			t->err = full;
		else if (apply_one(w, t, &t->err) < 0 && transaction_lost(w->db)) {
			*e = t->err;
			return -(int)e->code;
		}
	}
	return store_db_run(w->db, "COMMIT", e);
}

static void count_write(const struct store_ticket *t)
{
	metrics_add(METRIC_STORE_WRITES, t->err.code ? "failed" : "ok", NULL, 1);
}

/* ---- after the commit ---- */

static void touch_add_locked(struct store_writer *w, struct store_ticket *t)
{
	for (struct store_ticket *old = w->touches.first; old; old = old->next)
		if (strcmp(old->touched, t->touched) == 0) {
			old->number = MAX(old->number, t->number);
			ticket_free(t);
			return;
		}
	list_add(&w->touches, t);
}

/* To be tried again. The order among writes for later does not matter, and theirs to waited ones is past. */
static void hold_locked(struct store_writer *w, struct store_ticket *t)
{
	t->taken = false;
	if (t->touched) {
		touch_add_locked(w, t);
	} else {
		w->counted += t->counted;
		list_add(&w->held, t);
	}
	w->retry_ms = clock_mono_ms() + RETRY_MS;
}

static void finish_locked(struct store_writer *w, struct list *batch, struct list *settled)
{
	struct store_ticket *t;
	while ((t = list_pop(batch))) {
		if (t->later && t->err.code == ERR_STORE && !w->stop) {
			hold_locked(w, t);
			continue;
		}
		count_write(t);
		if (t->later || t->abandoned) {
			list_add(settled, t);
		} else {
			t->finished = true;
			pthread_cond_signal(&t->cond);
		}
	}
}

static void finish(struct store_writer *w, struct list *batch, int64_t took_us, const struct err *e)
{
	struct list settled;
	list_init(&settled);
	for (struct store_ticket *t = batch->first; t && e->code; t = t->next)
		if (!t->err.code)
			t->err = *e;
	pthread_mutex_lock(&w->lock);
	w->last = *e;
	if (!e->code)
		metrics_observe_us(METRIC_STORE_COMMIT_SECONDS, took_us);
	finish_locked(w, batch, &settled);
	pthread_mutex_unlock(&w->lock);
	struct store_ticket *t;
	while ((t = list_pop(&settled)))
		ticket_settle(t);
}

static void run_batch(struct store_writer *w, struct list *batch)
{
	struct err e = { 0 };
	int64_t start_us = clock_mono_us();
	if (apply_all(w, batch, &e) < 0)
		give_up_transaction(w->db);
	finish(w, batch, clock_mono_us() - start_us, &e);
}

/* ---- the thread ---- */

/* Returns when there is something to write, or after a while of nothing. */
static void wait_for_work_locked(struct store_writer *w)
{
	int64_t idle_ms = clock_mono_ms() + IDLE_MS;
	while (!w->waited && !w->stop) {
		int64_t until = MIN(MIN(w->due_ms, w->retry_ms), idle_ms);
		if (until <= clock_mono_ms() || !cond_wait_until(&w->wake, &w->lock, until))
			return;
	}
}

static void retry_locked(struct store_writer *w)
{
	if (!w->stop && clock_mono_ms() < w->retry_ms)
		return;
	struct store_ticket *t;
	while ((t = list_pop(&w->held)))
		list_add(&w->queue, t);
	w->retry_ms = INT64_MAX;
}

/* What is abandoned before it was taken will not happen: its waiter was told so. */
static void take_locked(struct store_writer *w, struct list *batch)
{
	retry_locked(w);
	list_init(batch);
	struct store_ticket *t;
	for (int n = 0; n < BATCH_MAX && (t = list_pop(&w->queue));) {
		w->counted -= t->counted;
		w->waited -= !t->later;
		t->taken = true;
		if (t->abandoned) {
			ticket_free(t);
			continue;
		}
		list_add(batch, t);
		n++;
	}
	while ((t = list_pop(&w->touches))) {
		t->taken = true;
		list_add(batch, t);
	}
	if (!w->queue.first)
		w->due_ms = INT64_MAX;
}

static void *run(void *arg)
{
	struct store_writer *w = arg;
	struct list batch;
	for (;;) {
		pthread_mutex_lock(&w->lock);
		wait_for_work_locked(w);
		take_locked(w, &batch);
		bool idle = !batch.first, stop = w->stop && idle;
		pthread_mutex_unlock(&w->lock);
		if (stop)
			return NULL;
		if (!idle)
			run_batch(w, &batch);
		struct err e = { 0 };
		if (store_checkpoint_run(&w->checkpoint, w->db, idle, &e) < 0) {
			pthread_mutex_lock(&w->lock);
			w->last = e;
			pthread_mutex_unlock(&w->lock);
		}
	}
}

int store_writer_new(struct store_db *d, const char *dir, struct store_writer **ret, struct err *e)
{
	struct store_writer *w = xcalloc(1, sizeof(*w));
	w->db = d;
	w->dir = dir;
	w->due_ms = w->retry_ms = INT64_MAX;
	list_init(&w->queue);
	list_init(&w->held);
	list_init(&w->touches);
	pthread_mutex_init(&w->lock, NULL);
	cond_init(&w->wake);
	store_checkpoint_init(&w->checkpoint, d);
	int rc = pthread_create(&w->thread, NULL, run, w);
	if (rc) {
		pthread_cond_destroy(&w->wake);
		pthread_mutex_destroy(&w->lock);
		free(w);
		return err_sys(e, ERR_STORE, rc, "cannot start the writer thread");
	}
	*ret = w;
	return 0;
}

void store_writer_free(struct store_writer *w)
{
	if (!w)
		return;
	pthread_mutex_lock(&w->lock);
	w->stop = true;
	pthread_cond_signal(&w->wake);
	pthread_mutex_unlock(&w->lock);
	pthread_join(w->thread, NULL);
	store_db_close(w->db);
	pthread_cond_destroy(&w->wake);
	pthread_mutex_destroy(&w->lock);
	free(w);
}

/* ---- queueing ---- */

/* False when there is no room: then the ticket is finished with the reason. */
static bool enqueue_locked(struct store_writer *w, struct store_ticket *t)
{
	t->writer = w;
	if (t->counted && w->counted >= QUEUE_MAX) {
		err_set(&t->err, ERR_STORE, "too many writes wait for the disk");
		t->err.retry_after_s = 1;
		count_write(t);
		t->finished = true;
		return false;
	}
	w->counted += t->counted;
	list_add(&w->queue, t);
	return true;
}

void store_writer_queue(struct store_writer *w, struct store_ticket *t)
{
	pthread_mutex_lock(&w->lock);
	if (enqueue_locked(w, t)) {
		w->waited++;
		pthread_cond_signal(&w->wake);
	}
	pthread_mutex_unlock(&w->lock);
}

/* The writer need not wake but to learn of the first deadline. */
static void later_locked(struct store_writer *w)
{
	if (w->due_ms == INT64_MAX)
		pthread_cond_signal(&w->wake);
	w->due_ms = MIN(w->due_ms, clock_mono_ms() + LATER_MS);
}

void store_writer_later(struct store_writer *w, struct store_ticket *t)
{
	t->later = true;
	pthread_mutex_lock(&w->lock);
	bool queued = enqueue_locked(w, t);
	if (queued)
		later_locked(w);
	pthread_mutex_unlock(&w->lock);
	if (!queued)
		ticket_settle(t);
}

void store_writer_touch(struct store_writer *w, struct store_ticket *t)
{
	t->later = true;
	pthread_mutex_lock(&w->lock);
	touch_add_locked(w, t);
	later_locked(w);
	pthread_mutex_unlock(&w->lock);
}

int store_writer_wait(struct store_ticket *t, int timeout_ms, int64_t *ret_changed, struct err *e)
{
	struct store_writer *w = t->writer;
	int64_t deadline_ms = clock_mono_ms() + timeout_ms;
	pthread_mutex_lock(&w->lock);
	while (!t->finished && cond_wait_until(&t->cond, &w->lock, deadline_ms))
		;
	if (!t->finished) {
		t->abandoned = true; /* the writer frees it */
		bool taken = t->taken;
		pthread_mutex_unlock(&w->lock);
		return taken ? err_set(e, ERR_TIMEOUT,
				       "the store did not answer within %d ms; the write may still happen",
				       timeout_ms)
			     : err_set(e, ERR_STORE, "the store did not come to the write within %d ms",
				       timeout_ms);
	}
	pthread_mutex_unlock(&w->lock);
	int rc = -(int)t->err.code;
	if (rc < 0)
		*e = t->err;
	else if (ret_changed)
		*ret_changed = t->changed;
	ticket_free(t);
	return rc;
}

int store_writer_do(struct store_writer *w, struct store_ticket *t, int64_t *ret_changed, struct err *e)
{
	t->counted = true;
	store_writer_queue(w, t);
	return store_writer_wait(t, WAIT_MS, ret_changed, e);
}

int store_writer_health(struct store_writer *w, struct err *e)
{
	if (check_room(w->dir, e) < 0)
		return -(int)e->code;
	pthread_mutex_lock(&w->lock);
	struct err last = w->last;
	pthread_mutex_unlock(&w->lock);
	if (!last.code)
		return 0;
	*e = last;
	return -(int)e->code;
}
