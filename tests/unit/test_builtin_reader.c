/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "manager/builtin_reader.h"
#include "tests/unit/rows.h"

static size_t put_entry(uint8_t *out, size_t size, const char *path, uint64_t bytes)
{
	struct proto_writer w = { .out = out, .size = size };
	const struct builtin_entry entry = { .path = { path, strlen(path) },
					     .type = BUILTIN_FILE,
					     .size = bytes };
	builtin_entry_encode(&w, &entry);
	assert_false(w.failed);
	return w.used;
}

static size_t put_done(uint8_t *out, size_t size)
{
	struct proto_writer w = { .out = out, .size = size };
	const struct builtin_done done = { .entries = 2, .truncated = true };
	builtin_done_encode(&w, &done);
	assert_false(w.failed);
	return w.used;
}

/* Two entries, a field that nobody knows, and the end. */
static size_t whole(uint8_t *out, size_t size)
{
	size_t n = put_entry(out, size, "/a", 1);
	struct proto_writer w = { .out = out + n, .size = size - n };
	proto_put(&w, 0x7fff, "newer", 5);
	n += w.used;
	n += put_entry(out + n, size - n, "/b\n", 2);
	return n + put_done(out + n, size - n);
}

struct cut_row {
	const char *name;
	size_t piece;
};
static const struct cut_row cuts[] = {
	{ "records: in one piece", 100000 },
	{ "records: byte by byte", 1 },
	{ "records: cut in the midst of headers", 3 },
	{ "records: cut behind headers", 6 },
	{ "records: cut anywhere", 17 },
};

static void cut_test(void **state)
{
	const struct cut_row *row = *state;
	struct builtin_reader r = BUILTIN_READER_INIT;
	struct builtin_record record;
	uint8_t bytes[4096];
	struct err e;
	size_t len = whole(bytes, sizeof(bytes)), seen = 0;

	for (size_t at = 0; at < len; at += row->piece) {
		const char *p = (const char *)bytes + at;
		size_t left = MIN(row->piece, len - at);
		while (builtin_reader_take(&r, &p, &left, &record, &e) == 1) {
			static const char *const paths[] = { "/a", "/b\n" };
			assert_int_equal(record.is_done, seen == 2);
			if (seen < 2) {
				assert_int_equal(record.entry.path.len, strlen(paths[seen]));
				assert_memory_equal(record.entry.path.at, paths[seen], strlen(paths[seen]));
				assert_int_equal(record.entry.size, seen + 1);
			} else {
				assert_int_equal(record.done.entries, 2);
				assert_true(record.done.truncated);
			}
			seen++;
		}
		assert_int_equal(left, 0);
	}
	assert_int_equal(seen, 3);
	assert_true(builtin_reader_is_between(&r));
	builtin_reader_clear(&r);
}

struct bad_row {
	const char *name;
	const char *bytes;
	size_t len;
	bool after_done;
};
#define BYTES(text) text, sizeof(text) - 1
static const struct bad_row bads[] = {
	{ "broken: a record that is longer than any", BYTES("\x00\xc0\x00\x01\x00\x00"), false },
	{ "broken: a length of 4 GiB", BYTES("\x00\xc0\xff\xff\xff\xff"), false },
	{ "broken: an entry that is no list of fields", BYTES("\x00\xc0\x00\x00\x00\x01x"), false },
	{ "broken: an end that is no list of fields", BYTES("\x00\xc1\x00\x00\x00\x01x"), false },
	{ "broken: a byte behind the end", BYTES("x"), true },
};

static void bad_test(void **state)
{
	const struct bad_row *row = *state;
	struct builtin_reader r = BUILTIN_READER_INIT;
	struct builtin_record record;
	uint8_t bytes[512];
	struct err e = { 0 };
	size_t len = row->after_done ? put_done(bytes, sizeof(bytes)) : 0;

	memcpy(bytes + len, row->bytes, row->len);
	len += row->len;
	const char *p = (const char *)bytes;
	if (row->after_done)
		assert_int_equal(builtin_reader_take(&r, &p, &len, &record, &e), 1);
	assert_int_equal(builtin_reader_take(&r, &p, &len, &record, &e), -ERR_SANDBOX);
	builtin_reader_clear(&r);
}

static void half_test(void **state)
{
	(void)state;
	struct builtin_reader r = BUILTIN_READER_INIT;
	struct builtin_record record;
	uint8_t bytes[512];
	struct err e;
	size_t len = put_entry(bytes, sizeof(bytes), "/a", 1) - 1;
	const char *p = (const char *)bytes;

	assert_true(builtin_reader_is_between(&r));
	assert_int_equal(builtin_reader_take(&r, &p, &len, &record, &e), 0);
	assert_false(builtin_reader_is_between(&r));
	builtin_reader_clear(&r);
}

int main(void)
{
	struct rows r = { 0 };
	ROWS(&r, cut_test, cuts);
	ROWS(&r, bad_test, bads);
	rows_one(&r, "records: half of one is not the end", half_test);
	return rows_run(&r, "builtin_reader");
}
