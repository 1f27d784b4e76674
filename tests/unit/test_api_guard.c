/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "api/auth.h"
#include "api/guard.h"
#include "tests/unit/rows.h"

/* "Name: value" lines into a request; the texts live as long as the row. */
static void add_lines(struct request *rq, char storage[1024], const char *lines)
{
	struct err e;
	char *rest = storage;
	snprintf(storage, 1024, "%s", lines);
	for (char *line; (line = strsep(&rest, "\n"));) {
		char *value = line;
		char *name = strsep(&value, ":");
		if (!*name && !value)
			continue;
		if (value && *value == ' ')
			value++;
		assert_int_equal(request_add_header(rq, name, value, &e), 0);
	}
}

struct framing_row {
	const char *name, *lines;
	bool http10;
	int want;
	int64_t length;
};

static const struct framing_row framings[] = {
	{ "framing: no headers, no body", "", false, 0, 0 },
	{ "framing: a length", "Content-Length: 5", false, 0, 5 },
	{ "framing: a length of 0", "Content-Length: 0", false, 0, 0 },
	{ "framing: names have any case", "cOnTeNt-lEnGtH: 5", false, 0, 5 },
	{ "framing: chunked", "Transfer-Encoding: chunked", false, 0, GUARD_CHUNKED },
	{ "framing: chunked in any case", "Transfer-Encoding: Chunked", false, 0, GUARD_CHUNKED },
	{ "framing: two lengths", "Content-Length: 5\ncontent-length: 5", false, ERR_INVALID, 0 },
	{ "framing: a list of lengths", "Content-Length: 5, 5", false, ERR_INVALID, 0 },
	{ "framing: a signed length", "Content-Length: +5", false, ERR_INVALID, 0 },
	{ "framing: a negative length", "Content-Length: -5", false, ERR_INVALID, 0 },
	{ "framing: an empty length", "Content-Length: ", false, ERR_INVALID, 0 },
	{ "framing: a length of 2^64", "Content-Length: 18446744073709551616", false, ERR_INVALID, 0 },
	{ "framing: a hexadecimal length", "Content-Length: 0x5", false, ERR_INVALID, 0 },
	{ "framing: a length and chunked", "Content-Length: 5\nTransfer-Encoding: chunked", false,
	  ERR_INVALID, 0 },
	{ "framing: chunked and a length", "Transfer-Encoding: chunked\nContent-Length: 5", false,
	  ERR_INVALID, 0 },
	{ "framing: two codings", "Transfer-Encoding: chunked\nTransfer-Encoding: chunked", false,
	  ERR_INVALID, 0 },
	{ "framing: another coding", "Transfer-Encoding: gzip", false, ERR_UNSUPPORTED, 0 },
	{ "framing: a list of codings", "Transfer-Encoding: chunked, identity", false, ERR_UNSUPPORTED, 0 },
	{ "framing: chunked in HTTP/1.0", "Transfer-Encoding: chunked", true, ERR_INVALID, 0 },
	{ "framing: a blank behind a name", "Content-Length : 5", false, ERR_INVALID, 0 },
	{ "framing: a tab behind a name", "X\t: 5", false, ERR_INVALID, 0 },
	{ "framing: no name", ": 5", false, ERR_INVALID, 0 },
	{ "framing: two Hosts", "Host: a\nHost: a", false, ERR_INVALID, 0 },
	{ "framing: two tokens", "Authorization: a\nAuthorization: a", false, ERR_INVALID, 0 },
	{ "framing: two types", "Content-Type: a\nContent-Type: a", false, ERR_INVALID, 0 },
	{ "framing: two of what may come twice", "Accept: a\nAccept: b", false, 0, 0 },
};

static void framing_test(void **state)
{
	const struct framing_row *row = *state;
	struct request rq = { .client_fd = -1, .http10 = row->http10 };
	struct err e = { 0 };
	char storage[1024];
	int64_t length = -1;
	add_lines(&rq, storage, row->lines);
	assert_int_equal(guard_framing(&rq, &length, &e), -row->want);
	assert_int_equal(length, row->want ? -1 : row->length);
}

