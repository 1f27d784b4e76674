/* SPDX-License-Identifier: MIT */
#include "cli/tree.h"
#include "tests/unit/rows.h"

static const struct link_row {
	const char *name, *link, *target;
	bool leaves;
} links[] = {
	{ "a file beside it", "a", "b", false },
	{ "a file below", "a", "d/e/f", false },
	{ "up, from a folder", "d/a", "../b", false },
	{ "up and no further, from the top", "a", "..", true },
	{ "up from the top", "a", "../b", true },
	{ "up twice from one folder", "d/a", "../../b", true },
	{ "down, perhaps through a link, and up", "a", "d/../b", true },
	{ "up, and down again", "d/e/a", "../../f/g", false },
	{ "down and up too far", "a", "d/../../b", true },
	{ "far up in the middle", "d/a", "../../d/a", true },
	{ "absolute", "a", "/etc/passwd", true },
	{ "the root", "a", "/", true },
	{ "here", "a", ".", false },
	{ "here, at length", "a", "./././b", false },
	{ "slashes count once", "d//a", "..//b", false },
	{ "slashes do not hide a way up", "a", ".//..//b", true },
	{ "three dots are a name", "a", ".../b", false },
	{ "a folder with a slash at its end", "d/", "..", true },
	{ "nothing", "a", "", false },
};

static void link_test(void **state)
{
	const struct link_row *row = *state;
	assert_int_equal(tree_link_leaves(row->link, row->target), row->leaves);
}

int main(void)
{
	struct rows r = { 0 };
	ROWS(&r, link_test, links);
	return rows_run(&r, "cli tree");
}
