/* SPDX-License-Identifier: MIT */
/* commands.c - the table of commands and the help made of it and of the table of options. */
#include <string.h>

#include "cli/cmd.h"
#include "cli/suggest.h"

#define OPTION_WIDTH 28

static const char exit_statuses[] =
	"Exit status: the command's own; 124 timeout, 125 Berth failed, 126 not startable,\n"
	"127 not found, 128+N ended by signal N.\n";

/* clang-format off */
static const struct command commands[] = {
	{ .name = "run", .usage = " [OPTIONS] -- CMD...", .help = "run a command in a new sandbox",
	  .more = exit_statuses,
	  .example = "berth run --rm --memory 1g -e CI=1 -- python3 -c 'print(6 * 7)'",
	  .groups = OPTIONS_COMMON | OPTIONS_CREATE | OPTIONS_EXEC | OPTIONS_RUN, .operands_before_command = 0,
	  .watches = true, .run = cmd_run },
	{ .name = "exec", .usage = " SESSION [OPTIONS] -- CMD...", .help = "run a command in a session",
	  .more = exit_statuses,
	  .example = "tar c src | berth exec build-7 -- tar x",
	  .groups = OPTIONS_COMMON | OPTIONS_EXEC, .operands_before_command = 1, .operands_min = 1, .operands_max = 1,
	  .watches = true, .run = cmd_exec },
	{ .name = "create", .usage = " [OPTIONS]", .help = "make a session; prints its id and token",
	  .example = "berth create --name build-7 --label job=7 --ttl 2h",
	  .groups = OPTIONS_COMMON | OPTIONS_CREATE, .operands_before_command = -1, .run = cmd_create },
	{ .name = "ls", .usage = " [OPTIONS]", .help = "list sessions",
	  .more = "Sessions that have ended are listed with --state gone or --state failed.\n",
	  .example = "berth ls --label job=7 --state ready",
	  .groups = OPTIONS_COMMON | OPTIONS_LIST, .operands_before_command = -1, .run = cmd_list },
	{ .name = "show", .usage = " SESSION [OPTIONS]", .help = "show a session",
	  .example = "berth show build-7 --json",
	  .groups = OPTIONS_COMMON, .operands_before_command = -1, .operands_min = 1, .operands_max = 1, .run = cmd_show },
	{ .name = "rm", .usage = " SESSION...|--all [--yes]", .help = "remove sessions, their files and processes",
	  .example = "berth rm build-7",
	  .groups = OPTIONS_COMMON | OPTIONS_REMOVE, .operands_before_command = -1, .operands_max = TEXTS_MAX,
	  .run = cmd_remove },
	{ .name = "start", .usage = " SESSION [OPTIONS] -- CMD...", .help = "start a process in the background; prints its id",
	  .example = "berth start build-7 --name web -- python3 -m http.server 8000",
	  .groups = OPTIONS_COMMON | OPTIONS_START, .operands_before_command = 1, .operands_min = 1, .operands_max = 1,
	  .run = cmd_start },
	{ .name = "ps", .usage = " SESSION [OPTIONS]", .help = "list the processes of a session",
	  .example = "berth ps build-7",
	  .groups = OPTIONS_COMMON, .operands_before_command = -1, .operands_min = 1, .operands_max = 1, .run = cmd_processes },
	{ .name = "logs", .usage = " SESSION PROCESS [OPTIONS]", .help = "what a process has written",
	  .more = "PROCESS is an id, or the name of one process. The newest 1 MiB is kept.\n",
	  .example = "berth logs -f build-7 web",
	  .groups = OPTIONS_COMMON | OPTIONS_LOGS, .operands_before_command = -1, .operands_min = 2, .operands_max = 2,
	  .watches = true, .run = cmd_logs },
	{ .name = "stop", .usage = " SESSION PROCESS... [OPTIONS]", .help = "stop processes and forget them; prints their last output",
	  .example = "berth stop build-7 web --grace 10",
	  .groups = OPTIONS_COMMON | OPTIONS_STOP, .operands_before_command = -1, .operands_min = 2, .operands_max = TEXTS_MAX,
	  .run = cmd_stop },
	{ .name = "cp", .usage = " SOURCE TARGET [OPTIONS]", .help = "copy a file or folder into a session or out of it",
	  .more = "One of them is SESSION:PATH, the other a local path or - for stdin or stdout. A folder is\n"
		  "copied with all that is in it; a target that is a folder takes the copy under its own name.\n"
		  "Links that lead out of the folder, devices and sockets are left out and named.\n",
	  .example = "berth cp src build-7:/workspace",
	  .groups = OPTIONS_COMMON | OPTIONS_COPY, .operands_before_command = -1, .operands_min = 2, .operands_max = 2,
	  .watches = true, .run = cmd_copy },
	{ .name = "cat", .usage = " SESSION PATH...", .help = "print files of a session",
	  .example = "berth cat build-7 result.json",
	  .groups = OPTIONS_COMMON, .operands_before_command = -1, .operands_min = 2, .operands_max = TEXTS_MAX,
	  .watches = true, .run = cmd_cat },
	{ .name = "ls-files", .usage = " SESSION [PATH] [OPTIONS]", .help = "list files of a session",
	  .example = "berth ls-files build-7 src -r",
	  .groups = OPTIONS_COMMON | OPTIONS_FILES, .operands_before_command = -1, .operands_min = 1, .operands_max = 2,
	  .run = cmd_files },
	{ .name = "archive", .usage = " SESSION [PATH] [OPTIONS]", .help = "a folder of a session as a tar archive",
	  .example = "berth archive build-7 src -o src.tar.gz",
	  .groups = OPTIONS_COMMON | OPTIONS_ARCHIVE, .operands_before_command = -1, .operands_min = 1, .operands_max = 2,
	  .watches = true, .run = cmd_archive },
	{ .name = "health", .usage = " [OPTIONS]", .help = "how the server is; exit status 0 when all is well",
	  .example = "berth health --address http://127.0.0.1:8080",
	  .groups = OPTIONS_COMMON, .operands_before_command = -1, .no_token = true, .run = cmd_health },
	{ .name = "version", .usage = " [OPTIONS]", .help = "the version of berth, and of the server when it answers",
	  .example = "berth version --json",
	  .groups = OPTIONS_COMMON, .operands_before_command = -1, .no_token = true, .run = cmd_version },
	{ .name = "help", .usage = " [COMMAND]", .help = "what there is, or all about one command",
	  .example = "berth help run",
	  .groups = OPTIONS_COMMON, .operands_before_command = -1, .operands_max = 1, .no_token = true, .local = true,
	  .run = cmd_help },
	{ .name = "complete", .usage = " -- WORD...", .help = "what may stand for the last word, for shells",
	  .example = "berth complete -- run --mem",
	  .groups = OPTIONS_COMMON, .operands_before_command = 0, .no_token = true, .hidden = true, .run = cmd_complete },
};
/* clang-format on */

