/* SPDX-License-Identifier: MIT */
#include "api/file_query.h"

#include <string.h>

#include "api/file_json.h"

int file_query_path(const struct request *rq, const char *otherwise, char **ret, struct err *e)
{
	const char *path = request_query(rq, "path"), *b64 = request_query(rq, "path_b64");

	if (path && b64)
		return err_field(e, "path", "give either path or path_b64");
	if (b64)
		return file_json_path_b64("path_b64", b64, ret, e);
	path = path ? path : otherwise;
	if (!path)
		return err_field(e, "path", "is missing");
	if (!*path || strlen(path) > FILE_JSON_PATH_MAX)
		return err_field(e, "path", "must be of 1 to %d bytes", FILE_JSON_PATH_MAX);
	*ret = xstrdup(path);
	return 0;
}

int file_query_mode(const struct request *rq, const char **ret, struct err *e)
{
	const char *mode = request_query(rq, "mode");
	size_t len = mode ? strlen(mode) : 0;

	*ret = "";
	if (!mode)
		return 0;
	if (len < 1 || len > 4 || strspn(mode, "01234567") != len || (len == 4 && *mode != '0'))
		return err_field(e, "mode", "must be octal, from 0 to 0777");
	*ret = mode;
	return 0;
}
