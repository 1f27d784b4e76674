/* SPDX-License-Identifier: MIT */
/*
 * Frames: a prefix of what parses is never an error; a frame written again is the same; the stream after it
 * parses as if it stood alone. Field lists: written again they are the same. Ends of jobs: what decodes is
 * decoded again to the same from its own encoding;
 * so with pieces of output.
 */
#include <string.h>

#include "runtime/protocol/protocol.h"
#include "tests/fuzz/fuzz.h"

static void check_prefixes(const uint8_t *data, size_t len)
{
	struct proto_frame f;

	for (size_t cut = 0; cut < len; cut++) {
		_cleanup_free_ uint8_t *copy =
			xcalloc(cut + 1, 1); /* of its size, so that a read past the end shows */
		memcpy(copy, data, cut);
		MUST(proto_parse(copy, cut, &f) == 0);
		cut += cut / 16;
	}
}

static void check_fields(const struct proto_frame *frame)
{
	uint8_t out[PROTO_PAYLOAD_MAX];
	struct proto_writer w = { out, sizeof(out), 0, false };
	struct proto_cursor c = { frame->payload, frame->length };
	struct proto_field f;
	uint64_t number;
	int rc;

	while ((rc = proto_next(&c, &f)) > 0) {
		MUST(f.value >= frame->payload && f.value + f.len <= frame->payload + frame->length);
		MUST((proto_u64(&f, &number) == 0) == (f.len == 8));
		proto_put(&w, f.tag, f.value, f.len);
	}
	MUST(!w.failed);
	MUST(!memcmp(out, frame->payload, w.used));
	MUST(rc < 0 || w.used == frame->length);
}

static bool same_text(struct proto_text a, struct proto_text b)
{
	if (!a.at || !b.at)
		return !a.at && !b.at;
	return a.len == b.len && !memcmp(a.at, b.at, a.len);
}

static void check_chunk(const struct proto_frame *frame)
{
	uint8_t out[PROTO_PAYLOAD_MAX];
	struct proto_writer w = { out, sizeof(out), 0, false };
	struct proto_chunk x, y;

	memset(&x, 0, sizeof(x));
	memset(&y, 0, sizeof(y));
	if (proto_chunk_decode(frame, &x) < 0)
		return;
	MUST(x.len <= PROTO_CHUNK_MAX && (x.len == 0 || x.offset + x.len <= x.total));
	proto_chunk_encode(&w, &x);
	MUST(!w.failed);
	const struct proto_frame again = { .payload = out, .length = (uint16_t)w.used };
	MUST(proto_chunk_decode(&again, &y) == 0);
	MUST(x.cookie == y.cookie && x.known == y.known && x.state == y.state);
	MUST(x.offset == y.offset && x.total == y.total && x.len == y.len);
	MUST(x.len == 0 || !memcmp(x.bytes, y.bytes, x.len));
}

static void check_exit(const struct proto_frame *frame)
{
	uint8_t out[1024];
	struct proto_writer w = { out, sizeof(out), 0, false };
	struct proto_exit x, y;

	memset(&x, 0, sizeof(x));
	memset(&y, 0, sizeof(y));
	if (proto_exit_decode(frame, &x) < 0)
		return;
	MUST(proto_reason_name(x.reason));
	MUST(x.reason == PROTO_EXITED || x.code == 0);
	proto_exit_encode(&w, &x);
	MUST(!w.failed);
	struct proto_frame again = { .type = PROTO_EXIT, .payload = out, .length = (uint16_t)w.used };
	MUST(proto_exit_decode(&again, &y) == 0);
	MUST(same_text(x.detail, y.detail));
	x.detail = y.detail;
	MUST(!memcmp(&x, &y, sizeof(x)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct proto_frame f;
	ssize_t n;

	for (size_t at = 0; (n = proto_parse(data + at, size - at, &f)) > 0; at += (size_t)n) {
		uint8_t header[PROTO_HEADER];
		MUST((size_t)n == PROTO_HEADER + (size_t)f.length && (size_t)n <= size - at);
		proto_header(header, (enum proto_type)f.type, f.aux, f.job, f.length);
		MUST(!memcmp(header, data + at, PROTO_HEADER));
		check_prefixes(data + at, (size_t)n);
		check_fields(&f);
		check_exit(&f);
		check_chunk(&f);
	}
	return 0;
}
