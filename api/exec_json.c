/* SPDX-License-Identifier: MIT */
#include "api/exec_json.h"

#include <string.h>

#include "api/body.h"
#include "api/json_line.h"
#include "api/response.h"
#include "base/base64.h"
#include "base/json.h"
#include "base/utf8.h"

void exec_json_clear(struct exec_body *body)
{
	json_decref(body->json);
	free(body->stdin_bytes);
	*body = (struct exec_body){ 0 };
}

void exec_json_drop(struct exec_body *body)
{
	const struct exec_request kept = { .timeout_ms = body->rq.timeout_ms,
					   .base64 = body->rq.base64,
					   .stream = body->rq.stream,
					   .split = body->rq.split };
	exec_json_clear(body);
	*body = (struct exec_body){ .rq = kept };
}

struct fields {
	const char *command, *stdin_text, *stdin_b64, *cwd, *encoding;
	json_t *argv, *env;
	int64_t timeout_ms;
	bool split;
};

#define AT(member) offsetof(struct fields, member)
/* clang-format off */
static const struct json_field exec_fields[] = {
	{ .name = "command",   .kind = JSON_K_TEXT,     .offset = AT(command),    .min = 1, .max = EXEC_COMMAND_MAX },
	{ .name = "argv",      .kind = JSON_K_TEXTS,    .offset = AT(argv),       .min = 1, .max = EXEC_ARGS_MAX },
	{ .name = "stdin",     .kind = JSON_K_TEXT,     .offset = AT(stdin_text), .max = INT32_MAX },
	{ .name = "stdin_b64", .kind = JSON_K_TEXT,     .offset = AT(stdin_b64),  .max = INT32_MAX },
	{ .name = "timeout_s", .kind = JSON_K_MILLI,    .offset = AT(timeout_ms), .min = 1, .max = INT32_MAX },
	{ .name = "cwd",       .kind = JSON_K_TEXT,     .offset = AT(cwd),        .min = 1, .max = 4095 },
	{ .name = "env",       .kind = JSON_K_TEXT_MAP, .offset = AT(env),        .max = EXEC_ENV_MAX },
	{ .name = "encoding",  .kind = JSON_K_TEXT,     .offset = AT(encoding),   .min = 1, .max = 16 },
	{ .name = "split",     .kind = JSON_K_BOOL,     .offset = AT(split) },
};
/* clang-format on */
#undef AT

static int check_command(const struct fields *f, struct err *e)
{
	size_t index, total = 0;
	json_t *arg;

	if (!f->command == !f->argv)
		return err_field(e, "command", "give either command or argv");
	json_array_foreach (f->argv, index, arg)
		total += json_string_length(arg) + 1;
	if (total > EXEC_COMMAND_MAX)
		return err_field(e, "argv", "has more than %d bytes", EXEC_COMMAND_MAX);
	if (f->argv && !json_string_length(json_array_get(f->argv, 0)))
		return err_field(e, "argv", "starts with an empty program name");
	return 0;
}

static int check_options(const struct fields *f, bool stream, int64_t max_timeout_s, struct err *e)
{
	if (f->timeout_ms > max_timeout_s * 1000)
		return err_field(e, "timeout_s", "must be more than 0 and at most %lld",
				 (long long)max_timeout_s);
	if (f->encoding && strcmp(f->encoding, "utf8") && strcmp(f->encoding, "base64"))
		return err_field(e, "encoding", "must be utf8 or base64");
	if (f->split && !stream)
		return err_field(e, "split", "is for /exec/stream only");
	if (f->stdin_text && f->stdin_b64)
		return err_field(e, "stdin", "give either stdin or stdin_b64");
	return body_check_env(f->env, "env", e);
}

static int read_stdin(const struct fields *f, struct exec_body *out, struct err *e)
{
	if (f->stdin_b64) {
		if (base64_decode(f->stdin_b64, strlen(f->stdin_b64), &out->stdin_bytes, &out->rq.stdin_len,
				  e))
			return err_field(e, "stdin_b64", "is not base64");
		out->rq.stdin_data = out->stdin_bytes;
	} else if (f->stdin_text) {
		out->rq.stdin_data = f->stdin_text;
		out->rq.stdin_len = strlen(f->stdin_text);
	}
	return 0;
}

int exec_json_decode(const char *text, size_t len, bool stream, int64_t max_timeout_s, struct exec_body *ret,
		     struct err *e)
{
	_cleanup_(exec_json_clear) struct exec_body body = { 0 };
	struct fields f = { .timeout_ms = -1 };

	if (json_text_parse(text, len, &body.json, e) ||
	    json_fields(body.json, "", exec_fields, ARRAY_LEN(exec_fields), &f, e) || check_command(&f, e) ||
	    check_options(&f, stream, max_timeout_s, e) || read_stdin(&f, &body, e))
		return -e->code;
	body.rq.command = f.command;
	body.rq.argv = f.argv;
	body.rq.timeout_ms = f.timeout_ms;
	body.rq.cwd = f.cwd;
	body.rq.env = f.env;
	body.rq.base64 = f.encoding && !strcmp(f.encoding, "base64");
	body.rq.split = f.split;
	body.rq.stream = stream;
	*ret = body;
	body = (struct exec_body){ 0 };
	return 0;
}

int exec_json_output_line(struct buf *out, const struct exec_output *piece, bool base64, struct err *e)
{
	static const char start[] = "{\"type\":\"output\",\"data\":";
	int r = buf_add(out, start, strlen(start), e);
	if (!r)
		r = json_line_data(out, piece->data, piece->len, base64, e);
	if (!r && piece->stream == 2)
		r = buf_addf(out, e, ",\"stream\":\"stderr\"");
	if (!r && piece->dropped)
		r = buf_addf(out, e, ",\"dropped_bytes\":%llu", (unsigned long long)piece->dropped);
	return r ? r : buf_add(out, "}\n", 2, e);
}

#define REPLAY_CHARACTERS 16384 /* in a line, each at most 6 bytes of JSON */

int exec_json_replay_line(struct buf *out, const json_t *reply, size_t *at, struct err *e)
{
	const json_t *output = json_object_get(reply, "output");
	const char *text = json_string_value(output);
	size_t left = json_string_length(output) - *at;

	if (!left)
		return 0;
	/* Whole characters; in base64 a multiple of four of them, which is a whole number of bytes. */
	size_t piece = MIN(left, utf8_offset(text + *at, left, REPLAY_CHARACTERS));
	const struct exec_output line = { .stream = 1, .data = text + *at, .len = piece };
	*at += piece;
	return exec_json_output_line(out, &line, false, e);
}

int exec_json_exit_line(struct buf *out, const json_t *reply, const uint64_t *dropped, struct err *e)
{
	json_t *line = json_pack("{s:s}", "type", "exit");

	json_object_update_missing(line, (json_t *)(uintptr_t)reply);
	json_object_del(line, "output");
	if (dropped) {
		json_object_set_new(line, "truncated", json_boolean(*dropped > 0));
		json_object_set_new(line, "dropped_bytes", json_integer((json_int_t)*dropped));
	}
	return json_line_add(out, line, e);
}

int exec_json_error_line(struct buf *out, const struct err *why, struct err *e)
{
	return json_line_add(out, json_pack("{s:s, s:o}", "type", "error", "error", response_error_json(why)),
			     e);
}
