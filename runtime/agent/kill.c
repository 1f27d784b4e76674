/* SPDX-License-Identifier: MIT */
#include "runtime/agent/kill.h"

#include <signal.h>

/* Another job may CONT what was stopped here, for ever. */
#define STOP_ROUNDS_MAX 100
/* A picture is not taken in one moment: a process may hide from one, hardly from three in a row. */
#define EMPTY_ROUNDS 3

void kill_begin(struct kill *k, int64_t now_ms, int64_t grace_ms)
{
	if (kill_is_active(k) || (k->phase == KILL_GRACE && k->until_ms <= now_ms + grace_ms))
		return;
	*k = (struct kill){ .phase = KILL_GRACE, .until_ms = now_ms + grace_ms };
	kill_tick(k, now_ms);
}

bool kill_is_active(const struct kill *k)
{
	return k->phase == KILL_ACTIVE;
}

void kill_tick(struct kill *k, int64_t now_ms)
{
	if (now_ms < k->until_ms)
		return;
	if (k->phase == KILL_GRACE)
		*k = (struct kill){ .phase = KILL_ACTIVE, .until_ms = now_ms + KILL_DEADLINE_MS };
	else if (kill_is_active(k))
		k->phase = KILL_OVER;
}

/* Stops what still runs. How many could have made new processes since the picture. */
static unsigned stop_all(const struct tree *t, unsigned owner)
{
	unsigned fresh = 0;

	for (size_t i = 0; i < t->count; i++) {
		const struct tree_process *p = &t->all[i];
		if (p->owner != owner || tree_is_dead(p) || p->state == 'T' || p->state == 't')
			continue;
		tree_signal(t, p, SIGSTOP);
		/* a process in D makes none, and stops when it leaves it: a parent in vfork(2) stays there */
		fresh += p->state != 'D';
	}
	return fresh;
}

static void kill_all(const struct tree *t, unsigned owner)
{
	for (size_t i = 0; i < t->count; i++)
		if (t->all[i].owner == owner && !tree_is_dead(&t->all[i]))
			tree_signal(t, &t->all[i], SIGKILL);
}

void kill_round(struct kill *k, const struct tree *t, unsigned owner)
{
	k->rounds++;
	k->left = tree_count(t, owner);
	k->empty = k->left == 0 && !t->torn ? k->empty + 1 : 0;
	/* whether a job's tree has ended its supervisor knows better: it may be about to fork the command */
	if (owner == TREE_STRAY && k->empty >= EMPTY_ROUNDS) {
		k->phase = KILL_OVER;
		return;
	}
	if (stop_all(t, owner) == 0 || k->rounds >= STOP_ROUNDS_MAX)
		kill_all(t, owner);
}
