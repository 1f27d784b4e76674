/* SPDX-License-Identifier: MIT */
/*
 * cancel.h - SIGTERM as something that a built-in looks at between two steps, so that it can take away what
 * is half done. The KILL that follows after the job's grace needs no look.
 */
#ifndef BERTH_AGENT_CANCEL_H
#define BERTH_AGENT_CANCEL_H

#include <stdbool.h>

#define CANCEL_EXIT 143 /* as a shell calls the end by SIGTERM */

/* Holds SIGTERM back from now on. A descriptor that is readable when there was one; -1 with errno. */
int cancel_open(void);

/* Has there been one? */
bool cancel_asked(int fd);

/* Waits until in_fd has something, or its end, or at most timeout_ms (-1: for ever). False when SIGTERM came.
 */
bool cancel_wait(int fd, int in_fd, int timeout_ms);

#endif
