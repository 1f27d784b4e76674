/* SPDX-License-Identifier: MIT */
/* cmd_process.c - background processes of a session: start, list, read and stop them. */
#include <string.h>

#include "base/base64.h"
#include "cli/cmd.h"
#include "cli/exit_status.h"
#include "cli/pipes.h"

#define CALL_MS 30000
#define IDLE_MS 60000 /* the server sends a sign of life every 15 s */
#define RESUME_TIMES                                                                          \
	20 /* a stream that breaks without having brought anything is taken up again so often \
	    */
#define RESUME_MS 500

static const struct format_column process_columns[] = {
	{ "ID", "id" },           { "NAME", "name" },          { "PID", "pid" },
	{ "RUNNING", "running" }, { "EXIT", "exit_code" },     { "REASON", "reason" },
	{ "PORTS", "ports" },     { "STARTED", "started_at" }, { "COMMAND", "command" },
};

/* ---- start and list ---- */

static int start_body(const struct options *o, json_t **ret, struct err *e)
{
	_cleanup_json_ json_t *body = json_object();
	int rc = put_command(body, o, e);
	if (!rc)
		rc = put_text(body, "name", o->name, e);
	if (!rc)
		rc = put_text(body, "cwd", o->cwd, e);
	if (!rc)
		rc = put_env(body, o, e);
	if (!rc)
		*ret = STEAL_PTR(body);
	return rc;
}

int cmd_start(struct cli *cli, struct err *e)
{
	_cleanup_json_ json_t *body = NULL, *process = NULL;
	int rc = start_body(&cli->opt, &body, e);
	if (!rc)
		rc = session_resolve(cli, cli->opt.operands.at[0], e);
	if (rc)
		return rc;
	_cleanup_free_ char *path = client_path("/v1/sessions/%s/processes", cli->session);
	rc = call_json(cli, "POST", path, body, &process, e);
	if (rc)
		return rc;
	_cleanup_free_ char *id = format_value(json_object_get(process, "id"));
	if (cli->opt.json)
		format_json(stdout, process);
	else
		puts(id);
	return 0;
}

static int list(struct cli *cli, json_t **ret_array, struct err *e)
{
	_cleanup_free_ char *path = client_path("/v1/sessions/%s/processes", cli->session);
	_cleanup_json_ json_t *reply = NULL;
	int rc = call_json(cli, "GET", path, NULL, &reply, e);
	if (rc)
		return rc;
	json_t *processes = json_object_get(reply, "processes");
	if (!json_is_array(processes))
		return err_set(e, ERR_INTERNAL, "the server's reply holds no list of processes");
	*ret_array = json_incref(processes);
	return 0;
}

int cmd_processes(struct cli *cli, struct err *e)
{
	_cleanup_json_ json_t *processes = NULL;
	int rc = session_resolve(cli, cli->opt.operands.at[0], e);
	if (!rc)
		rc = list(cli, &processes, e);
	if (rc)
		return rc;
	if (cli->opt.json)
		format_json(stdout, processes);
	else
		format_table(stdout, process_columns, ARRAY_LEN(process_columns), processes, cli->color);
	return 0;
}

/* ---- one of them ---- */

/* Its id from an id or a name. Of several with one name the one that runs is meant. */
static int resolve(struct cli *cli, const char *text, char **ret_id, struct err *e)
{
	_cleanup_json_ json_t *processes = NULL;
	const json_t *one = NULL, *found = NULL;
	size_t i = 0, named = 0, alive = 0;
	if (id_is("p_", text)) {
		*ret_id = xstrdup(text);
		return 0;
	}
	int rc = list(cli, &processes, e);
	if (rc)
		return rc;
	json_array_foreach (processes, i, one) {
		const char *name = json_string_value(json_object_get(one, "name"));
		bool runs = json_is_true(json_object_get(one, "running"));
		if (!name || strcmp(name, text) != 0)
			continue;
		named++;
		alive += runs;
		if (runs || !found || !json_is_true(json_object_get(found, "running")))
			found = one;
	}
	if (!named)
		return err_set(e, ERR_NOT_FOUND, "no process has the id or name \"%s\"", text);
	if (alive > 1 || (!alive && named > 1))
		return err_set(e, ERR_CONFLICT,
			       "several processes are called \"%s\": name one by its id (berth ps)", text);
	const char *id = json_string_value(json_object_get(found, "id"));
	if (!id)
		return err_set(e, ERR_INTERNAL, "the server's reply names no process");
	*ret_id = xstrdup(id);
	return 0;
}

/* Prints a piece of output that is base64. */
static int print_output(struct cli *cli, const json_t *data, struct err *e)
{
	_cleanup_free_ char *bytes = NULL;
	size_t len = 0;
	if (!json_is_string(data) ||
	    base64_decode(json_string_value(data), json_string_length(data), &bytes, &len, e))
		return err_set(e, ERR_INTERNAL, "the reply holds output that is not base64");
	return pipes_write(STDOUT_FILENO, &cli->interrupt, bytes, len, e);
}

static void tell_lost(const json_t *line)
{
	json_int_t lost = json_integer_value(json_object_get(line, "lost_bytes"));
	if (lost > 0)
		say("%lld bytes before this are not kept any more", (long long)lost);
}

