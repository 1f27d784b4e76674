/* SPDX-License-Identifier: MIT */
#include "runtime/agent/loop.h"

#include <errno.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <time.h>

#include "runtime/agent/fd.h"

#define STEP_MAX_MS 1000
#define BATCH 32

static int64_t monotonic_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int loop_init(struct loop *l)
{
	*l = (struct loop){ .epoll_fd = epoll_create1(EPOLL_CLOEXEC), .real_ms = monotonic_ms() };
	return l->epoll_fd < 0 ? -1 : 0;
}

int loop_watch(struct loop *l, struct watch *w, uint32_t events)
{
	if (events == w->events)
		return 0;
	int op = w->events == 0 ? EPOLL_CTL_ADD : events == 0 ? EPOLL_CTL_DEL : EPOLL_CTL_MOD;
	struct epoll_event event = { .events = events, .data.ptr = w };
	if (epoll_ctl(l->epoll_fd, op, w->fd, &event) < 0)
		return -1;
	w->events = events;
	return 0;
}

void loop_close(struct loop *l, struct watch *w)
{
	if (w->fd < 0)
		return;
	(void)loop_watch(l, w, 0);
	w->events = 0;
	fd_close(&w->fd);
}

static void advance(struct loop *l)
{
	int64_t real = monotonic_ms(), step = real - l->real_ms;

	l->real_ms = real;
	l->now_ms += step < STEP_MAX_MS ? step : STEP_MAX_MS;
}

void loop_run(struct loop *l, int64_t until_ms)
{
	struct epoll_event events[BATCH];
	int64_t left = until_ms - l->now_ms;
	int timeout = left < 0 ? 0 : left < STEP_MAX_MS ? (int)left : STEP_MAX_MS;

	int count = epoll_wait(l->epoll_fd, events, BATCH, timeout);
	advance(l);
	for (int i = 0; i < count; i++) {
		struct watch *w = events[i].data.ptr;
		/* an earlier event of this batch may have closed it */
		if (w->events != 0)
			w->ready(w->ctx, events[i].events);
	}
}
