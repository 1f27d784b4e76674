/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "api/archive_format.h"
#include "api/file_json.h"
#include "api/file_query.h"
#include "api/http_etag.h"
#include "api/http_range.h"
#include "tests/unit/rows.h"

/* ---- ranges ---- */

struct range_row {
	const char *name, *header;
	uint64_t size;
	int want; /* 0: left out of account, 1: bytes, -1: none */
	uint64_t first, len;
};
static const struct range_row ranges[] = {
	{ "range: none", NULL, 10, 0, 0, 0 },
	{ "range: the first byte", "bytes=0-0", 10, 1, 0, 1 },
	{ "range: all", "bytes=0-", 10, 1, 0, 10 },
	{ "range: the middle", "bytes=3-5", 10, 1, 3, 3 },
	{ "range: the last byte", "bytes=9-9", 10, 1, 9, 1 },
	{ "range: beyond the end is cut", "bytes=9-99", 10, 1, 9, 1 },
	{ "range: behind the end", "bytes=10-", 10, -1, 0, 0 },
	{ "range: the last bytes", "bytes=-4", 10, 1, 6, 4 },
	{ "range: more last bytes than there are", "bytes=-40", 10, 1, 0, 10 },
	{ "range: no last bytes", "bytes=-0", 10, -1, 0, 0 },
	{ "range: of an empty file", "bytes=0-0", 0, -1, 0, 0 },
	{ "range: last bytes of an empty file", "bytes=-1", 0, -1, 0, 0 },
	{ "range: any case, blanks", "Bytes= 1-2 ", 10, 1, 1, 2 },
	{ "range: numbers beyond all", "bytes=0-99999999999999999999999", 10, 1, 0, 10 },
	{ "range: a start beyond all", "bytes=99999999999999999999999-", 10, -1, 0, 0 },
	{ "range: backwards", "bytes=5-3", 10, 0, 0, 0 },
	{ "range: several", "bytes=0-1,3-4", 10, 0, 0, 0 },
	{ "range: another unit", "items=0-1", 10, 0, 0, 0 },
	{ "range: no numbers", "bytes=-", 10, 0, 0, 0 },
	{ "range: no dash", "bytes=5", 10, 0, 0, 0 },
	{ "range: a sign", "bytes=+1-2", 10, 0, 0, 0 },
	{ "range: nothing", "bytes=", 10, 0, 0, 0 },
};

static void range_test(void **state)
{
	const struct range_row *row = *state;
	struct http_range range;
	uint64_t first = 0, len = 0;

	assert_int_equal(http_range_parse(row->header, &range), row->want != 0);
	if (!row->want)
		return;
	assert_int_equal(http_range_apply(&range, row->size, &first, &len), row->want > 0);
	assert_int_equal(first, row->first);
	assert_int_equal(len, row->len);
}

/* ---- tags ---- */

struct match_row {
	const char *name, *header;
	bool weak;
	int want; /* 1, 0, -1: refused */
};
static const struct match_row matches[] = {
	{ "tags: the same", "\"a-b\"", false, 1 },
	{ "tags: another", "\"a\"", false, 0 },
	{ "tags: one of several", "\"x\", \"a-b\" ,\"y\"", false, 1 },
	{ "tags: a comma within one", "\"x,\\\", \"a-b\"", false, 1 },
	{ "tags: any", " * ", false, 1 },
	{ "tags: a weak one is not the same", "W/\"a-b\"", false, 0 },
	{ "tags: a weak one is as good", "W/\"a-b\"", true, 1 },
	{ "tags: a part", "\"a-b", false, -1 },
	{ "tags: without quotes", "a-b", false, -1 },
	{ "tags: a lower-case w", "w/\"a-b\"", true, -1 },
	{ "tags: a blank within one", "\"a b\"", false, -1 },
	{ "tags: something between them", "\"a\" \"b\"", false, -1 },
	{ "tags: nothing", "", false, -1 },
};

static void match_test(void **state)
{
	const struct match_row *row = *state;
	struct err e;
	bool same = false;
	int r = http_etag_match("If-Match", row->header, "a-b", row->weak, &same, &e);

	assert_int_equal(r, row->want < 0 ? -ERR_INVALID : 0);
	if (row->want >= 0)
		assert_int_equal(same, row->want);
	else
		assert_string_equal(e.field, "If-Match");
}

