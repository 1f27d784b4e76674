/* SPDX-License-Identifier: MIT */
#include "tests/bench/stream.h"

#include <string.h>

#include "tests/bench/bench.h"

#define LINE_MAX_BYTES (1 << 20)

struct counter {
	enum stream_format format;
	uint64_t bytes;
	bool ended;      /* the line of the exit came, with code 0 */
	struct buf line; /* the part of a line that has come */
	uint8_t head[8]; /* of a frame */
	size_t head_len, left;
};

/* ---- NDJSON ---- */

static uint64_t decoded_len(enum stream_format format, const char *text, size_t len)
{
	if (format == STREAM_BASE64) {
		size_t padding = len && text[len - 1] == '=' ? 1 + (text[len - 2] == '=') : 0;
		return len / 4 * 3 - padding;
	}
	uint64_t bytes = len;
	const char *at = text, *end = text + len;
	for (; (at = memchr(at, '\\', (size_t)(end - at))); at += 2)
		bytes--;
	return bytes;
}

/* The end of the JSON text that begins at text: its closing quote. */
static const char *closing_quote(const char *text, size_t len)
{
	const char *quote = text, *end = text + len;
	while ((quote = memchr(quote, '"', (size_t)(end - quote)))) {
		size_t slashes = 0;
		while (quote - slashes > text && quote[-1 - (ptrdiff_t)slashes] == '\\')
			slashes++;
		if (slashes % 2 == 0)
			return quote;
		quote++;
	}
	die("a line has no end: %.60s", text);
}

static void count_line(struct counter *c, const char *line, size_t len)
{
	static const char output[] = "{\"type\":\"output\",\"data\":\"", end[] = "{\"type\":\"exit\"";
	if (len > sizeof(output) - 1 && !memcmp(line, output, sizeof(output) - 1)) {
		const char *text = line + sizeof(output) - 1;
		size_t size = (size_t)(closing_quote(text, len - (sizeof(output) - 1)) - text);
		c->bytes += decoded_len(c->format, text, size);
	} else if (len > sizeof(end) && !memcmp(line, end, sizeof(end) - 1)) {
		c->ended = memmem(line, len, "\"exit_code\":0,", 14) != NULL;
	} else {
		die("an unexpected line: %.*s", (int)MIN(len, (size_t)300), line);
	}
}

static void take_lines(struct counter *c, const char *bytes, size_t len)
{
	struct err e;
	const char *end;
	for (; len && (end = memchr(bytes, '\n', len)); len -= (size_t)(end + 1 - bytes), bytes = end + 1) {
		size_t size = (size_t)(end - bytes);
		if (!c->line.len) {
			count_line(c, bytes, size);
			continue;
		}
		if (buf_add(&c->line, bytes, size, &e))
			die("a line is too long");
		count_line(c, c->line.data, c->line.len);
		buf_reset(&c->line);
	}
	if (buf_add(&c->line, bytes, len, &e))
		die("a line is too long");
}

/* ---- the engines' frames ---- */

static void take_frames(struct counter *c, const char *bytes, size_t len)
{
	while (len) {
		if (c->left) {
			size_t n = MIN(len, c->left);
			c->bytes += n;
			c->left -= n;
			bytes += n;
			len -= n;
			continue;
		}
		c->head[c->head_len++] = (uint8_t)*bytes++;
		len--;
		if (c->head_len < sizeof(c->head))
			continue;
		c->head_len = 0;
		c->left = (size_t)c->head[4] << 24 | (size_t)c->head[5] << 16 | (size_t)c->head[6] << 8 |
			  c->head[7];
	}
}

void stream_expect(struct http *h, enum stream_format format, uint64_t bytes)
{
	static const size_t room = 1 << 17;
	_cleanup_free_ char *piece = xcalloc(room, 1);
	struct counter c = { .format = format, .line = BUF_INIT(LINE_MAX_BYTES) };
	for (size_t n; (n = http_read(h, piece, room));) {
		if (format == STREAM_ENGINE)
			take_frames(&c, piece, n);
		else
			take_lines(&c, piece, n);
	}
	if (format != STREAM_ENGINE && !c.ended)
		die("a stream ended without its command's end");
	if (c.bytes != bytes)
		die("a stream carried %llu bytes instead of %llu", (unsigned long long)c.bytes,
		    (unsigned long long)bytes);
	buf_clear(&c.line);
}
