/* SPDX-License-Identifier: MIT */
/*
 * line.h - a bounded number of places in a session, and the line in front of them: first come, first served.
 * A line belongs to its session: everything in it is under the session's lock.
 */
#ifndef BERTH_LINE_H
#define BERTH_LINE_H

#include <sys/queue.h>

#include "base/err.h"

struct session;
struct line_waiter;

struct line {
	TAILQ_HEAD(, line_waiter) queue;
	int queued, taken;
	bool (*has_room)(const struct session *s); /* called with the session's lock held */
	int (*refuse)(int taken, struct err *e);   /* says what is full; fills *e and returns its code */
};

void line_init(struct line *l, bool (*has_room)(const struct session *), int (*refuse)(int, struct err *));

/*
 * Waits for a place. The line's refusal when the time is over, or at once when it is too long; ERR_CONFLICT
 * when the client (client_fd, -1: none) has hung up, ERR_STOPPING.
 */
int line_take(struct session *s, struct line *l, int timeout_ms, int client_fd, struct err *e) NODISCARD;

/* Gives `places` back (0: only looks whether there is room now) and lets in who is next. */
void line_give_locked(struct session *s, struct line *l, int places);

#endif
