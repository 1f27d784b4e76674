/* SPDX-License-Identifier: MIT */
/*
 * interrupt.h - Ctrl-C, SIGTERM and SIGHUP as something to poll for, so that no code runs in a signal handler
 * and a cleanup can be waited for. One per program; for the main thread before any other starts.
 */
#ifndef BERTH_CLI_INTERRUPT_H
#define BERTH_CLI_INTERRUPT_H

#include "base/err.h"

struct interrupt {
	int fd;     /* becomes readable with a signal */
	int count;  /* signals taken so far */
	int signal; /* the first of them, 0: none */
};

/* Blocks the signals that are not ignored (as by nohup) and ignores SIGPIPE: a write says EPIPE instead. */
int interrupt_open(struct interrupt *ret, struct err *e) NODISCARD;
/* Waits for a signal, at most so long. Takes none. */
void interrupt_await(const struct interrupt *i, int timeout_ms);
/* Takes what has come; true when there was something. Does not wait. */
bool interrupt_take(struct interrupt *i);

#endif
