/* SPDX-License-Identifier: MIT */
/*
 * Output of a process in replies: whatever each reply and each frame in it can hold, and however much has
 * been written by then, the replies from one next_offset to the next join to the decoding of the whole; none
 * ends within a character, and in base64's mode they are the bytes.
 */
#include <string.h>

#include "manager/process_piece.h"
#include "tests/fuzz/fuzz.h"

struct plan {
	const uint8_t *sizes; /* of replies and frames, used round and round */
	size_t count, at;
};

static size_t next_size(struct plan *p, size_t min)
{
	return min + (p->count ? p->sizes[p->at++ % p->count] % 64 : 7);
}

static void decode(const uint8_t *data, size_t size, struct buf *out)
{
	struct utf8_stream s = { 0 };
	struct err e;
	MUST(!utf8_feed(&s, data, size, out, &e));
	MUST(!utf8_finish(&s, out, &e));
}

/* One reply: of `there` bytes that are written, from *at on. */
static void reply(const uint8_t *data, size_t size, size_t there, bool exact, struct plan *plan, size_t *at,
		  struct buf *all)
{
	struct process_piece p;
	struct err e;
	process_piece_init(&p, *at, next_size(plan, 4), exact);
	while (p.at < there && p.room)
		MUST(process_piece_add(&p, p.at, data + p.at, MIN(next_size(plan, 1), there - (size_t)p.at)));
	process_piece_end(&p, p.at == size);
	MUST(p.next_offset >= *at && p.next_offset <= there && !p.lost_bytes);
	MUST(p.next_offset > *at || there - *at < 4); /* it goes on */
	MUST(!buf_add(all, p.data.data, p.data.len, &e));
	*at = (size_t)p.next_offset;
	process_piece_clear(&p);
}

static void check(const uint8_t *data, size_t size, bool exact, struct plan plan)
{
	_cleanup_buf_ struct buf whole = BUF_INIT(3 * size + 3), all = BUF_INIT(3 * size + 3);
	struct err e;
	if (exact)
		MUST(!buf_add(&whole, data, size, &e));
	else
		decode(data, size, &whole);
	size_t at = 0, there = 0;
	while (at < size) {
		there = MIN(size, MAX(there, at) + next_size(&plan, 1));
		reply(data, size, there, exact, &plan, &at, &all);
	}
	MUST(whole.len == all.len && (!whole.len || !memcmp(whole.data, all.data, whole.len)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	size_t count = MIN(data[0] % 16u, size - 1);
	const struct plan plan = { .sizes = data + 1, .count = count };
	check(data + 1 + count, size - 1 - count, false, plan);
	check(data + 1 + count, size - 1 - count, true, plan);
	return 0;
}
