/* SPDX-License-Identifier: MIT */
/* Field lists: tag (2 bytes), length (4 bytes), value. */
#include "runtime/protocol/protocol.h"

#include <string.h>

#include "runtime/protocol/bytes.h"

int proto_next(struct proto_cursor *c, struct proto_field *ret)
{
	if (c->left == 0)
		return 0;
	if (c->left < PROTO_FIELD_HEADER)
		return -1;
	uint32_t len = bytes_get_u32(c->at + 2);
	if (len > c->left - PROTO_FIELD_HEADER)
		return -1;
	*ret = (struct proto_field){ bytes_get_u16(c->at), len, c->at + PROTO_FIELD_HEADER };
	c->at += PROTO_FIELD_HEADER + len;
	c->left -= PROTO_FIELD_HEADER + len;
	return 1;
}

int proto_u64(const struct proto_field *f, uint64_t *ret)
{
	if (f->len != sizeof(uint64_t))
		return -1;
	*ret = bytes_get_u64(f->value);
	return 0;
}

int proto_find_u64(const struct proto_frame *frame, uint16_t tag, uint64_t *ret)
{
	struct proto_cursor c = { frame->payload, frame->length };
	struct proto_field f;

	while (proto_next(&c, &f) > 0)
		if (f.tag == tag)
			return proto_u64(&f, ret);
	return -1;
}

void proto_put(struct proto_writer *w, uint16_t tag, const void *value, size_t len)
{
	size_t room = w->size - w->used;

	if (w->failed || len > UINT32_MAX || room < PROTO_FIELD_HEADER || room - PROTO_FIELD_HEADER < len) {
		w->failed = true;
		return;
	}
	uint8_t *at = w->out + w->used;
	bytes_put_u16(at, tag);
	bytes_put_u32(at + 2, (uint32_t)len);
	if (len > 0)
		memcpy(at + PROTO_FIELD_HEADER, value, len);
	w->used += PROTO_FIELD_HEADER + len;
}

void proto_put_u64(struct proto_writer *w, uint16_t tag, uint64_t value)
{
	uint8_t bytes[sizeof(value)];

	bytes_put_u64(bytes, value);
	proto_put(w, tag, bytes, sizeof(bytes));
}

void proto_put_text(struct proto_writer *w, uint16_t tag, const char *text)
{
	proto_put(w, tag, text, strlen(text));
}
