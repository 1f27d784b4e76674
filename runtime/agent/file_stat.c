/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <unistd.h>

#include "runtime/agent/entry.h"
#include "runtime/agent/files.h"
#include "runtime/agent/report.h"

int file_stat_run(int argc, char **argv)
{
	struct report r;
	struct builtin_entry entry;
	char target[PATH_MAX];

	report_init(&r, STDOUT_FILENO);
	for (int i = 0; i < argc; i++) {
		(void)entry_look(&entry, argv[i], AT_FDCWD, argv[i], target);
		if (report_entry(&r, &entry) < 0)
			return 1;
	}
	return report_flush(&r) < 0;
}
