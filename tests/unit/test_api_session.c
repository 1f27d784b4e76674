/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "api/session_json.h"
#include "base/json.h"
#include "tests/unit/rows.h"

struct bad_row {
	const char *name, *body, *field;
};

static const struct bad_row bad_creates[] = {
	{ "create: an array", "[]", "" },
	{ "create: an unknown field", "{\"devices\":[]}", "devices" },
	{ "create: a later issue's field is refused by its name", "{\"pool\":true}", "pool" },
	{ "create: an empty image", "{\"image\":\"\"}", "image" },
	{ "create: a name with a blank", "{\"name\":\"a b\"}", "name" },
	{ "create: a name that starts with a dash", "{\"name\":\"-a\"}", "name" },
	{ "create: a name of 64",
	  "{\"name\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"}", "name" },
	{ "create: labels that are no texts", "{\"labels\":{\"a\":1}}", "labels" },
	{ "create: an empty label", "{\"labels\":{\"\":\"1\"}}", "labels" },
	{ "create: a label with =", "{\"labels\":{\"a=b\":\"1\"}}", "labels" },
	{ "create: too little memory", "{\"limits\":{\"memory_mb\":63}}", "limits.memory_mb" },
	{ "create: too much memory", "{\"limits\":{\"memory_mb\":1048577}}", "limits.memory_mb" },
	{ "create: half a megabyte", "{\"limits\":{\"memory_mb\":100.5}}", "limits.memory_mb" },
	{ "create: no cpu", "{\"limits\":{\"cpus\":0}}", "limits.cpus" },
	{ "create: negative cpus", "{\"limits\":{\"cpus\":-1}}", "limits.cpus" },
	{ "create: too few pids", "{\"limits\":{\"pids\":1}}", "limits.pids" },
	{ "create: an unknown limit", "{\"limits\":{\"disk\":1}}", "limits.disk" },
	{ "create: limits that are no object", "{\"limits\":1}", "limits" },
	{ "create: a negative ttl", "{\"ttl_s\":-1}", "ttl_s" },
	{ "create: a ttl of 1000 years", "{\"ttl_s\":31536000000}", "ttl_s" },
	{ "create: a variable without a name", "{\"env\":{\"\":\"x\"}}", "env" },
	{ "create: a variable with =", "{\"env\":{\"A=\":\"x\"}}", "env" },
	{ "create: a variable that is a number", "{\"env\":{\"A\":5}}", "env" },
	{ "create: a workspace of nothing", "{\"workspace\":{\"size_mb\":0}}", "workspace.size_mb" },
	{ "create: a workspace's name", "{\"workspace\":{\"name\":\"../x\"}}", "workspace.name" },
};

static void bad_create_test(void **state)
{
	const struct bad_row *row = *state;
	_cleanup_json_ json_t *body = NULL;
	struct session_request rq = { .pids = 4711 };
	struct err e = { 0 };
	assert_int_equal(json_text_parse(row->body, strlen(row->body), &body, &e), 0);
	assert_int_equal(session_json_create(body, &rq, &e), -ERR_INVALID);
	assert_int_equal(strncmp(e.field, row->field, strlen(row->field)), 0);
	assert_int_equal(rq.pids, 4711);
}

static void create_default_test(void **state)
{
	(void)state;
	_cleanup_json_ json_t *body = json_object();
	struct session_request rq;
	struct err e;
	assert_int_equal(session_json_create(body, &rq, &e), 0);
	assert_true(!rq.image && !rq.name && !rq.labels && !rq.env && !rq.network && !rq.isolation);
	assert_true(!rq.workspace_kind && !rq.workspace_name && !rq.may_be_endless);
	assert_true(rq.memory_mb == -1 && rq.cpu_milli == -1 && rq.pids == -1 && rq.ttl_s == -1 &&
		    rq.idle_s == -1 && rq.workspace_mb == -1);
}

static void create_all_test(void **state)
{
	(void)state;
	static const char text[] = "{\"image\":\"i:1\",\"name\":\"n\",\"labels\":{\"a/"
				   "b\":\"c\"},\"limits\":{\"memory_mb\":512,\"cpus\":1.5,"
				   "\"pids\":64},\"ttl_s\":0,\"idle_s\":60,\"env\":{\"K\":\"V\"},\"network\":"
				   "\"net\",\"isolation\":\"gvisor\","
				   "\"workspace\":{\"kind\":\"named\",\"name\":\"w\",\"size_mb\":5}}";
	_cleanup_json_ json_t *body = NULL;
	struct session_request rq;
	struct err e;
	assert_int_equal(json_text_parse(text, strlen(text), &body, &e), 0);
	assert_int_equal(session_json_create(body, &rq, &e), 0);
	assert_string_equal(rq.image, "i:1");
	assert_string_equal(rq.name, "n");
	assert_string_equal(json_string_value(json_object_get(rq.labels, "a/b")), "c");
	assert_string_equal(json_string_value(json_object_get(rq.env, "K")), "V");
	assert_true(rq.memory_mb == 512 && rq.cpu_milli == 1500 && rq.pids == 64 && rq.ttl_s == 0 &&
		    rq.idle_s == 60);
	assert_string_equal(rq.network, "net");
	assert_string_equal(rq.isolation, "gvisor");
	assert_string_equal(rq.workspace_kind, "named");
	assert_string_equal(rq.workspace_name, "w");
	assert_int_equal(rq.workspace_mb, 5);
}

