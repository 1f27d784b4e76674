/* SPDX-License-Identifier: MIT */
/*
 * stream.h - two-way bytes to an agent, however they came to be (an engine's hijacked exec, a
 * socketpair). Non-blocking. Owned and used by one thread at a time.
 */
#ifndef BERTH_STREAM_H
#define BERTH_STREAM_H

#include <sys/types.h>

#include "base/base.h"

struct stream;

struct stream_ops {
	/* Bytes read; 0 at the end; -EAGAIN when there are none now; another -errno when it is broken. */
	ssize_t (*read)(struct stream *s, void *bytes, size_t size);
	/* Bytes taken, at least one; -EAGAIN; another -errno when it is broken. */
	ssize_t (*write)(struct stream *s, const void *bytes, size_t len);
	/* What the other side said outside the stream, for an error message ("exec failed: no such file"); ""
	 * if nothing. */
	const char *(*complaint)(struct stream *s);
	void (*close)(struct stream *s); /* closes and frees */
};

/* The first member of each kind of stream. */
struct stream {
	const struct stream_ops *ops;
	int fd; /* to poll; read until -EAGAIN before polling again, since a kind may buffer */
};

/* A stream over a connected socket or socketpair, which it owns from now on and makes non-blocking. */
struct stream *stream_of_fd(int fd) NODISCARD;

static inline void stream_close(struct stream *s)
{
	if (s)
		s->ops->close(s);
}
DEFINE_CLEANUP(struct stream *, stream_close)

#endif
