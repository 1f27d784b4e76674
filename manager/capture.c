/* SPDX-License-Identifier: MIT */
#include "manager/capture.h"

#include <assert.h>
#include <string.h>

#include "base/utf8.h"

void capture_init(struct capture *c, size_t limit, bool exact)
{
	size_t end = CAPTURE_END_BYTES(limit);
	*c = (struct capture){ .limit = limit, .exact = exact, .end_bytes = end, .head = BUF_INIT(end) };
	c->tail = BUF_INIT(2 * end + 1);
}

void capture_clear(struct capture *c)
{
	buf_clear(&c->head);
	buf_clear(&c->tail);
}

static void add(struct buf *b, const char *bytes, size_t len)
{
	struct err e;
	int r = buf_add(b, bytes, len, &e);
	assert(r == 0); /* every caller has made room */
}

/* Keeps the last end_bytes; lets the buffer grow to twice that, so that the move is paid seldom. */
static void add_tail(struct capture *c, const char *bytes, size_t len)
{
	if (len > c->end_bytes) {
		bytes += len - c->end_bytes;
		len = c->end_bytes;
	}
	if (c->tail.len + len > 2 * c->end_bytes)
		buf_consume(&c->tail, c->tail.len + len - c->end_bytes);
	add(&c->tail, bytes, len);
}

void capture_add(struct capture *c, const void *bytes, size_t len)
{
	const char *p = bytes;
	c->total += len;
	if (!c->lost) {
		size_t first = MIN(len, c->end_bytes - c->head.len);
		add(&c->head, p, first);
		p += first;
		len -= first;
	}
	if (len)
		add_tail(c, p, len);
}

void capture_lose(struct capture *c, uint64_t bytes)
{
	c->total += bytes;
	c->lost += bytes;
	/* What was the tail stands before the gap now; only what follows it is the end. */
	buf_reset(&c->tail);
}

/* Text from bytes; a character cut by the gap becomes a replacement, as any broken byte does. */
static void decode(const char *bytes, size_t len, struct buf *out)
{
	struct utf8_stream s = { 0 };
	struct err e;
	*out = BUF_INIT(3 * len + 4);
	int r = utf8_feed(&s, bytes, len, out, &e);
	if (r == 0)
		r = utf8_finish(&s, out, &e);
	assert(r == 0); /* the maximum is what utf8.h promises */
}

/* An empty buffer has no memory; "" stands in. */
static const char *bytes_of(const struct buf *b)
{
	return b->data ? b->data : "";
}

static void finish_whole(const struct buf *all, struct capture_result *ret)
{
	ret->text = xcalloc(all->len + 1, 1);
	memcpy(ret->text, bytes_of(all), all->len);
	ret->len = all->len;
}

/* The length of the part of text that its first n characters / bytes take. */
static size_t first_part(const struct capture *c, const struct buf *b, size_t n)
{
	return c->exact ? MIN(n, b->len) : utf8_offset(bytes_of(b), b->len, n);
}

static size_t last_part(const struct capture *c, const struct buf *b, size_t n)
{
	size_t from = c->exact ? b->len - MIN(n, b->len) : utf8_offset_from_end(bytes_of(b), b->len, n);
	return b->len - from;
}

/* The cut bytes of text are not known exactly where broken bytes were replaced: counted as they stand in the
 * reply. */
static void finish_cut(const struct capture *c, const struct buf *head, const struct buf *tail,
		       struct capture_result *ret)
{
	size_t front = first_part(c, head, c->limit / 2), back = last_part(c, tail, c->limit / 2);
	uint64_t kept = front + back;
	ret->truncated = true;
	ret->dropped_bytes = c->total > kept ? c->total - kept : 0;
	char line[64] = "";
	if (!c->exact)
		snprintf(line, sizeof(line), "\n[... %llu bytes dropped ...]\n",
			 (unsigned long long)ret->dropped_bytes);
	size_t middle = strlen(line);
	ret->len = front + middle + back;
	ret->text = xcalloc(ret->len + 1, 1);
	memcpy(ret->text, bytes_of(head), front);
	memcpy(ret->text + front, line, middle);
	memcpy(ret->text + front + middle, bytes_of(tail) + tail->len - back, back);
}

void capture_finish(const struct capture *c, struct capture_result *ret)
{
	_cleanup_buf_ struct buf head = BUF_INIT(0), tail = BUF_INIT(0), all = BUF_INIT(0);
	*ret = (struct capture_result){ 0 };
	bool contiguous = c->total == c->head.len + c->tail.len;
	if (contiguous) {
		/* One piece: a character may lie across head and tail. */
		_cleanup_buf_ struct buf raw = BUF_INIT(c->head.len + c->tail.len);
		add(&raw, c->head.data, c->head.len);
		add(&raw, c->tail.data, c->tail.len);
		if (c->exact)
			all = (struct buf){
				.data = STEAL_PTR(raw.data), .len = raw.len, .room = raw.room, .max = raw.max
			};
		else
			decode(bytes_of(&raw), raw.len, &all);
		size_t count = c->exact ? all.len : utf8_count(bytes_of(&all), all.len);
		if (count <= c->limit)
			finish_whole(&all, ret);
		else
			finish_cut(c, &all, &all, ret);
		return;
	}
	if (c->exact) {
		finish_cut(c, &c->head, &c->tail, ret);
		return;
	}
	decode(bytes_of(&c->head), c->head.len, &head);
	decode(bytes_of(&c->tail), c->tail.len, &tail);
	finish_cut(c, &head, &tail, ret);
}