struct want_row {
	const char *name, *if_match, *if_none_match, *want; /* NULL: refused with */
	enum err_code code;
};
static const struct want_row wants[] = {
	{ "want: anything", NULL, NULL, "", 0 },
	{ "want: what is there", "*", NULL, "old", 0 },
	{ "want: nothing there", NULL, "*", "new", 0 },
	{ "want: a version", "\"a-b\"", NULL, "a-b", 0 },
	{ "want: a version named as a word is none of ours", "\"new\"", NULL, NULL, ERR_PRECONDITION },
	{ "want: a weak version", "W/\"a-b\"", NULL, NULL, ERR_PRECONDITION },
	{ "want: an empty version", "\"\"", NULL, NULL, ERR_PRECONDITION },
	{ "want: a version that is too long",
	  "\"0123456789012345678901234567890123456789012345678901234567890123456789012\"", NULL, NULL,
	  ERR_PRECONDITION },
	{ "want: several versions", "\"a\", \"b\"", NULL, NULL, ERR_INVALID },
	{ "want: both headers", "*", "*", NULL, ERR_INVALID },
	{ "want: not this version", NULL, "\"a\"", NULL, ERR_INVALID },
	{ "want: no tag", "a", NULL, NULL, ERR_INVALID },
};

static void want_test(void **state)
{
	const struct want_row *row = *state;
	char got[HTTP_ETAG_WANT_SIZE];
	struct err e;

	assert_int_equal(http_etag_want(row->if_match, row->if_none_match, got, &e), -(int)row->code);
	if (row->want)
		assert_string_equal(got, row->want);
}

/* ---- kinds of archives ---- */

struct format_row {
	const char *name, *format, *header, *out, *in; /* NULL: refused */
};
static const struct format_row formats[] = {
	{ "archive: by default", NULL, NULL, "tar.gz", "" },
	{ "archive: by name", "tar.zst", "application/x-tar", "tar.zst", "tar.zst" },
	{ "archive: gzip", NULL, "application/gzip", "tar.gz", "tar.gz" },
	{ "archive: an older name", NULL, "application/x-gzip", "tar.gz", "tar.gz" },
	{ "archive: zstd with parameters", NULL, "Application/zstd; q=1", "tar.zst", "tar.zst" },
	{ "archive: tar", NULL, "application/x-tar", "tar", "tar" },
	{ "archive: the first that is ours", NULL, "text/html,application/x-tar,application/gzip", "tar",
	  "" },
	{ "archive: any", NULL, "*/*", "tar.gz", "" },
	{ "archive: a form", NULL, "application/x-www-form-urlencoded", "tar.gz", "" },
	{ "archive: another name", "zip", NULL, NULL, NULL },
};

static void format_test(void **state)
{
	const struct format_row *row = *state;
	const struct archive_format *out = NULL;
	const char *in = NULL;
	struct err e;

	assert_int_equal(archive_format_out(row->format, row->header, &out, &e), row->out ? 0 : -ERR_INVALID);
	assert_int_equal(archive_format_in(row->format, row->header, &in, &e), row->in ? 0 : -ERR_INVALID);
	if (row->out)
		assert_string_equal(out->name, row->out);
	if (row->in)
		assert_string_equal(in, row->in);
}

/* ---- queries ---- */

struct query_row {
	const char *name, *target, *path, *mode; /* path NULL: refused */
	const char *field;
};
static const struct query_row queries[] = {
	{ "query: a path", "/x?path=a%20b", "a b", "", NULL },
	{ "query: exact bytes", "/x?path_b64=L_8K", NULL, NULL, "path_b64" },
	{ "query: bytes that are no UTF-8, and a newline", "/x?path_b64=L/8K", "/\xff\n", "", NULL },
	{ "query: a NUL in them", "/x?path_b64=YQBi", NULL, NULL, "path_b64" },
	{ "query: no path", "/x", NULL, NULL, "path" },
	{ "query: an empty path", "/x?path=", NULL, NULL, "path" },
	{ "query: both", "/x?path=a&path_b64=YQ==", NULL, NULL, "path" },
	{ "query: a mode", "/x?path=a&mode=0755", "a", "0755", NULL },
	{ "query: a set-id mode", "/x?path=a&mode=4755", "a", NULL, "mode" },
	{ "query: a mode of letters", "/x?path=a&mode=u%2Bx", "a", NULL, "mode" },
	{ "query: an empty mode", "/x?path=a&mode=", "a", NULL, "mode" },
	{ "query: a long mode", "/x?path=a&mode=00644", "a", NULL, "mode" },
};

