/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "runtime/protocol/protocol.h"
#include "tests/unit/rows.h"

#define LEN(literal) (sizeof(literal) - 1)

/* ---- frames ---- */

static const struct parse_row {
	const char *name, *bytes;
	size_t len;
	ssize_t want;
} parses[] = {
	/* clang-format off */
	{ "parse: nothing needs more", "", 0, 0 },
	{ "parse: seven bytes of a header need more", "\x0f\0\0\0\0\0\0", 7, 0 },
	{ "parse: a frame without payload", "\x0c\0\0\0\0\0\0\0", 8, 8 },
	{ "parse: what follows is left", "\x0c\0\0\0\0\0\0\0xyz", 11, 8 },
	{ "parse: a payload that is not whole needs more", "\x05\1\0\3\0\0\0\1ab", 10, 0 },
	{ "parse: a payload that is whole", "\x05\1\0\3\0\0\0\1abc", 11, 11 },
	{ "parse: type 0", "\0\0\0\0\0\0\0\0", 8, -1 },
	{ "parse: a type beyond the last", "\x14\0\0\0\0\0\0\1", 8, -1 },
	{ "parse: a read of no job", "\x12\0\0\0\0\0\0\0", 8, -1 },
	{ "parse: a read", "\x12\0\0\0\0\0\0\1", 8, 8 },
	{ "parse: the longest payload needs its bytes", "\x05\1\x80\0\0\0\0\1", 8, 0 },
	{ "parse: a longer one is judged by its header", "\x05\1\x80\1\0\0\0\1", 8, -1 },
	{ "parse: data without a byte", "\x05\1\0\0\0\0\0\1", 8, -1 },
	{ "parse: data of no job", "\x05\1\0\1\0\0\0\0x", 9, -1 },
	{ "parse: data of a stream that is none", "\x05\3\0\1\0\0\0\1x", 9, -1 },
	{ "parse: a hello with a job", "\1\0\0\0\0\0\0\1", 8, -1 },
	{ "parse: a start with pieces to follow", "\2\1\0\0\0\0\0\1", 8, 8 },
	{ "parse: a start with another aux", "\2\2\0\0\0\0\0\1", 8, -1 },
	{ "parse: a start of no job", "\2\0\0\0\0\0\0\0", 8, -1 },
	{ "parse: a window of the link", "\6\0\0\0\0\0\0\0", 8, 8 },
	{ "parse: a window of the link has no stream", "\6\1\0\0\0\0\0\0", 8, -1 },
	{ "parse: a window of a job's stream", "\6\2\0\0\0\0\0\1", 8, 8 },
	{ "parse: a gap in stdin", "\x08\0\0\0\0\0\0\1", 8, -1 },
	{ "parse: attach to stdin", "\x0b\0\0\0\0\0\0\1", 8, 8 },
	{ "parse: attach to stderr", "\x0b\2\0\0\0\0\0\1", 8, 8 },
	{ "parse: a list entry of a job", "\x0c\0\0\0\0\0\0\7", 8, 8 },
	{ "parse: a ping with a job", "\x10\0\0\0\0\0\0\1", 8, -1 },
	{ "parse: the largest job id", "\3\0\0\0\xff\xff\xff\xff", 8, 8 },
	/* clang-format on */
};

static void parse_test(void **state)
{
	const struct parse_row *row = *state;
	struct proto_frame f;
	assert_int_equal(proto_parse((const uint8_t *)row->bytes, row->len, &f), row->want);
}

static void header_test(void **state)
{
	uint8_t bytes[PROTO_HEADER + 0x1234] = { 0 };
	struct proto_frame f;

	(void)state;
	proto_header(bytes, PROTO_DATA, PROTO_STDERR, 0x89abcdef, 0x1234);
	assert_memory_equal(bytes, "\x05\x02\x12\x34\x89\xab\xcd\xef", PROTO_HEADER);
	assert_int_equal(proto_parse(bytes, sizeof(bytes), &f), sizeof(bytes));
	assert_int_equal(f.type, PROTO_DATA);
	assert_int_equal(f.aux, PROTO_STDERR);
	assert_int_equal(f.job, 0x89abcdef);
	assert_int_equal(f.length, 0x1234);
	assert_ptr_equal(f.payload, bytes + PROTO_HEADER);
}

/* ---- fields ---- */

