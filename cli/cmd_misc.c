/* SPDX-License-Identifier: MIT */
/* cmd_misc.c - health, version, help, completion, and what the commands share. */
#include <string.h>

#include "base/utf8.h"
#include "cli/cmd.h"

#define CALL_MS 90000 /* beyond the longest that the server waits for anything but a command */
#define HEALTH_MS 15000
#define VERSION_MS 2000
#define COMPLETE_MS 1500

int put_text(json_t *object, const char *key, const char *text, struct err *e)
{
	if (text && json_object_set_new(object, key, json_string(text)))
		return err_set(e, ERR_INVALID, "%s is not valid UTF-8", key);
	return 0;
}

void put_number(json_t *object, const char *key, int64_t number)
{
	if (number >= 0)
		json_object_set_new(object, key, json_integer(number));
}

int pairs_object(const struct texts *texts, const char *option, bool from_env, json_t **ret, struct err *e)
{
	_cleanup_json_ json_t *object = json_object();
	for (size_t i = 0; i < texts->count; i++) {
		const char *text = texts->at[i], *equals = strchr(text, '=');
		if (equals == text || !*text || (!equals && !from_env))
			return err_set(e, ERR_INVALID, "--%s must be K=V, but is \"%s\"", option, text);
		_cleanup_free_ char *key = xstrndup(text, equals ? (size_t)(equals - text) : strlen(text));
		const char *value = equals ? equals + 1 : config_env(key);
		if (value && json_object_set_new(object, key, json_string(value)))
			return err_set(e, ERR_INVALID, "--%s: entry %zu is not valid UTF-8", option, i + 1);
	}
	*ret = STEAL_PTR(object);
	return 0;
}

int call_json(struct cli *cli, const char *method, const char *path, const json_t *body, json_t **ret,
	      struct err *e)
{
	struct client_request rq = { .method = method, .path = path, .body = body, .timeout_ms = CALL_MS };
	_cleanup_reply_ struct client_reply reply = { 0 };
	int rc = client_call(cli->client, &rq, &reply, e);
	if (!rc && !reply.body)
		rc = err_set(e, ERR_INTERNAL, "the server's reply has no content");
	if (!rc)
		*ret = STEAL_PTR(reply.body);
	return rc;
}

/* ---- health, version ---- */

static const struct format_column health_columns[] = {
	{ "ok", "ok" },
	{ "version", "version" },
	{ "engine", "engine.detail" },
	{ "store", "store.detail" },
	{ "sessions", "sessions" },
	{ "commands running", "busy" },
};

/* Also when it is not well the server answers with its state, and with 503. */
static int get_health(struct cli *cli, int timeout_ms, json_t **ret, struct err *e)
{
	struct client_request rq = { .method = "GET", .path = "/health", .timeout_ms = timeout_ms };
	_cleanup_reply_ struct client_reply reply = { 0 };
	int rc = client_call(cli->client, &rq, &reply, e);
	bool is_health = json_is_boolean(json_object_get(reply.body, "ok"));
	if (!rc && !is_health)
		return err_set(e, ERR_INTERNAL, "%s answers, but not as Berth does: is the address right?",
			       cli->config.address);
	if (!is_health)
		return rc;
	*ret = STEAL_PTR(reply.body);
	return 0;
}

static void print_health(const struct cli *cli, const json_t *health)
{
	format_record(stdout, health_columns, ARRAY_LEN(health_columns), health, cli->color);
	json_t *warning = NULL;
	size_t i = 0;
	json_array_foreach (json_object_get(health, "degraded"), i, warning) {
		_cleanup_free_ char *text = format_value(warning);
		printf("warning: %s\n", text);
	}
}

int cmd_health(struct cli *cli, struct err *e)
{
	_cleanup_json_ json_t *health = NULL;
	int rc = get_health(cli, HEALTH_MS, &health, e);
	if (rc)
		return rc;
	if (cli->opt.json)
		format_json(stdout, health);
	else
		print_health(cli, health);
	cli->status = json_is_true(json_object_get(health, "ok")) ? 0 : err_exit_status(ERR_UNAVAILABLE);
	return 0;
}