static void patch_test(void **state)
{
	(void)state;
	_cleanup_json_ json_t *body = json_pack("{s:i, s:{s:s}}", "ttl_s", 60, "labels", "a", "b");
	_cleanup_json_ json_t *unknown = json_pack("{s:s}", "image", "x");
	struct session_patch p;
	struct err e;
	assert_int_equal(session_json_patch(body, &p, &e), 0);
	assert_true(p.ttl_s == 60 && p.idle_s == -1 && json_object_size(p.labels) == 1);
	assert_int_equal(session_json_patch(unknown, &p, &e), -ERR_INVALID);
	assert_string_equal(e.field, "image");
}

struct filter_row {
	const char *name, *target;
	int want;
	struct session_filter filter;
};

static const struct filter_row filters[] = {
	{ "list: no query", "/", 0, { .limit = 100 } },
	{ "list: a label's key", "/?label=team", 0, { .label_key = "team", .limit = 100 } },
	{ "list: a label's value",
	  "/?label=team%3Da=b",
	  0,
	  { .label_key = "team", .label_value = "a=b", .limit = 100 } },
	{ "list: an empty value",
	  "/?label=team=",
	  0,
	  { .label_key = "team", .label_value = "", .limit = 100 } },
	{ "list: everything",
	  "/?state=gone&name=n&cursor=s_1&limit=1000",
	  0,
	  { .state = "gone", .name = "n", .after = "s_1", .limit = 1000 } },
	{ "list: an unknown state", "/?state=dead", ERR_INVALID, { 0 } },
	{ "list: a limit of 0", "/?limit=0", ERR_INVALID, { 0 } },
	{ "list: a limit above 1000", "/?limit=1001", ERR_INVALID, { 0 } },
};

static void same(const char *a, const char *b)
{
	assert_string_equal(a ? a : "(none)", b ? b : "(none)");
}

static void filter_test(void **state)
{
	const struct filter_row *row = *state;
	_cleanup_free_ char *storage = NULL;
	struct request rq = { .client_fd = -1 };
	struct session_filter f;
	struct err e = { 0 };
	assert_int_equal(request_set_target(&rq, row->target, &e), 0);
	assert_int_equal(session_json_filter(&rq, &f, &storage, &e), -row->want);
	if (!row->want) {
		same(f.state, row->filter.state);
		same(f.name, row->filter.name);
		same(f.label_key, row->filter.label_key);
		same(f.label_value, row->filter.label_value);
		same(f.after, row->filter.after);
		assert_int_equal(f.limit, row->filter.limit);
	}
	request_clear(&rq);
}

static char a_text[] = "x";
static struct session_row a_row = { .id = (char[]){ "s_1" },
				    .labels = (char[]){ "{\"k\":\"v\"}" },
				    .env = (char[]){ "{\"SECRET\":\"hidden\"}" },
				    .token_hash = (char[]){ "hidden" },
				    .sandbox = (char[]){ "hidden" },
				    .container = (char[]){ "hidden" },
				    .state = a_text,
				    .image = (char[]){ "bad \xff bytes" },
				    .memory_mb = 512,
				    .cpu_milli = 1250,
				    .pids = 64,
				    .created_ms = 1500 };

static void row_test(void **state)
{
	(void)state;
	_cleanup_json_ json_t *shown = session_json(&a_row);
	_cleanup_free_ char *text = json_text(shown);
	assert_string_equal(
		text,
		"{\"id\":\"s_1\",\"name\":null,\"state\":\"x\",\"reason\":null,\"detail\":null,"
		"\"image\":\"bad \xef\xbf\xbd bytes\",\"labels\":{\"k\":\"v\"},\"limits\":{\"memory_mb\":512,"
		"\"cpus\":1.25,\"pids\":64},\"network\":null,\"isolation\":null,\"workspace\":{\"kind\":null,"
		"\"name\":null,\"size_mb\":0},\"ttl_s\":0,\"idle_s\":0,\"created_at\":\"1970-01-01T00:00:01."
		"500Z\","
		"\"expires_at\":null,\"idle_at\":null,\"ended_at\":null}");
}

static void list_test(void **state)
{
	(void)state;
	struct session_row rows[2] = { a_row, a_row };
	rows[1].id = (char[]){ "s_2" };
	_cleanup_json_ json_t *full = session_json_list(rows, 2, 2);
	_cleanup_json_ json_t *last = session_json_list(rows, 2, 3);
	_cleanup_json_ json_t *none = session_json_list(NULL, 0, 3);
	assert_string_equal(json_string_value(json_object_get(full, "next")), "s_2");
	assert_true(json_is_null(json_object_get(last, "next")) &&
		    json_is_null(json_object_get(none, "next")));
	assert_int_equal(json_array_size(json_object_get(last, "sessions")), 2);
	assert_int_equal(json_array_size(json_object_get(none, "sessions")), 0);
}

int main(void)
{
	struct rows r = { 0 };
	ROWS(&r, bad_create_test, bad_creates);
	rows_one(&r, "create: what is not said is left to the manager", create_default_test);
	rows_one(&r, "create: everything that can be said arrives", create_all_test);
	rows_one(&r, "patch: only what may change", patch_test);
	ROWS(&r, filter_test, filters);
	rows_one(&r, "a session is shown without its secrets, its image made UTF-8", row_test);
	rows_one(&r, "a list has a cursor when its page was full", list_test);
	return rows_run(&r, "api_session");
}
