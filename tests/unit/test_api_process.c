/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "api/process_json.h"
#include "base/json.h"
#include "tests/unit/rows.h"

struct start_row {
	const char *name, *body;
	const char *field; /* at fault; NULL: none */
	const char *command, *process_name;
	bool open_stdin;
};

static const struct start_row starts[] = {
	{ "process: a command, with a stdin", "{\"command\":\"a b\"}", NULL, "a b", NULL, true },
	{ "process: without a stdin", "{\"command\":\"a\",\"stdin\":false}", NULL, "a", NULL, false },
	{ "process: a name of any text", "{\"command\":\"a\",\"name\":\"dev server\"}", NULL, "a",
	  "dev server", true },
	{ "process: argv", "{\"argv\":[\"a\"],\"cwd\":\"/\",\"env\":{\"A\":\"b\"}}", NULL, NULL, NULL, true },
	{ "process: neither command nor argv", "{}", "command", NULL, NULL, false },
	{ "process: both", "{\"command\":\"a\",\"argv\":[\"a\"]}", "command", NULL, NULL, false },
	{ "process: an empty name", "{\"command\":\"a\",\"name\":\"\"}", "name", NULL, NULL, false },
	{ "process: a timeout is for commands", "{\"command\":\"a\",\"timeout_s\":1}", "timeout_s", NULL,
	  NULL, false },
	{ "process: stdin is no text here", "{\"command\":\"a\",\"stdin\":\"x\"}", "stdin", NULL, NULL,
	  false },
};

static void same(const char *got, const char *want)
{
	assert_string_equal(got ? got : "-", want ? want : "-");
}

static void start_test(void **state)
{
	const struct start_row *row = *state;
	struct process_body body = { 0 };
	struct err e = { 0 };
	int r = process_json_decode(row->body, strlen(row->body), &body, &e);
	assert_int_equal(r, row->field ? -ERR_INVALID : 0);
	if (row->field) {
		assert_string_equal(e.field, row->field);
		return;
	}
	same(body.rq.command, row->command);
	same(body.rq.name, row->process_name);
	assert_int_equal(body.rq.open_stdin, row->open_stdin);
	assert_true(body.rq.kind == EXEC_PROCESS && body.rq.timeout_ms == -1);
	process_body_clear(&body);
}

struct stdin_row {
	const char *name, *body;
	const char *field;
	const char *bytes;
	size_t len;
	bool close;
};

static const struct stdin_row stdins[] = {
	{ "stdin: text", "{\"data\":\"a\\n\"}", NULL, "a\n", 2, false },
	{ "stdin: bytes", "{\"data_b64\":\"AP8=\"}", NULL, "\0\xff", 2, false },
	{ "stdin: close alone", "{\"close\":true}", NULL, NULL, 0, true },
	{ "stdin: text and close", "{\"data\":\"x\",\"close\":true}", NULL, "x", 1, true },
	{ "stdin: an empty text is fine", "{\"data\":\"\"}", NULL, "", 0, false },
	{ "stdin: nothing", "{}", "data", NULL, 0, false },
	{ "stdin: close that is false is nothing", "{\"close\":false}", "data", NULL, 0, false },
	{ "stdin: both", "{\"data\":\"\",\"data_b64\":\"\"}", "data", NULL, 0, false },
	{ "stdin: no base64", "{\"data_b64\":\"!\"}", "data_b64", NULL, 0, false },
};

static void stdin_test(void **state)
{
	const struct stdin_row *row = *state;
	struct process_stdin_body body = { 0 };
	struct err e = { 0 };
	int r = process_json_stdin(row->body, strlen(row->body), &body, &e);
	assert_int_equal(r, row->field ? -ERR_INVALID : 0);
	if (row->field) {
		assert_string_equal(e.field, row->field);
		return;
	}
	assert_int_equal(body.in.len, row->len);
	if (row->len)
		assert_memory_equal(body.in.bytes, row->bytes, row->len);
	assert_int_equal(body.in.close, row->close);
	process_stdin_clear(&body);
}

struct reply_row {
	const char *name;
	bool ended, exact;
	uint64_t offset;
	const char *bytes, *want;
};

