/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "runtime/protocol/builtin.h"
#include "tests/unit/rows.h"

#define LEN(literal) (sizeof(literal) - 1)
#define TEXT(literal)                 \
	{                             \
		literal, LEN(literal) \
	}

static void assert_text(struct proto_text got, struct proto_text want)
{
	assert_int_equal(got.at == NULL, want.at == NULL);
	assert_int_equal(got.len, want.len);
	if (want.len > 0)
		assert_memory_equal(got.at, want.at, want.len);
}

/* The value of the one field that was written. */
static struct proto_field only_field(const struct proto_writer *w, uint16_t tag)
{
	struct proto_cursor c = { w->out, w->used };
	struct proto_field f, none;

	assert_false(w->failed);
	assert_int_equal(proto_next(&c, &f), 1);
	assert_int_equal(f.tag, tag);
	assert_int_equal(proto_next(&c, &none), 0);
	return f;
}

/* ---- entries ---- */

static const struct entry_row {
	const char *name;
	struct builtin_entry entry;
} entries[] = {
	{ "entry: nothing", { .sys = 0 } },
	{ "entry: a file",
	  { .path = TEXT("/a b\n\xff"),
	    .type = BUILTIN_FILE,
	    .mode = 07777,
	    .size = INT64_MAX,
	    .mtime_ns = 1,
	    .ctime_ns = INT64_MAX,
	    .inode = UINT64_MAX } },
	{ "entry: a time before 1970", { .path = TEXT("x"), .mtime_ns = -1, .ctime_ns = INT64_MIN } },
	{ "entry: a symlink", { .path = TEXT("x"), .type = BUILTIN_SYMLINK, .target = TEXT("../y") } },
	{ "entry: a port", { .pid = INT32_MAX, .size = 65535 } },
	{ "entry: a failure", { .path = TEXT("x"), .sys = ENOENT, .detail = TEXT("no such file") } },
	{ "entry: empty texts are there", { .path = TEXT(""), .target = TEXT(""), .detail = TEXT("") } },
};

static void entry_test(void **state)
{
	const struct entry_row *row = *state;
	uint8_t bytes[BUILTIN_ENTRY_MAX];
	struct proto_writer w = { bytes, sizeof(bytes), 0, false };
	struct builtin_entry got, want = row->entry;

	builtin_entry_encode(&w, &want);
	struct proto_field f = only_field(&w, PROTO_F_ENTRY);
	assert_int_equal(builtin_entry_decode(f.value, f.len, &got), 0);
	assert_text(got.path, want.path);
	assert_text(got.target, want.target);
	assert_text(got.detail, want.detail);
	assert_true(got.type == want.type && got.mode == want.mode && got.size == want.size);
	assert_true(got.mtime_ns == want.mtime_ns && got.ctime_ns == want.ctime_ns);
	assert_true(got.inode == want.inode && got.pid == want.pid && got.sys == want.sys);
}

static const struct number_row {
	const char *name;
	uint16_t tag;
	uint64_t value;
	int want;
} entry_numbers[] = {
	/* clang-format off */
	{ "entry: the last type",            PROTO_F_TYPE,     BUILTIN_BLOCK,       0 },
	{ "entry: a type that is none",      PROTO_F_TYPE,     BUILTIN_TYPE_COUNT_, -1 },
	{ "entry: all mode bits",            PROTO_F_MODE,     07777,               0 },
	{ "entry: more than mode bits",      PROTO_F_MODE,     010000,              -1 },
	{ "entry: a negative size",          PROTO_F_SIZE,     UINT64_MAX,          -1 },
	{ "entry: the greatest inode",       PROTO_F_INODE,    UINT64_MAX,          0 },
	{ "entry: a pid beyond a pid_t",     PROTO_F_PID,      1ull << 31,          -1 },
	{ "entry: an errno beyond the last", PROTO_F_ERRNO,    4096,                -1 },
	{ "entry: a field that is unknown",  0x7fff,           UINT64_MAX,          0 },
	/* clang-format on */
}, done_numbers[] = {
	/* clang-format off */
	{ "done: truncated",                 PROTO_F_TRUNCATED, 1,          0 },
	{ "done: truncated twice",           PROTO_F_TRUNCATED, 2,          -1 },
	{ "done: a negative count",          PROTO_F_ENTRIES,   UINT64_MAX, -1 },
	{ "done: an errno beyond the last",  PROTO_F_ERRNO,     4096,       -1 },
	{ "done: a field that is unknown",   0x7fff,            UINT64_MAX, 0 },
	/* clang-format on */
};

