/* SPDX-License-Identifier: MIT */
/* The list of tools that an image brings. */
#include "manager/tools.h"

#include "base/base.h"
#include "base/json.h"
#include "tests/unit/rows.h"

static const struct list_row {
	const char *name, *list, *want; /* JSON with ' for " */
} lists[] = {
	{ "nothing", "", "{}" },
	{ "a tool", "git 2.39.5\n", "{'git':'2.39.5'}" },
	{ "a last line without its end", "a 1\nb 2", "{'a':'1','b':'2'}" },
	{ "a version of several words", "java Temurin 21\n", "{'java':'Temurin 21'}" },
	{ "empty lines and remarks", "\n# of the image\n\na 1\n", "{'a':'1'}" },
	{ "a name without a version", "a\nb \nc 1\n", "{'c':'1'}" },
	{ "a line that begins with a blank", " 1\n", "{}" },
	{ "of two the last one counts", "a 1\na 2\n", "{'a':'2'}" },
	{ "a control character", "a 1\x1b[2J\nb 1\n", "{'b':'1'}" },
	{ "what is no ASCII", "a \xc3\xa4\n\xff 1\nb 1\n", "{'b':'1'}" },
	{ "a name that is none", "a/b 1\na\"b 1\n", "{}" },
};

static void list_test(void **state)
{
	const struct list_row *row = *state;
	_cleanup_json_ json_t *tools = tools_parse(row->list, strlen(row->list));
	_cleanup_free_ char *text = json_dumps(tools, JSON_COMPACT | JSON_SORT_KEYS);
	for (char *p = text; *p; p++)
		*p = *p == '"' ? '\'' : *p;
	assert_string_equal(text, row->want);
}

static void bounds(void **state)
{
	(void)state;
	char text[TOOLS_LIST_MAX], *at = text;
	for (int i = 0; i < 2 * TOOLS_MAX; i++)
		at += snprintf(at, (size_t)(text + sizeof(text) - at), "tool%d 1\n", i);
	_cleanup_json_ json_t *tools = tools_parse(text, (size_t)(at - text));
	assert_int_equal(json_object_size(tools), TOOLS_MAX);
	memset(text, 'a', sizeof(text));
	_cleanup_json_ json_t *none = tools_parse(text, sizeof(text));
	assert_int_equal(json_object_size(none), 0);
	const char nul[] = "a 1\0"
			   "2\nb 1\n";
	_cleanup_json_ json_t *one = tools_parse(nul, sizeof(nul) - 1);
	assert_int_equal(json_object_size(one), 1);
}

int main(void)
{
	struct rows r = { 0 };
	ROWS(&r, list_test, lists);
	rows_one(&r, "lists are bounded", bounds);
	return rows_run(&r, "tools");
}
