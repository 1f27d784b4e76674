/* SPDX-License-Identifier: MIT */
/*
 * output.h - what a job wrote on one stream: its head and its tail, in a memfd.
 *
 * The memfd is used by pread and pwrite and never mapped, so that it is no part of PID 1's
 * resident memory. Bytes have absolute offsets. Kept are [0, head) and the last `tail` bytes.
 */
#ifndef BERTH_AGENT_OUTPUT_H
#define BERTH_AGENT_OUTPUT_H

#include "runtime/protocol/protocol.h"

struct output_limits {
	enum proto_keep keep;
	uint32_t head, tail; /* bytes */
};

struct output {
	int fd; /* -1: the job has no such stream */
	enum proto_keep keep;
	uint32_t head, tail;
	uint64_t written;            /* bytes the job has written */
	uint64_t sent;               /* the reader's offset */
	uint64_t seen;               /* up to here some reader had everything that was kept */
	uint64_t dropped;            /* bytes that no reader will ever see */
	uint64_t hole_from, hole_to; /* bytes that could not be stored; empty when equal */
	uint64_t credit;             /* bytes the reader may still be sent */
	bool attached;               /* somebody reads */
	bool final;                  /* nothing is written any more */
	bool eof_sent;
};

/* 0, or -1 with errno. */
int output_open(struct output *o, const struct output_limits *limits);
void output_clear(struct output *o);

/* Bytes that may be appended without a loss for a reader that must not lose any. */
uint64_t output_room(const struct output *o);

/* Stores bytes, over older ones of the tail. What cannot be stored is counted as dropped. */
void output_append(struct output *o, const uint8_t *bytes, size_t len);

/* Nothing follows. */
void output_finish(struct output *o);

void output_attach(struct output *o, uint64_t offset);
void output_detach(struct output *o);

/* What comes next for the reader: either a gap, which is taken by this call, or bytes to read. */
struct output_next {
	uint64_t gap;
	size_t len;
};
struct output_next output_next(struct output *o);

/* Reads at the reader's place and moves it; len is at most output_next's. Bytes read, or -1. */
ssize_t output_read(struct output *o, uint8_t *bytes, size_t len);

/*
 * For readers that keep their own place: the first bytes at or after `offset` that are there without a break;
 * len is 0 when there are none yet.
 */
struct output_piece {
	uint64_t offset;
	size_t len;
};
struct output_piece output_find(const struct output *o, uint64_t offset);

/* Reads from a piece that was found; bytes read, or -1. */
ssize_t output_read_at(struct output *o, uint64_t offset, uint8_t *bytes, size_t len);

/* The reader has had everything there will ever be. */
bool output_is_done(const struct output *o);

#endif