struct origin_row {
	const char *name, *lines;
	bool anywhere, http10;
	int want;
};

static const struct origin_row origins[] = {
	{ "host: the listen address", "Host: 10.0.0.5", false, false, 0 },
	{ "host: with its port", "Host: 10.0.0.5:8080", false, false, 0 },
	{ "host: localhost", "Host: LocalHost:1", false, false, 0 },
	{ "host: loopback", "Host: 127.0.0.1", false, false, 0 },
	{ "host: IPv6 loopback", "Host: [::1]:80", false, false, 0 },
	{ "host: an allowed name with any port", "Host: box.example:99", false, false, 0 },
	{ "host: an allowed name with its port", "Host: gate:443", false, false, 0 },
	{ "host: the same with another port", "Host: gate:444", false, false, ERR_FORBIDDEN },
	{ "host: missing", "", false, false, ERR_INVALID },
	{ "host: missing in HTTP/1.0", "", false, true, 0 },
	{ "host: wrong in HTTP/1.0", "Host: evil", false, true, ERR_FORBIDDEN },
	{ "host: a name that is not ours", "Host: evil.example", false, false, ERR_FORBIDDEN },
	{ "host: another address", "Host: 10.0.0.6", false, false, ERR_FORBIDDEN },
	{ "host: another address when listening anywhere", "Host: 10.0.0.6:80", true, false, 0 },
	{ "host: another IPv6 address when listening anywhere", "Host: [fd00::1]", true, false, 0 },
	{ "host: a name when listening anywhere", "Host: evil.example", true, false, ERR_FORBIDDEN },
	{ "host: a name that looks like an address", "Host: 10.0.0.6.evil.example", true, false,
	  ERR_FORBIDDEN },
	{ "host: an allowed name and more", "Host: box.example.evil", false, false, ERR_FORBIDDEN },
	{ "host: the start of an allowed name", "Host: box", false, false, ERR_FORBIDDEN },
	{ "host: empty", "Host: ", false, false, ERR_FORBIDDEN },
	{ "host: only a port", "Host: :80", false, false, ERR_FORBIDDEN },
	{ "host: a port that is none", "Host: localhost:80x", false, false, ERR_FORBIDDEN },
	{ "host: a bracket left open", "Host: [::1", false, false, ERR_FORBIDDEN },
	{ "host: something behind a bracket", "Host: [::1]evil", false, false, ERR_FORBIDDEN },
	{ "host: a user before it", "Host: x@localhost", false, false, ERR_FORBIDDEN },
	{ "origin: none of the list", "Host: localhost\nOrigin: http://localhost", false, false,
	  ERR_FORBIDDEN },
	{ "origin: null", "Host: localhost\nOrigin: null", false, false, ERR_FORBIDDEN },
	{ "origin: empty", "Host: localhost\nOrigin: ", false, false, ERR_FORBIDDEN },
	{ "origin: one of the list", "Host: localhost\nOrigin: https://ui.example", false, false, 0 },
	{ "origin: with a port more", "Host: localhost\nOrigin: https://ui.example:1", false, false,
	  ERR_FORBIDDEN },
};

static void origin_test(void **state)
{
	const struct origin_row *row = *state;
	struct guard_policy policy = { .listen_host = "10.0.0.5",
				       .listens_anywhere = row->anywhere,
				       .allowed_hosts = "box.example, gate:443",
				       .allowed_origins = "https://ui.example" };
	struct request rq = { .client_fd = -1, .http10 = row->http10 };
	struct err e = { 0 };
	char storage[1024];
	add_lines(&rq, storage, row->lines);
	assert_int_equal(guard_origin(&policy, &rq, &e), -row->want);
}

struct header_row {
	const char *name, *lines;
	int want;
};

