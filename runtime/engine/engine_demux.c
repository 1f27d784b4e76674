/* SPDX-License-Identifier: MIT */
#include "runtime/engine/engine_demux.h"

#include <string.h>

static uint32_t be32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* A header is judged byte by byte, so that plain text is refused at once and not after eight bytes of it. */
static bool header_is_possible(const uint8_t *h, size_t len)
{
	if (len > 0 && h[0] > DEMUX_STDERR)
		return false;
	for (size_t i = 1; i < MIN(len, 4); i++)
		if (h[i])
			return false;
	return true;
}

/* Gathers header bytes; the number taken, or -1. */
static ssize_t take_header(struct engine_demux *d, const uint8_t *data, size_t len)
{
	size_t n = MIN(len, sizeof(d->header) - d->header_len);
	memcpy(d->header + d->header_len, data, n);
	d->header_len = (uint8_t)(d->header_len + n);
	if (!header_is_possible(d->header, d->header_len))
		return -1;
	if (d->header_len == sizeof(d->header)) {
		d->stream = d->header[0];
		d->left = be32(d->header + 4);
		d->header_len = 0;
	}
	return (ssize_t)n;
}

ssize_t engine_demux_next(struct engine_demux *d, const uint8_t *data, size_t len,
			  struct engine_demux_piece *ret)
{
	size_t used = 0;
	*ret = (struct engine_demux_piece){ 0 };
	while (!d->left && used < len) { /* empty frames are legal */
		ssize_t n = take_header(d, data + used, len - used);
		if (n < 0)
			return -1;
		used += (size_t)n;
	}
	size_t n = MIN(len - used, d->left);
	if (n) {
		*ret = (struct engine_demux_piece){ d->stream, data + used, n };
		d->left -= (uint32_t)n;
	}
	return (ssize_t)(used + n);
}
