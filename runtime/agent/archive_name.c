/* SPDX-License-Identifier: MIT */
#include "runtime/agent/archive_name.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct component {
	const char *at;
	size_t len;
};

/* The next one that is neither empty nor "."; false at the end. */
static bool next_component(const char **rest, struct component *ret)
{
	do {
		*rest += strspn(*rest, "/");
		*ret = (struct component){ *rest, strcspn(*rest, "/") };
		*rest += ret->len;
	} while (ret->len == 1 && *ret->at == '.');
	return ret->len > 0;
}

static bool is_parent(const struct component *c)
{
	return c->len == 2 && memcmp(c->at, "..", 2) == 0;
}

static int refuse(int sys, const char *why, const char **ret_why)
{
	*ret_why = why;
	return sys;
}

int archive_name_judge(const char *name, char ret[PATH_MAX], const char **ret_why)
{
	struct component c;
	size_t used = 0;

	if (*name == '\0')
		return refuse(EINVAL, "its name is empty", ret_why);
	if (*name == '/')
		return refuse(EINVAL, "its name is absolute", ret_why);
	while (next_component(&name, &c)) {
		if (is_parent(&c))
			return refuse(EINVAL, "its name has \"..\" in it", ret_why);
		if (c.len > NAME_MAX)
			return refuse(ENAMETOOLONG, "a part of its name is too long", ret_why);
		if (used + (used > 0) + c.len >= PATH_MAX)
			return refuse(ENAMETOOLONG, "its name is too long", ret_why);
		if (used > 0)
			ret[used++] = '/';
		memcpy(ret + used, c.at, c.len);
		used += c.len;
	}
	ret[used] = '\0';
	return 0;
}

/* How many folders are above the name, below the one that it counts from. */
static unsigned depth_of(const char *name)
{
	unsigned depth = 0;

	for (; *name; name++)
		depth += *name == '/';
	return depth;
}

int archive_target_judge(const char *name, const char *target, const char **ret_why)
{
	struct component c;
	unsigned depth = depth_of(name);
	bool down = false;

	if (*target == '\0')
		return refuse(EINVAL, "a link to nothing", ret_why);
	if (*target == '/')
		return refuse(EINVAL, "a link to an absolute path", ret_why);
	if (strlen(target) >= PATH_MAX)
		return refuse(ENAMETOOLONG, "its target is too long", ret_why);
	while (next_component(&target, &c)) {
		if (!is_parent(&c)) {
			down = true;
			continue;
		}
		/* "a/.." is the folder of whatever the link "a" names, and that may be higher up */
		if (down)
			return refuse(EINVAL, "a link that goes up behind a name", ret_why);
		if (depth-- == 0)
			return refuse(EINVAL, "a link that leaves the folder", ret_why);
	}
	return 0;
}
