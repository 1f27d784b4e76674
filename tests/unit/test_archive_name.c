/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "runtime/agent/archive_name.h"
#include "tests/unit/rows.h"

static const struct name_row {
	const char *name, *in;
	int sys;
	const char *want;
} names[] = {
	{ "name: plain", "a", 0, "a" },
	{ "name: a folder's", "a/", 0, "a" },
	{ "name: below", "a/b/c", 0, "a/b/c" },
	{ "name: with the usual ./", "./a", 0, "a" },
	{ "name: with empty and dot components", "./a//./b/./", 0, "a/b" },
	{ "name: the folder itself", ".", 0, "" },
	{ "name: the folder itself, ./", "././/", 0, "" },
	{ "name: dots that are no parent", "...", 0, "..." },
	{ "name: dots before a letter", "..a/.b", 0, "..a/.b" },
	{ "name: bytes of no charset", "\xff\n\x01", 0, "\xff\n\x01" },
	{ "name: empty", "", EINVAL, NULL },
	{ "name: absolute", "/a", EINVAL, NULL },
	{ "name: the root", "/", EINVAL, NULL },
	{ "name: parent", "..", EINVAL, NULL },
	{ "name: parent first", "../a", EINVAL, NULL },
	{ "name: parent last", "a/..", EINVAL, NULL },
	{ "name: parent between, though it stays", "a/../b", EINVAL, NULL },
	{ "name: parent behind a dot", "./../a", EINVAL, NULL },
};

static void name_test(void **state)
{
	const struct name_row *row = *state;
	char out[PATH_MAX];
	const char *why = NULL;

	assert_int_equal(archive_name_judge(row->in, out, &why), row->sys);
	if (row->sys == 0)
		assert_string_equal(out, row->want);
	else
		assert_non_null(why);
}

static const struct target_row {
	const char *name, *link, *target;
	int sys;
} targets[] = {
	{ "target: a neighbour", "a", "b", 0 },
	{ "target: below", "a", "b/c", 0 },
	{ "target: the folder of the link", "a", ".", 0 },
	{ "target: up to the top", "a/b/c", "../..", 0 },
	{ "target: up and down", "a/b/c", "../../x/y", 0 },
	{ "target: up with dots between", "a/b", "./.././/x", 0 },
	{ "target: nothing", "a", "", EINVAL },
	{ "target: absolute", "a", "/etc/passwd", EINVAL },
	{ "target: out from the top", "a", "..", EINVAL },
	{ "target: out from below", "a/b", "../../x", EINVAL },
	{ "target: up behind a name", "a/b/c", "x/..", EINVAL },
	{ "target: up, down, up", "a/b/c", "../x/../y", EINVAL },
	{ "target: dots that are no parent", "a", ".../..x", 0 },
};

static void target_test(void **state)
{
	const struct target_row *row = *state;
	const char *why = NULL;

	assert_int_equal(archive_target_judge(row->link, row->target, &why), row->sys);
	assert_true((row->sys == 0) == (why == NULL));
}

/* Built here, since they are long: a component of 255 and 256, a path of 4095 and 4096 bytes. */
static void lengths(void **state)
{
	char name[PATH_MAX + 2], out[PATH_MAX];
	const char *why;

	(void)state;
	memset(name, 'x', sizeof(name));
	name[NAME_MAX] = '\0';
	assert_int_equal(archive_name_judge(name, out, &why), 0);
	name[NAME_MAX] = 'x';
	name[NAME_MAX + 1] = '\0';
	assert_int_equal(archive_name_judge(name, out, &why), ENAMETOOLONG);

	for (size_t i = 0; i < PATH_MAX; i++)
		name[i] = i % 2 ? '/' : 'x';
	name[PATH_MAX - 1] = '\0';
	assert_int_equal(archive_name_judge(name, out, &why), 0);
	assert_string_equal(out, name);
	assert_int_equal(archive_target_judge("a", name, &why), 0);
	name[PATH_MAX - 1] = '/';
	name[PATH_MAX] = 'x';
	name[PATH_MAX + 1] = '\0';
	assert_int_equal(archive_name_judge(name, out, &why), ENAMETOOLONG);
	assert_int_equal(archive_target_judge("a", name, &why), ENAMETOOLONG);
}

int main(void)
{
	struct rows r = { 0 };
	ROWS(&r, name_test, names);
	ROWS(&r, target_test, targets);
	rows_one(&r, "lengths: the longest are taken, longer ones refused", lengths);
	return rows_run(&r, "archive_name");
}
