/* SPDX-License-Identifier: MIT */
#include "manager/process_piece.h"

#include <assert.h>

void process_piece_init(struct process_piece *p, uint64_t offset, size_t max, bool exact)
{
	/* 3 bytes of text for each broken one, and for a character that was held: utf8.h */
	*p = (struct process_piece){ .data = BUF_INIT(exact ? max : 3 * max + 3),
				     .next_offset = offset,
				     .exact = exact,
				     .room = max,
				     .at = offset };
}

void process_piece_clear(struct process_piece *p)
{
	buf_clear(&p->data);
}

bool process_piece_is_empty(const struct process_piece *p)
{
	return !p->data.len && !p->lost_bytes;
}

/* A character whose rest fell out of the ring is lost as a whole; the next piece begins behind it. */
static bool skip_to(struct process_piece *p, uint64_t offset)
{
	if (p->data.len)
		return false;
	p->lost_bytes += offset - p->at + p->utf8.held_len;
	p->utf8.held_len = 0;
	p->at = offset;
	return true;
}

bool process_piece_add(struct process_piece *p, uint64_t offset, const void *bytes, size_t len)
{
	struct err e;
	if (offset != p->at && !skip_to(p, offset))
		return false;
	len = MIN(len, p->room);
	int r = p->exact ? buf_add(&p->data, bytes, len, &e) : utf8_feed(&p->utf8, bytes, len, &p->data, &e);
	assert(r == 0); /* the maximum of data holds what `room` lets in */
	p->at += len;
	p->room -= len;
	return true;
}

void process_piece_end(struct process_piece *p, bool final)
{
	struct err e;
	if (final) {
		int r = utf8_finish(&p->utf8, &p->data, &e);
		assert(r == 0);
	}
	p->next_offset = p->at - p->utf8.held_len;
}
