/* SPDX-License-Identifier: MIT */
/* A piece of a job's output on the wire. */
#include "runtime/protocol/protocol.h"

#include "runtime/protocol/record.h"

struct numbers {
	uint64_t cookie, offset, total, state;
};

#define RULE(tag, member, max)                                                     \
	{                                                                          \
		tag, RECORD_U64, offsetof(struct numbers, member), 0, max, #member \
	}

/* clang-format off */
static const struct record_rule RULES[] = {
	RULE(PROTO_F_COOKIE, cookie, UINT64_MAX),
	RULE(PROTO_F_OFFSET, offset, INT64_MAX),
	RULE(PROTO_F_TOTAL,  total,  INT64_MAX),
	RULE(PROTO_F_STATE,  state,  PROTO_JOB_ENDED),
};
/* clang-format on */
#define RULE_COUNT (sizeof(RULES) / sizeof(RULES[0]))

static int take_bytes(const struct proto_field *f, struct proto_chunk *c)
{
	if (c->bytes || f->len > PROTO_CHUNK_MAX)
		return -1;
	c->bytes = f->value;
	c->len = f->len;
	return 0;
}

int proto_chunk_decode(const struct proto_frame *frame, struct proto_chunk *ret)
{
	struct proto_cursor cursor = { frame->payload, frame->length };
	struct proto_chunk c = { 0 };
	struct numbers n = { 0 };
	struct proto_field f;
	const char *why;
	uint64_t seen = 0;
	int rc;

	while ((rc = proto_next(&cursor, &f)) > 0)
		if (f.tag == PROTO_F_CHUNK ? take_bytes(&f, &c) < 0
					   : record_take(RULES, RULE_COUNT, &f, &n, &seen, &why) < 0)
			return -1;
	if (rc < 0 || !record_has(RULES, RULE_COUNT, seen, PROTO_F_COOKIE))
		return -1;
	c.cookie = n.cookie;
	c.known = record_has(RULES, RULE_COUNT, seen, PROTO_F_STATE);
	if (!c.known) {
		*ret = (struct proto_chunk){ .cookie = n.cookie };
		return c.len > 0 ? -1 : 0;
	}
	if (!record_has(RULES, RULE_COUNT, seen, PROTO_F_OFFSET) ||
	    !record_has(RULES, RULE_COUNT, seen, PROTO_F_TOTAL))
		return -1;
	if (c.len > 0 && n.offset + c.len > n.total)
		return -1;
	c.state = (enum proto_state)n.state;
	c.offset = n.offset;
	c.total = n.total;
	*ret = c;
	return 0;
}

void proto_chunk_encode(struct proto_writer *w, const struct proto_chunk *chunk)
{
	proto_put_u64(w, PROTO_F_COOKIE, chunk->cookie);
	if (!chunk->known)
		return;
	proto_put_u64(w, PROTO_F_OFFSET, chunk->offset);
	proto_put_u64(w, PROTO_F_TOTAL, chunk->total);
	proto_put_u64(w, PROTO_F_STATE, chunk->state);
	if (chunk->len > 0)
		proto_put(w, PROTO_F_CHUNK, chunk->bytes, chunk->len);
}
