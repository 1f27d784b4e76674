/* SPDX-License-Identifier: MIT */
/* What may be let into sandboxes from this machine, judged at the start. */
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/base.h"
#include "manager/grants.h"
#include "tests/unit/rows.h"

/* A folder with a file, a folder, a link to the file, a FIFO, a socket, and a data folder. */
static char top[] = "/tmp/berth-grants-XXXXXX";

static char *at(const char *name)
{
	return xasprintf("%s/%s", top, name);
}

static void make_top(void)
{
	if (!mkdtemp(top))
		abort();
	_cleanup_free_ char *file = at("file"), *folder = at("folder"), *link = at("link"),
			    *fifo = at("fifo");
	_cleanup_free_ char *data = at("data"), *run = at("run"), *sock = at("run/engine.sock");
	assert_int_equal(mknod(file, S_IFREG | 0600, 0), 0);
	assert_int_equal(mkdir(folder, 0700) | mkdir(data, 0700) | mkdir(run, 0700), 0);
	assert_int_equal(symlink("file", link), 0);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	snprintf(a.sun_path, sizeof(a.sun_path), "%s", sock);
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
}

/* "@" in a setting stands for the folder. */
static char *fill(const char *text)
{
	if (!text)
		return NULL;
	_cleanup_free_ char *copy = xstrdup("");
	for (; *text; text++) {
		char *longer = *text == '@' ? xasprintf("%s%s", copy, top) : xasprintf("%s%c", copy, *text);
		free(copy);
		copy = longer;
	}
	return STEAL_PTR(copy);
}

static int start(const char *mounts, const char *project, int64_t uid, struct grants **ret, struct err *e)
{
	static struct settings s; /* borrowed by what is made */
	settings_clear(&s);
	s = (struct settings){
		.mounts = fill(mounts),
		.project_dir = fill(project),
		.uid = uid,
		.gid = uid,
		.data_dir = fill("@/data"),
		.engine = fill("unix://@/run/engine.sock"),
	};
	return grants_new(&s, ret, e);
}

static const struct refused_row {
	const char *name, *mounts, *project;
	int64_t uid;
	const char *field, *says;
} refused[] = {
	{ "a file that is missing", "a=@/none:/etc/a:ro", NULL, 0, "SANDBOX_MOUNTS", "No such file" },
	{ "a FIFO", "a=@/fifo:/etc/a:ro", NULL, 0, "SANDBOX_MOUNTS", "neither a file nor a folder" },
	{ "the engine's socket", "a=@/run/engine.sock:/etc/a:ro", NULL, 0, "SANDBOX_MOUNTS",
	  "neither a file nor a folder" },
	{ "the folder of the engine's socket", "a=@/run:/etc/a:ro", NULL, 0, "SANDBOX_MOUNTS",
	  "the engine's socket" },
	{ "a folder above it", "a=@:/etc/a:ro", NULL, 0, "SANDBOX_MOUNTS", "the engine's socket" },
	{ "the root", "a=/:/etc/a:ro", NULL, 0, "SANDBOX_MOUNTS", "socket" },
	{ "berthd's own data", "a=@/data:/etc/a:ro", NULL, 0, "SANDBOX_MOUNTS", "own data" },
	{ "a name twice", "a=@/file:/etc/a:ro,a=@/file:/etc/b:ro", NULL, 0, "SANDBOX_MOUNTS", "named twice" },
	{ "a place twice", "a=@/file:/etc/a:ro,b=@/file:/etc/a:ro", NULL, 0, "SANDBOX_MOUNTS",
	  "one another" },
	{ "one within another", "a=@/folder:/etc/a:ro,b=@/file:/etc/a/b:ro", NULL, 0, "SANDBOX_MOUNTS",
	  "one another" },
	{ "over the home", "a=@/folder:/home/sandbox:ro", NULL, 0, "SANDBOX_MOUNTS", "/home/sandbox" },
	{ "over what holds the home", "a=@/folder:/home:ro", NULL, 0, "SANDBOX_MOUNTS", "/home/sandbox" },
	{ "below the workspace", "a=@/file:/workspace/a:ro", NULL, 0, "SANDBOX_MOUNTS", "/workspace" },
	{ "over the agent", "a=@/folder:/.berth:ro", NULL, 0, "SANDBOX_MOUNTS", "/.berth" },
	{ "below /proc", "a=@/file:/proc/version:ro", NULL, 0, "SANDBOX_MOUNTS", "/proc" },
	{ "a path with a slash at its end", "a=@/folder:/etc/a/:ro", NULL, 0, "SANDBOX_MOUNTS", "plain" },
	{ "a project that is missing", NULL, "@/none", 1000, "ATLAS_PROJECT_DIR", "No such file" },
	{ "a project that is a file", NULL, "@/file", 1000, "ATLAS_PROJECT_DIR", "no folder" },
	{ "a project that holds berthd's data", NULL, "@", 1000, "ATLAS_PROJECT_DIR", "socket" },
	{ "a user that is the bridge's", NULL, "@/folder", 10002, "ATLAS_PROJECT_DIR", "Berth's own" },
};

