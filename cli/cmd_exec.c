/* SPDX-License-Identifier: MIT */
/* cmd_exec.c - a command in a session: its request, its live output, its end. */
#include <signal.h>
#include <string.h>

#include "base/base64.h"
#include "cli/cmd.h"
#include "cli/exit_status.h"
#include "cli/pipes.h"

/* The server takes bodies of 64 MiB by default; base64 makes 4 bytes of 3, and the command needs room too. */
#define STDIN_MAX_MB 46
#define STDIN_MAX ((size_t)STDIN_MAX_MB << 20)
#define DEFAULT_TIMEOUT_S 1800 /* what the server grants at most by default */
#define MARGIN_S 60
#define IDLE_MS 60000         /* the server sends a sign of life every 15 s */
#define CANCEL_MS 10000       /* for the call that cancels */
#define AFTER_CANCEL_MS 15000 /* for the end of a command that was cancelled */

/* ---- the request ---- */

static int put_words(json_t *body, char *const *words, struct err *e)
{
	json_t *argv = json_array();
	json_object_set_new(body, "argv", argv);
	for (size_t i = 0; words[i]; i++)
		if (json_array_append_new(argv, json_string(words[i])))
			return err_set(
				e, ERR_INVALID,
				"word %zu of the command is not valid UTF-8: use a script, or a shell's "
				"escapes",
				i + 1);
	return 0;
}

int put_command(json_t *body, const struct options *o, struct err *e)
{
	if (o->shell && o->command)
		return err_set(e, ERR_INVALID, "give either --shell TEXT or a command, not both");
	if (o->shell)
		return put_text(body, "command", o->shell, e);
	if (!o->command)
		return err_set(e, ERR_INVALID, "no command is given: end with -- CMD, or use --shell TEXT");
	return put_words(body, o->command, e);
}

static int put_stdin(struct cli *cli, json_t *body, struct err *e)
{
	if (cli->opt.no_stdin || !pipes_has_input(STDIN_FILENO))
		return 0;
	_cleanup_buf_ struct buf in = BUF_INIT(STDIN_MAX);
	int rc = pipes_read(STDIN_FILENO, &cli->interrupt, &in, e);
	if (rc == -ERR_TOO_LARGE)
		return err_set(e, ERR_TOO_LARGE,
			       "stdin is larger than %d MiB, the most that one command takes", STDIN_MAX_MB);
	if (rc || !in.len)
		return rc;
	_cleanup_free_ char *text = base64_encode(in.data, in.len);
	json_object_set_new(body, "stdin_b64", json_string(text));
	return 0;
}

int put_env(json_t *body, const struct options *o, struct err *e)
{
	json_t *env = NULL;
	if (!o->env.count)
		return 0;
	int rc = pairs_object(&o->env, "env", true, &env, e);
	if (!rc)
		json_object_set_new(body, "env", env);
	return rc;
}

int exec_body(struct cli *cli, bool with_env, json_t **ret, struct err *e)
{
	const struct options *o = &cli->opt;
	_cleanup_json_ json_t *body = json_object();
	int rc = put_command(body, o, e);
	if (!rc)
		rc = put_text(body, "cwd", o->cwd, e);
	if (!rc && with_env)
		rc = put_env(body, o, e);
	if (!rc)
		rc = put_stdin(cli, body, e);
	if (rc)
		return rc;
	put_number(body, "timeout_s", o->timeout_s);
	*ret = STEAL_PTR(body);
	return 0;
}

/* ---- the stream ---- */

struct streaming {
	struct cli *cli;
	json_t *end; /* the line of type "exit"; NULL before */
	bool unread; /* nobody reads our output any more */
};

static int on_output(struct streaming *s, const json_t *line, struct err *e)
{
	const char *stream = json_string_value(json_object_get(line, "stream"));
	const json_t *data = json_object_get(line, "data");
	json_int_t dropped = json_integer_value(json_object_get(line, "dropped_bytes"));
	int fd = stream && !strcmp(stream, "stderr") ? STDERR_FILENO : STDOUT_FILENO;
	_cleanup_free_ char *bytes = NULL;
	size_t len = 0;
	if (!json_is_string(data) ||
	    base64_decode(json_string_value(data), json_string_length(data), &bytes, &len, e))
		return err_set(e, ERR_INTERNAL, "the stream holds output that is not base64");
	if (dropped > 0)
		say("%lld bytes of output are lost here", (long long)dropped);
	int rc = pipes_write(fd, &s->cli->interrupt, bytes, len, e);
	s->unread |= rc == -ERR_GONE;
	return rc;
}

static int on_end(struct streaming *s, const json_t *line, struct err *e)
{
	(void)e; /* of the table's shape */
	json_decref(s->end);
	s->end = json_deep_copy(line);
	return 0;
}

static int on_error(struct streaming *s, const json_t *line, struct err *e)
{
	(void)s;
	const json_t *error = json_object_get(line, "error");
	const char *text = json_string_value(json_object_get(error, "message"));
	return err_set(e, ERR_SANDBOX, "%s", text ? text : "the server ends the stream with an error");
}

static int on_line(void *ctx, const json_t *line, struct err *e)
{
	static const struct {
		const char *type;
		int (*fn)(struct streaming *s, const json_t *line, struct err *e);
	} types[] = { { "output", on_output }, { "exit", on_end }, { "error", on_error } };
	const char *type = json_string_value(json_object_get(line, "type"));
	for (size_t i = 0; type && i < ARRAY_LEN(types); i++)
		if (!strcmp(types[i].type, type))
			return types[i].fn(ctx, line, e);
	return 0; /* a newer server may say more */
}

