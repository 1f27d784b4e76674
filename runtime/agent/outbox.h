/* SPDX-License-Identifier: MIT */
/*
 * outbox.h - frames on their way to the manager: one bounded buffer.
 *
 * Nothing is queued beyond it. What cannot be sent now is made again from the state of a job when
 * there is room, so callers look at outbox_room() first.
 */
#ifndef BERTH_AGENT_OUTBOX_H
#define BERTH_AGENT_OUTBOX_H

#include "runtime/protocol/protocol.h"

#define OUTBOX_SIZE (64 * 1024)
#define OUTBOX_CONTROL 1024 /* no frame but DATA, CHUNK and HELLO is larger */

struct outbox {
	uint64_t credit; /* bytes of DATA that the manager can take, of all jobs together */
	size_t sent, used;
	bool frames; /* a frame was put in since the flag was last cleared */
	bool urgent; /* it holds a frame that somebody may wait for */
	uint8_t bytes[OUTBOX_SIZE];
};

void outbox_reset(struct outbox *o);
bool outbox_is_empty(const struct outbox *o);

/* Is there room for a control frame? */
bool outbox_has_room(const struct outbox *o);

/* Begins a frame's payload: a writer into the buffer; outbox_end() puts the header before it. */
struct proto_writer outbox_begin(struct outbox *o);
void outbox_end(struct outbox *o, const struct proto_writer *w, enum proto_type type, uint8_t aux,
		uint32_t job);

/* A whole frame with one integer field, or none when tag is 0. */
void outbox_put(struct outbox *o, enum proto_type type, uint8_t aux, uint32_t job, uint16_t tag,
		uint64_t value);

/* Sends what the socket takes. 0 when all is sent, 1 when it would block, -1 when it is broken. */
int outbox_flush(struct outbox *o, int fd);

#endif
