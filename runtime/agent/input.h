/* SPDX-License-Identifier: MIT */
/*
 * input.h - bytes on their way to a job's stdin: a queue in a memfd.
 *
 * Its size is bounded by the credit that the sender was given.
 */
#ifndef BERTH_AGENT_INPUT_H
#define BERTH_AGENT_INPUT_H

#include <stddef.h>

#include "runtime/agent/loop.h"

struct input {
	int fd;               /* the memfd; -1: no stdin */
	struct watch pipe;    /* to the job */
	uint64_t from, to;    /* queued bytes, as offsets in the memfd */
	uint64_t punched;     /* the memfd is empty before this */
	uint64_t taken;       /* bytes received so far, over all links */
	uint64_t credit;      /* bytes that the sender may still send */
	uint64_t owed;        /* bytes consumed whose credit was not given back yet */
	uint64_t unaccounted; /* queued bytes of an earlier link, for which nobody is owed anything */
	bool eof;             /* nothing follows */
};

/* Takes the pipe's writing end. 0, or -1 with errno. */
int input_open(struct input *in, int pipe_fd);
/* Closes; how many bytes were taken stays known. */
void input_clear(struct input *in, struct loop *l);

/* A reader of this job came to a new link. */
void input_attach(struct input *in);

/* Queues bytes; after the pipe was closed they are consumed at once. False when there was no credit for them.
 */
bool input_append(struct input *in, struct loop *l, const uint8_t *bytes, size_t len);
void input_finish(struct input *in, struct loop *l);
/* Does it take more, and does the job hold the reading end still? */
bool input_is_open(const struct input *in);

/* Moves queued bytes to the pipe; buffer is scratch. */
void input_flush(struct input *in, struct loop *l, uint8_t *buffer, size_t size);

#endif