/* The state is that of one that has ended; whether it is told depends on what was read. */
static const struct reply_row replies[] = {
	{ "reply: of one that has ended", true, false, 0, "a\"\n",
	  "{\"output\":\"a\\\"\\n\",\"id\":\"p_1\",\"running\":false,\"exit_code\":3,\"reason\":\"exited\","
	  "\"signal\":null,"
	  "\"next_offset\":3,\"lost_bytes\":0}" },
	{ "reply: the end is told after all output only", false, false, 0, "",
	  "{\"output\":\"\",\"id\":\"p_1\",\"running\":true,\"exit_code\":null,\"reason\":null,\"signal\":"
	  "null,"
	  "\"next_offset\":0,\"lost_bytes\":0}" },
	{ "reply: in base64, with a loss", true, true, 5, "\xff",
	  "{\"output\":\"/"
	  "w==\",\"id\":\"p_1\",\"running\":false,\"exit_code\":3,\"reason\":\"exited\",\"signal\":null,"
	  "\"next_offset\":6,\"lost_bytes\":5,\"encoding\":\"base64\"}" },
};

static void reply_test(void **state)
{
	const struct reply_row *row = *state;
	struct process_piece piece;
	struct err e;
	_cleanup_buf_ struct buf out = BUF_INIT(process_json_reply_max(100));
	_cleanup_json_ json_t *process =
		json_pack("{s:s, s:i, s:s, s:n}", "id", "p_1", "exit_code", 3, "reason", "exited", "signal");
	process_piece_init(&piece, 0, 100, row->exact);
	assert_true(process_piece_add(&piece, row->offset, row->bytes, strlen(row->bytes)));
	process_piece_end(&piece, row->ended);
	assert_int_equal(process_json_reply(&out, process, &piece, row->ended, &e), 0);
	assert_string_equal(out.data, row->want);
	process_piece_clear(&piece);
}

static void the_largest_reply_fits(void **state)
{
	(void)state;
	static const char bytes[1000]; /* NULs, each of which is six characters of JSON */
	struct process_piece piece;
	struct err e;
	_cleanup_buf_ struct buf out = BUF_INIT(process_json_reply_max(sizeof(bytes)));
	_cleanup_json_ json_t *process = json_pack("{s:s, s:i, s:s, s:i}", "id", "p_aaaaaaaaaaaaaaaaaaaa",
						   "exit_code", 255, "reason", "sandbox_lost", "signal", 64);
	process_piece_init(&piece, 1ull << 60, sizeof(bytes), false);
	assert_true(process_piece_add(&piece, (1ull << 60) + (1ull << 59), bytes, sizeof(bytes)));
	process_piece_end(&piece, true);
	assert_int_equal(process_json_reply(&out, process, &piece, true, &e), 0);
	process_piece_clear(&piece);
}

static void lines_tell_where_they_end(void **state)
{
	(void)state;
	struct process_piece piece;
	struct err e;
	_cleanup_buf_ struct buf out = BUF_INIT(1000);
	process_piece_init(&piece, 7, 100, false);
	process_piece_end(&piece, false);
	assert_int_equal(process_json_line(&out, &piece, &e), 0);
	process_piece_clear(&piece);
	process_piece_init(&piece, 7, 100, false);
	assert_true(process_piece_add(&piece, 9, "x", 1));
	process_piece_end(&piece, false);
	assert_int_equal(process_json_line(&out, &piece, &e), 0);
	process_piece_clear(&piece);
	assert_string_equal(out.data,
			    "{\"type\":\"output\",\"data\":\"\",\"next_offset\":7}\n"
			    "{\"type\":\"output\",\"data\":\"x\",\"next_offset\":10,\"lost_bytes\":2}\n");
}

int main(void)
{
	struct rows r = { 0 };
	ROWS(&r, start_test, starts);
	ROWS(&r, stdin_test, stdins);
	ROWS(&r, reply_test, replies);
	rows_one(&r, "reply: the largest one fits", the_largest_reply_fits);
	rows_one(&r, "stream: lines tell where they end and what was lost", lines_tell_where_they_end);
	return rows_run(&r, "api_process");
}
