/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "manager/files.h"
#include "manager/files_path.h"
#include "tests/unit/rows.h"

struct path_row {
	const char *name, *path, *want;
};
static const struct path_row paths[] = {
	{ "absolute: stays", "/a/b", "/a/b" },
	{ "absolute: the root", "/", "/" },
	{ "absolute: slashes and dots go", "//a/./b//", "/a/b" },
	{ "absolute: .. stays, since symlinks decide", "/a/../b", "/a/../b" },
	{ "relative: counts from the workspace", "a", "/workspace/a" },
	{ "relative: the workspace", ".", "/workspace" },
	{ "relative: nothing is the workspace", "", "/workspace" },
	{ "relative: leads out", "../etc", "/workspace/../etc" },
	{ "names: leading dashes, blanks, newlines are letters", "-rf * \n", "/workspace/-rf * \n" },
	{ "names: bytes that are no UTF-8", "\xff/\xfe", "/workspace/\xff/\xfe" },
	{ "names: dots in names", "/.../..a/.b", "/.../..a/.b" },
};

static void path_test(void **state)
{
	const struct path_row *row = *state;
	_cleanup_free_ char *got = files_path_absolute("/workspace", row->path);
	assert_string_equal(got, row->want);
}

struct kept_row {
	const char *name, *path;
	bool want;
};
static const struct kept_row kepts[] = {
	{ "kept: /", "/", true },
	{ "kept: the workspace", "/workspace", true },
	{ "kept: the workspace with a slash", "/workspace/", true },
	{ "kept: the workspace by a dot", "/workspace/.", true },
	{ "kept: the workspace by ..", "/workspace/a/..", true },
	{ "kept: / by ..", "/tmp/..", true },
	{ "kept: above /", "/../..", true },
	{ "kept: /tmp", "//tmp", true },
	{ "kept: HOME", "/home/sandbox", true },
	{ "kept: above HOME", "/home", true },
	{ "kept: the history", "/conversation_history", true },
	{ "not kept: what is in it", "/workspace/a", false },
	{ "not kept: a name that begins alike", "/workspace2", false },
	{ "not kept: what is in /tmp", "/tmp/workspace", false },
	{ "not kept: what is in HOME", "/home/sandbox/.cache", false },
	{ "not kept: beside HOME", "/home/other", false },
};

static void kept_test(void **state)
{
	const struct kept_row *row = *state;
	assert_int_equal(files_path_is_kept("/workspace", row->path), row->want);
}

struct error_row {
	const char *name;
	int sys;
	enum err_code want;
	const char *why, *text;
};
static const struct error_row errors[] = {
	{ "errno: absent", ENOENT, ERR_NOT_FOUND, NULL, "/x: No such file or directory" },
	{ "errno: no permission", EACCES, ERR_FORBIDDEN, NULL, "/x: Permission denied" },
	{ "errno: not permitted", EPERM, ERR_FORBIDDEN, NULL, NULL },
	{ "errno: read-only", EROFS, ERR_FORBIDDEN, NULL, NULL },
	{ "errno: it exists", EEXIST, ERR_CONFLICT, NULL, NULL },
	{ "errno: not empty", ENOTEMPTY, ERR_CONFLICT, NULL, NULL },
	{ "errno: busy", EBUSY, ERR_CONFLICT, NULL, NULL },
	{ "errno: the disk is full", ENOSPC, ERR_NO_SPACE, NULL, NULL },
	{ "errno: the quota is used", EDQUOT, ERR_NO_SPACE, NULL, NULL },
	{ "errno: another version", ESTALE, ERR_PRECONDITION, "the file has changed",
	  "/x: the file has changed" },
	{ "errno: too many entries", E2BIG, ERR_TOO_LARGE, NULL, NULL },
	{ "errno: a folder", EISDIR, ERR_UNPROCESSABLE, NULL, "/x: Is a directory" },
	{ "errno: no folder", ENOTDIR, ERR_UNPROCESSABLE, NULL, NULL },
	{ "errno: links in a circle", ELOOP, ERR_UNPROCESSABLE, NULL, NULL },
	{ "errno: a name that is too long", ENAMETOOLONG, ERR_UNPROCESSABLE, NULL, NULL },
	{ "errno: none that there is", 9999, ERR_UNPROCESSABLE, NULL, "/x: failed" },
};

static void error_test(void **state)
{
	const struct error_row *row = *state;
	struct err e;
	assert_int_equal(files_error(&e, row->sys, "/x", 2, row->why, row->why ? strlen(row->why) : 0),
			 -(int)row->want);
	assert_int_equal(e.code, row->want);
	assert_int_equal(e.sys, row->sys);
	if (row->text)
		assert_string_equal(e.msg, row->text);
}

int main(void)
{
	struct rows r = { 0 };
	ROWS(&r, path_test, paths);
	ROWS(&r, kept_test, kepts);
	ROWS(&r, error_test, errors);
	return rows_run(&r, "files_path");
}
