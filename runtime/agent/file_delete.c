/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/agent/entry.h"
#include "runtime/agent/files.h"
#include "runtime/agent/place.h"
#include "runtime/agent/removal.h"
#include "runtime/agent/report.h"

#define WHERE_MAX (PROTO_DETAIL_MAX - 100) /* bytes shown of a name; the reason has a place, too */

/* "/", "." and "..": a folder by a path that does not end with its name. */
static int refuse_nameless(struct removal *r, const struct place *p)
{
	struct stat st;

	if (fstatat(p->dir, *p->rest ? p->rest : ".", &st, 0) < 0)
		return -1;
	bool kept = removal_is_kept(r->kept, &st);
	r->why = kept ? "it is never deleted" : "the path does not end with a name";
	errno = kept ? EPERM : EINVAL;
	return -1;
}

static int delete (struct removal *r, const char *path)
{
	_cleanup_place_ struct place p = { .dir = -1 };

	r->why = NULL;
	r->where[0] = '\0';
	if (place_find_name(&p, path) < 0)
		return -1;
	if (!place_has_name(&p))
		return refuse_nameless(r, &p);
	return removal_run(r, p.dir, p.rest);
}

static int delete_and_tell(struct removal *r, const char *path, struct report *out)
{
	char detail[PROTO_DETAIL_MAX + 1];

	if (delete (r, path) == 0) {
		struct builtin_entry entry = { .path = entry_path(path) };
		return report_entry(out, &entry);
	}
	int sys = errno;
	if (!r->where[0])
		return report_failure(out, path, sys, r->why);
	snprintf(detail, sizeof(detail), "could not delete %.*s: %s", WHERE_MAX, r->where,
		 r->why ? r->why : strerrordesc_np(sys));
	return report_failure(out, path, sys, detail);
}

int file_delete_run(int argc, char **argv)
{
	struct removal_kept kept = { .count = 0 };
	struct removal r = { .kept = &kept, .recursive = strcmp(argv[0], "1") == 0 };
	struct report out;

	removal_keep_places(&kept);
	report_init(&out, STDOUT_FILENO);
	for (int i = 1; i < argc; i++)
		if (delete_and_tell(&r, argv[i], &out) < 0)
			return 1;
	return report_flush(&out) < 0;
}
