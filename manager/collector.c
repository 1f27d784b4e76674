/* SPDX-License-Identifier: MIT */
/* Reads the jobs whose starter is gone, so that they are drained, ended and stored. One thread, never waits
 * for one of them. */
#include "manager/internal.h"

struct collector {
	pthread_t thread;
	pthread_mutex_t lock; /* all below, and the queue's fields in struct exec */
	pthread_cond_t changed;
	bool stop;
	TAILQ_HEAD(, exec) ready;
};

static struct exec *take(struct collector *c)
{
	pthread_mutex_lock(&c->lock);
	while (TAILQ_EMPTY(&c->ready) && !c->stop)
		pthread_cond_wait(&c->changed, &c->lock);
	struct exec *x = c->stop ? NULL : TAILQ_FIRST(&c->ready);
	if (x) {
		TAILQ_REMOVE(&c->ready, x, ready);
		x->is_ready = false;
	}
	pthread_mutex_unlock(&c->lock);
	return x;
}

static void *collector_main(void *arg)
{
	struct exec *x;
	while ((x = take(arg))) {
		exec_collect(x);
		exec_put(x);
	}
	return NULL;
}

int collector_new(struct collector **ret, struct err *e)
{
	struct collector *c = xcalloc(1, sizeof(*c));
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->changed, NULL);
	TAILQ_INIT(&c->ready);
	int sys = pthread_create(&c->thread, NULL, collector_main, c);
	if (sys) {
		free(c);
		return err_sys(e, ERR_INTERNAL, sys, "cannot start the collector's thread");
	}
	*ret = c;
	return 0;
}

void collector_stop(struct collector *c)
{
	if (!c)
		return;
	pthread_mutex_lock(&c->lock);
	bool stopped = c->stop;
	c->stop = true;
	pthread_cond_signal(&c->changed);
	pthread_mutex_unlock(&c->lock);
	if (stopped)
		return;
	pthread_join(c->thread, NULL);
	struct exec *x;
	while ((x = TAILQ_FIRST(&c->ready))) {
		TAILQ_REMOVE(&c->ready, x, ready);
		exec_put(x);
	}
}

void collector_free(struct collector *c)
{
	if (!c)
		return;
	collector_stop(c);
	pthread_mutex_destroy(&c->lock);
	pthread_cond_destroy(&c->changed);
	free(c);
}

void collector_wake(struct collector *c, struct exec *x)
{
	pthread_mutex_lock(&c->lock);
	if (!x->is_ready && !c->stop) {
		x->is_ready = true;
		atomic_fetch_add(&x->refs, 1);
		TAILQ_INSERT_TAIL(&c->ready, x, ready);
		pthread_cond_signal(&c->changed);
	}
	pthread_mutex_unlock(&c->lock);
}

void collector_notify(void *exec)
{
	struct exec *x = exec;
	collector_wake(x->session->manager->collector, x);
}
