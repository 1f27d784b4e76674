/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "api/exec_json.h"
#include "api/response.h"
#include "base/json.h"
#include "tests/unit/rows.h"

#define MAX_S 1800

struct good_row {
	const char *name, *body;
	bool stream;
	const char *command, *first_arg, *stdin_data;
	size_t stdin_len;
	int64_t timeout_ms;
	bool base64, split;
};

static const struct good_row goods[] = {
	{ "exec: a command", "{\"command\":\"a b\"}", false, "a b", NULL, NULL, 0, -1, false, false },
	{ "exec: argv", "{\"argv\":[\"ls\",\"\"]}", false, NULL, "ls", NULL, 0, -1, false, false },
	{ "exec: a null is as absent", "{\"command\":\"a\",\"argv\":null,\"cwd\":null}", false, "a", NULL,
	  NULL, 0, -1, false, false },
	{ "exec: stdin", "{\"command\":\"a\",\"stdin\":\"x\\n\"}", false, "a", NULL, "x\n", 2, -1, false,
	  false },
	{ "exec: an empty stdin is one", "{\"command\":\"a\",\"stdin\":\"\"}", false, "a", NULL, "", 0, -1,
	  false, false },
	{ "exec: stdin of any bytes", "{\"command\":\"a\",\"stdin_b64\":\"AAH/\"}", false, "a", NULL,
	  "\0\1\xff", 3, -1, false, false },
	{ "exec: an empty stdin of bytes", "{\"command\":\"a\",\"stdin_b64\":\"\"}", false, "a", NULL, "", 0,
	  -1, false, false },
	{ "exec: a timeout", "{\"command\":\"a\",\"timeout_s\":1800}", false, "a", NULL, NULL, 0, 1800000,
	  false, false },
	{ "exec: a timeout with decimals", "{\"command\":\"a\",\"timeout_s\":0.25}", false, "a", NULL, NULL,
	  0, 250, false, false },
	{ "exec: utf8", "{\"command\":\"a\",\"encoding\":\"utf8\"}", false, "a", NULL, NULL, 0, -1, false,
	  false },
	{ "exec: base64", "{\"command\":\"a\",\"encoding\":\"base64\"}", false, "a", NULL, NULL, 0, -1, true,
	  false },
	{ "exec: split", "{\"command\":\"a\",\"split\":true}", true, "a", NULL, NULL, 0, -1, false, true },
	{ "exec: no split anywhere", "{\"command\":\"a\",\"split\":false}", false, "a", NULL, NULL, 0, -1,
	  false, false },
};

static void good_test(void **state)
{
	const struct good_row *row = *state;
	_cleanup_(exec_json_clear) struct exec_body body = { 0 };
	struct err e = { 0 };
	assert_int_equal(exec_json_decode(row->body, strlen(row->body), row->stream, MAX_S, &body, &e), 0);
	assert_string_equal(body.rq.command ? body.rq.command : "-", row->command ? row->command : "-");
	assert_int_equal(body.rq.argv != NULL, row->first_arg != NULL);
	if (row->first_arg)
		assert_string_equal(json_string_value(json_array_get(body.rq.argv, 0)), row->first_arg);
	assert_int_equal(body.rq.stdin_data != NULL, row->stdin_data != NULL);
	assert_int_equal(body.rq.stdin_len, row->stdin_len);
	if (row->stdin_len)
		assert_memory_equal(body.rq.stdin_data, row->stdin_data, row->stdin_len);
	assert_int_equal(body.rq.timeout_ms, row->timeout_ms);
	assert_int_equal(body.rq.base64, row->base64);
	assert_int_equal(body.rq.split, row->split);
	assert_int_equal(body.rq.stream, row->stream);
}

struct bad_row {
	const char *name, *body, *field;
	bool stream;
};

static const struct bad_row bads[] = {
	{ "exec: nothing", "", "", false },
	{ "exec: no object", "\"ls\"", "", false },
	{ "exec: no command", "{}", "command", false },
	{ "exec: command and argv", "{\"command\":\"a\",\"argv\":[\"a\"]}", "command", false },
	{ "exec: an empty command", "{\"command\":\"\"}", "command", false },
	{ "exec: an empty argv", "{\"argv\":[]}", "argv", false },
	{ "exec: an empty program", "{\"argv\":[\"\",\"x\"]}", "argv", false },
	{ "exec: an argument that is no text", "{\"argv\":[\"a\",{}]}", "argv", false },
	{ "exec: an unknown field", "{\"command\":\"a\",\"user\":\"root\"}", "user", false },
	{ "exec: a timeout of 0", "{\"command\":\"a\",\"timeout_s\":0}", "timeout_s", true },
	{ "exec: a timeout above the limit", "{\"command\":\"a\",\"timeout_s\":1800.001}", "timeout_s",
	  true },
	{ "exec: an encoding", "{\"command\":\"a\",\"encoding\":\"latin1\"}", "encoding", true },
	{ "exec: split without a stream", "{\"command\":\"a\",\"split\":true}", "split", false },
	{ "exec: two stdins", "{\"command\":\"a\",\"stdin\":\"\",\"stdin_b64\":\"\"}", "stdin", true },
	{ "exec: stdin that is no base64", "{\"command\":\"a\",\"stdin_b64\":\"AAH\"}", "stdin_b64", true },
	{ "exec: stdin with a NUL", "{\"command\":\"a\",\"stdin\":\"a\\u0000\"}", "", true },
	{ "exec: a variable with =", "{\"command\":\"a\",\"env\":{\"A=B\":\"\"}}", "env", true },
	{ "exec: a key twice", "{\"command\":\"a\",\"command\":\"a\"}", "", true },
};