static void query_test(void **state)
{
	const struct query_row *row = *state;
	struct request rq = { .client_fd = -1 };
	_cleanup_free_ char *path = NULL;
	const char *mode = NULL;
	struct err e = { 0 };

	assert_int_equal(request_set_target(&rq, row->target, &e), 0);
	if (file_query_path(&rq, NULL, &path, &e) == 0 && file_query_mode(&rq, &mode, &e) == 0)
		assert_null(row->field);
	else
		assert_string_equal(e.field, row->field);
	if (row->path)
		assert_string_equal(path, row->path);
	if (row->mode)
		assert_string_equal(mode, row->mode);
	request_clear(&rq);
}

/* ---- entries ---- */

struct entry_row {
	const char *name;
	struct file_entry entry;
	const char *want;
};
#define PATH(text) .path = (text), .path_len = sizeof(text) - 1
static const struct entry_row entries[] = {
	{ "entry: a file",
	  { PATH("/a"), .type = "file", .mode = 0644, .size = 5, .mtime_ms = 1500 },
	  "{\"path\":\"/"
	  "a\",\"type\":\"file\",\"size\":5,\"mtime\":\"1970-01-01T00:00:01.500Z\",\"mode\":\"0644\","
	  "\"error\":null}" },
	{ "entry: a symlink with set-id bits",
	  { PATH("/l"), .type = "symlink", .mode = 04777, .target = "x\"y", .target_len = 3 },
	  "{\"path\":\"/"
	  "l\",\"type\":\"symlink\",\"size\":0,\"mtime\":\"1970-01-01T00:00:00.000Z\",\"mode\":\"4777\","
	  "\"target\":\"x\\\"y\",\"error\":null}" },
	{ "entry: a name that is no UTF-8, and a newline",
	  { PATH("/\xff\n"), .type = "dir", .mode = 0755 },
	  "{\"path\":\"/\xef\xbf\xbd\\n\",\"path_b64\":\"L/8K\",\"type\":\"dir\",\"size\":0,"
	  "\"mtime\":\"1970-01-01T00:00:00.000Z\",\"mode\":\"0755\",\"error\":null}" },
	{ "entry: an error",
	  { PATH("/a"), .type = "", .err = { .code = ERR_NOT_FOUND, .msg = "/a: gone" } },
	  "{\"path\":\"/a\",\"type\":null,\"size\":null,\"mtime\":null,\"mode\":null,\"error\":\"not_found: "
	  "/a: gone\"}" },
};

static void entry_test(void **state)
{
	const struct entry_row *row = *state;
	_cleanup_buf_ struct buf out = BUF_INIT(4096);
	struct err e;

	assert_int_equal(file_json_entry(&out, &row->entry, true, &e), 0);
	assert_string_equal(out.data, row->want);
}

static void full_test(void **state)
{
	(void)state;
	_cleanup_buf_ struct buf out = BUF_INIT(40);
	struct err e;

	assert_int_equal(file_json_entry(&out, &entries[0].entry, true, &e), -ERR_TOO_LARGE);
}

static void body_test(void **state)
{
	(void)state;
	static const char text[] = "{\"files\":[{\"path\":\"a\",\"content_b64\":\"AAE=\"},{\"path_b64\":\"/"
				   "w==\",\"content_b64\":\"\"}]}";
	_cleanup_(file_json_clear) struct file_body body = { 0 };
	_cleanup_free_ char *bytes = NULL;
	size_t len = 0;
	struct err e;

	assert_int_equal(file_json_decode(text, strlen(text), FILE_JSON_UPLOAD, &body, &e), 0);
	assert_int_equal(body.count, 2);
	assert_string_equal(body.paths[0], "a");
	assert_string_equal(body.paths[1], "\xff");
	assert_int_equal(file_json_content(&body, 0, &bytes, &len, &e), 0);
	assert_int_equal(len, 2);
	assert_memory_equal(bytes, "\0\1", 2);
}

int main(void)
{
	struct rows r = { 0 };
	ROWS(&r, range_test, ranges);
	ROWS(&r, match_test, matches);
	ROWS(&r, want_test, wants);
	ROWS(&r, format_test, formats);
	ROWS(&r, query_test, queries);
	ROWS(&r, entry_test, entries);
	rows_one(&r, "entry: what does not fit is told", full_test);
	rows_one(&r, "upload: paths and contents", body_test);
	return rows_run(&r, "api_files");
}