const struct command *commands_all(size_t *ret_count)
{
	*ret_count = ARRAY_LEN(commands);
	return commands;
}

const struct command *commands_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(commands); i++)
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	return NULL;
}

const char *commands_nearest(const char *name)
{
	struct suggest s = suggest_for(name);
	for (size_t i = 0; i < ARRAY_LEN(commands); i++)
		if (!commands[i].hidden)
			suggest_offer(&s, commands[i].name);
	return suggest_best(&s);
}

void commands_help(FILE *out)
{
	fputs("berth: one hardened container per session, on the Docker or Podman that is there\n\n"
	      "Usage: berth COMMAND ...\n\n",
	      out);
	for (size_t i = 0; i < ARRAY_LEN(commands); i++)
		if (!commands[i].hidden)
			fprintf(out, "  %-9s %s\n", commands[i].name, commands[i].help);
	fputs("\nberth help COMMAND tells more. The server and its token: --address and --token,\n"
	      "BERTH_ADDRESS and BERTH_TOKEN, or ~/.config/berth/config (mode 0600).\n",
	      out);
}

static void put_option(FILE *out, const struct option_row *row)
{
	_cleanup_free_ char *letter = row->letter ? xasprintf("-%c, ", row->letter) : xstrdup("    ");
	_cleanup_free_ char *text = xasprintf("%s--%s%s%s", letter, row->name, row->value ? " " : "",
					      row->value ? row->value : "");
	fprintf(out, "  %-*s %s\n", OPTION_WIDTH, text, row->help);
}

void commands_help_one(FILE *out, const struct command *command)
{
	size_t count = 0;
	const struct option_row *rows = options_rows(&count);
	fprintf(out, "Usage: berth %s%s\n\n%s\n\nOptions:\n", command->name, command->usage, command->help);
	for (size_t i = 0; i < count; i++)
		if (rows[i].groups & command->groups)
			put_option(out, &rows[i]);
	if (command->more)
		fprintf(out, "\n%s", command->more);
	fprintf(out, "\nExample:\n  %s\n", command->example);
}
