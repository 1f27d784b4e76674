/* SPDX-License-Identifier: MIT */
/*
 * link.h - PID 1's side of the stream to the manager: the socket, the handshake, one link at a time.
 *
 * A link is taken over by one of a higher generation. Its loss means nothing to the jobs. Every
 * byte from it may be wrong: what cannot be a frame, or has no credit, ends the link.
 */
#ifndef BERTH_AGENT_LINK_H
#define BERTH_AGENT_LINK_H

#include "runtime/agent/job.h"

#define LINK_PENDING_MAX 4   /* connected bridges that have not said hello */
#define LINK_HELLO_MAX 1024  /* bytes of the manager's hello */
#define LINK_FACTS_MAX 30000 /* bytes of ours, with some room for the handshake */
#define LINK_PONGS_MAX 16
#define LINK_IN_SIZE (64 * 1024)

struct links;

struct link_pending {
	struct links *links;
	struct watch socket;
	int64_t until_ms;
	size_t used;
	uint8_t bytes[LINK_HELLO_MAX];
};

struct links {
	struct loop *loop;
	struct jobs *jobs;
	struct watch listener;
	struct link_pending pending[LINK_PENDING_MAX];
	uint64_t generation; /* the highest that ever was; it stays when its link is lost */

	/* the link that there is */
	struct watch socket; /* fd -1: none */
	bool blocked;        /* the socket takes no more for now */
	int64_t heard_ms, told_ms;
	int64_t held_ms; /* until when frames that are not urgent wait for others; LOOP_NEVER: there are none
			  */
	uint64_t credit, owed; /* of the manager's DATA, for the whole link */
	uint64_t pongs[LINK_PONGS_MAX];
	unsigned pong_count;
	unsigned lists;     /* LIST requests not answered yet */
	unsigned list_slot; /* how far the answer is */
	size_t in_used;
	struct outbox out;
	uint8_t in[LINK_IN_SIZE];

	size_t facts_len;
	uint8_t facts[LINK_FACTS_MAX];
};

/*
 * Listens; or, with `fd` at least 0, has this connected socket as the only link there will ever be. 0, or -1
 * with errno. facts_gather() has still to be written into links->facts by the caller.
 */
int links_init(struct links *ls, struct loop *l, struct jobs *js, int fd);

/* There is no link, and none can come any more. */
bool links_are_over(const struct links *ls);

/* What time brings, and frames to the manager; called after each round of the loop. */
void links_step(struct links *ls);

/* When links_step() wants to be called at the latest. */
int64_t links_next_ms(const struct links *ls);

/* ---- among the link_*.c ---- */

/* Takes what the active link has sent (link_frames.c); -1 when it is broken, with *ret_why. */
int link_take_frames(struct links *ls, const char **ret_why);
void link_close(struct links *ls);

#endif
