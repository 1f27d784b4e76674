/* SPDX-License-Identifier: MIT */
/*
 * The engine's framing: how the input is cut changes nothing. All at once, byte by byte and in
 * pieces of a size that the input names give the same payload and the same verdict, and no piece
 * lies outside of what was given.
 */
#include <string.h>

#include "runtime/engine/engine_demux.h"
#include "tests/fuzz/fuzz.h"

struct taken {
	uint8_t *bytes; /* the stream's number before each byte of payload */
	size_t len;
	size_t refused_at; /* bytes used when it was refused; SIZE_MAX: never */
};

static struct taken take(const uint8_t *data, size_t size, size_t piece)
{
	struct taken t = { xcalloc(2 * size + 1, 1), 0, SIZE_MAX };
	struct engine_demux d = { 0 };
	for (size_t at = 0; at < size;) {
		struct engine_demux_piece p;
		size_t given = MIN(piece, size - at);
		ssize_t n = engine_demux_next(&d, data + at, given, &p);
		if (n < 0) {
			t.refused_at = at;
			break;
		}
		MUST(n > 0 && (size_t)n <= given);
		MUST(!p.len || (p.at >= data + at && p.at + p.len == data + at + n));
		MUST(p.stream >= DEMUX_STDIN && p.stream <= DEMUX_STDERR);
		for (size_t i = 0; i < p.len; i++) {
			t.bytes[t.len++] = (uint8_t)p.stream;
			t.bytes[t.len++] = p.at[i];
		}
		at += (size_t)n;
	}
	return t;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t named = size ? data[size - 1] + 1u : 1;
	struct taken whole = take(data, size, SIZE_MAX), single = take(data, size, 1),
		     pieces = take(data, size, named);
	MUST(whole.len == single.len && !memcmp(whole.bytes, single.bytes, whole.len));
	MUST(whole.len == pieces.len && !memcmp(whole.bytes, pieces.bytes, whole.len));
	MUST((whole.refused_at == SIZE_MAX) == (single.refused_at == SIZE_MAX));
	MUST((whole.refused_at == SIZE_MAX) == (pieces.refused_at == SIZE_MAX));
	free(whole.bytes);
	free(single.bytes);
	free(pieces.bytes);
	return 0;
}
