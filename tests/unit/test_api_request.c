/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "api/request.h"
#include "tests/unit/rows.h"

struct target_row {
	const char *name, *target;
	int want;             /* 0 or an error's code */
	const char *segments; /* joined by '|' */
	const char *query;    /* name=value joined by '|' */
};

static const struct target_row targets[] = {
	{ "target: the root has no segments", "/", 0, "", "" },
	{ "target: segments are split at slashes", "/v1/sessions/s_x", 0, "v1|sessions|s_x", "" },
	{ "target: an escape is decoded in its segment", "/a%20b/%C3%A9", 0, "a b|\xc3\xa9", "" },
	{ "target: an escaped percent stays one", "/a%2541", 0, "a%41", "" },
	{ "target: a plus is itself in a path", "/a+b", 0, "a+b", "" },
	{ "target: a slash at the end is an empty segment", "/a/", 0, "a|", "" },
	{ "target: two slashes are an empty segment", "//a", 0, "|a", "" },
	{ "target: dots inside a name are fine", "/a..b/.../.x", 0, "a..b|...|.x", "" },
	{ "target: eight segments are taken", "/1/2/3/4/5/6/7/8", 0, "1|2|3|4|5|6|7|8", "" },
	{ "target: nine are no path of ours", "/1/2/3/4/5/6/7/8/9", ERR_NOT_FOUND, NULL, NULL },
	{ "query: pairs", "/?a=1&b=2", 0, "", "a=1|b=2" },
	{ "query: a plus is a blank", "/?a=x+y%2Bz", 0, "", "a=x y+z" },
	{ "query: no value is an empty one", "/?a&b=", 0, "", "a=|b=" },
	{ "query: a second = belongs to the value", "/?label=k=v", 0, "", "label=k=v" },
	{ "query: an escaped & does not split", "/?a=1%262", 0, "", "a=1&2" },
	{ "query: a second ? belongs to it", "/?a=b?c", 0, "", "a=b?c" },
	{ "query: empty items are skipped", "/?&&a=1&", 0, "", "a=1" },
	{ "query: a slash is fine", "/x?p=/etc", 0, "x", "p=/etc" },
	{ "query: a dot segment is text", "/x?p=../y", 0, "x", "p=../y" },
	{ "query: a name given twice is refused", "/?a=1&a=2", ERR_INVALID, NULL, NULL },
	{ "query: a name given twice by an escape is refused", "/?a=1&%61=2", ERR_INVALID, NULL, NULL },
	{ "query: 17 parameters are refused", "/?a&b&c&d&e&f&g&h&i&j&k&l&m&n&o&p&q", ERR_INVALID, NULL,
	  NULL },
	{ "target: nothing is refused", "", ERR_INVALID, NULL, NULL },
	{ "target: absolute form is refused", "http://x/health", ERR_INVALID, NULL, NULL },
	{ "target: asterisk form is refused", "*", ERR_INVALID, NULL, NULL },
	{ "target: authority form is refused", "x:80", ERR_INVALID, NULL, NULL },
	{ "target: a fragment is refused", "/a#b", ERR_INVALID, NULL, NULL },
	{ "target: a blank is refused", "/a b", ERR_INVALID, NULL, NULL },
	{ "target: a raw byte above ASCII is refused", "/\xc3\xa9", ERR_INVALID, NULL, NULL },
	{ "target: a control character is refused", "/a\x01", ERR_INVALID, NULL, NULL },
	{ "target: a backslash is refused", "/a\\b", ERR_INVALID, NULL, NULL },
	{ "escape: NUL is refused", "/a%00b", ERR_INVALID, NULL, NULL },
	{ "escape: NUL in a query is refused", "/a?b=%00", ERR_INVALID, NULL, NULL },
	{ "escape: a newline is refused", "/a%0ab", ERR_INVALID, NULL, NULL },
	{ "escape: DEL is refused", "/a%7f", ERR_INVALID, NULL, NULL },
	{ "escape: one digit is refused", "/a%4", ERR_INVALID, NULL, NULL },
	{ "escape: a lone percent is refused", "/a%", ERR_INVALID, NULL, NULL },
	{ "escape: no digits are refused", "/a%-1", ERR_INVALID, NULL, NULL },
	{ "escape: bytes that are no UTF-8 are refused", "/%c3", ERR_INVALID, NULL, NULL },
	{ "escape: an overlong slash is refused", "/%c0%af", ERR_INVALID, NULL, NULL },
	{ "escape: a slash is refused", "/a%2fb", ERR_INVALID, NULL, NULL },
	{ "target: a dot is refused", "/a/./b", ERR_INVALID, NULL, NULL },
	{ "target: two dots are refused", "/a/..", ERR_INVALID, NULL, NULL },
	{ "escape: a dot is refused", "/%2e/b", ERR_INVALID, NULL, NULL },
	{ "escape: half of two dots is refused", "/a/.%2E/b", ERR_INVALID, NULL, NULL },
};

