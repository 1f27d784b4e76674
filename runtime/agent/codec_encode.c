/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "runtime/agent/codec.h"
#include "runtime/agent/fd.h"

#define GZIP_WINDOW (15 + 16) /* zlib.h, deflateInit2(): the largest, in a gzip header */
#define GZIP_MEMORY 8
/* Fast ones: an archive is made while somebody waits, and most of a repository is compressed already. */
#define GZIP_LEVEL 1
#define ZSTD_LEVEL 1

/* The level's own strategy, named since the code of the slow ones is not linked (Makefile). */
static bool set_up_zstd(ZSTD_CCtx *z)
{
	return z && !ZSTD_isError(ZSTD_CCtx_setParameter(z, ZSTD_c_compressionLevel, ZSTD_LEVEL)) &&
	       !ZSTD_isError(ZSTD_CCtx_setParameter(z, ZSTD_c_strategy, ZSTD_fast)) &&
	       !ZSTD_isError(ZSTD_CCtx_setParameter(z, ZSTD_c_checksumFlag, 1));
}

int encoder_init(struct encoder *e, int fd, enum codec codec)
{
	bool ready = true;

	e->fd = fd;
	e->codec = codec;
	e->used = 0;
	e->gzip = (z_stream){ 0 };
	e->zstd = NULL;
	if (codec == CODEC_GZIP)
		ready = deflateInit2(&e->gzip, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW, GZIP_MEMORY,
				     Z_DEFAULT_STRATEGY) == Z_OK;
	if (codec == CODEC_ZSTD)
		ready = set_up_zstd(e->zstd = ZSTD_createCCtx());
	errno = ENOMEM;
	return ready ? 0 : -1;
}

void encoder_clear(struct encoder *e)
{
	if (e->codec == CODEC_GZIP)
		(void)deflateEnd(&e->gzip);
	ZSTD_freeCCtx(e->zstd);
	e->zstd = NULL;
}

static int flush(struct encoder *e)
{
	int rc = fd_write_all(e->fd, e->out, e->used);

	e->used = 0;
	return rc;
}

static int encode_plain(struct encoder *e, const uint8_t *bytes, size_t len)
{
	while (len > 0) {
		size_t room = sizeof(e->out) - e->used, n = len < room ? len : room;
		memcpy(e->out + e->used, bytes, n);
		e->used += n;
		bytes += n;
		len -= n;
		if (e->used == sizeof(e->out) && flush(e) < 0)
			return -1;
	}
	return 0;
}

static int encode_gzip(struct encoder *e, const uint8_t *bytes, size_t len, bool end)
{
	int rc;

	e->gzip.next_in = (Bytef *)(uintptr_t)bytes; /* zlib only reads it */
	e->gzip.avail_in = (uInt)len;
	do {
		if (e->used == sizeof(e->out) && flush(e) < 0)
			return -1;
		e->gzip.next_out = e->out + e->used;
		e->gzip.avail_out = (uInt)(sizeof(e->out) - e->used);
		rc = deflate(&e->gzip, end ? Z_FINISH : Z_NO_FLUSH);
		e->used = sizeof(e->out) - e->gzip.avail_out;
		if (rc != Z_OK && rc != Z_BUF_ERROR && rc != Z_STREAM_END)
			return -1;
	} while (end ? rc != Z_STREAM_END : e->gzip.avail_in > 0);
	return 0;
}

static int encode_zstd(struct encoder *e, const uint8_t *bytes, size_t len, bool end)
{
	ZSTD_inBuffer in = { bytes, len, 0 };
	size_t rc;

	do {
		if (e->used == sizeof(e->out) && flush(e) < 0)
			return -1;
		ZSTD_outBuffer out = { e->out, sizeof(e->out), e->used };
		rc = ZSTD_compressStream2(e->zstd, &out, &in, end ? ZSTD_e_end : ZSTD_e_continue);
		e->used = out.pos;
		if (ZSTD_isError(rc))
			return -1;
	} while (end ? rc != 0 : in.pos < in.size);
	return 0;
}

static int encode(struct encoder *e, const uint8_t *bytes, size_t len, bool end)
{
	switch (e->codec) {
	case CODEC_GZIP:
		return encode_gzip(e, bytes, len, end);
	case CODEC_ZSTD:
		return encode_zstd(e, bytes, len, end);
	default:
		return encode_plain(e, bytes, len);
	}
}

int encoder_write(struct encoder *e, const void *bytes, size_t len)
{
	return encode(e, bytes, len, false);
}

int encoder_finish(struct encoder *e)
{
	return encode(e, NULL, 0, true) < 0 ? -1 : flush(e);
}
