/* SPDX-License-Identifier: MIT */
#include "manager/files_path.h"

#include <string.h>

#include "runtime/sandbox.h"

/* Appends the segments of `path` to out, whose length is *len. */
static void add_segments(char *out, size_t *len, const char *path, bool resolve)
{
	while (*path) {
		size_t n = strcspn(path, "/");
		bool skip = n == 0 || (n == 1 && *path == '.');
		if (resolve && n == 2 && path[0] == '.' && path[1] == '.') {
			while (*len && out[--*len] != '/')
				;
			skip = true;
		}
		if (!skip) {
			out[(*len)++] = '/';
			memcpy(out + *len, path, n);
			*len += n;
		}
		path += n + (path[n] == '/');
	}
}

static char *join(const char *folder, const char *path, bool resolve)
{
	char *out = xcalloc(1, strlen(folder) + strlen(path) + 3);
	size_t len = 0;
	if (*path != '/')
		add_segments(out, &len, folder, resolve);
	add_segments(out, &len, path, resolve);
	if (!len)
		out[len++] = '/';
	out[len] = '\0';
	return out;
}

char *files_path_absolute(const char *folder, const char *path)
{
	return join(folder, path, false);
}

/* Is `place` the path, or below it? */
static bool holds(const char *path, const char *place)
{
	size_t len = strlen(path);
	return !strcmp(path, "/") || (!strncmp(place, path, len) && (!place[len] || place[len] == '/'));
}

bool files_path_is_kept(const char *workspace, const char *absolute)
{
	const char *const kept[] = { "/", "/tmp", SANDBOX_HOME, "/conversation_history", workspace };
	_cleanup_free_ char *path = join("/", absolute, true);
	for (size_t i = 0; i < ARRAY_LEN(kept); i++)
		if (holds(path, kept[i]))
			return true;
	return false;
}
