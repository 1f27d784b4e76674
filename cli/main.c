/* SPDX-License-Identifier: MIT */
/* main.c - berth, the command line of Berth: reads the words, calls the command, reports its error. */
#include <locale.h>
#include <string.h>

#include "base/log.h"
#include "cli/cmd.h"
#include "cli/exit_status.h"

/* "--help" and "--version" stand for the commands, as everywhere. */
static const struct command *find(const char *word)
{
	static const struct {
		const char *flag, *command;
	} flags[] = {
		{ "--help", "help" }, { "-h", "help" }, { "--version", "version" }, { "-V", "version" }
	};
	for (size_t i = 0; i < ARRAY_LEN(flags); i++)
		if (!strcmp(flags[i].flag, word))
			word = flags[i].command;
	return commands_find(word);
}

static int unknown(const char *word)
{
	const char *near = commands_nearest(word);
	if (*word == '-')
		say("options come after the command: berth COMMAND %s ...", word);
	else if (near)
		say("there is no command \"%s\"; did you mean %s?", word, near);
	else
		say("there is no command \"%s\": berth help lists them", word);
	return err_exit_status(ERR_INVALID);
}

static int check_operands(const struct command *c, const struct options *o, struct err *e)
{
	if (o->operands.count < c->operands_min)
		return err_set(e, ERR_INVALID, "something is missing: berth %s%s", c->name, c->usage);
	if (o->operands.count > c->operands_max)
		return err_set(e, ERR_INVALID, "\"%s\" is too much: berth %s%s",
			       o->operands.at[c->operands_max], c->name, c->usage);
	return 0;
}

static int need_token(const struct cli *cli, struct err *e)
{
	if (cli->config.token || cli->command->no_token)
		return 0;
	return err_set(e, ERR_UNAUTHORIZED,
		       "no token is known: set BERTH_TOKEN, or write \"token = ...\" into %s (mode 0600)",
		       cli->config.path ? cli->config.path : "a config file");
}

static int connect_server(struct cli *cli, struct err *e)
{
	int rc = config_load(cli->opt.address, cli->opt.token, &cli->config, e);
	if (!rc)
		rc = need_token(cli, e);
	if (!rc)
		rc = client_new(cli->config.address, cli->config.token, &cli->client, e);
	if (!rc && cli->command->watches)
		rc = interrupt_open(&cli->interrupt, e);
	if (!rc && cli->command->watches)
		client_watch(cli->client, &cli->interrupt);
	return rc;
}

static int perform(struct cli *cli, char *const *words, struct err *e)
{
	int rc = options_parse(cli->command->groups, cli->command->operands_before_command, words, &cli->opt,
			       e);
	if (rc)
		return err_wrap(e, "%s", cli->command->name);
	if (cli->opt.help) {
		commands_help_one(stdout, cli->command);
		return 0;
	}
	rc = check_operands(cli->command, &cli->opt, e);
	if (!rc && !cli->command->local)
		rc = connect_server(cli, e);
	return rc ? rc : cli->command->run(cli, e);
}

static void report_json(const struct cli *cli, const struct err *e)
{
	_cleanup_json_ json_t *error = json_pack("{s:s, s:s}", "code", err_name(e->code), "message", e->msg);
	if (*e->field)
		json_object_set_new(error, "field", json_string(e->field));
	_cleanup_json_ json_t *reply = json_pack("{s:O}", "error", error);
	if (*cli->session)
		json_object_set_new(reply, "session", json_string(cli->session));
	format_json(stdout, reply);
}

/* The exit status of an error, which is reported. */
static int report(const struct cli *cli, const struct err *e)
{
	/* Where the status is that of a command in the sandbox, a failure of ours must not look like one. */
	int status = cli->command->groups & OPTIONS_EXEC ? EXIT_BERTH : err_exit_status(e->code);
	if (cli->interrupt.signal)
		return status; /* main returns the signal's; whoever pressed Ctrl-C knows */
	say("%s%s%s", e->field, *e->field ? ": " : "", e->msg);
	if (cli->opt.json && !cli->replied)
		report_json(cli, e);
	return status;
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		commands_help(stderr);
		return err_exit_status(ERR_INVALID);
	}
	/* File names are bytes; libarchive takes them as UTF-8 with this, whatever the user's locale is. */
	(void)setlocale(LC_CTYPE, "C.UTF-8"); /* NOLINT(concurrency-mt-unsafe): before the first thread */
	struct cli cli = { .command = find(argv[1]),
			   .interrupt = { .fd = -1 },
			   .color = log_wants_color("auto", config_env("NO_COLOR")) };
	if (!cli.command)
		return unknown(argv[1]);
	struct err e = { 0 };
	int status = perform(&cli, argv + 2, &e) ? report(&cli, &e) : cli.status;
	if (fflush(stdout) || ferror(stdout)) {
		say("cannot write the output");
		status = status ? status : EXIT_FAILURE;
	}
	if (cli.interrupt.signal)
		status = EXIT_SIGNAL + cli.interrupt.signal;
	client_free(cli.client);
	config_clear(&cli.config);
	return status;
}
