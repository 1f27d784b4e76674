/* SPDX-License-Identifier: MIT */
/*
 * local.h - the sandbox that berthd itself runs in: its agent is a child, linked by a socketpair.
 *
 * berthd is PID 1 of the container, or anything else where that was allowed; then it is the reaper of what
 * its agent leaves behind (prctl(2), PR_SET_CHILD_SUBREAPER). All processes there have berthd's own uid, so
 * what berthd keeps from them it keeps by not being dumpable.
 *
 * One at a time. Any thread; no lock is held over a wait.
 */
#ifndef BERTH_LOCAL_H
#define BERTH_LOCAL_H

#include "runtime/sandbox.h"

struct local;

/* binary: the agent's path, borrowed. */
struct local *local_new(struct channels *cs, const char *binary) NODISCARD;
void local_free(struct local *l);

/*
 * Starts the agent, with an empty environment and no descriptor but its link, and waits for its hello.
 * ret->container is "local". ERR_SANDBOX: it is not this release's, or did not come up. Nothing is left
 * behind on failure but what local_end() ends.
 */
int local_start(struct local *l, int timeout_ms, struct sandbox *ret, struct err *e) NODISCARD;

/*
 * Kills every process there is but this one and those it may not signal. As PID 1 that is one call, which no
 * fork escapes (kill(2) with pid -1); else all that descend from this process. ERR_TIMEOUT: some are left.
 */
int local_end(int timeout_ms, struct err *e) NODISCARD;

/* Reaps children that have ended; an agent that a command has stopped is killed. On each SIGCHLD. */
void local_reap(struct local *l);

#endif
