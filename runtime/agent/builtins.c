/* SPDX-License-Identifier: MIT */
#include "runtime/agent/builtins.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "runtime/agent/archives.h"
#include "runtime/agent/files.h"
#include "runtime/agent/ports.h"
#include "runtime/protocol/builtin.h"

struct builtin {
	const char *name;
	int args_min, args_max;
	int (*run)(int argc, char **argv);
};

/* clang-format off */
static const struct builtin BUILTINS[] = {
	{ "delete", 2, BUILTIN_PATHS_MAX + 1, file_delete_run },
	{ "list",   3, 3,                     file_list_run },
	{ "mkdir",  1, 1,                     file_mkdir_run },
	{ "move",   2, 2,                     file_move_run },
	{ "pack",   2, 2,                     pack_run },
	{ "ports",  1, PROTO_JOBS_MAX,        ports_run },
	{ "read",   3, 3,                     file_read_run },
	{ "stat",   1, BUILTIN_PATHS_MAX,     file_stat_run },
	{ "unpack", 2, 2,                     unpack_run },
	{ "write",  3, 3,                     file_write_run },
};
/* clang-format on */

const struct builtin *builtins_find(const char *name, int argc)
{
	for (size_t i = 0; i < sizeof(BUILTINS) / sizeof(BUILTINS[0]); i++) {
		const struct builtin *b = &BUILTINS[i];
		if (strcmp(b->name, name) != 0)
			continue;
		if (argc >= b->args_min && argc <= b->args_max)
			return b;
		errno = EINVAL;
		return NULL;
	}
	errno = ENOSYS;
	return NULL;
}

int builtins_run(const struct builtin *b, int argc, char **argv)
{
	return b->run(argc, argv);
}
