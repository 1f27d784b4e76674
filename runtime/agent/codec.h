/* SPDX-License-Identifier: MIT */
/*
 * codec.h - the bytes of an archive in their clothes: none, gzip or zstd, from and to a descriptor.
 *
 * Not libarchive's filters, which believe a gzip file without looking at its checksum, and do not tell a
 * stream that ended from one that was cut at the end of an entry.
 */
#ifndef BERTH_AGENT_CODEC_H
#define BERTH_AGENT_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <zlib.h>
#include <zstd.h>

#define CODEC_BYTES (64 * 1024)

enum codec { CODEC_NONE, CODEC_GZIP, CODEC_ZSTD, CODEC_LOOK /* the first bytes say which */ };

/* By a FORMAT of builtin.h; "" is CODEC_LOOK. -1 for a name that is none. */
int codec_find(const char *format);

struct decoder {
	int fd; /* borrowed, read to its end */
	enum codec codec;
	uint64_t left;  /* bytes that may still be decoded */
	bool eof;       /* of the descriptor */
	bool within;    /* a compressed stream has begun and not ended */
	unsigned begun; /* how many have */
	int sys; /* why it failed, 0: it did not; EBADMSG: damaged or cut off, E2BIG: above the limit */
	const char *why; /* a constant */
	size_t from, to; /* of what was read and not decoded yet */
	z_stream gzip;
	ZSTD_DCtx *zstd;
	uint8_t in[CODEC_BYTES], out[CODEC_BYTES];
};

/* 0 or -1 with errno. decoder_clear() in any case. */
int decoder_init(struct decoder *d, int fd, enum codec codec, uint64_t most_bytes);
void decoder_clear(struct decoder *d);

/*
 * The next bytes, borrowed until the next call. 0 at the end: of the last of several streams, as gzip(1) and
 * zstd(1) write them one behind the other; what follows and is none is left out. -1: see d->sys.
 */
ssize_t decoder_read(struct decoder *d, const void **ret);

/* From now on it fails so. -1. */
int decoder_fail(struct decoder *d, int sys, const char *why);

struct encoder {
	int fd; /* borrowed */
	enum codec codec;
	size_t used; /* of out */
	z_stream gzip;
	ZSTD_CCtx *zstd;
	uint8_t out[CODEC_BYTES];
};

int encoder_init(struct encoder *e, int fd, enum codec codec); /* not CODEC_LOOK */
void encoder_clear(struct encoder *e);

/* 0, or -1 when the descriptor takes no more or memory is gone. */
int encoder_write(struct encoder *e, const void *bytes, size_t len);
int encoder_finish(struct encoder *e);

#endif
