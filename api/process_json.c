/* SPDX-License-Identifier: MIT */
#include "api/process_json.h"

#include <string.h>

#include "api/body.h"
#include "api/json_line.h"
#include "base/base64.h"
#include "base/json.h"

/* ---- start ---- */

struct fields {
	const char *command, *cwd, *name;
	json_t *argv, *env;
	bool open_stdin;
};

#define AT(member) offsetof(struct fields, member)
/* clang-format off */
static const struct json_field start_fields[] = {
	{ .name = "command", .kind = JSON_K_TEXT,     .offset = AT(command),    .min = 1, .max = EXEC_COMMAND_MAX },
	{ .name = "argv",    .kind = JSON_K_TEXTS,    .offset = AT(argv),       .min = 1, .max = EXEC_ARGS_MAX },
	{ .name = "cwd",     .kind = JSON_K_TEXT,     .offset = AT(cwd),        .min = 1, .max = 4095 },
	{ .name = "env",     .kind = JSON_K_TEXT_MAP, .offset = AT(env),        .max = EXEC_ENV_MAX },
	{ .name = "name",    .kind = JSON_K_TEXT,     .offset = AT(name),       .min = 1, .max = PROCESS_NAME_MAX },
	{ .name = "stdin",   .kind = JSON_K_BOOL,     .offset = AT(open_stdin) },
};
/* clang-format on */
#undef AT

void process_body_clear(struct process_body *body)
{
	json_decref(body->json);
	*body = (struct process_body){ 0 };
}

int process_json_decode(const char *text, size_t len, struct process_body *ret, struct err *e)
{
	_cleanup_json_ json_t *json = NULL;
	struct fields f = { .open_stdin = true };

	if (json_text_parse(text, len, &json, e) ||
	    json_fields(json, "", start_fields, ARRAY_LEN(start_fields), &f, e) ||
	    body_check_env(f.env, "env", e))
		return -e->code;
	if (!f.command == !f.argv)
		return err_field(e, "command", "give either command or argv");
	*ret = (struct process_body){ .json = STEAL_PTR(json) };
	ret->rq = (struct exec_request){ .kind = EXEC_PROCESS,
					 .command = f.command,
					 .argv = f.argv,
					 .cwd = f.cwd,
					 .env = f.env,
					 .name = f.name,
					 .open_stdin = f.open_stdin,
					 .timeout_ms = -1 };
	return 0;
}

/* ---- stdin ---- */

struct stdin_fields {
	const char *data, *data_b64;
	bool close;
};

#define AT(member) offsetof(struct stdin_fields, member)
/* clang-format off */
static const struct json_field stdin_fields[] = {
	{ .name = "data",     .kind = JSON_K_TEXT, .offset = AT(data),     .max = INT32_MAX },
	{ .name = "data_b64", .kind = JSON_K_TEXT, .offset = AT(data_b64), .max = INT32_MAX },
	{ .name = "close",    .kind = JSON_K_BOOL, .offset = AT(close) },
};
/* clang-format on */
#undef AT

void process_stdin_clear(struct process_stdin_body *body)
{
	json_decref(body->json);
	free(body->bytes);
	*body = (struct process_stdin_body){ 0 };
}

int process_json_stdin(const char *text, size_t len, struct process_stdin_body *ret, struct err *e)
{
	_cleanup_json_ json_t *json = NULL;
	_cleanup_free_ char *bytes = NULL;
	struct stdin_fields f = { 0 };
	size_t count = 0;

	if (json_text_parse(text, len, &json, e) ||
	    json_fields(json, "", stdin_fields, ARRAY_LEN(stdin_fields), &f, e))
		return -e->code;
	if (f.data && f.data_b64)
		return err_field(e, "data", "give either data or data_b64");
	if (!f.data && !f.data_b64 && !f.close)
		return err_field(e, "data", "is missing: give data, data_b64 or close");
	if (f.data_b64 && base64_decode(f.data_b64, strlen(f.data_b64), &bytes, &count, e))
		return err_field(e, "data_b64", "is not base64");
	*ret = (struct process_stdin_body){ .json = STEAL_PTR(json), .bytes = STEAL_PTR(bytes) };
	ret->in = (struct process_input){ .bytes = f.data ? f.data : ret->bytes,
					  .len = f.data ? strlen(f.data) : count,
					  .close = f.close };
	return 0;
}

/* ---- output ---- */

#define HEAD_MAX 1024 /* bytes of all but the output */

size_t process_json_reply_max(size_t output_max)
{
	return 6 * output_max + HEAD_MAX; /* a control character is six */
}

/* Fields of the state, as they are once it has ended. */
static json_t *head_of(json_t *state, const struct process_piece *piece, bool ended)
{
	static const char *const ends[] = { "exit_code", "reason", "signal" };
	json_t *head = json_object();

	json_object_set(head, "id", json_object_get(state, "id"));
	json_object_set_new(head, "running", json_boolean(!ended));
	for (size_t i = 0; i < ARRAY_LEN(ends); i++)
		json_object_set(head, ends[i], ended ? json_object_get(state, ends[i]) : json_null());
	json_object_set_new(head, "next_offset", json_integer((json_int_t)piece->next_offset));
	json_object_set_new(head, "lost_bytes", json_integer((json_int_t)piece->lost_bytes));
	if (piece->exact)
		json_object_set_new(head, "encoding", json_string("base64"));
	return head;
}

static int add_data(struct buf *out, const struct process_piece *piece, struct err *e)
{
	return json_line_data(out, piece->data.data ? piece->data.data : "", piece->data.len, piece->exact,
			      e);
}

int process_json_reply(struct buf *out, json_t *state, const struct process_piece *piece, bool ended,
		       struct err *e)
{
	_cleanup_json_ json_t *head = head_of(state, piece, ended);
	_cleanup_free_ char *text = json_text(head);

	/* Into the object, before its first field. */
	return buf_addf(out, e, "{\"output\":") || add_data(out, piece, e) ||
			       buf_addf(out, e, ",%s", text + 1)
		       ? -(int)e->code
		       : 0;
}

int process_json_line(struct buf *out, const struct process_piece *piece, struct err *e)
{
	if (buf_addf(out, e, "{\"type\":\"output\",\"data\":") || add_data(out, piece, e) ||
	    buf_addf(out, e, ",\"next_offset\":%llu", (unsigned long long)piece->next_offset))
		return -e->code;
	if (piece->lost_bytes &&
	    buf_addf(out, e, ",\"lost_bytes\":%llu", (unsigned long long)piece->lost_bytes))
		return -e->code;
	return buf_add(out, "}\n", 2, e);
}
