/* SPDX-License-Identifier: MIT */
/*
 * process_piece.h - what one reply brings of a process's output: bytes from an offset on, as text that never
 * ends within a character, or as they are. Replies from one next_offset to the next join to the decoding of
 * the whole. Pure; one thread at a time.
 */
#ifndef BERTH_PROCESS_PIECE_H
#define BERTH_PROCESS_PIECE_H

#include "base/utf8.h"

struct process_piece {
	struct buf data;      /* UTF-8 (what is none became U+FFFD), or with exact the bytes */
	uint64_t next_offset; /* where the next piece begins; valid after process_piece_end() */
	uint64_t lost_bytes;  /* between the offset asked for and the first byte that was there */
	/* inside */
	bool exact;
	size_t room; /* bytes of output that may still come */
	uint64_t at; /* of the next byte */
	struct utf8_stream utf8;
};

/* max: bytes of output, at least 4 so that every character fits. */
void process_piece_init(struct process_piece *p, uint64_t offset, size_t max, bool exact);
void process_piece_clear(struct process_piece *p);
/*
 * Adds bytes that stand at this offset (at p->at or above), as many as there is room for. False, and nothing
 * is added, when something is missing between what is there already and them: it is the next piece's.
 */
bool process_piece_add(struct process_piece *p, uint64_t offset, const void *bytes, size_t len) NODISCARD;
/* There is something to tell: text, bytes or a loss. */
bool process_piece_is_empty(const struct process_piece *p);
/* Nothing is added any more. final: nothing will ever follow, so that a character that was cut off is told,
 * too. */
void process_piece_end(struct process_piece *p, bool final);

#endif