static struct proto_writer one_number(const struct number_row *row, uint8_t *bytes, size_t size)
{
	struct proto_writer w = { bytes, size, 0, false };

	proto_put_u64(&w, row->tag, row->value);
	return w;
}

static void entry_number_test(void **state)
{
	const struct number_row *row = *state;
	uint8_t bytes[64];
	struct proto_writer w = one_number(row, bytes, sizeof(bytes));
	struct builtin_entry entry;

	assert_int_equal(builtin_entry_decode(bytes, w.used, &entry), row->want);
}

static void done_number_test(void **state)
{
	const struct number_row *row = *state;
	uint8_t bytes[64];
	struct proto_writer w = one_number(row, bytes, sizeof(bytes));
	struct builtin_done done;

	assert_int_equal(builtin_done_decode(bytes, w.used, &done), row->want);
}

static const struct text_row {
	const char *name;
	uint16_t tag;
	size_t len;
	char last;
	int want;
} texts[] = {
	{ "entry: the longest path", PROTO_F_PATH, PATH_MAX, 'x', 0 },
	{ "entry: a longer path", PROTO_F_PATH, PATH_MAX + 1, 'x', -1 },
	{ "entry: a path with a NUL", PROTO_F_PATH, 3, '\0', -1 },
	{ "entry: the longest target", PROTO_F_TARGET, PATH_MAX, 'x', 0 },
	{ "entry: a target with a NUL", PROTO_F_TARGET, 1, '\0', -1 },
	{ "entry: the longest detail", PROTO_F_DETAIL, PROTO_DETAIL_MAX, 'x', 0 },
	{ "entry: a longer detail", PROTO_F_DETAIL, PROTO_DETAIL_MAX + 1, 'x', -1 },
};

static void text_test(void **state)
{
	const struct text_row *row = *state;
	char text[PATH_MAX + 1];
	uint8_t bytes[BUILTIN_ENTRY_MAX];
	struct proto_writer w = { bytes, sizeof(bytes), 0, false };
	struct builtin_entry entry;

	memset(text, 'a', sizeof(text));
	text[row->len - 1] = row->last;
	proto_put(&w, row->tag, text, row->len);
	assert_int_equal(builtin_entry_decode(bytes, w.used, &entry), row->want);
}

static const struct raw_row {
	const char *name, *bytes;
	size_t len;
} broken[] = {
	{ "entry: half a header", "\0\100\0", 3 },
	{ "entry: a value that is cut", "\0\100\0\0\0\2a", 7 },
	{ "entry: a path twice", "\0\100\0\0\0\1a\0\100\0\0\0\1a", 14 },
	{ "entry: a number of four bytes", "\0\303\0\0\0\4\0\0\0\1", 10 },
};

static void broken_test(void **state)
{
	const struct raw_row *row = *state;
	struct builtin_entry entry = { .pid = 7 };

	assert_int_equal(builtin_entry_decode((const uint8_t *)row->bytes, row->len, &entry), -1);
	assert_int_equal(entry.pid, 7);
}

