/* SPDX-License-Identifier: MIT */
#include "manager/workers.h"

#include <pthread.h>

struct work {
	worker_fn fn;
	void *arg;
};

struct workers {
	pthread_mutex_t lock; /* all below */
	pthread_cond_t changed;
	bool stop;
	int threads, max, first, count;
	pthread_t *ids;
	struct work *ring;
};

static bool take(struct workers *w, struct work *ret)
{
	pthread_mutex_lock(&w->lock);
	while (!w->count && !w->stop)
		pthread_cond_wait(&w->changed, &w->lock);
	bool got = w->count > 0;
	if (got) {
		*ret = w->ring[w->first];
		w->first = (w->first + 1) % w->max;
		w->count--;
	}
	pthread_mutex_unlock(&w->lock);
	return got;
}

static void *worker_main(void *arg)
{
	struct work work;
	while (take(arg, &work))
		work.fn(work.arg);
	return NULL;
}

int workers_new(int threads, int queue_max, struct workers **ret, struct err *e)
{
	struct workers *w = xcalloc(1, sizeof(*w));
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->changed, NULL);
	w->max = queue_max;
	w->ring = xcalloc((size_t)queue_max, sizeof(*w->ring));
	w->ids = xcalloc((size_t)threads, sizeof(*w->ids));
	for (; w->threads < threads; w->threads++) {
		int sys = pthread_create(&w->ids[w->threads], NULL, worker_main, w);
		if (sys) {
			workers_free(w);
			return err_sys(e, ERR_INTERNAL, sys, "cannot start a worker thread");
		}
	}
	*ret = w;
	return 0;
}

void workers_free(struct workers *w)
{
	if (!w)
		return;
	pthread_mutex_lock(&w->lock);
	w->stop = true;
	pthread_cond_broadcast(&w->changed);
	pthread_mutex_unlock(&w->lock);
	for (int i = 0; i < w->threads; i++)
		pthread_join(w->ids[i], NULL);
	pthread_mutex_destroy(&w->lock);
	pthread_cond_destroy(&w->changed);
	free(w->ring);
	free(w->ids);
	free(w);
}

bool workers_add(struct workers *w, worker_fn fn, void *arg)
{
	pthread_mutex_lock(&w->lock);
	bool room = !w->stop && w->count < w->max;
	if (room) {
		w->ring[(w->first + w->count) % w->max] = (struct work){ fn, arg };
		w->count++;
		pthread_cond_signal(&w->changed);
	}
	pthread_mutex_unlock(&w->lock);
	return room;
}