/* Says how one has ended, where its exit code does not. */
static void tell_end(const char *id, const json_t *end)
{
	_cleanup_free_ char *reason = format_value(json_object_get(end, "reason"));
	_cleanup_free_ char *code = format_value(json_object_get(end, "exit_code"));
	if (strcmp(code, "-") != 0)
		note("%s has ended with exit status %s", id, code);
	else
		note("%s has ended: %s", id, reason);
}

/* ---- logs ---- */

struct following {
	struct cli *cli;
	char *id;
	json_int_t offset; /* read so far */
	bool ended, moved;
};

static int on_line(void *ctx, const json_t *line, struct err *e)
{
	struct following *f = ctx;
	const char *type = json_string_value(json_object_get(line, "type"));
	const json_t *next = json_object_get(line, "next_offset");
	if (!type)
		return 0;
	if (!strcmp(type, "exit")) {
		f->ended = true;
		tell_end(f->id, line);
		return 0;
	}
	if (!strcmp(type, "error")) {
		const char *text =
			json_string_value(json_object_get(json_object_get(line, "error"), "message"));
		return err_set(e, ERR_UNAVAILABLE, "%s",
			       text ? text : "the server ends the stream with an error");
	}
	if (strcmp(type, "output") != 0)
		return 0; /* a newer server may say more */
	tell_lost(line);
	int rc = print_output(f->cli, json_object_get(line, "data"), e);
	if (!rc && json_is_integer(next)) {
		f->moved |= json_integer_value(next) > f->offset;
		f->offset = json_integer_value(next);
	}
	return rc;
}

static int follow_once(struct following *f, struct err *e)
{
	char offset[24];
	snprintf(offset, sizeof(offset), "%lld", (long long)f->offset);
	_cleanup_free_ char *path =
		client_path("/v1/sessions/%s/processes/%s/stream?encoding=base64&offset=%s", f->cli->session,
			    f->id, offset);
	struct client_request rq = { .method = "GET",
				     .path = path,
				     .timeout_ms = CALL_MS,
				     .idle_ms = IDLE_MS,
				     .on_line = on_line,
				     .ctx = f };
	_cleanup_reply_ struct client_reply reply = { 0 };
	int rc = client_call(f->cli->client, &rq, &reply, e);
	return rc || f->ended ? rc : err_set(e, ERR_UNAVAILABLE, "the stream ended before the process");
}

/* The process goes on without us, so a connection that breaks is made again where the output was. */
static int follow(struct following *f, struct err *e)
{
	int rc = 0;
	for (int left = RESUME_TIMES; left; left--) {
		f->moved = false;
		rc = follow_once(f, e);
		if (rc != -ERR_UNAVAILABLE || f->cli->interrupt.signal)
			break;
		left = f->moved ? RESUME_TIMES : left;
		interrupt_await(&f->cli->interrupt, RESUME_MS);
	}
	return rc && pipes_is_unread(e) ? 0 : rc; /* nobody reads our output any more: no failure */
}

static int print_once(struct following *f, struct err *e)
{
	_cleanup_free_ char *path =
		client_path("/v1/sessions/%s/processes/%s?encoding=base64&offset=0", f->cli->session, f->id);
	_cleanup_json_ json_t *reply = NULL;
	int rc = call_json(f->cli, "GET", path, NULL, &reply, e);
	if (rc)
		return rc;
	if (f->cli->opt.json) {
		format_json(stdout, reply);
		return 0;
	}
	tell_lost(reply);
	rc = print_output(f->cli, json_object_get(reply, "output"), e);
	return rc && pipes_is_unread(e) ? 0 : rc;
}

int cmd_logs(struct cli *cli, struct err *e)
{
	_cleanup_free_ char *id = NULL;
	if (cli->opt.follow && cli->opt.json)
		return err_set(e, ERR_INVALID, "--follow prints as it comes: it does not go with --json");
	int rc = session_resolve(cli, cli->opt.operands.at[0], e);
	if (!rc)
		rc = resolve(cli, cli->opt.operands.at[1], &id, e);
	if (rc)
		return rc;
	struct following f = { .cli = cli, .id = id };
	return cli->opt.follow ? follow(&f, e) : print_once(&f, e);
}

/* ---- stop ---- */

static int stop(struct cli *cli, const char *text, struct err *e)
{
	_cleanup_free_ char *id = NULL;
	_cleanup_json_ json_t *reply = NULL;
	int rc = resolve(cli, text, &id, e);
	if (rc)
		return rc;
	char grace[24];
	snprintf(grace, sizeof(grace), "%lld", cli->opt.grace_s < 0 ? 5LL : (long long)cli->opt.grace_s);
	_cleanup_free_ char *path = client_path("/v1/sessions/%s/processes/%s?encoding=base64&grace_s=%s",
						cli->session, id, grace);
	rc = call_json(cli, "DELETE", path, NULL, &reply, e);
	if (rc)
		return rc;
	if (cli->opt.json) {
		format_json(stdout, reply);
		return 0;
	}
	tell_lost(reply);
	rc = print_output(cli, json_object_get(reply, "output"), e);
	tell_end(id, reply);
	return rc;
}

int cmd_stop(struct cli *cli, struct err *e)
{
	int rc = session_resolve(cli, cli->opt.operands.at[0], e);
	for (size_t i = 1; !rc && i < cli->opt.operands.count; i++)
		rc = stop(cli, cli->opt.operands.at[i], e);
	return rc;
}
