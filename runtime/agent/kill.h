/* SPDX-License-Identifier: MIT */
/*
 * kill.h - ending whole trees of processes.
 *
 * Stop, scan, kill: SIGSTOP everything until a picture shows nothing new, then SIGKILL. Killing
 * alone never catches a fork bomb. One picture at a time, so that PID 1 stays responsive.
 */
#ifndef BERTH_AGENT_KILL_H
#define BERTH_AGENT_KILL_H

#include "runtime/agent/tree.h"

#define KILL_DEADLINE_MS 5000 /* what is left then survives, and the sandbox is not to be trusted */

enum kill_phase {
	KILL_NONE,
	KILL_GRACE, /* TERM was sent */
	KILL_ACTIVE,
	KILL_OVER, /* nothing was left, or the deadline has passed */
};

struct kill {
	enum kill_phase phase;
	int64_t until_ms; /* end of the grace, then of the killing */
	unsigned rounds;  /* pictures since the killing began */
	unsigned empty;   /* pictures in a row that showed none of the tree */
	unsigned left;    /* processes in the last picture that had not ended */
};

/* Begins with a grace, which the caller has announced by TERM; 0 is none. A killing that goes on is only
 * hastened. */
void kill_begin(struct kill *k, int64_t now_ms, int64_t grace_ms);

/* The grace is over: must be looked at by kill_round() from now on. */
bool kill_is_active(const struct kill *k);

/* Lets time pass: ends the grace or the killing. */
void kill_tick(struct kill *k, int64_t now_ms);

/* Acts on one picture. Strays are over when no picture shows any; a job is over when its supervisor has
 * ended. */
void kill_round(struct kill *k, const struct tree *t, unsigned owner);

#endif
