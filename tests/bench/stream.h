/* SPDX-License-Identifier: MIT */
/* stream.h - counts the bytes of output that a stream carries, without making them, so that the reader is the
 * lesser cost. */
#ifndef BERTH_TESTS_BENCH_STREAM_H
#define BERTH_TESTS_BENCH_STREAM_H

#include "tests/bench/http.h"

enum stream_format {
	STREAM_UTF8,   /* NDJSON; every escape in it stands for one byte, so no \u */
	STREAM_BASE64, /* NDJSON */
	STREAM_ENGINE, /* the engines' frames: 8 bytes, the last four a length */
};

/* Reads to the end; dies unless it carried exactly so many bytes. */
void stream_expect(struct http *h, enum stream_format format, uint64_t bytes);

#endif