int cmd_version(struct cli *cli, struct err *e)
{
	_cleanup_json_ json_t *health = NULL;
	(void)get_health(cli, VERSION_MS, &health, e); /* a server that is away is no failure of this */
	const char *server = json_string_value(json_object_get(health, "version"));
	if (cli->opt.json) {
		_cleanup_json_ json_t *versions =
			json_pack("{s:s, s:s?}", "berth", BERTH_VERSION, "berthd", server);
		format_json(stdout, versions);
		return 0;
	}
	puts("berth " BERTH_VERSION);
	if (server) {
		_cleanup_free_ char *text = utf8_escape(server, strlen(server), 64);
		printf("berthd %s at %s\n", text, cli->config.address);
	}
	return 0;
}

/* ---- help ---- */

int cmd_help(struct cli *cli, struct err *e)
{
	if (!cli->opt.operands.count) {
		commands_help(stdout);
		return 0;
	}
	const char *name = cli->opt.operands.at[0];
	const struct command *command = commands_find(name);
	if (!command)
		return err_set(e, ERR_INVALID, "there is no command \"%s\": berth help lists them", name);
	commands_help_one(stdout, command);
	return 0;
}

/* ---- completion: berth complete WORD... prints what may stand for the last word, one a line ---- */

static void offer(const char *word, const char *begin)
{
	if (!strncmp(word, begin, strlen(begin)))
		puts(word);
}

/* A name that a shell would read in another way is not offered. */
static void offer_plain(const char *name, const char *begin)
{
	if (name && *name &&
	    !name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")])
		offer(name, begin);
}

static void offer_commands(const char *begin)
{
	size_t count = 0;
	const struct command *all = commands_all(&count);
	for (size_t i = 0; i < count; i++)
		if (!all[i].hidden)
			offer(all[i].name, begin);
}

static void offer_options(const struct command *command, const char *begin)
{
	size_t count = 0;
	const struct option_row *rows = options_rows(&count);
	for (size_t i = 0; i < count; i++) {
		_cleanup_free_ char *word = xasprintf("--%s", rows[i].name);
		if (rows[i].groups & command->groups)
			offer(word, begin);
	}
}

/* Ids and names; nothing when the server does not answer soon. */
static void offer_sessions(struct cli *cli, const char *begin)
{
	struct client_request rq = { .method = "GET",
				     .path = "/v1/sessions?limit=200",
				     .timeout_ms = COMPLETE_MS };
	_cleanup_reply_ struct client_reply reply = { 0 };
	struct err ignored;
	if (client_call(cli->client, &rq, &reply, &ignored))
		return;
	size_t i = 0;
	const json_t *session = NULL;
	json_array_foreach (json_object_get(reply.body, "sessions"), i, session) {
		offer_plain(json_string_value(json_object_get(session, "id")), begin);
		offer_plain(json_string_value(json_object_get(session, "name")), begin);
	}
}

/* Of the session that stands before: ids, and names that no shell reads in another way. */
static void offer_processes(struct cli *cli, const char *session, const char *begin)
{
	_cleanup_json_ json_t *reply = NULL;
	const json_t *process = NULL;
	struct err ignored;
	size_t i = 0;
	if (session_resolve(cli, session, &ignored))
		return;
	_cleanup_free_ char *path = client_path("/v1/sessions/%s/processes", cli->session);
	if (call_json(cli, "GET", path, NULL, &reply, &ignored))
		return;
	json_array_foreach (json_object_get(reply, "processes"), i, process) {
		offer_plain(json_string_value(json_object_get(process, "id")), begin);
		offer_plain(json_string_value(json_object_get(process, "name")), begin);
	}
}

static bool takes_process(const struct command *command, size_t word)
{
	return word > 1 && strstr(command->usage, " PROCESS");
}

static bool takes_session(const struct command *command, const char *before)
{
	return !strncmp(command->usage, " SESSION", strlen(" SESSION")) || !strcmp(before, "--session") ||
	       !strcmp(before, "-s");
}

int cmd_complete(struct cli *cli, struct err *e)
{
	(void)e; /* completion is silent */
	char *const *words = cli->opt.command;
	size_t last = 0;
	if (!words) {
		offer_commands("");
		return 0;
	}
	while (words[last + 1])
		last++;
	const struct command *command = commands_find(words[0]);
	if (!last || (command && !strcmp(command->name, "help")))
		offer_commands(words[last]);
	else if (command && *words[last] == '-')
		offer_options(command, words[last]);
	else if (command && takes_process(command, last))
		offer_processes(cli, words[1], words[last]);
	else if (command && takes_session(command, words[last - 1]))
		offer_sessions(cli, words[last]);
	return 0;
}