static const struct list_row {
	const char *name, *bytes;
	size_t len;
	int fields; /* before the end */
	int end;    /* of the last proto_next() */
} lists[] = {
	{ "fields: none", "", 0, 0, 0 },
	{ "fields: an empty value", "\0\1\0\0\0\0", 6, 1, 0 },
	{ "fields: two", "\0\1\0\0\0\1a\0\2\0\0\0\2bc", 15, 2, 0 },
	{ "fields: half a header", "\0\1\0\0\0", 5, 0, -1 },
	{ "fields: half a second header", "\0\1\0\0\0\1a\0\2", 9, 1, -1 },
	{ "fields: a value that is cut", "\0\1\0\0\0\2a", 7, 0, -1 },
	{ "fields: a length of four gigabytes", "\0\1\xff\xff\xff\xff", 6, 0, -1 },
};

static void list_test(void **state)
{
	const struct list_row *row = *state;
	struct proto_cursor c = { (const uint8_t *)row->bytes, row->len };
	struct proto_field f;
	int rc, count = 0;

	while ((rc = proto_next(&c, &f)) > 0)
		count++;
	assert_int_equal(count, row->fields);
	assert_int_equal(rc, row->end);
}

static void find_test(void **state)
{
	uint8_t bytes[64];
	struct proto_writer w = { bytes, sizeof(bytes), 0, false };
	uint64_t value = 7;

	(void)state;
	proto_put_text(&w, PROTO_F_DETAIL, "abc");
	proto_put_u64(&w, PROTO_F_BYTES, 0x0123456789abcdef);
	proto_put_u64(&w, PROTO_F_BYTES, 2);
	struct proto_frame f = { .payload = bytes, .length = (uint16_t)w.used };
	assert_int_equal(proto_find_u64(&f, PROTO_F_PID, &value), -1);
	assert_int_equal(proto_find_u64(&f, PROTO_F_DETAIL, &value), -1);
	assert_int_equal(value, 7);
	assert_int_equal(proto_find_u64(&f, PROTO_F_BYTES, &value), 0);
	assert_true(value == 0x0123456789abcdef);
}

static void writer_test(void **state)
{
	uint8_t bytes[16] = { 0 };
	struct proto_writer w = { bytes, 14, 0, false };

	(void)state;
	proto_put(&w, 1, "1234", 4);
	assert_false(w.failed);
	proto_put_u64(&w, 2, 1);
	assert_true(w.failed);
	assert_int_equal(w.used, 10);
	proto_put(&w, 3, "", 0); /* it would fit, but the list is not whole any more */
	assert_int_equal(w.used, 10);
	assert_int_equal(bytes[14], 0);
}

/* ---- the end of a job ---- */

static const struct exit_row {
	const char *name;
	struct proto_exit exit;
	int want;
} exits[] = {
	{ "exit: a code", { .reason = PROTO_EXITED, .code = 255 }, 0 },
	{ "exit: a code beyond a byte", { .reason = PROTO_EXITED, .code = 256 }, -1 },
	{ "exit: a negative code", { .reason = PROTO_EXITED, .code = -1 }, -1 },
	{ "exit: a signal", { .reason = PROTO_SIGNALLED, .signal = 64 }, 0 },
	{ "exit: a signal that is none", { .reason = PROTO_SIGNALLED, .signal = 65 }, -1 },
	{ "exit: a failed start",
	  { .reason = PROTO_START_FAILED, .sys = ENOENT, .detail = { "no_shell", 8 } },
	  0 },
	{ "exit: usage and survivors",
	  { .reason = PROTO_TIMEOUT,
	    .wall_us = 1,
	    .user_us = 2,
	    .sys_us = 3,
	    .peak_bytes = 4,
	    .stdout_bytes = 5,
	    .stderr_bytes = 6,
	    .dropped_bytes = INT64_MAX,
	    .lingering = 7,
	    .survivors = 8 },
	  0 },
	{ "exit: usage beyond reason", { .reason = PROTO_TIMEOUT, .wall_us = UINT64_MAX }, -1 },
	{ "exit: oom", { .reason = PROTO_OOM }, 0 },
	{ "exit: sandbox_lost is not an agent's to say", { .reason = PROTO_SANDBOX_LOST }, -1 },
	{ "exit: a reason that is none", { .reason = PROTO_REASON_COUNT_ }, -1 },
	{ "exit: a detail with a NUL", { .reason = PROTO_OOM, .detail = { "a\0b", 3 } }, -1 },
};

