/* SPDX-License-Identifier: MIT */
/*
 * link_help.h - a link of the manager whose agent is the test, over a socketpair. Each asserts that it
 * worked.
 */
#ifndef BERTH_TESTS_LINK_HELP_H
#define BERTH_TESTS_LINK_HELP_H

#include <pthread.h>

#include "runtime/channel.h"

#define WAIT_MS 5000

struct link {
	struct channels *all;
	int fd; /* the agent's end */
	struct channel *channel;
	struct hello hello;
};

/* ---- the agent's side ---- */

void say_frame(int fd, enum proto_type type, uint8_t aux, uint32_t job, const void *payload, size_t len);
void say_u64(int fd, enum proto_type type, uint8_t aux, uint32_t job, uint16_t tag, uint64_t value);
void say_hello(int fd, uint64_t magic);
void say_exit(int fd, uint32_t job); /* exited with 5, detail "fine" */

struct ear {
	int fd;
	uint8_t bytes[1 << 17];
	size_t len, used;
	struct proto_frame frame;
};

/* Reads frames until one of this type comes; keeps what follows for the next call. False when none comes. */
bool hear(struct ear *ear, enum proto_type type);

/* ---- opening ---- */

struct opening {
	struct link *l;
	int manager_fd;
	int r;
	struct err e;
	int timeout_ms;
};

/* Begins to open a link on a thread of its own. */
void begin_link(struct link *l, struct opening *o, pthread_t *thread, int timeout_ms);
void open_link(struct link *l);
void end_link(struct link *l);

#endif
