/* SPDX-License-Identifier: MIT */
#include "api/archive_format.h"

#include <string.h>
#include <strings.h>

#include "base/parse.h"

/* The first of a name is the one that is told; the others are understood. */
static const struct archive_format formats[] = {
	{ "tar.gz", "application/gzip" },    { "tar.zst", "application/zstd" },
	{ "tar", "application/x-tar" },      { "tar.gz", "application/x-gzip" },
	{ "tar.gz", "application/x-tgz" },   { "tar.gz", "application/x-gtar-compressed" },
	{ "tar.zst", "application/x-zstd" }, { "tar", "application/tar" },
};

static int by_name(const char *name, const struct archive_format **ret, struct err *e)
{
	for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
		if (strcmp(formats[i].name, name))
			continue;
		*ret = &formats[i];
		return 0;
	}
	return err_field(e, "format", "must be tar.gz, tar.zst or tar");
}

static const struct archive_format *by_type(const char *type, size_t len)
{
	len = MIN(len, strcspn(type, "; \t"));
	for (size_t i = 0; i < ARRAY_LEN(formats); i++)
		if (strlen(formats[i].type) == len && !strncasecmp(formats[i].type, type, len))
			return &formats[i];
	return NULL;
}

int archive_format_out(const char *format, const char *accept, const struct archive_format **ret,
		       struct err *e)
{
	const struct archive_format *found = NULL;
	size_t len;

	if (format)
		return by_name(format, ret, e);
	for (const char *item; !found && accept && (item = parse_list_next(&accept, &len));)
		found = by_type(item, len);
	return found ? by_name(found->name, ret, e) : by_name("tar.gz", ret, e);
}

int archive_format_in(const char *format, const char *type, const char **ret, struct err *e)
{
	const struct archive_format *found = NULL;

	if (format && by_name(format, &found, e))
		return -e->code;
	if (!found && type)
		found = by_type(type, strlen(type));
	*ret = found ? found->name : "";
	return 0;
}
