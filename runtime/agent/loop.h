/* SPDX-License-Identifier: MIT */
/*
 * loop.h - one epoll set and the agent's clock.
 *
 * The clock counts milliseconds in steps of at most a second, so that the time in which a
 * sandbox was frozen is no one's deadline.
 */
#ifndef BERTH_AGENT_LOOP_H
#define BERTH_AGENT_LOOP_H

#include <stdbool.h>
#include <stdint.h>

struct loop {
	int epoll_fd;
	int64_t now_ms;  /* the agent's clock; 0 at its start */
	int64_t real_ms; /* CLOCK_MONOTONIC at the last step */
};

#define LOOP_NEVER INT64_MAX

/* A descriptor and who wants to hear of it. Lives as long as the loop; fd -1 when unused. */
struct watch {
	int fd;
	uint32_t events; /* what is waited for; 0: not in the set */
	void (*ready)(void *ctx, uint32_t events);
	void *ctx;
};

int loop_init(struct loop *l);

/*
 * Waits for EPOLLIN and/or EPOLLOUT of w->fd, 0 for neither. A descriptor that is waited for
 * neither is not in the set at all, since a hang-up cannot be masked (epoll_ctl(2)). 0 or -1.
 */
int loop_watch(struct loop *l, struct watch *w, uint32_t events);

/* Leaves the set and closes. */
void loop_close(struct loop *l, struct watch *w);

/* Waits for events until until_ms on the agent's clock, a second at most, and hands them out. */
void loop_run(struct loop *l, int64_t until_ms);

#endif
