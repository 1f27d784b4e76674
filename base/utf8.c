/* SPDX-License-Identifier: MIT */
#include "base/utf8.h"

#include <string.h>

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */
#define ELLIPSIS "\xe2\x80\xa6"

/* Well-formed sequences: the Unicode standard, table 3-7. low and high bound the second byte. */
struct lead {
	uint8_t first, last, len, low, high;
};

static const struct lead leads[] = {
	/* clang-format off */
	{ 0x00, 0x7f, 1, 0x00, 0x00 },
	{ 0xc2, 0xdf, 2, 0x80, 0xbf },
	{ 0xe0, 0xe0, 3, 0xa0, 0xbf }, /* no overlong form */
	{ 0xe1, 0xec, 3, 0x80, 0xbf },
	{ 0xed, 0xed, 3, 0x80, 0x9f }, /* no surrogate */
	{ 0xee, 0xef, 3, 0x80, 0xbf },
	{ 0xf0, 0xf0, 4, 0x90, 0xbf }, /* no overlong form */
	{ 0xf1, 0xf3, 4, 0x80, 0xbf },
	{ 0xf4, 0xf4, 4, 0x80, 0x8f }, /* nothing above U+10FFFF */
	/* clang-format on */
};

enum verdict { WHOLE, CUT, BROKEN };

static const struct lead *lead_of(uint8_t byte)
{
	for (size_t i = 0; i < ARRAY_LEN(leads); i++)
		if (byte >= leads[i].first && byte <= leads[i].last)
			return &leads[i];
	return NULL;
}

/*
 * Judges the sequence at p (len > 0). *ret_len: the bytes of the character; of the part that is
 * there, when more could follow; or of the maximal broken part, which is one replacement.
 */
static enum verdict scan(const uint8_t *p, size_t len, size_t *ret_len)
{
	const struct lead *lead = lead_of(p[0]);
	*ret_len = 1;
	if (!lead)
		return BROKEN;
	for (size_t i = 1; i < lead->len; i++) {
		*ret_len = i;
		if (i == len)
			return CUT;
		if (p[i] < (i == 1 ? lead->low : 0x80) || p[i] > (i == 1 ? lead->high : 0xbf))
			return BROKEN;
	}
	*ret_len = lead->len;
	return WHOLE;
}

/* Bytes of plain ASCII at the start, in steps of eight: nearly all output is that. */
static size_t ascii_len(const uint8_t *p, size_t len)
{
	size_t at = 0;
	for (uint64_t word; at + sizeof(word) <= len; at += sizeof(word)) {
		memcpy(&word, p + at, sizeof(word));
		if (word & 0x8080808080808080u)
			break;
	}
	while (at < len && p[at] < 0x80)
		at++;
	return at;
}

/* Bytes of whole characters at the start, NUL among them. */
static size_t whole_len(const uint8_t *p, size_t len)
{
	size_t at = ascii_len(p, len), n;
	while (at < len && scan(p + at, len - at, &n) == WHOLE) {
		at += n;
		at += ascii_len(p + at, len - at);
	}
	return at;
}

size_t utf8_valid_len(const char *text, size_t len)
{
	const char *nul = len ? memchr(text, 0, len) : NULL;
	return whole_len((const uint8_t *)text, nul ? (size_t)(nul - text) : len);
}

bool utf8_is_valid(const char *text, size_t len)
{
	return utf8_valid_len(text, len) == len;
}

/* Completes the held part byte by byte. *ret_used: bytes taken from p. */
static int feed_held(struct utf8_stream *s, const uint8_t *p, size_t len, size_t *ret_used, struct buf *out,
		     struct err *e)
{
	*ret_used = 0;
	while (s->held_len && *ret_used < len) {
		size_t n;
		s->held[s->held_len] = p[*ret_used];
		enum verdict v = scan(s->held, s->held_len + 1u, &n);
		if (v == BROKEN) /* what was held is the broken part; this byte starts something new */
			return utf8_finish(s, out, e);
		s->held_len++;
		++*ret_used;
		if (v == WHOLE) {
			s->held_len = 0;
			return buf_add(out, s->held, n, e);
		}
	}
	return 0;
}

static int feed_all(struct utf8_stream *s, const uint8_t *p, size_t len, struct buf *out, struct err *e)
{
	size_t at, n;
	int r = feed_held(s, p, len, &at, out, e);
	while (!r && at < len) {
		n = whole_len(p + at, len - at);
		r = buf_add(out, p + at, n, e);
		at += n;
		if (r || at == len)
			break;
		if (scan(p + at, len - at, &n) == CUT) {
			memcpy(s->held, p + at, n);
			s->held_len = (uint8_t)n;
		} else {
			r = buf_add(out, REPLACEMENT, 3, e);
		}
		at += n;
	}
	return r;
}

