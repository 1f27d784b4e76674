/* SPDX-License-Identifier: MIT */
#include "runtime/agent/output.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/agent/fd.h"

/* A job that waits for its reader needs some room to write into, whatever the spec wants kept. */
#define BLOCK_TAIL_MIN (64 * 1024)

static uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

int output_open(struct output *o, const struct output_limits *limits)
{
	int fd = memfd_create("output", MFD_CLOEXEC);

	if (fd < 0)
		return -1;
	*o = (struct output){ .fd = fd, .keep = limits->keep, .head = limits->head, .tail = limits->tail };
	if (o->keep == PROTO_KEEP_BLOCK && o->tail < BLOCK_TAIL_MIN)
		o->tail = BLOCK_TAIL_MIN;
	return 0;
}

void output_clear(struct output *o)
{
	fd_close(&o->fd);
	*o = (struct output){ .fd = -1 };
}

/* The first offset above the head that the tail still has. */
static uint64_t tail_start(const struct output *o)
{
	uint64_t kept = o->written > o->tail ? o->written - o->tail : 0;
	return max_u64(kept, min_u64(o->head, o->written));
}

uint64_t output_room(const struct output *o)
{
	if (o->keep != PROTO_KEEP_BLOCK || !o->attached)
		return UINT64_MAX;
	return max_u64(o->sent, tail_start(o)) + o->tail - o->written;
}

/* Where an offset lies in the memfd, and how many bytes follow it there without a break. */
static off_t place(const struct output *o, uint64_t offset, uint64_t *ret_run)
{
	if (offset < o->head) {
		*ret_run = o->head - offset;
		return (off_t)offset;
	}
	uint64_t in_ring = (offset - o->head) % o->tail;
	*ret_run = o->tail - in_ring;
	return (off_t)(o->head + in_ring);
}

/* One hole is remembered; what lies between two is given up with them, unless the first has left the tail. */
static void add_hole(struct output *o, uint64_t from, uint64_t to)
{
	bool forgotten = o->hole_from >= o->head && o->hole_to <= tail_start(o);

	if (o->hole_from == o->hole_to || forgotten)
		o->hole_from = from;
	else
		from = o->hole_to;
	o->hole_to = to;
	if (to > max_u64(from, o->seen))
		o->dropped += to - max_u64(from, o->seen);
}

static void store(struct output *o, uint64_t offset, const uint8_t *bytes, uint64_t len)
{
	while (len > 0) {
		uint64_t run;
		off_t at = place(o, offset, &run);
		run = min_u64(run, len);
		ssize_t n = pwrite(o->fd, bytes, (size_t)run, at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) { /* no memory is left: ENOSPC or ENOMEM */
			add_hole(o, offset, offset + len);
			return;
		}
		bytes += n;
		offset += (uint64_t)n;
		len -= (uint64_t)n;
	}
}

void output_append(struct output *o, const uint8_t *bytes, size_t len)
{
	uint64_t from = o->written, to = from + len, old_start = tail_start(o);

	o->written = to;
	uint64_t start = tail_start(o);
	/* what leaves the tail, or never enters it, before any reader had it */
	uint64_t lost_from = max_u64(max_u64(o->seen, old_start), o->head);
	if (start > lost_from)
		o->dropped += start - lost_from;

	uint64_t head_len = from < o->head ? min_u64(o->head - from, len) : 0;
	store(o, from, bytes, head_len);
	uint64_t tail_from = max_u64(from + head_len, start);
	if (o->tail > 0 && tail_from < to)
		store(o, tail_from, bytes + (tail_from - from), to - tail_from);
}

void output_finish(struct output *o)
{
	o->final = true;
}

void output_attach(struct output *o, uint64_t offset)
{
	o->sent = min_u64(offset, o->written);
	o->credit = PROTO_JOB_WINDOW;
	o->attached = true;
	o->eof_sent = false;
}

void output_detach(struct output *o)
{
	o->attached = false;
	o->credit = 0;
}

/* The next offset at or after this one that is there. */
static uint64_t next_kept(const struct output *o, uint64_t at)
{
	if (at >= o->head)
		at = max_u64(at, tail_start(o));
	if (at >= o->hole_from && at < o->hole_to)
		at = o->hole_to;
	return at;
}

/* Up to where bytes may be read: with ends kept, the tail is known when the job has ended. */
static uint64_t read_limit(const struct output *o)
{
	bool tail_is_known = o->keep != PROTO_KEEP_ENDS || o->final;

	return tail_is_known ? o->written : min_u64(o->written, o->head);
}

struct output_piece output_find(const struct output *o, uint64_t offset)
{
	uint64_t limit = read_limit(o), run;

	if (offset >= limit)
		return (struct output_piece){ .offset = offset };
	uint64_t at = next_kept(o, offset);
	if (at >= limit)
		return (struct output_piece){ .offset = at };
	place(o, at, &run);
	run = min_u64(run, limit - at);
	if (o->hole_from > at && o->hole_from < o->hole_to)
		run = min_u64(run, o->hole_from - at);
	return (struct output_piece){ at, (size_t)min_u64(run, PROTO_PAYLOAD_MAX) };
}

struct output_next output_next(struct output *o)
{
	struct output_piece piece = output_find(o, o->sent);

	if (piece.offset == o->sent)
		return (struct output_next){ .len = piece.len };
	struct output_next gap = { .gap = piece.offset - o->sent };
	o->sent = piece.offset;
	o->seen = max_u64(o->seen, piece.offset);
	return gap;
}

ssize_t output_read_at(struct output *o, uint64_t offset, uint8_t *bytes, size_t len)
{
	uint64_t run;
	ssize_t n = pread(o->fd, bytes, len, place(o, offset, &run));

	if (n <= 0)
		return -1;
	/* one that began further on has not had what was before */
	if (offset <= o->seen)
		o->seen = max_u64(o->seen, offset + (uint64_t)n);
	return n;
}

ssize_t output_read(struct output *o, uint8_t *bytes, size_t len)
{
	ssize_t n = output_read_at(o, o->sent, bytes, len);

	if (n < 0)
		return -1;
	o->sent += (uint64_t)n;
	o->seen = max_u64(o->seen, o->sent);
	return n;
}

bool output_is_done(const struct output *o)
{
	return o->final && o->sent >= o->written;
}
