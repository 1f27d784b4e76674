/* SPDX-License-Identifier: MIT */
#include "hostile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *name;
	attack_fn *run;
} ATTACKS[] = {
	{ "call", calls_run },       { "foreign", calls_foreign },  { "ids", calls_ids },
	{ "reach", net_reach },      { "loopback", net_loopback },  { "writable", walk_writable },
	{ "spy", spy_on },           { "race", spy_race },          { "starts", spy_starts },
	{ "signals", signal_all },   { "oppress", signal_oppress }, { "connect", agent_connect },
	{ "bind", agent_bind },      { "flood", agent_flood },      { "fork", bomb_fork },
	{ "daemons", bomb_daemons }, { "memory", bomb_memory },     { "shm", bomb_shm },
	{ "ipc", bomb_ipc },         { "bytes", bomb_bytes },       { "files", bomb_files },
	{ "fds", bomb_fds },         { "zombies", bomb_zombies },
};

const char *word_of(int sys)
{
	return sys ? strerrorname_np(sys) : "ok";
}

long number_of(const char *text)
{
	return strtol(text, NULL, 10);
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
	for (size_t i = 0; argc > 1 && i < LENGTH(ATTACKS); i++)
		if (strcmp(argv[1], ATTACKS[i].name) == 0)
			return ATTACKS[i].run(argc - 1, argv + 1);
	fprintf(stderr, "no such attack\n");
	return 64;
}