static void cancel(struct cli *cli, const char *exec)
{
	_cleanup_free_ char *path = client_path("/v1/sessions/%s/execs/%s", cli->session, exec);
	struct client_request rq = { .method = "DELETE", .path = path, .timeout_ms = CANCEL_MS };
	_cleanup_reply_ struct client_reply reply = { 0 };
	struct err ignored; /* the end of the connection cancels as well */
	if (*exec && client_call(cli->client, &rq, &reply, &ignored))
		note("cannot cancel %s: %s", exec, ignored.msg);
}

/* The first signal cancels the command and lets it say its last words, the second ends all. */
static int on_signal(void *ctx, const struct client_reply *so_far)
{
	struct streaming *s = ctx;
	if (s->cli->interrupt.count > 1 || !*so_far->exec_id)
		return 0;
	note("cancelling the command; once more ends at once");
	cancel(s->cli, so_far->exec_id);
	return s->cli->interrupt.count > 1 ? 0 : AFTER_CANCEL_MS;
}

static int timeout_ms(const struct cli *cli)
{
	int64_t s = cli->opt.timeout_s < 0 ? DEFAULT_TIMEOUT_S : cli->opt.timeout_s;
	/* It may stand in the session's queue for its timeout, and then run for it. */
	return (int)MIN((2 * s + MARGIN_S) * 1000, INT32_MAX);
}

static int run_streaming(struct cli *cli, json_t *body, json_t **ret_end, struct err *e)
{
	json_object_set_new(body, "encoding", json_string("base64"));
	json_object_set_new(body, "split", json_true());
	struct streaming s = { .cli = cli };
	_cleanup_free_ char *path = client_path("/v1/sessions/%s/exec/stream", cli->session);
	struct client_request rq = { .method = "POST",
				     .path = path,
				     .body = body,
				     .timeout_ms = timeout_ms(cli),
				     .idle_ms = IDLE_MS,
				     .on_line = on_line,
				     .on_signal = on_signal,
				     .ctx = &s };
	_cleanup_reply_ struct client_reply reply = { 0 };
	int rc = client_call(cli->client, &rq, &reply, e);
	if (s.unread) {
		/* As a local command would end: by SIGPIPE. */
		cancel(cli, reply.exec_id);
		*ret_end = json_pack("{s:s, s:i}", "reason", "signalled", "signal", SIGPIPE);
		rc = 0;
	} else if (s.end) {
		*ret_end = STEAL_PTR(s.end);
		rc = 0;
	} else if (!rc) {
		rc = err_set(e, ERR_UNAVAILABLE, "the stream ended without the command's end");
	}
	json_decref(s.end);
	if (rc && *reply.exec_id)
		err_wrap(e, "exec %s of session %s", reply.exec_id, cli->session);
	return rc;
}

/* ---- the end ---- */

static int run_whole(struct cli *cli, json_t *body, json_t **ret_end, struct err *e)
{
	_cleanup_free_ char *path = client_path("/v1/sessions/%s/exec", cli->session);
	struct client_request rq = {
		.method = "POST", .path = path, .body = body, .timeout_ms = timeout_ms(cli)
	};
	_cleanup_reply_ struct client_reply reply = { 0 };
	int rc = client_call(cli->client, &rq, &reply, e);
	if (rc && *reply.exec_id)
		err_wrap(e, "exec %s of session %s", reply.exec_id, cli->session);
	if (rc)
		return rc;
	if (!json_is_object(reply.body))
		return err_set(e, ERR_INTERNAL, "the server's reply has no content");
	json_object_set_new(reply.body, "session", json_string(cli->session));
	format_json(stdout, reply.body);
	cli->replied = true;
	*ret_end = STEAL_PTR(reply.body);
	return 0;
}

/* Ends that an exit status alone would leave open are said. */
static void explain(const json_t *end)
{
	static const struct {
		const char *reason, *text;
	} texts[] = {
		{ "timeout", "the command was ended at its timeout" },
		{ "oom", "the command was ended: out of memory" },
		{ "output_limit", "the command was ended at its output limit" },
		{ "cancelled", "the command was cancelled" },
		{ "sandbox_lost", "the sandbox was lost, and the command with it" },
		{ "start_failed", "the command cannot be started" },
	};
	const char *reason = json_string_value(json_object_get(end, "reason"));
	_cleanup_free_ char *detail = format_value(json_object_get(end, "detail"));
	for (size_t i = 0; reason && i < ARRAY_LEN(texts); i++)
		if (!strcmp(texts[i].reason, reason))
			say("%s%s%s", texts[i].text, strcmp(detail, "-") ? ": " : "",
			    strcmp(detail, "-") ? detail : "");
}

int exec_run(struct cli *cli, json_t *body, struct err *e)
{
	_cleanup_json_ json_t *end = NULL;
	int rc = cli->opt.json ? run_whole(cli, body, &end, e) : run_streaming(cli, body, &end, e);
	if (rc)
		return rc;
	if (!cli->opt.json)
		explain(end);
	cli->status = exit_status_of(end);
	return 0;
}

int cmd_exec(struct cli *cli, struct err *e)
{
	_cleanup_json_ json_t *body = NULL;
	int rc = exec_body(cli, true, &body, e);
	if (!rc)
		rc = session_resolve(cli, cli->opt.operands.at[0], e);
	return rc ? rc : exec_run(cli, body, e);
}