static void assert_same_exit(const struct proto_exit *a, const struct proto_exit *b)
{
	struct proto_exit x = *a, y = *b;

	assert_int_equal(a->detail.len, b->detail.len);
	if (a->detail.len)
		assert_memory_equal(a->detail.at, b->detail.at, a->detail.len);
	x.detail = y.detail = (struct proto_text){ 0 };
	assert_memory_equal(&x, &y, sizeof(x));
}

static void exit_test(void **state)
{
	const struct exit_row *row = *state;
	uint8_t bytes[512];
	struct proto_writer w = { bytes, sizeof(bytes), 0, false };
	struct proto_exit got;

	memset(&got, 0, sizeof(got));
	proto_exit_encode(&w, &row->exit);
	assert_false(w.failed);
	struct proto_frame f = { .type = PROTO_EXIT, .job = 1, .payload = bytes, .length = (uint16_t)w.used };
	assert_int_equal(proto_exit_decode(&f, &got), row->want);
	if (row->want == 0)
		assert_same_exit(&got, &row->exit);
}

static const struct raw_exit_row {
	const char *name, *bytes;
	size_t len;
	int want;
} raw_exits[] = {
#define REASON(n) "\0\x80\0\0\0\x08\0\0\0\0\0\0\0" n
#define CODE(n) "\0\x81\0\0\0\x08\0\0\0\0\0\0\0" n
	{ "exit: without a reason", "", 0, -1 },
	{ "exit: exited without a code", REASON("\0"), 14, -1 },
	{ "exit: exited with a code", REASON("\0") CODE("\3"), 28, 0 },
	{ "exit: a code with another reason", REASON("\2") CODE("\3"), 28, -1 },
	{ "exit: two reasons", REASON("\2") REASON("\2"), 28, -1 },
	{ "exit: an unknown field is skipped", REASON("\2") "\x7f\xff\0\0\0\1x", 21, 0 },
	{ "exit: a reason of four bytes", "\0\x80\0\0\0\4\0\0\0\2", 10, -1 },
	{ "exit: cut", REASON("\2") "\0", 15, -1 },
};

static void raw_exit_test(void **state)
{
	const struct raw_exit_row *row = *state;
	struct proto_frame f = { .payload = (const uint8_t *)row->bytes, .length = (uint16_t)row->len };
	struct proto_exit got;

	assert_int_equal(proto_exit_decode(&f, &got), row->want);
}

/* ---- a piece of output ---- */

static const struct chunk_row {
	const char *name;
	struct proto_chunk chunk;
	int want;
} chunks[] = {
	/* clang-format off */
	{ "chunk: no such job", { .cookie = 1 }, 0 },
	{ "chunk: no bytes yet", { .cookie = 1, .known = true, .offset = 9, .total = 5 }, 0 },
	{ "chunk: bytes up to the total", { 1, true, PROTO_JOB_RUNNING, 2, 5, (const uint8_t *)"abc", 3 }, 0 },
	{ "chunk: bytes beyond the total", { 1, true, PROTO_JOB_RUNNING, 3, 5, (const uint8_t *)"abc", 3 }, -1 },
	{ "chunk: a state that is none", { .cookie = 1, .known = true, .state = PROTO_JOB_ENDED + 1 }, -1 },
	{ "chunk: an offset beyond reason", { .cookie = 1, .known = true, .offset = UINT64_MAX }, -1 },
	{ "chunk: a total beyond reason", { .cookie = 1, .known = true, .total = 1ull << 63 }, -1 },
	/* clang-format on */
};

static void chunk_test(void **state)
{
	const struct chunk_row *row = *state;
	uint8_t bytes[512];
	struct proto_writer w = { bytes, sizeof(bytes), 0, false };
	struct proto_chunk got = { 0 };

	proto_chunk_encode(&w, &row->chunk);
	assert_false(w.failed);
	struct proto_frame f = { .payload = bytes, .length = (uint16_t)w.used };
	assert_int_equal(proto_chunk_decode(&f, &got), row->want);
	if (row->want < 0)
		return;
	assert_true(got.cookie == row->chunk.cookie && got.known == row->chunk.known);
	assert_true(got.state == row->chunk.state && got.offset == row->chunk.offset);
	assert_true(got.total == row->chunk.total && got.len == row->chunk.len);
	if (got.len)
		assert_memory_equal(got.bytes, row->chunk.bytes, got.len);
}

