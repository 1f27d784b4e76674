/* SPDX-License-Identifier: MIT */
/*
 * The input is a list of lines: a name, or NAME\tTARGET, as they would stand in an archive. What is accepted
 * is put into a tree as unpack does it, a link only where nothing is, nothing below a link; then the kernel's
 * rule is followed from every link, link after link (path_resolution(7)): no step may ever stand above the
 * tree.
 */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "runtime/agent/archive_name.h"
#include "tests/fuzz/fuzz.h"

#define LINKS_MAX 32
#define STEPS_MAX 400

struct link {
	char name[PATH_MAX], target[PATH_MAX];
};

struct tree {
	struct link links[LINKS_MAX];
	size_t count;
};

static const struct link *find(const struct tree *t, const char *name, size_t len)
{
	for (size_t i = 0; i < t->count; i++)
		if (strlen(t->links[i].name) == len && memcmp(t->links[i].name, name, len) == 0)
			return &t->links[i];
	return NULL;
}

static bool below_a_link(const struct tree *t, const char *name)
{
	for (const char *slash = strchr(name, '/'); slash; slash = strchr(slash + 1, '/'))
		if (find(t, name, (size_t)(slash - name)))
			return true;
	return find(t, name, strlen(name)) != NULL;
}

/* No link takes the place of a folder that something stands in. */
static bool is_folder(const struct tree *t, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < t->count; i++)
		if (strncmp(t->links[i].name, name, len) == 0 && t->links[i].name[len] == '/')
			return true;
	return false;
}

/* What is left of a path is joined behind a link's target; too long ends the walk, as in the kernel. */
static bool follow(const char *target, char rest[2 * PATH_MAX])
{
	char joined[2 * PATH_MAX];
	int n = snprintf(joined, sizeof(joined), "%s/%s", target, rest);

	if (n >= PATH_MAX)
		return false;
	memcpy(rest, joined, (size_t)n + 1);
	return true;
}

static void up(char *at)
{
	char *slash = strrchr(at, '/');

	MUST(*at != '\0'); /* it would leave the tree */
	*(slash ? slash : at) = '\0';
}

static void walk(const struct tree *t, const struct link *from)
{
	char at[2 * PATH_MAX] = "", rest[2 * PATH_MAX];

	memcpy(rest, from->name, strlen(from->name) + 1);
	for (int steps = 0; steps < STEPS_MAX && *rest; steps++) {
		char part[PATH_MAX];
		size_t len = strcspn(rest, "/");
		memcpy(part, rest, len);
		part[len] = '\0';
		memmove(rest, rest + len + (rest[len] == '/'), strlen(rest + len + (rest[len] == '/')) + 1);
		if (len == 0 || strcmp(part, ".") == 0)
			continue;
		if (strcmp(part, "..") == 0) {
			up(at);
			continue;
		}
		size_t used = strlen(at);
		if (used + len + 1 >= PATH_MAX)
			return;
		snprintf(at + used, sizeof(at) - used, "%s%s", used ? "/" : "", part);
		const struct link *link = find(t, at, strlen(at));
		if (!link)
			continue;
		up(at);
		if (!follow(link->target, rest))
			return;
	}
}

static void take(struct tree *t, char *line)
{
	char path[PATH_MAX], *target = strchr(line, '\t');
	const char *why = NULL;

	if (target)
		*target++ = '\0';
	int sys = archive_name_judge(line, path, &why);
	MUST(sys == 0 || why);
	if (sys != 0)
		return;
	MUST(path[0] != '/' && strlen(path) < PATH_MAX && !strstr(path, "//"));
	char again[PATH_MAX];
	MUST(archive_name_judge(*path ? path : ".", again, &why) == 0 && strcmp(path, again) == 0);
	if (!target || t->count == LINKS_MAX || *path == '\0' || below_a_link(t, path) || is_folder(t, path))
		return;
	why = NULL;
	if (archive_target_judge(path, target, &why) != 0) {
		MUST(why);
		return;
	}
	struct link *link = &t->links[t->count++];
	memcpy(link->name, path, strlen(path) + 1);
	memcpy(link->target, target, strlen(target) + 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_free_ char *text = xcalloc(size + 1, 1);
	_cleanup_free_ struct tree *t = xcalloc(1, sizeof(*t));

	if (size > 0)
		memcpy(text, data, size);
	for (char *line = text, *end; line; line = end) {
		end = strchr(line, '\n');
		if (end)
			*end++ = '\0';
		take(t, line);
	}
	for (size_t i = 0; i < t->count; i++)
		walk(t, &t->links[i]);
	return 0;
}
