/* SPDX-License-Identifier: MIT */
/* cmd.h - the commands of `berth`: their table, what each of them works on, and what they share. */
#ifndef BERTH_CLI_CMD_H
#define BERTH_CLI_CMD_H

#include "cli/client.h"
#include "cli/config.h"
#include "cli/format.h"
#include "cli/options.h"
#include "cli/say.h"

/* One run of the program. */
struct cli {
	const struct command *command;
	struct options opt;
	struct config config;
	struct client *client;
	struct interrupt interrupt; /* of commands with `watches`; else never signalled */
	char session[ID_SIZE];      /* the one that is worked on, for messages; "" before it is known */
	int status;                 /* the exit status when the command's function returns 0 */
	bool replied;               /* JSON was printed: a later error is only said on stderr */
	bool color;                 /* on stdout */
};

/* 0, then cli->status counts; or an error, which main reports. */
typedef int (*command_fn)(struct cli *cli, struct err *e);

struct command {
	const char *name;
	const char *usage; /* what follows the name */
	const char *help;  /* one line */
	const char *more;  /* further lines of its --help; may be NULL */
	const char *example;
	unsigned groups;             /* OPTIONS_* */
	int operands_before_command; /* as options_parse() */
	size_t operands_min, operands_max;
	bool watches;  /* signals are handled */
	bool no_token; /* works without one */
	bool local;    /* works without a server's address */
	bool hidden;
	command_fn run;
};

const struct command *commands_all(size_t *ret_count);
const struct command *commands_find(const char *name); /* NULL: unknown */
const char *commands_nearest(const char *name);        /* NULL: none is near */
void commands_help(FILE *out);
void commands_help_one(FILE *out, const struct command *command);

int cmd_run(struct cli *cli, struct err *e);
int cmd_exec(struct cli *cli, struct err *e);
int cmd_create(struct cli *cli, struct err *e);
int cmd_list(struct cli *cli, struct err *e);
int cmd_show(struct cli *cli, struct err *e);
int cmd_remove(struct cli *cli, struct err *e);
int cmd_start(struct cli *cli, struct err *e);
int cmd_stop(struct cli *cli, struct err *e);
int cmd_processes(struct cli *cli, struct err *e);
int cmd_logs(struct cli *cli, struct err *e);
int cmd_cat(struct cli *cli, struct err *e);
int cmd_files(struct cli *cli, struct err *e);
int cmd_archive(struct cli *cli, struct err *e);
int cmd_copy(struct cli *cli, struct err *e);
int cmd_health(struct cli *cli, struct err *e);
int cmd_version(struct cli *cli, struct err *e);
int cmd_help(struct cli *cli, struct err *e);
int cmd_complete(struct cli *cli, struct err *e);

/* ---- sessions (cmd_sessions.c) ---- */

/* Makes one as the options say; *ret is the server's answer with the token, owned by the caller. cli->session
 * is set. */
int session_create(struct cli *cli, json_t **ret, struct err *e) NODISCARD;
/* Its id from an id or a unique name, into cli->session. ERR_NOT_FOUND; ERR_CONFLICT when several have the
 * name. */
int session_resolve(struct cli *cli, const char *text, struct err *e) NODISCARD;
/* Removes it and waits until it is gone. */
int session_remove(struct cli *cli, const char *id, struct err *e) NODISCARD;
/* Every session that the options let through, at most `limit` (-1: all); owned by the caller. */
int session_list(struct cli *cli, const struct options *o, json_t **ret_array, struct err *e) NODISCARD;

/* ---- execs (cmd_exec.c) ---- */

/* The request's body from the options, with stdin when that is piped. `with_env`: the options' variables are
 * in it. */
int exec_body(struct cli *cli, bool with_env, json_t **ret, struct err *e) NODISCARD;
/* Runs it in cli->session with its output on ours; cli->status is set. ERR_* when its end is not known. */
int exec_run(struct cli *cli, json_t *body, struct err *e) NODISCARD;

/* The command from the words or --shell, as `argv` or `command` of a body. */
int put_command(json_t *body, const struct options *o, struct err *e) NODISCARD;
/* `env` from the options, when there are any. */
int put_env(json_t *body, const struct options *o, struct err *e) NODISCARD;

/* ---- small things (cmd_misc.c) ---- */

/* One call with JSON in (NULL: none) and out; *ret is owned by the caller. */
int call_json(struct cli *cli, const char *method, const char *path, const json_t *body, json_t **ret,
	      struct err *e) NODISCARD;

/* {"K": "V"} from the texts; `from_env`: "K" alone takes its value from our environment, and is left out when
 * unset there. */
int pairs_object(const struct texts *texts, const char *option, bool from_env, json_t **ret,
		 struct err *e) NODISCARD;
/* Sets a text (ERR_INVALID when it is no UTF-8) or a number; NULL and -1 are left out. */
int put_text(json_t *object, const char *key, const char *text, struct err *e) NODISCARD;
void put_number(json_t *object, const char *key, int64_t number);

#endif