static const struct raw_chunk_row {
	const char *name, *bytes;
	size_t len;
} raw_chunks[] = {
#define COOKIE "\0\x0a\0\0\0\x08\0\0\0\0\0\0\0\1"
#define STATE "\0\xa0\0\0\0\x08\0\0\0\0\0\0\0\1"
#define CHUNK "\0\x0f\0\0\0\1x"
	{ "chunk: nothing at all", "", 0 },
	{ "chunk: without a cookie", STATE, LEN(STATE) },
	{ "chunk: two cookies", COOKIE COOKIE, LEN(COOKIE COOKIE) },
	{ "chunk: a state without an offset", COOKIE STATE, LEN(COOKIE STATE) },
	{ "chunk: bytes of no job", COOKIE CHUNK, LEN(COOKIE CHUNK) },
	{ "chunk: bytes twice", COOKIE CHUNK CHUNK, LEN(COOKIE CHUNK CHUNK) },
	{ "chunk: cut", COOKIE "\0", LEN(COOKIE "\0") },
};

static void raw_chunk_test(void **state)
{
	const struct raw_chunk_row *row = *state;
	struct proto_frame f = { .payload = (const uint8_t *)row->bytes, .length = (uint16_t)row->len };
	struct proto_chunk got;

	assert_int_equal(proto_chunk_decode(&f, &got), -1);
}

/* ---- a job spec: one field each after a name, as "TAG LENGTH VALUE" is built by the test ---- */

struct spec_field {
	uint16_t tag;
	const char *text; /* NULL: the integer */
	size_t len;
	uint64_t number;
};
#define TEXT(tag, literal)                    \
	{                                     \
		tag, literal, LEN(literal), 0 \
	}
#define NUMBER(tag, n)          \
	{                       \
		tag, NULL, 0, n \
	}

static const struct spec_row {
	const char *name;
	struct spec_field fields[6];
	const char *why; /* NULL: good */
} specs[] = {
	/* clang-format off */
	{ "spec: one argument", { TEXT(PROTO_F_ARG, "true") }, NULL },
	{ "spec: an empty second argument", { TEXT(PROTO_F_ARG, "echo"), TEXT(PROTO_F_ARG, "") }, NULL },
	{ "spec: a script with its shell", { TEXT(PROTO_F_SCRIPT, "true"), TEXT(PROTO_F_SHELL, "sh") }, NULL },
	{ "spec: an empty script", { TEXT(PROTO_F_SCRIPT, ""), TEXT(PROTO_F_SHELL, "sh") }, NULL },
	{ "spec: everything", { TEXT(PROTO_F_ARG, "a"), TEXT(PROTO_F_CWD, "/"), TEXT(PROTO_F_ENV, "A="),
	  NUMBER(PROTO_F_KEEP, PROTO_KEEP_RING), NUMBER(PROTO_F_TAIL, PROTO_KEEP_MAX), NUMBER(PROTO_F_JOB_FLAGS, 3) }, NULL },
	{ "spec: an unknown field is skipped", { TEXT(PROTO_F_ARG, "a"), TEXT(999, "\0") }, NULL },
	{ "spec: nothing to run", { TEXT(PROTO_F_TAG, "x") }, "either" },
	{ "spec: arguments and a script", { TEXT(PROTO_F_ARG, "a"), TEXT(PROTO_F_SCRIPT, "b") }, "either" },
	{ "spec: a script without a shell", { TEXT(PROTO_F_SCRIPT, "b") }, "needs a shell" },
	{ "spec: two scripts", { TEXT(PROTO_F_SCRIPT, "b"), TEXT(PROTO_F_SCRIPT, "b") }, "script is repeated" },
	{ "spec: an empty built-in", { TEXT(PROTO_F_BUILTIN, "") }, "built-in is empty" },
	{ "spec: both built-in and script",
	  { TEXT(PROTO_F_BUILTIN, "stat"), TEXT(PROTO_F_SCRIPT, "true"), TEXT(PROTO_F_SHELL, "sh") },
	  "both a built-in and a script" },
	{ "spec: an empty command", { TEXT(PROTO_F_ARG, "") }, "name is empty" },
	{ "spec: an argument with a NUL", { TEXT(PROTO_F_ARG, "a\0") }, "argument holds a NUL" },
	{ "spec: a script with a NUL", { TEXT(PROTO_F_SCRIPT, "a\0") }, "NUL" },
	{ "spec: a directory with a NUL", { TEXT(PROTO_F_CWD, "/\0x") }, "NUL" },
	{ "spec: an empty directory", { TEXT(PROTO_F_CWD, "") }, "cwd is empty" },
	{ "spec: a variable without a value", { TEXT(PROTO_F_ENV, "A") }, "NAME=VALUE" },
	{ "spec: a variable without a name", { TEXT(PROTO_F_ENV, "=A") }, "NAME=VALUE" },
	{ "spec: a variable with a NUL", { TEXT(PROTO_F_ENV, "A=\0") }, "variable holds a NUL" },
	{ "spec: a tag of 41 bytes", { TEXT(PROTO_F_TAG, "12345678901234567890123456789012345678901") }, "tag is too long" },
	{ "spec: an unknown way to keep", { NUMBER(PROTO_F_KEEP, 3) }, "keep" },
	{ "spec: too large a head", { NUMBER(PROTO_F_HEAD, PROTO_KEEP_MAX + 1) }, "head" },
	{ "spec: too large a tail", { NUMBER(PROTO_F_TAIL, 1ull << 32) }, "tail" },
	{ "spec: an unknown flag", { NUMBER(PROTO_F_JOB_FLAGS, 4) }, "flags" },
	{ "spec: a timeout beyond reason", { NUMBER(PROTO_F_TIMEOUT_MS, UINT64_MAX) }, "timeout" },
	{ "spec: a number of three bytes", { TEXT(PROTO_F_TIMEOUT_MS, "abc") }, "timeout" },
	/* clang-format on */
};

