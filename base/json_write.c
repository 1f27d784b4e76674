/* SPDX-License-Identifier: MIT */
#include "base/json_write.h"

#include <string.h>

#include "base/utf8.h"

/*
 * Where bytes come in bulk they are written out by hand, since building a jansson value of it
 * and dumping that takes six times as long.
 */

#define EVERY(byte) (0x0101010101010101u * (byte))

/* None of eight bytes is a control character, a quote or a backslash: Hacker's Delight, 6-1. */
static bool is_plain(uint64_t word)
{
	uint64_t quote = word ^ EVERY('"'), slash = word ^ EVERY('\\');
	uint64_t found =
		((word - EVERY(' ')) & ~word) | ((quote - EVERY(1)) & ~quote) | ((slash - EVERY(1)) & ~slash);
	return !(found & EVERY(0x80));
}

static size_t plain_len(const char *text, size_t len)
{
	size_t n = 0;
	for (uint64_t word; n + sizeof(word) <= len; n += sizeof(word)) {
		memcpy(&word, text + n, sizeof(word));
		if (!is_plain(word))
			break;
	}
	while (n < len && (unsigned char)text[n] >= ' ' && text[n] != '"' && text[n] != '\\')
		n++;
	return n;
}

static int add_escape(struct buf *out, unsigned char c, struct err *e)
{
	static const char shorts[] = "\"\"\\\\\nn\tt\rr"; /* a character and its letter */
	static const char hex[] = "0123456789ABCDEF";
	const char full[] = { '\\', 'u', '0', '0', hex[c >> 4], hex[c & 15] };
	for (const char *s = shorts; *s; s += 2)
		if (c == (unsigned char)s[0])
			return buf_add(out, (const char[]){ '\\', s[1] }, 2, e);
	return buf_add(out, full, sizeof(full), e);
}

int json_write_text(struct buf *out, const char *text, size_t len, struct err *e)
{
	int r = buf_add(out, "\"", 1, e);
	while (!r && len) {
		size_t n = plain_len(text, len);
		r = n ? buf_add(out, text, n, e) : add_escape(out, (unsigned char)text[n++], e);
		text += n;
		len -= n;
	}
	return r ? r : buf_add(out, "\"", 1, e);
}

int json_write_plain(struct buf *out, const char *text, size_t len, struct err *e)
{
	return buf_add(out, "\"", 1, e) || buf_add(out, text, len, e) || buf_add(out, "\"", 1, e)
		       ? -(int)e->code
		       : 0;
}

int json_write_lossy(struct buf *out, const char *bytes, size_t len, struct err *e)
{
	if (utf8_is_valid(bytes, len))
		return json_write_text(out, bytes, len, e);
	_cleanup_buf_ struct buf text = BUF_INIT(3 * len + 3);
	struct utf8_stream s = { 0 };
	if (utf8_feed(&s, bytes, len, &text, e) || utf8_finish(&s, &text, e))
		return -(int)e->code;
	return json_write_text(out, text.data ? text.data : "", text.len, e);
}