static void refused_test(void **state)
{
	const struct refused_row *row = *state;
	struct grants *g = NULL;
	struct err e = { 0 };
	assert_int_equal(start(row->mounts, row->project, row->uid, &g, &e), -ERR_INVALID);
	assert_string_equal(e.field, row->field);
	if (!strstr(e.msg, row->says))
		fail_msg("\"%s\" says nothing of \"%s\"", e.msg, row->says);
	assert_null(g);
}

static void mounts_are_found(void **state)
{
	(void)state;
	_cleanup_(grants_free_cleanup_) struct grants *g = NULL;
	_cleanup_free_ char *file = at("file"), *folder = at("folder");
	struct sandbox_mount m[SANDBOX_MOUNTS_MAX];
	size_t count = 0;
	struct err e;
	const char *mounts = "a=@/link:/home/sandbox/.a:ro, b=@/folder:/etc/b:ro";
	assert_int_equal(start(mounts, NULL, 0, &g, &e), 0);
	assert_int_equal(grants_find_mounts(g, NULL, m, &count, &e), 0);
	assert_int_equal(count, 2);
	assert_string_equal(m[0].host, file); /* what the link names */
	assert_string_equal(m[0].path, "/home/sandbox/.a");
	json_t *names = json_pack("[s]", "b");
	assert_int_equal(grants_find_mounts(g, names, m, &count, &e), 0);
	assert_int_equal(count, 1);
	assert_string_equal(m[0].host, folder);
	json_array_append_new(names, json_string("b"));
	assert_int_equal(grants_find_mounts(g, names, m, &count, &e), -ERR_INVALID);
	json_array_set_new(names, 1, json_string("c"));
	assert_int_equal(grants_find_mounts(g, names, m, &count, &e), -ERR_INVALID);
	assert_string_equal(e.field, "mounts");
	json_decref(names);
}

static void a_project_has_its_owner(void **state)
{
	(void)state;
	_cleanup_(grants_free_cleanup_) struct grants *g = NULL;
	_cleanup_free_ char *folder = at("folder");
	unsigned uid = 0, gid = 0;
	struct err e;
	int r = start(NULL, "@/folder", 0, &g, &e);
	if (!geteuid()) { /* root's folder is nobody's workspace */
		assert_int_equal(r, -ERR_INVALID);
		assert_int_equal(chown(folder, 1234, 1235), 0);
		r = start(NULL, "@/folder", 0, &g, &e);
	}
	assert_int_equal(r, 0);
	assert_string_equal(grants_get_project(g, &uid, &gid), folder);
	assert_int_equal(uid, geteuid() ? geteuid() : 1234);
	assert_int_equal(gid, getegid() ? getegid() : 1235);
}

int main(void)
{
	struct rows r = { 0 };
	make_top();
	ROWS(&r, refused_test, refused);
	rows_one(&r, "mounts are found by name, by what their links name", mounts_are_found);
	rows_one(&r, "a project's folder has its owner as user", a_project_has_its_owner);
	int failed = rows_run(&r, "grants");
	_cleanup_free_ char *clean = xasprintf("rm -rf %s", top);
	(void)!system(clean); /* NOLINT: a path of our own */
	return failed;
}
