/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "runtime/agent/codec.h"

#define GZIP_ONLY (15 + 16) /* zlib.h, inflateInit2(): the largest window, and a gzip header */
#define MAGIC_BYTES 4
#define ZSTD_SKIPPABLE_MASK 0xfffffff0u /* zstd.h: a frame that says nothing, of any of 16 kinds */

int decoder_fail(struct decoder *d, int sys, const char *why)
{
	d->sys = sys;
	d->why = why;
	return -1;
}

/* Reads until at least `want` bytes are there, or the end. */
static int fill(struct decoder *d, size_t want)
{
	if (d->to - d->from >= want || d->eof)
		return 0;
	memmove(d->in, d->in + d->from, d->to - d->from);
	d->to -= d->from;
	d->from = 0;
	while (d->to < want && !d->eof) {
		ssize_t n = read(d->fd, d->in + d->to, sizeof(d->in) - d->to);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return decoder_fail(d, errno, "the archive cannot be read");
		d->eof = n == 0;
		d->to += (size_t)n;
	}
	return 0;
}

static bool is_gzip(const uint8_t *at, size_t len)
{
	return len >= 2 && at[0] == 0x1f && at[1] == 0x8b; /* RFC 1952, 2.3.1 */
}

static bool is_zstd(const uint8_t *at, size_t len)
{
	if (len < MAGIC_BYTES)
		return false;
	uint32_t magic =
		(uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
	return magic == ZSTD_MAGICNUMBER || (magic & ZSTD_SKIPPABLE_MASK) == ZSTD_MAGIC_SKIPPABLE_START;
}

static int begin_gzip(struct decoder *d)
{
	return inflateReset(&d->gzip) == Z_OK ? 0 : -1;
}

static int begin_zstd(struct decoder *d)
{
	return ZSTD_isError(ZSTD_DCtx_reset(d->zstd, ZSTD_reset_session_only)) ? -1 : 0;
}

/* Decodes what is there. The bytes made, or -1; d->within becomes false at the end of the stream. */
static ssize_t step_gzip(struct decoder *d)
{
	d->gzip.next_in = d->in + d->from;
	d->gzip.avail_in = (uInt)(d->to - d->from);
	d->gzip.next_out = d->out;
	d->gzip.avail_out = sizeof(d->out);
	int rc = inflate(&d->gzip, Z_NO_FLUSH);
	d->from = d->to - d->gzip.avail_in;
	d->within = rc != Z_STREAM_END;
	if (rc != Z_OK && rc != Z_BUF_ERROR && rc != Z_STREAM_END)
		return decoder_fail(d, rc == Z_MEM_ERROR ? ENOMEM : EBADMSG,
				    "the compressed data is damaged");
	return (ssize_t)(sizeof(d->out) - d->gzip.avail_out);
}

static ssize_t step_zstd(struct decoder *d)
{
	ZSTD_inBuffer in = { d->in, d->to, d->from };
	ZSTD_outBuffer out = { d->out, sizeof(d->out), 0 };
	size_t rc = ZSTD_decompressStream(d->zstd, &out, &in);

	d->from = in.pos;
	d->within = rc != 0;
	if (ZSTD_isError(rc))
		return decoder_fail(d, EBADMSG, ZSTD_getErrorName(rc));
	return (ssize_t)out.pos;
}

static const struct kind {
	const char *format;
	bool (*is)(const uint8_t *at, size_t len);
	int (*begin)(struct decoder *d);
	ssize_t (*step)(struct decoder *d);
} KINDS[] = {
	[CODEC_NONE] = { "tar", NULL, NULL, NULL },
	[CODEC_GZIP] = { "tar.gz", is_gzip, begin_gzip, step_gzip },
	[CODEC_ZSTD] = { "tar.zst", is_zstd, begin_zstd, step_zstd },
	[CODEC_LOOK] = { "", NULL, NULL, NULL },
};

int codec_find(const char *format)
{
	for (int i = CODEC_NONE; i <= CODEC_LOOK; i++)
		if (strcmp(format, KINDS[i].format) == 0)
			return i;
	return -1;
}

int decoder_init(struct decoder *d, int fd, enum codec codec, uint64_t most_bytes)
{
	d->fd = fd;
	d->codec = codec;
	d->left = most_bytes;
	d->eof = d->within = false;
	d->begun = 0;
	d->sys = 0;
	d->why = NULL;
	d->from = d->to = 0;
	d->gzip = (z_stream){ 0 };
	d->zstd = ZSTD_createDCtx();
	if (d->zstd && inflateInit2(&d->gzip, GZIP_ONLY) == Z_OK)
		return 0;
	errno = ENOMEM;
	return -1;
}

void decoder_clear(struct decoder *d)
{
	(void)inflateEnd(&d->gzip);
	ZSTD_freeDCtx(d->zstd);
	d->zstd = NULL;
}

static enum codec look(const struct decoder *d)
{
	for (int i = CODEC_NONE; i < CODEC_LOOK; i++)
		if (KINDS[i].is && KINDS[i].is(d->in + d->from, d->to - d->from))
			return (enum codec)i;
	return CODEC_NONE;
}

static ssize_t take(struct decoder *d, const void *bytes, size_t len, const void **ret)
{
	if (len > d->left)
		return decoder_fail(d, E2BIG, "it holds more than is taken from one archive");
	d->left -= len;
	*ret = bytes;
	return (ssize_t)len;
}

static ssize_t read_plain(struct decoder *d, const void **ret)
{
	if (fill(d, 1) < 0)
		return -1;
	size_t from = d->from;
	d->from = d->to;
	return take(d, d->in + from, d->to - from, ret);
}

/* Begins the next stream: 1, 0 when there is none, -1. */
static int begin(struct decoder *d, const struct kind *kind)
{
	if (fill(d, MAGIC_BYTES) < 0)
		return -1;
	if (!kind->is(d->in + d->from, d->to - d->from)) {
		if (d->begun > 0)
			return 0;
		return decoder_fail(d, EBADMSG,
				    d->from == d->to ? "the archive is empty"
						     : "it is not compressed as was said");
	}
	if (kind->begin(d) < 0)
		return decoder_fail(d, ENOMEM, "no memory");
	d->begun++;
	d->within = true;
	return 1;
}

static ssize_t read_compressed(struct decoder *d, const struct kind *kind, const void **ret)
{
	for (;;) {
		int rc = d->within ? 1 : begin(d, kind);
		if (rc <= 0)
			return rc;
		if (fill(d, 1) < 0)
			return -1;
		bool last = d->from == d->to;
		ssize_t n = kind->step(d);
		if (n != 0)
			return n < 0 ? -1 : take(d, d->out, (size_t)n, ret);
		if (d->within && last)
			return decoder_fail(d, EBADMSG, "the compressed data is cut off");
	}
}

ssize_t decoder_read(struct decoder *d, const void **ret)
{
	if (d->sys != 0)
		return -1;
	if (d->codec == CODEC_LOOK) {
		if (fill(d, MAGIC_BYTES) < 0)
			return -1;
		d->codec = look(d);
	}
	const struct kind *kind = &KINDS[d->codec];
	return kind->step ? read_compressed(d, kind, ret) : read_plain(d, ret);
}