static void join(char *out, size_t size, const struct request *rq)
{
	out[0] = '\0';
	for (size_t i = 0; i < rq->segment_count; i++)
		snprintf(out + strlen(out), size - strlen(out), "%s%s", i ? "|" : "", rq->segments[i]);
}

static void join_query(char *out, size_t size, const struct request *rq)
{
	out[0] = '\0';
	for (size_t i = 0; i < rq->query_count; i++)
		snprintf(out + strlen(out), size - strlen(out), "%s%s=%s", i ? "|" : "", rq->query[i].name,
			 rq->query[i].value);
}

static void target_test(void **state)
{
	const struct target_row *row = *state;
	struct request rq = { .client_fd = -1 };
	struct err e = { 0 };
	char text[256];
	int r = request_set_target(&rq, row->target, &e);
	assert_int_equal(r, -row->want);
	if (!r) {
		join(text, sizeof(text), &rq);
		assert_string_equal(text, row->segments);
		join_query(text, sizeof(text), &rq);
		assert_string_equal(text, row->query);
	}
	request_clear(&rq);
}

static void long_test(void **state)
{
	(void)state;
	struct request rq = { .client_fd = -1 };
	struct err e = { 0 };
	char target[REQUEST_TARGET_MAX + 2];
	memset(target, 'a', sizeof(target));
	target[0] = '/';
	target[REQUEST_TARGET_MAX + 1] = '\0';
	assert_int_equal(request_set_target(&rq, target, &e), -ERR_URI_TOO_LONG);
	target[REQUEST_TARGET_MAX] = '\0';
	assert_int_equal(request_set_target(&rq, target, &e), 0);
	request_clear(&rq);
}

static void numbers_test(void **state)
{
	(void)state;
	struct request rq = { .client_fd = -1 };
	struct err e = { 0 };
	int64_t v = 7;
	assert_int_equal(request_set_target(&rq, "/?limit=12&wait_s=1.5&bad=1x", &e), 0);
	assert_int_equal(request_query_int(&rq, "limit", 1, 100, &v, &e), 0);
	assert_int_equal(v, 12);
	assert_int_equal(request_query_milli(&rq, "wait_s", 0, 60000, &v, &e), 0);
	assert_int_equal(v, 1500);
	assert_int_equal(request_query_int(&rq, "absent", 1, 100, &v, &e), 0);
	assert_int_equal(v, 1500);
	assert_int_equal(request_query_int(&rq, "limit", 1, 11, &v, &e), -ERR_INVALID);
	assert_string_equal(e.field, "limit");
	assert_int_equal(request_query_milli(&rq, "bad", 0, 10, &v, &e), -ERR_INVALID);
	assert_string_equal(e.field, "bad");
	assert_int_equal(v, 1500);
	request_clear(&rq);
}

static void body_test(void **state)
{
	(void)state;
	atomic_size_t budget = REQUEST_BODIES_MAX - 10;
	struct request rq = { .client_fd = -1, .body = BUF_INIT(12), .budget = &budget };
	struct err e = { 0 };
	assert_int_equal(request_add_body(&rq, "12345678", 8, &e), 0);
	assert_int_equal(request_add_body(&rq, "123", 3, &e), -ERR_OVERLOADED);
	assert_true(e.retry_after_s > 0);
	assert_int_equal(request_add_body(&rq, "12345", 5, &e), -ERR_TOO_LARGE);
	assert_int_equal(budget, REQUEST_BODIES_MAX - 2);
	request_drop_body(&rq);
	assert_int_equal(budget, REQUEST_BODIES_MAX - 10);
	request_clear(&rq);
	assert_int_equal(budget, REQUEST_BODIES_MAX - 10);
}

int main(void)
{
	struct rows r = { 0 };
	ROWS(&r, target_test, targets);
	rows_one(&r, "target: more than 8 KiB are refused", long_test);
	rows_one(&r, "query: numbers are read within their bounds", numbers_test);
	rows_one(&r, "body: bounded by itself and by all bodies together", body_test);
	return rows_run(&r, "api_request");
}