static const struct header_row types[] = {
	{ "type: JSON", "Content-Type: application/json", 0 },
	{ "type: in any case", "Content-Type: Application/JSON", 0 },
	{ "type: with a charset", "Content-Type: application/json; charset=utf-8", 0 },
	{ "type: with a quoted charset", "Content-Type: application/json ;charset=\"UTF-8\"", 0 },
	{ "type: not compressed", "Content-Type: application/json\nContent-Encoding: identity", 0 },
	{ "type: missing", "", ERR_MEDIA_TYPE },
	{ "type: text", "Content-Type: text/plain", ERR_MEDIA_TYPE },
	{ "type: a longer one", "Content-Type: application/json-seq", ERR_MEDIA_TYPE },
	{ "type: two in one", "Content-Type: application/json, text/plain", ERR_MEDIA_TYPE },
	{ "type: another charset", "Content-Type: application/json; charset=utf-16", ERR_MEDIA_TYPE },
	{ "type: compressed", "Content-Type: application/json\nContent-Encoding: gzip", ERR_MEDIA_TYPE },
};

static void type_test(void **state)
{
	const struct header_row *row = *state;
	struct request rq = { .client_fd = -1 };
	struct err e = { 0 };
	char storage[1024];
	add_lines(&rq, storage, row->lines);
	assert_int_equal(guard_content_type(&rq, &e), -row->want);
}

static const struct header_row keys[] = {
	{ "key: none", "", 0 },
	{ "key: visible ASCII", "Idempotency-Key: a!~/5", 0 },
	{ "key: empty", "Idempotency-Key: ", ERR_INVALID },
	{ "key: a blank", "Idempotency-Key: a b", ERR_INVALID },
	{ "key: beyond ASCII", "Idempotency-Key: \xc3\xa9", ERR_INVALID },
};

static void key_test(void **state)
{
	const struct header_row *row = *state;
	struct request rq = { .client_fd = -1 };
	struct err e = { 0 };
	char storage[1024];
	const char *key = "untouched";
	add_lines(&rq, storage, row->lines);
	assert_int_equal(guard_idempotency_key(&rq, &key, &e), -row->want);
	if (row->want)
		assert_string_equal(key, "untouched");
	else
		assert_ptr_equal(key, request_header(&rq, "idempotency-key"));
}

static void key_length_test(void **state)
{
	(void)state;
	char value[202];
	struct request rq = { .client_fd = -1 };
	struct err e = { 0 };
	const char *key;
	memset(value, 'x', sizeof(value));
	value[201] = '\0';
	assert_int_equal(request_add_header(&rq, "Idempotency-Key", value, &e), 0);
	assert_int_equal(guard_idempotency_key(&rq, &key, &e), -ERR_INVALID);
	value[200] = '\0';
	assert_int_equal(guard_idempotency_key(&rq, &key, &e), 0);
}

struct bearer_row {
	const char *name, *header, *want;
};

static const struct bearer_row bearers[] = {
	{ "bearer: a token", "Bearer abc", "abc" },
	{ "bearer: the scheme has any case", "bEaReR abc", "abc" },
	{ "bearer: blanks before the token", "Bearer   abc", "abc" },
	{ "bearer: no header", NULL, NULL },
	{ "bearer: an empty header", "", NULL },
	{ "bearer: no token", "Bearer ", NULL },
	{ "bearer: only blanks", "Bearer    ", NULL },
	{ "bearer: another scheme", "Basic abc", NULL },
	{ "bearer: no scheme", "abc", NULL },
	{ "bearer: two tokens", "Bearer abc def", NULL },
	{ "bearer: a list", "Bearer abc,def", NULL },
	{ "bearer: a longer scheme", "Bearerx abc", NULL },
};

static void bearer_test(void **state)
{
	const struct bearer_row *row = *state;
	const char *token = auth_bearer(row->header);
	if (row->want)
		assert_string_equal(token, row->want);
	else
		assert_null(token);
}

int main(void)
{
	struct rows r = { 0 };
	ROWS(&r, framing_test, framings);
	ROWS(&r, origin_test, origins);
	ROWS(&r, type_test, types);
	ROWS(&r, key_test, keys);
	rows_one(&r, "key: at most 200 characters", key_length_test);
	ROWS(&r, bearer_test, bearers);
	return rows_run(&r, "api_guard");
}
