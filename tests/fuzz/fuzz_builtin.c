/* SPDX-License-Identifier: MIT */
/*
 * What a built-in says: an entry or an end that decodes has texts within the input, and is decoded again to
 * the same from its own encoding.
 */
#include <string.h>

#include "runtime/protocol/builtin.h"
#include "tests/fuzz/fuzz.h"

static void check_text(const uint8_t *data, size_t size, const struct proto_text *text,
		       const struct proto_text *again)
{
	MUST(!text->at == !again->at && text->len == again->len);
	if (!text->at)
		return;
	MUST((const uint8_t *)text->at >= data && (const uint8_t *)text->at + text->len <= data + size);
	MUST(!memchr(text->at, 0, text->len) && !memcmp(text->at, again->at, text->len));
}

static struct proto_field only_field(const struct proto_writer *w, uint16_t tag)
{
	struct proto_cursor c = { w->out, w->used };
	struct proto_field f;

	MUST(!w->failed && proto_next(&c, &f) == 1 && f.tag == tag && c.left == 0);
	return f;
}

static void check_entry(const uint8_t *data, size_t size)
{
	uint8_t out[PROTO_FIELD_HEADER + BUILTIN_ENTRY_MAX];
	struct proto_writer w = { out, sizeof(out), 0, false };
	struct builtin_entry x, y;
	char tag[BUILTIN_TAG_SIZE];

	memset(&x, 0, sizeof(x));
	memset(&y, 0, sizeof(y));
	if (builtin_entry_decode(data, size, &x) < 0)
		return;
	MUST(builtin_type_name(x.type));
	builtin_tag(&x, tag);
	builtin_entry_encode(&w, &x);
	struct proto_field f = only_field(&w, PROTO_F_ENTRY);
	MUST(builtin_entry_decode(f.value, f.len, &y) == 0);
	check_text(data, size, &x.path, &y.path);
	check_text(data, size, &x.target, &y.target);
	check_text(data, size, &x.detail, &y.detail);
	MUST(x.type == y.type && x.mode == y.mode && x.size == y.size && x.inode == y.inode);
	MUST(x.mtime_ns == y.mtime_ns && x.ctime_ns == y.ctime_ns && x.pid == y.pid && x.sys == y.sys);
}

static void check_done(const uint8_t *data, size_t size)
{
	uint8_t out[512];
	struct proto_writer w = { out, sizeof(out), 0, false };
	struct builtin_done x, y;

	memset(&x, 0, sizeof(x));
	memset(&y, 0, sizeof(y));
	if (builtin_done_decode(data, size, &x) < 0)
		return;
	builtin_done_encode(&w, &x);
	struct proto_field f = only_field(&w, PROTO_F_DONE);
	MUST(builtin_done_decode(f.value, f.len, &y) == 0);
	check_text(data, size, &x.detail, &y.detail);
	MUST(x.entries == y.entries && x.bytes == y.bytes && x.refused == y.refused);
	MUST(x.truncated == y.truncated && x.sys == y.sys);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	check_entry(data, size);
	check_done(data, size);
	return 0;
}
