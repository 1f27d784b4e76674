/* SPDX-License-Identifier: MIT */
/*
 * bench.h - what the files of the measuring client share. A measurement that goes wrong ends the program: a
 * figure of something that failed would be worse than none.
 */
#ifndef BERTH_TESTS_BENCH_H
#define BERTH_TESTS_BENCH_H

#include "base/base.h"

/* What is measured, from the command line; the same for all lanes. */
struct setup {
	const char *berth, *token; /* HOST:PORT */
	const char *engine;        /* path of its socket */
	const char *sessions[64];  /* taken in turn by the lanes of a burst */
	size_t session_count;
	const char *container; /* in which the engine's own execs run */
	const char *image;     /* of the engine's own containers */
	const char *dir;       /* the data folder, for the flush that is compared with */
	const char *command;   /* JSON array */
	const char *process;   /* id of the one that is polled */
	uint64_t bytes;        /* what a stream must carry */
	char **cli;            /* argv of the engine's command line client */
};

/* One that does the work: connections of its own, for the life of the program. */
struct lane {
	const struct setup *setup;
	const char *session;
	struct http *berth, *engine; /* opened at first use */
	int sync_fd;                 /* as these; -1 */
	char made[128];              /* what run made, for after */
};

struct work {
	const char *name;
	void (*run)(struct lane *l);   /* this is timed */
	void (*after)(struct lane *l); /* this is not; may be NULL */
};

/* NULL when there is none of this name. */
const struct work *work_find(const char *name);

void lane_init(struct lane *l, const struct setup *s, size_t index);
void lane_clear(struct lane *l);

/* Lanes that start together, `rounds` times for each work in turn. Prints two series for each: NAME.all and
 * NAME.each. */
void burst(const struct setup *s, const struct work *const *works, size_t count, int rounds, size_t lanes);

/* A series on one line of stdout: its name and the microseconds. */
void print_series(const char *name, const char *suffix, const int64_t *us, size_t count);

void die(const char *fmt, ...) PRINTF_LIKE(1, 2) __attribute__((noreturn));

#endif
