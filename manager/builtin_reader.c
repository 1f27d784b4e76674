/* SPDX-License-Identifier: MIT */
#include "manager/builtin_reader.h"

#include "runtime/protocol/bytes.h"

/* Until `want` bytes are held. False: there are no more bytes now. */
static bool fill(struct builtin_reader *r, const char **bytes, size_t *len, size_t want)
{
	struct err e;
	size_t take = MIN(want - MIN(want, r->held.len), *len);
	if (buf_add(&r->held, *bytes, take, &e) < 0)
		abort(); /* want was judged before */
	*bytes += take;
	*len -= take;
	return r->held.len >= want;
}

static int broken(const char *what, struct err *e)
{
	return err_set(e, ERR_SANDBOX, "the sandbox's agent %s", what);
}

/* 1: a record; 0: one of a kind that only a newer agent knows. */
static int decode(struct builtin_reader *r, uint16_t tag, struct builtin_record *ret, struct err *e)
{
	const uint8_t *value = (const uint8_t *)r->held.data + PROTO_FIELD_HEADER;
	size_t len = r->held.len - PROTO_FIELD_HEADER;
	*ret = (struct builtin_record){ .is_done = tag == PROTO_F_DONE };
	int failed = 0;
	if (tag == PROTO_F_ENTRY)
		failed = builtin_entry_decode(value, len, &ret->entry);
	else if (tag == PROTO_F_DONE)
		failed = builtin_done_decode(value, len, &ret->done);
	else
		return 0;
	r->done = ret->is_done;
	return failed ? broken("sent a broken record", e) : 1;
}

int builtin_reader_take(struct builtin_reader *r, const char **bytes, size_t *len, struct builtin_record *ret,
			struct err *e)
{
	for (;;) {
		if (r->whole)
			buf_reset(&r->held);
		r->whole = false;
		if (r->done && *len)
			return broken("sent more than it said", e);
		if (!fill(r, bytes, len, PROTO_FIELD_HEADER))
			return 0;
		uint16_t tag = bytes_get_u16((const uint8_t *)r->held.data);
		uint32_t size = bytes_get_u32((const uint8_t *)r->held.data + 2);
		if (size > BUILTIN_ENTRY_MAX)
			return broken("sent a record that is too long", e);
		if (!fill(r, bytes, len, PROTO_FIELD_HEADER + (size_t)size))
			return 0;
		r->whole = true;
		int got = decode(r, tag, ret, e);
		if (got)
			return got;
	}
}

bool builtin_reader_is_between(const struct builtin_reader *r)
{
	return r->whole || !r->held.len;
}

void builtin_reader_clear(struct builtin_reader *r)
{
	buf_clear(&r->held);
}