static void longest_test(void **state)
{
	static char path[PATH_MAX], target[PATH_MAX], detail[PROTO_DETAIL_MAX];
	uint8_t bytes[PROTO_FIELD_HEADER + BUILTIN_ENTRY_MAX];
	struct proto_writer w = { bytes, sizeof(bytes), 0, false };
	struct builtin_entry entry = { { path, sizeof(path) },
				       BUILTIN_BLOCK,
				       07777,
				       INT64_MAX,
				       -1,
				       -1,
				       UINT64_MAX,
				       INT32_MAX,
				       { target, sizeof(target) },
				       4095,
				       { detail, sizeof(detail) } };

	(void)state;
	memset(path, 'p', sizeof(path));
	memset(target, 't', sizeof(target));
	memset(detail, 'd', sizeof(detail));
	builtin_entry_encode(&w, &entry);
	assert_false(w.failed);
}

static void no_room_test(void **state)
{
	uint8_t bytes[40];
	struct proto_writer w = { bytes, sizeof(bytes), 0, false };
	struct builtin_entry entry = { .path = TEXT("abc"), .size = 1, .mode = 1 };

	(void)state;
	proto_put_u64(&w, PROTO_F_BYTES, 1);
	builtin_entry_encode(&w, &entry);
	assert_true(w.failed);
	assert_int_equal(w.used, 14); /* nothing of it stands there */
}

/* ---- the end ---- */

static const struct done_row {
	const char *name;
	struct builtin_done done;
} dones[] = {
	{ "done: nothing", { .sys = 0 } },
	{ "done: all", { INT64_MAX, INT64_MAX, INT64_MAX, true, ENOSPC, TEXT("disk full") } },
};

static void done_test(void **state)
{
	const struct done_row *row = *state;
	uint8_t bytes[512];
	struct proto_writer w = { bytes, sizeof(bytes), 0, false };
	struct builtin_done got;

	builtin_done_encode(&w, &row->done);
	struct proto_field f = only_field(&w, PROTO_F_DONE);
	assert_int_equal(builtin_done_decode(f.value, f.len, &got), 0);
	assert_true(got.entries == row->done.entries && got.bytes == row->done.bytes);
	assert_true(got.refused == row->done.refused && got.truncated == row->done.truncated);
	assert_int_equal(got.sys, row->done.sys);
	assert_text(got.detail, row->done.detail);
}

/* ---- names and tags ---- */

static void types_test(void **state)
{
	(void)state;
	for (unsigned i = 0; i < BUILTIN_TYPE_COUNT_; i++)
		for (unsigned k = 0; k < i; k++)
			assert_string_not_equal(builtin_type_name(i), builtin_type_name(k));
	assert_string_equal(builtin_type_name(BUILTIN_NONE), "");
	assert_string_equal(builtin_type_name(BUILTIN_BLOCK), "block");
	assert_null(builtin_type_name(BUILTIN_TYPE_COUNT_));
}

static const struct tag_row {
	const char *name;
	struct builtin_entry entry;
	const char *want;
} tags[] = {
	{ "tag: of nothing", { .sys = 0 }, "0-0-0-0" },
	{ "tag: each part stands for itself",
	  { .inode = 1, .size = 16, .mtime_ns = 3, .ctime_ns = 4 },
	  "1-10-3-4" },
	{ "tag: the longest fits",
	  { .inode = UINT64_MAX, .size = UINT64_MAX, .mtime_ns = -1, .ctime_ns = -1 },
	  "ffffffffffffffff-ffffffffffffffff-ffffffffffffffff-ffffffffffffffff" },
};

static void tag_test(void **state)
{
	const struct tag_row *row = *state;
	char tag[BUILTIN_TAG_SIZE];

	builtin_tag(&row->entry, tag);
	assert_string_equal(tag, row->want);
}

int main(void)
{
	struct rows r = { 0 };

	ROWS(&r, entry_test, entries);
	ROWS(&r, entry_number_test, entry_numbers);
	ROWS(&r, text_test, texts);
	ROWS(&r, broken_test, broken);
	rows_one(&r, "entry: the longest fits its maximum", longest_test);
	rows_one(&r, "entry: one that does not fit leaves nothing", no_room_test);
	ROWS(&r, done_test, dones);
	ROWS(&r, done_number_test, done_numbers);
	rows_one(&r, "types have names of their own", types_test);
	ROWS(&r, tag_test, tags);
	return rows_run(&r, "builtin");
}
