/* SPDX-License-Identifier: MIT */
/*
 * tree.h - a picture of all processes, and whose each one is.
 *
 * Made by reading /proc: the `children` files show the children of one thread only. Needs no
 * fork and one descriptor at a time, so it works when a job has used up everything.
 */
#ifndef BERTH_AGENT_TREE_H
#define BERTH_AGENT_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Processes beyond these are seen in a later picture, when others have died. */
#define TREE_MAX 16384

/* Owners are slots of jobs; and: */
#define TREE_STRAY 254   /* a child of the agent that is no supervisor, or its descendant */
#define TREE_NOBODY 255  /* the agent, supervisors, processes that came in from outside */
#define TREE_UNKNOWN 253 /* not worked out yet */

struct tree_process {
	int32_t pid, ppid;
	uint32_t start; /* low half of its start time in clock ticks: tells a reused pid */
	char state;     /* a letter of proc(5) */
	uint8_t owner;
};

struct tree {
	int proc_fd;
	pid_t self; /* the agent: PID 1, but with `berth-agent local` */
	size_t count;
	bool torn;                         /* a process in it has a parent that is not */
	struct tree_process all[TREE_MAX]; /* by pid, ascending */
};

/* Opens /proc. 0 or -1. */
int tree_init(struct tree *t);

/*
 * Takes the picture. supervisors[i] is the pid of slot i's supervisor, 0 when it has none; each
 * process gets the slot of the supervisor it descends from.
 */
void tree_scan(struct tree *t, const pid_t *supervisors, size_t count);

/* How many of this owner's processes are there that have not ended? */
unsigned tree_count(const struct tree *t, unsigned owner);

/* Has it ended but for its parent's wait? */
bool tree_is_dead(const struct tree_process *p);

/* Sends a signal, unless the pid belongs to another process by now. */
void tree_signal(const struct tree *t, const struct tree_process *p, int sig);

/* The parent of a process, or -1. */
pid_t tree_parent(const struct tree *t, pid_t pid);

#endif
