/* SPDX-License-Identifier: MIT */
/*
 * The decoder: any cut of the input gives the same output; the output is valid and within its bound; valid
 * input comes out as it went in. The escaped form is one line of valid, visible text within its bound.
 */
#include <string.h>

#include "base/utf8.h"
#include "tests/fuzz/fuzz.h"

/* Decodes in two parts; cut <= size. */
static void decode(const uint8_t *data, size_t size, size_t cut, struct buf *out)
{
	struct utf8_stream s = { 0 };
	struct err e;
	MUST(!utf8_feed(&s, data, cut, out, &e));
	MUST(!utf8_feed(&s, data + cut, size - cut, out, &e));
	MUST(s.held_len < 4);
	MUST(!utf8_finish(&s, out, &e));
}

static bool same(const struct buf *a, const struct buf *b)
{
	return a->len == b->len && (!a->len || !memcmp(a->data, b->data, a->len));
}

/* Valid but for the NULs, which the decoder lets through. */
static bool is_valid_with_nul(const char *text, size_t len)
{
	for (size_t at = 0; at < len; at++) {
		at += utf8_valid_len(text + at, len - at);
		if (at < len && text[at])
			return false;
	}
	return true;
}

static void check_offsets(const char *text, size_t len)
{
	size_t count = utf8_count(text, len);
	for (size_t n = 0; n <= count && n < 8; n++) {
		size_t at = utf8_offset(text, len, n);
		MUST(utf8_count(text, at) == n);
		MUST(utf8_offset_from_end(text, len, count - n) == at);
	}
}

static void check_escape(const char *text, size_t len, size_t max)
{
	_cleanup_free_ char *safe = utf8_escape(text, len, max);
	size_t safe_len = strlen(safe);
	MUST(safe_len <= max + 3);
	MUST(utf8_is_valid(safe, safe_len));
	for (size_t i = 0; i < safe_len; i++)
		MUST((uint8_t)safe[i] >= ' ' && safe[i] != 0x7f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_buf_ struct buf whole = BUF_INIT(3 * size + 3);
	decode(data, size, size, &whole);
	MUST(is_valid_with_nul(whole.data ? whole.data : "", whole.len));
	if (is_valid_with_nul((const char *)data, size))
		MUST(whole.len == size && (!whole.data || !memcmp(whole.data, data, size)));
	for (size_t cut = 0; cut <= MIN(size, 64); cut++) {
		_cleanup_buf_ struct buf out = BUF_INIT(3 * size + 3);
		decode(data, size, cut, &out);
		MUST(same(&whole, &out));
	}
	check_offsets(whole.data ? whole.data : "", whole.len);
	check_escape((const char *)data, size, size);
	check_escape((const char *)data, size, 10 * size);
	return 0;
}