int utf8_feed(struct utf8_stream *s, const void *bytes, size_t len, struct buf *out, struct err *e)
{
	struct utf8_stream before = *s;
	size_t out_len = out->len;
	int r = feed_all(s, bytes, len, out, e);
	if (r) {
		*s = before;
		buf_truncate(out, out_len);
	}
	return r;
}

int utf8_finish(struct utf8_stream *s, struct buf *out, struct err *e)
{
	int r = s->held_len ? buf_add(out, REPLACEMENT, 3, e) : 0;
	if (!r)
		s->held_len = 0;
	return r;
}

static bool is_continuation(char c)
{
	return ((uint8_t)c & 0xc0) == 0x80;
}

size_t utf8_count(const char *text, size_t len)
{
	size_t count = 0;
	for (size_t i = 0; i < len; i++)
		count += !is_continuation(text[i]);
	return count;
}

size_t utf8_offset(const char *text, size_t len, size_t n)
{
	size_t at = 0;
	for (; at < len; at++)
		if (!is_continuation(text[at]) && n-- == 0)
			break;
	return at;
}

size_t utf8_offset_from_end(const char *text, size_t len, size_t n)
{
	size_t at = len;
	for (; n && at; n--)
		do
			at--;
		while (at && is_continuation(text[at]));
	return at;
}

/* What a reader does not see, or sees in another place than it stands. */
static const struct range {
	uint32_t first, last;
} hidden[] = {
	/* clang-format off */
	{ 0x00, 0x1f }, { 0x7f, 0x9f },
	{ 0xad, 0xad },                                  /* soft hyphen */
	{ 0x61c, 0x61c }, { 0x180e, 0x180e },            /* Arabic letter mark, Mongolian vowel separator */
	{ 0x200b, 0x200f },                              /* zero width, left-to-right and right-to-left marks */
	{ 0x2028, 0x202e },                              /* line and paragraph separators, bidi embeddings and overrides */
	{ 0x2060, 0x206f },                              /* invisible operators, bidi isolates */
	{ 0xfeff, 0xfeff }, { 0xfff9, 0xfffb },          /* byte order mark, interlinear annotations */
	{ 0xe0000, 0xe007f },                            /* tags */
	/* clang-format on */
};

static bool is_hidden(uint32_t c)
{
	for (size_t i = 0; i < ARRAY_LEN(hidden); i++)
		if (c >= hidden[i].first && c <= hidden[i].last)
			return true;
	return false;
}

static uint32_t decode(const uint8_t *p, size_t len)
{
	uint32_t c = len == 1 ? p[0] : p[0] & (0x7fu >> len);
	for (size_t i = 1; i < len; i++)
		c = c << 6 | (p[i] & 0x3fu);
	return c;
}

#define PIECE_SIZE 16 /* the longest is \u{E007F} */

/* The safe form of the sequence at p into piece; returns its bytes. */
static size_t escape_one(const uint8_t *p, size_t len, char piece[PIECE_SIZE])
{
	static const char named_chars[] = "\n\t\r\\", named[] = "ntr\\";
	size_t n;
	if (scan(p, len, &n) != WHOLE) {
		snprintf(piece, PIECE_SIZE, "\\x%02x", p[0]);
		return 1;
	}
	uint32_t c = decode(p, n);
	const char *name = c && c < 0x80 ? strchr(named_chars, (int)c) : NULL;
	if (name)
		snprintf(piece, PIECE_SIZE, "\\%c", named[name - named_chars]);
	else if (is_hidden(c))
		snprintf(piece, PIECE_SIZE, c < 0x80 ? "\\x%02x" : "\\u{%04X}", c);
	else
		snprintf(piece, PIECE_SIZE, "%.*s", (int)n, (const char *)p);
	return n;
}

char *utf8_escape(const char *text, size_t len, size_t max)
{
	const uint8_t *p = (const uint8_t *)text;
	_cleanup_buf_ struct buf out = BUF_INIT(max + sizeof(ELLIPSIS));
	struct err ignored; /* the loop keeps the size */
	char piece[PIECE_SIZE];
	for (size_t at = 0, n; at < len; at += n) {
		n = escape_one(p + at, len - at, piece);
		bool fits = out.len + strlen(piece) <= max;
		if (buf_add(&out, fits ? piece : ELLIPSIS, strlen(fits ? piece : ELLIPSIS), &ignored) ||
		    !fits)
			break;
	}
	return buf_take(&out);
}
