/* SPDX-License-Identifier: MIT */
/*
 * engine_demux.h - the engine's framing of an exec's output: 1 byte stream, 3 zero bytes, 4 bytes
 * big-endian length, payload. Pure.
 *
 * Frames are arbitrary cuts of what the process wrote (8192 bytes at most on Podman, 32768 on
 * Docker were seen), so nothing is ever stored for a whole frame and the announced length is only
 * counted down, never believed as a size.
 */
#ifndef BERTH_ENGINE_DEMUX_H
#define BERTH_ENGINE_DEMUX_H

#include "base/base.h"

enum engine_demux_stream { DEMUX_STDIN = 0, DEMUX_STDOUT = 1, DEMUX_STDERR = 2 };

struct engine_demux {
	uint8_t header[8];
	uint8_t header_len;
	uint8_t stream; /* of the payload that is being read */
	uint32_t left;  /* bytes of it to come */
};

/* A piece of payload inside the input. */
struct engine_demux_piece {
	int stream; /* enum engine_demux_stream */
	const uint8_t *at;
	size_t len;
};

/*
 * Takes the front of data: the number of bytes used, with *ret->len > 0 when they end in a piece
 * of payload (borrowed from data, at its end). 0 only when len is 0. -1 when it is no such framing.
 */
ssize_t engine_demux_next(struct engine_demux *d, const uint8_t *data, size_t len,
			  struct engine_demux_piece *ret);

#endif
