/* SPDX-License-Identifier: MIT */
/*
 * capture.h - what is kept of a command's output for its reply: the first and the last half of a
 * limit, cut at characters, joined by a line that names the bytes between. Pure; one thread at a time.
 */
#ifndef BERTH_CAPTURE_H
#define BERTH_CAPTURE_H

#include "base/buf.h"

/* The agent keeps so many bytes at each end for a limit of characters: UTF-8 has at most 4 for one. */
#define CAPTURE_END_BYTES(limit) (2 * (limit))

struct capture {
	size_t limit;    /* characters, or bytes with exact */
	bool exact;      /* bytes, not text */
	struct buf head; /* the first bytes, end_bytes at most */
	struct buf tail; /* the last bytes, up to twice end_bytes before it is trimmed */
	size_t end_bytes;
	uint64_t total; /* bytes seen and lost */
	uint64_t lost;  /* bytes that never came here */
};

void capture_init(struct capture *c, size_t limit, bool exact);
void capture_clear(struct capture *c);
void capture_add(struct capture *c, const void *bytes, size_t len);
/* These bytes were lost before the next ones. */
void capture_lose(struct capture *c, uint64_t bytes);

struct capture_result {
	char *text; /* owned by the caller; with exact: bytes */
	size_t len;
	bool truncated;
	uint64_t dropped_bytes;
};
void capture_finish(const struct capture *c, struct capture_result *ret);

#endif
