/* SPDX-License-Identifier: MIT */
/* utf8.h - bytes of unknown encoding to UTF-8 (RFC 3629). Pure. */
#ifndef BERTH_UTF8_H
#define BERTH_UTF8_H

#include "base/buf.h"

/* Valid UTF-8 without NUL. */
bool utf8_is_valid(const char *text, size_t len);
/* How many bytes at the start are that; len when all are. */
size_t utf8_valid_len(const char *text, size_t len);

/*
 * A stream decoder: bytes in any cut, whole characters out. What is no UTF-8 becomes U+FFFD,
 * one for each maximal broken part (as the Unicode standard, 3.9, recommends); a character cut at the end
 * waits in the state. NUL stays NUL.
 */
struct utf8_stream {
	uint8_t held[4];
	uint8_t held_len;
};

/* Appends to out; ERR_TOO_LARGE as buf_add, state and output as before. Output has at most 3 bytes for each
 * byte of input, plus 3. */
int utf8_feed(struct utf8_stream *s, const void *bytes, size_t len, struct buf *out, struct err *e) NODISCARD;
/* The end: a held part becomes one U+FFFD. */
int utf8_finish(struct utf8_stream *s, struct buf *out, struct err *e) NODISCARD;

/* How many characters are in valid UTF-8 text. */
size_t utf8_count(const char *text, size_t len);
/* The byte offset after the first n characters / before the last n ones (len when there are fewer / 0). */
size_t utf8_offset(const char *text, size_t len, size_t n);
size_t utf8_offset_from_end(const char *text, size_t len, size_t n);

/*
 * Makes a text safe to show on one line: control characters (C0, DEL, C1), bidi and zero-width
 * characters and line separators become escapes (\n, \t, \x1b, \u{200B}), a backslash is
 * doubled, broken bytes become \xNN. At most max bytes, and "…" after them where it was cut,
 * which is never inside a character or an escape. Owned by the caller.
 */
char *utf8_escape(const char *text, size_t len, size_t max) NODISCARD;

#endif