static size_t build_spec(const struct spec_row *row, uint8_t *bytes, size_t size)
{
	struct proto_writer w = { bytes, size, 0, false };

	for (size_t i = 0; i < 6 && row->fields[i].tag; i++) {
		const struct spec_field *f = &row->fields[i];
		if (f->text)
			proto_put(&w, f->tag, f->text, f->len);
		else
			proto_put_u64(&w, f->tag, f->number);
	}
	assert_false(w.failed);
	return w.used;
}

static void spec_test(void **state)
{
	const struct spec_row *row = *state;
	uint8_t bytes[512];
	struct proto_spec spec;
	const char *why = NULL;

	int rc = proto_spec_decode(bytes, build_spec(row, bytes, sizeof(bytes)), &spec, &why);
	assert_int_equal(rc, row->why ? -1 : 0);
	if (!row->why)
		assert_null(why);
	else
		assert_non_null(strstr(why, row->why));
}

static void spec_sums_test(void **state)
{
	uint8_t bytes[256];
	struct proto_writer w = { bytes, sizeof(bytes), 0, false };
	struct proto_spec spec;
	const char *why;

	(void)state;
	proto_put_text(&w, PROTO_F_ARG, "abc");
	proto_put_text(&w, PROTO_F_ENV, "A=1");
	proto_put_text(&w, PROTO_F_ARG, "");
	proto_put_text(&w, PROTO_F_TAG, "tag");
	proto_put_u64(&w, PROTO_F_TIMEOUT_MS, 5);
	assert_int_equal(proto_spec_decode(bytes, w.used, &spec, &why), 0);
	assert_int_equal(spec.arg_count, 2);
	assert_int_equal(spec.arg_bytes, 5);
	assert_int_equal(spec.env_count, 1);
	assert_int_equal(spec.env_bytes, 4);
	assert_int_equal(spec.tag.len, 3);
	assert_memory_equal(spec.tag.at, "tag", 3);
	assert_int_equal(spec.timeout_ms, 5);
	assert_null(spec.script.at);
}

static void reasons_test(void **state)
{
	(void)state;
	for (unsigned i = 0; i < PROTO_REASON_COUNT_; i++)
		for (unsigned k = 0; k < i; k++)
			assert_string_not_equal(proto_reason_name(i), proto_reason_name(k));
	assert_string_equal(proto_reason_name(PROTO_START_FAILED), "start_failed");
	assert_null(proto_reason_name(PROTO_REASON_COUNT_));
}

int main(void)
{
	struct rows r = { 0 };

	ROWS(&r, parse_test, parses);
	rows_one(&r, "header: what is written is parsed", header_test);
	ROWS(&r, list_test, lists);
	rows_one(&r, "find: the first field of a tag, and an integer only", find_test);
	rows_one(&r, "writer: what does not fit ends the list", writer_test);
	ROWS(&r, exit_test, exits);
	ROWS(&r, raw_exit_test, raw_exits);
	ROWS(&r, chunk_test, chunks);
	ROWS(&r, raw_chunk_test, raw_chunks);
	ROWS(&r, spec_test, specs);
	rows_one(&r, "spec: counts and sums", spec_sums_test);
	rows_one(&r, "reasons have names of their own", reasons_test);
	return rows_run(&r, "protocol");
}
