/* SPDX-License-Identifier: MIT */
/*
 * buf.h - a growing byte buffer with a mandatory maximum: the only way bytes of outside size
 * enter memory. A plain value owned by its holder; not for sharing between threads unlocked.
 */
#ifndef BERTH_BUF_H
#define BERTH_BUF_H

#include "base/err.h"

struct buf {
	char *data;  /* NUL after the last byte once anything was added; NULL while empty */
	size_t len;  /* bytes in use, the NUL not counted */
	size_t room; /* bytes allocated */
	size_t max;  /* len never passes it */
};

#define BUF_INIT(maximum) ((struct buf){ .max = (maximum) })
#define _cleanup_buf_ _cleanup_(buf_clear)

void buf_clear(struct buf *b);                /* frees; the buffer may be used again */
void buf_reset(struct buf *b);                /* empties, keeps the memory */
void buf_truncate(struct buf *b, size_t len); /* keeps the first len bytes */

/* ERR_TOO_LARGE when the maximum would be passed; then nothing is added. */
int buf_add(struct buf *b, const void *bytes, size_t len, struct err *e) NODISCARD;
int buf_addf(struct buf *b, struct err *e, const char *fmt, ...) NODISCARD PRINTF_LIKE(3, 4);

/* Removes the first len bytes (at most what is there). The rest moves down: take large bites. */
void buf_consume(struct buf *b, size_t len);

/* Moves the text out, owned by the caller; "" when nothing was added. The buffer is empty afterwards. */
char *buf_take(struct buf *b) NODISCARD;

#endif
