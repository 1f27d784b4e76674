/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "cli/client.h"
#include "cli/config.h"
#include "cli/format.h"
#include "tests/unit/rows.h"

static const struct address_row {
	const char *name, *text, *want; /* NULL: refused */
} addresses[] = {
	{ "a URL stays", "http://h:1", "http://h:1" },
	{ "https too", "https://berth.example", "https://berth.example" },
	{ "host and port become a URL", "10.0.0.1:8080", "http://10.0.0.1:8080" },
	{ "IPv6 in brackets", "[::1]:8080", "http://[::1]:8080" },
	{ "slashes at the end go", "http://h:1//", "http://h:1" },
	{ "a prefix stays", "https://h/berth/", "https://h/berth" },
	{ "nothing is refused", "", NULL },
	{ "a scheme alone is refused", "http://", NULL },
	{ "a port alone is refused", ":8080", NULL },
	{ "another scheme is refused", "file:///etc/passwd", NULL },
	{ "a user is refused", "http://u:p@h", NULL },
	{ "a query is refused", "http://h/?x", NULL },
	{ "a fragment is refused", "http://h/#x", NULL },
	{ "a blank is refused", "http://h x", NULL },
	{ "a line break is refused", "http://h\r\nX: y", NULL },
};

static void address_test(void **state)
{
	const struct address_row *row = *state;
	char *url = NULL;
	struct err e = { 0 };
	assert_int_equal(config_address(row->text, &url, &e), row->want ? 0 : -ERR_INVALID);
	assert_int_equal(url != NULL, row->want != NULL);
	if (url)
		assert_string_equal(url, row->want);
	free(url);
}

static const struct file_row {
	const char *name, *text, *address, *token, *error; /* error: is in the message */
} files[] = {
	{ "both keys", "address = a\ntoken = t\n", "a", "t", NULL },
	{ "no blanks, no newline at the end", "token=t", NULL, "t", NULL },
	{ "comments, empty lines and CR LF", "# x\r\n\r\n  \t\ntoken = t\r\n", NULL, "t", NULL },
	{ "the value may hold an equals sign", "token = a=b=\n", NULL, "a=b=", NULL },
	{ "the first of several counts", "token = 1\ntoken = 2\n", NULL, "1", NULL },
	{ "nothing", "", NULL, NULL, NULL },
	{ "an unknown key", "token = t\nport = 1\n", NULL, "t", "f:2: unknown key \"port\"" },
	{ "a key without a value", "token =\n", NULL, NULL, "f:1: token has no value" },
	{ "no equals sign", "\ntoken\n", NULL, NULL, "f:2: must be" },
};

static void file_test(void **state)
{
	const struct file_row *row = *state;
	struct config c = { 0 };
	struct err e = { 0 };
	assert_int_equal(config_parse(row->text, "f", &c, &e), row->error ? -ERR_INVALID : 0);
	assert_string_equal(c.address ? c.address : "(none)", row->address ? row->address : "(none)");
	assert_string_equal(c.token ? c.token : "(none)", row->token ? row->token : "(none)");
	if (row->error)
		assert_non_null(strstr(e.msg, row->error));
	config_clear(&c);
}

static const struct value_row {
	const char *name, *json, *want;
} values[] = {
	{ "a text", "\"box\"", "box" },
	{ "an empty text", "\"\"", "-" },
	{ "nothing", "null", "-" },
	{ "a whole number", "4096", "4096" },
	{ "a real number", "1.5", "1.5" },
	{ "a real number that is whole", "2.0", "2" },
	{ "yes and no", "true", "yes" },
	{ "an object", "{\"a\":\"1\",\"b\":\"2\"}", "a=1 b=2" },
	{ "an empty object", "{}", "-" },
	{ "escape sequences are shown, not sent", "\"\\u001b[2J\"", "\\x1b[2J" },
	{ "line breaks are shown, not sent", "\"a\\nb\"", "a\\nb" },
	{ "keys are escaped too", "{\"\\u001b\":\"\"}", "\\x1b=-" },
};

static void value_test(void **state)
{
	const struct value_row *row = *state;
	json_t *value = json_loads(row->json, JSON_DECODE_ANY, NULL);
	char *text = format_value(value);
	assert_string_equal(text, row->want);
	free(text);
	json_decref(value);
}

static void path_test(void **state)
{
	(void)state;
	char *path = client_path("/v1/sessions/%s/execs/%s?x=1", "../a b", "%");
	assert_string_equal(path, "/v1/sessions/..%2Fa%20b/execs/%25?x=1");
	free(path);
}

int main(void)
{
	struct rows r = { 0 };
	ROWS(&r, address_test, addresses);
	ROWS(&r, file_test, files);
	ROWS(&r, value_test, values);
	rows_one(&r, "what fills a path is escaped", path_test);
	return rows_run(&r, "cli config and format");
}
