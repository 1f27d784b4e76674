/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/agent/entry.h"
#include "runtime/agent/files.h"
#include "runtime/agent/place.h"
#include "runtime/agent/report.h"

/* 0, or -1 with errno. */
static int make(struct place *p, const char *path, struct stat *ret)
{
	if (place_find_folder(p, path) < 0 || place_make(p) < 0)
		return -1;
	const char *name = *p->rest ? p->rest : "."; /* the root has no name */
	if (mkdirat(p->dir, name, 0777) == 0)
		return fstatat(p->dir, name, ret, 0);
	if (errno != EEXIST || (fstatat(p->dir, name, ret, 0) == 0 && S_ISDIR(ret->st_mode)))
		return errno == EEXIST ? 0 : -1;
	errno = EEXIST; /* a symlink that leads nowhere is in the way, too */
	return -1;
}

int file_mkdir_run(int argc, char **argv)
{
	_cleanup_place_ struct place p = { .dir = -1 };
	struct report r;
	struct builtin_entry entry;
	struct stat st;

	(void)argc;
	report_init(&r, STDOUT_FILENO);
	if (make(&p, argv[0], &st) < 0) {
		(void)report_failure(&r, argv[0], errno, NULL);
	} else {
		entry_of(&entry, argv[0], &st);
		(void)report_entry(&r, &entry);
	}
	return report_flush(&r) < 0;
}
