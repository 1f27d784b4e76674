/* SPDX-License-Identifier: MIT */
#include "cli/progress.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/utf8.h"

#define TELL_MS 200
#define BAR 24
#define NAME_MAX_BYTES 40
#define MIB (1024.0 * 1024.0)

void progress_begin(struct progress *p, const char *what, int64_t total, bool quiet)
{
	int64_t now = clock_mono_ms();
	*p = (struct progress){
		.shown = !quiet && isatty(STDERR_FILENO),
		.what = what,
		.total = total,
		.begun_ms = now,
		.told_ms = now,
	};
}

static void tell(const struct progress *p)
{
	int64_t ms = MAX(clock_mono_ms() - p->begun_ms, 1);
	_cleanup_free_ char *name = utf8_escape(p->what, strlen(p->what), NAME_MAX_BYTES);
	double mib = (double)p->bytes / MIB, rate = mib * 1000.0 / (double)ms;
	if (p->total > 0) {
		int64_t done = MIN(p->bytes, p->total);
		int full = (int)(done * BAR / p->total);
		fprintf(stderr, "\r%s [%.*s%*s] %3d%% %.1f MiB %.1f MiB/s\033[K", name, full,
			"########################", BAR - full, "", (int)(done * 100 / p->total), mib, rate);
	} else {
		fprintf(stderr, "\r%s %.1f MiB %.1f MiB/s\033[K", name, mib, rate);
	}
}

void progress_add(struct progress *p, size_t bytes)
{
	p->bytes += (int64_t)bytes;
	if (!p->shown || clock_mono_ms() - p->told_ms < TELL_MS)
		return;
	p->told_ms = clock_mono_ms();
	tell(p);
}

void progress_end(struct progress *p)
{
	if (!p->shown)
		return;
	tell(p);
	fputc('\n', stderr);
	p->shown = false;
}
