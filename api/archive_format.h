/* SPDX-License-Identifier: MIT */
/* archive_format.h - which kind of archive a request means, and how the wire names it. Pure. */
#ifndef BERTH_ARCHIVE_FORMAT_H
#define BERTH_ARCHIVE_FORMAT_H

#include "base/err.h"

struct archive_format {
	const char *name; /* "tar.gz", "tar.zst", "tar" */
	const char *type; /* its media type */
};

/*
 * Of a request for one: by `format` when it is given (ERR_INVALID unless it is a name), else the first in
 * Accept that is one of ours, else tar.gz. Each may be NULL.
 */
int archive_format_out(const char *format, const char *accept, const struct archive_format **ret,
		       struct err *e) NODISCARD;

/* Of a body: by `format`, else by its Content-Type, else "": what it looks like. */
int archive_format_in(const char *format, const char *type, const char **ret, struct err *e) NODISCARD;

#endif
