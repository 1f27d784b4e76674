/* SPDX-License-Identifier: MIT */
/*
 * options.h - the command line of `berth`: one table of options serves the parser, the help texts and the
 * completion. Pure.
 */
#ifndef BERTH_CLI_OPTIONS_H
#define BERTH_CLI_OPTIONS_H

#include "base/err.h"

/* Which commands know an option. A command names its groups. */
enum option_group {
	OPTIONS_COMMON = 1, /* every command */
	OPTIONS_CREATE = 2, /* makes a session */
	OPTIONS_EXEC = 4,   /* runs a command in one */
	OPTIONS_RUN = 8,    /* `run` alone */
	OPTIONS_LIST = 16,
	OPTIONS_REMOVE = 32,
	OPTIONS_START = 64, /* starts a process */
	OPTIONS_STOP = 128,
	OPTIONS_LOGS = 256,
	OPTIONS_FILES = 512, /* lists files */
	OPTIONS_ARCHIVE = 1024,
	OPTIONS_COPY = 2048,
};

enum option_kind {
	OPTION_FLAG,     /* bool */
	OPTION_TEXT,     /* const char * */
	OPTION_TEXTS,    /* struct texts, given any number of times */
	OPTION_COUNT,    /* int64_t, min..max */
	OPTION_MB,       /* int64_t in MiB, from a size such as 512m */
	OPTION_MILLI,    /* int64_t in thousandths, min..max */
	OPTION_DURATION, /* int64_t in seconds, min..max */
};

struct option_row {
	const char *name;
	char letter;       /* 0: none */
	const char *value; /* what the help calls its value; NULL for a flag */
	const char *help;
	enum option_kind kind;
	size_t offset; /* into struct options */
	int64_t min, max;
	unsigned groups;
};

#define TEXTS_MAX 1024
struct texts {
	const char *at[TEXTS_MAX];
	size_t count;
};

/* Texts are borrowed from argv. Absent: NULL, false, -1, no texts. */
struct options {
	/* common */
	const char *address, *token;
	bool json, help;
	/* a session to make, or a filter of the list */
	const char *image, *name, *network, *isolation, *workspace;
	int64_t memory_mb, cpu_milli, pids, ttl_s, idle_s, workspace_mb;
	struct texts labels, env;
	/* a command to run */
	const char *shell, *cwd, *session;
	int64_t timeout_s;
	bool no_stdin, rm;
	/* the list and the removal */
	const char *state;
	int64_t limit;
	bool quiet, all, yes;
	/* processes and files */
	int64_t grace_s;
	bool follow, recursive;
	const char *output, *format;
	/* what is no option */
	struct texts operands;
	char *const *command; /* the words to run, NULL-terminated; NULL: none */
	uint64_t seen;        /* bit i: row i of the table was given */
};

const struct option_row *options_rows(size_t *ret_count);

/*
 * Reads the words after the command's name (NULL-terminated). Options and operands may be mixed; "--" ends
 * the options. With operands_before_command >= 0 what follows "--", or that many operands, is the command to
 * run; with -1 there is none. ERR_INVALID says which option and why.
 */
int options_parse(unsigned groups, int operands_before_command, char *const *words, struct options *ret,
		  struct err *e) NODISCARD;

/* The first given option that belongs to `groups` and to none of `not_groups`; NULL when there is none. */
const char *options_seen(const struct options *o, unsigned groups, unsigned not_groups);

#endif