static void bad_test(void **state)
{
	const struct bad_row *row = *state;
	struct exec_body body = { .rq = { .timeout_ms = 4711 } };
	struct err e = { 0 };
	assert_int_equal(exec_json_decode(row->body, strlen(row->body), row->stream, MAX_S, &body, &e),
			 -ERR_INVALID);
	assert_int_equal(strncmp(e.field, row->field, strlen(row->field)), 0);
	assert_int_equal(body.rq.timeout_ms, 4711);
	assert_null(body.json);
}

struct line_row {
	const char *name;
	struct exec_output piece;
	bool base64;
	const char *want;
};

static const struct line_row lines[] = {
	{ "line: output",
	  { .stream = 1, .data = "hi\n", .len = 3 },
	  false,
	  "{\"type\":\"output\",\"data\":\"hi\\n\"}\n" },
	{ "line: of stderr",
	  { .stream = 2, .data = "x", .len = 1 },
	  false,
	  "{\"type\":\"output\",\"data\":\"x\",\"stream\":\"stderr\"}\n" },
	{ "line: in base64",
	  { .stream = 1, .data = "\xff\0\n", .len = 3 },
	  true,
	  "{\"type\":\"output\",\"data\":\"/wAK\"}\n" },
	{ "line: after a loss",
	  { .stream = 1, .data = "x", .len = 1, .dropped = 7 },
	  false,
	  "{\"type\":\"output\",\"data\":\"x\",\"dropped_bytes\":7}\n" },
	{ "line: control characters never break it",
	  { .stream = 1, .data = "\n\r\0\x1b", .len = 4 },
	  false,
	  "{\"type\":\"output\",\"data\":\"\\n\\r\\u0000\\u001B\"}\n" },
};

static void line_test(void **state)
{
	const struct line_row *row = *state;
	_cleanup_buf_ struct buf out = BUF_INIT(1000);
	struct err e;
	assert_int_equal(exec_json_output_line(&out, &row->piece, row->base64, &e), 0);
	assert_string_equal(out.data, row->want);
}

static void largest_line_test(void **state)
{
	(void)state;
	static const char worst[65536]; /* NULs: six bytes each */
	_cleanup_buf_ struct buf out = BUF_INIT(RESPONSE_LINES_MAX);
	const struct exec_output piece = {
		.stream = 2, .data = worst, .len = sizeof(worst), .dropped = UINT32_MAX
	};
	struct err e;
	assert_int_equal(exec_json_output_line(&out, &piece, false, &e), 0);
}

static void end_lines_test(void **state)
{
	(void)state;
	_cleanup_json_ json_t *reply =
		json_pack("{s:s, s:i, s:s}", "output", "kept", "exit_code", 3, "id", "e_1");
	_cleanup_buf_ struct buf out = BUF_INIT(1000);
	struct err e, why = { 0 };
	assert_int_equal(exec_json_replay_line(&out, reply, &(size_t){ 0 }, &e), 0);
	assert_string_equal(out.data, "{\"type\":\"output\",\"data\":\"kept\"}\n");
	buf_reset(&out);
	assert_int_equal(exec_json_exit_line(&out, reply, NULL, &e), 0);
	assert_string_equal(out.data, "{\"type\":\"exit\",\"exit_code\":3,\"id\":\"e_1\"}\n");
	buf_reset(&out);
	assert_int_equal(exec_json_exit_line(&out, reply, &(uint64_t){ 7 }, &e), 0);
	assert_non_null(strstr(out.data, "\"truncated\":true,\"dropped_bytes\":7"));
	assert_string_equal(json_string_value(json_object_get(reply, "output")), "kept");
	buf_reset(&out);
	err_set(&why, ERR_TIMEOUT, "too \"late\"");
	assert_int_equal(exec_json_error_line(&out, &why, &e), 0);
	assert_string_equal(out.data, "{\"type\":\"error\",\"error\":{\"code\":\"deadline_exceeded\","
				      "\"message\":\"too \\\"late\\\"\"}}\n");
}

static void error_test(void **state)
{
	(void)state;
	struct response rs = { 0 };
	struct err e = { 0 };
	err_field(&e, "limits.pids", "is out of range");
	response_error(&rs, &e);
	assert_int_equal(rs.status, 400);
	_cleanup_json_ json_t *body = json_loads(rs.body, 0, NULL);
	json_t *error = json_object_get(body, "error");
	assert_string_equal(json_string_value(json_object_get(error, "code")), "invalid_argument");
	assert_string_equal(json_string_value(json_object_get(error, "field")), "limits.pids");
	response_clear(&rs);

	err_set(&e, ERR_LIMIT, "too many");
	e.retry_after_s = 3;
	rs.status = 503;
	response_error(&rs, &e);
	assert_int_equal(rs.status, 503);
	assert_string_equal(rs.headers[0].name, "Retry-After");
	assert_string_equal(rs.headers[0].value, "3");
	response_clear(&rs);

	err_set(&e, ERR_UNAUTHORIZED, "no");
	response_error(&rs, &e);
	assert_int_equal(rs.status, 401);
	assert_string_equal(rs.headers[0].name, "WWW-Authenticate");
	assert_null(strstr(rs.body, "field"));
	response_clear(&rs);
}

int main(void)
{
	struct rows r = { 0 };
	ROWS(&r, good_test, goods);
	ROWS(&r, bad_test, bads);
	ROWS(&r, line_test, lines);
	rows_one(&r, "line: the largest piece fits", largest_line_test);
	rows_one(&r, "line: exit, error and what was kept", end_lines_test);
	rows_one(&r, "an error is answered with its status, field and headers", error_test);
	return rows_run(&r, "api_exec");
}
