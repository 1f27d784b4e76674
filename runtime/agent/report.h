/* SPDX-License-Identifier: MIT */
/*
 * report.h - what a built-in says: entries and the end, gathered and written in pieces.
 *
 * For the process of a built-in only: PID 1 would wait for the reader. After a write has failed nothing more
 * is written, and every call says so.
 */
#ifndef BERTH_AGENT_REPORT_H
#define BERTH_AGENT_REPORT_H

#include "runtime/protocol/builtin.h"

#define REPORT_BYTES 65536 /* as much as a pipe takes at once */

struct report {
	int fd; /* borrowed */
	bool failed;
	size_t used;
	uint8_t bytes[REPORT_BYTES];
};

void report_init(struct report *r, int fd);

/* 0, or -1 with errno when the fd takes no more. Each is kept until some 64 KiB are there, or report_flush().
 */
int report_entry(struct report *r, const struct builtin_entry *entry);
int report_done(struct report *r, const struct builtin_done *done);

/* An entry that has a path, an errno and, unless it is NULL, a detail. As report_entry(). */
int report_failure(struct report *r, const char *path, int sys, const char *detail);

/* Writes what is kept: before raw bytes, and at the end. 0 or -1. */
int report_flush(struct report *r);

#endif
