/* SPDX-License-Identifier: MIT */
/* progress.h - how far a transfer is, on a terminal's stderr; elsewhere nothing is shown. One thread. */
#ifndef BERTH_CLI_PROGRESS_H
#define BERTH_CLI_PROGRESS_H

#include "base/base.h"

struct progress {
	bool shown;
	const char *what; /* borrowed */
	int64_t total;    /* bytes; -1: unknown */
	int64_t bytes;    /* so far */
	int64_t begun_ms, told_ms;
};

/* quiet: shows nothing. */
void progress_begin(struct progress *p, const char *what, int64_t total, bool quiet);
/* So many bytes more. */
void progress_add(struct progress *p, size_t bytes);
/* The last word, and the line's end. */
void progress_end(struct progress *p);

#endif
