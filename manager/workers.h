/* SPDX-License-Identifier: MIT */
/*
 * workers.h - a few threads for work that waits for the engine: links to be opened, sessions to
 * be ended. A bounded queue; any thread may add.
 */
#ifndef BERTH_WORKERS_H
#define BERTH_WORKERS_H

#include "base/err.h"

struct workers;
typedef void (*worker_fn)(void *arg);

int workers_new(int threads, int queue_max, struct workers **ret, struct err *e) NODISCARD;
/* Runs what is queued to its end and stops. */
void workers_free(struct workers *w);
/* False when the queue is full or it is stopping: the caller tries again later. */
bool workers_add(struct workers *w, worker_fn fn, void *arg) NODISCARD;

#endif
