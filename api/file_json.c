/* SPDX-License-Identifier: MIT */
#include "api/file_json.h"

#include <string.h>

#include "base/base64.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/json_write.h"
#include "base/utf8.h"

void file_json_clear(struct file_body *body)
{
	for (size_t i = 0; i < body->count; i++)
		free(body->paths[i]);
	free(body->paths);
	json_decref(body->json);
	*body = (struct file_body){ 0 };
}

/* ---- bodies ---- */

struct fields {
	const char *path, *path_b64, *content;
	json_t *paths, *files, *from, *to;
	bool recursive;
	int64_t max;
};

#define AT(member) offsetof(struct fields, member)
#define TEXT(key, member)                                                                  \
	{                                                                                  \
		.name = (key), .kind = JSON_K_TEXT, .offset = AT(member), .max = INT32_MAX \
	}
#define PATH_FIELDS TEXT("path", path), TEXT("path_b64", path_b64)
#define RECURSIVE                                                                 \
	{                                                                         \
		.name = "recursive", .kind = JSON_K_BOOL, .offset = AT(recursive) \
	}
/* clang-format off */
static const struct json_field path_fields[] = { PATH_FIELDS };
static const struct json_field list_fields[] = { PATH_FIELDS, RECURSIVE,
	{ .name = "max", .kind = JSON_K_INT, .offset = AT(max), .min = 1, .max = FILES_LIST_MAX } };
static const struct json_field move_fields[] = {
	{ .name = "from", .kind = JSON_K_ANY, .offset = AT(from), .required = true },
	{ .name = "to", .kind = JSON_K_ANY, .offset = AT(to), .required = true } };
static const struct json_field stat_fields[] = {
	{ .name = "paths", .kind = JSON_K_ARRAY, .offset = AT(paths), .max = FILES_PATHS_MAX, .required = true } };
static const struct json_field delete_fields[] = { RECURSIVE,
	{ .name = "paths", .kind = JSON_K_ARRAY, .offset = AT(paths), .max = FILES_PATHS_MAX, .required = true } };
static const struct json_field download_fields[] = {
	{ .name = "paths", .kind = JSON_K_ARRAY, .offset = AT(paths), .max = FILE_JSON_FILES_MAX, .required = true } };
static const struct json_field upload_fields[] = {
	{ .name = "files", .kind = JSON_K_ARRAY, .offset = AT(files), .max = FILE_JSON_FILES_MAX, .required = true } };
static const struct json_field file_fields[] = { PATH_FIELDS,
	{ .name = "content_b64", .kind = JSON_K_TEXT, .offset = AT(content), .max = INT32_MAX, .required = true } };
static const struct json_field bytes_fields[] = {
	{ .name = "b64", .kind = JSON_K_TEXT, .offset = AT(path_b64), .max = INT32_MAX, .required = true } };

#define TABLE(t) { (t), ARRAY_LEN(t) }
static const struct {
	const struct json_field *fields;
	size_t count;
} tables[] = {
	[FILE_JSON_PATH]     = TABLE(path_fields),
	[FILE_JSON_LIST]     = TABLE(list_fields),
	[FILE_JSON_MOVE]     = TABLE(move_fields),
	[FILE_JSON_STAT]     = TABLE(stat_fields),
	[FILE_JSON_DELETE]   = TABLE(delete_fields),
	[FILE_JSON_DOWNLOAD] = TABLE(download_fields),
	[FILE_JSON_UPLOAD]   = TABLE(upload_fields),
};
/* clang-format on */
#undef AT
#undef TEXT

#define LIST_DEFAULT 1000

int file_json_path_b64(const char *field, const char *text, char **ret, struct err *e)
{
	_cleanup_free_ char *bytes = NULL;
	size_t len;

	if (base64_decode(text, strlen(text), &bytes, &len, e))
		return err_field(e, field, "%s is not base64", field);
	if (!len || len > FILE_JSON_PATH_MAX || memchr(bytes, '\0', len))
		return err_field(e, field, "%s must be of 1 to %d bytes, none of them NUL", field,
				 FILE_JSON_PATH_MAX);
	*ret = STEAL_PTR(bytes);
	return 0;
}

/* One of the two forms; name_b64 is NAME_b64 in errors. */
static int add_path(struct file_body *body, const char *name, const char *text, const char *b64,
		    struct err *e)
{
	char field[64];
	char *path = NULL;

	if (!text == !b64)
		return err_field(e, name, "give either %s or %s_b64", name, name);
	(void)snprintf(field, sizeof(field), "%s_b64", name);
	if (b64 && file_json_path_b64(field, b64, &path, e))
		return -e->code;
	if (text && (!*text || strlen(text) > FILE_JSON_PATH_MAX))
		return err_field(e, name, "%s must be of 1 to %d bytes", name, FILE_JSON_PATH_MAX);
	body->paths[body->count++] = path ? path : xstrdup(text);
	return 0;
}

/* A string, or {b64}. */
static int add_value(struct file_body *body, const json_t *value, const char *field, struct err *e)
{
	struct fields f = { 0 };
	char *path = NULL;

	if (json_is_string(value)) {
		if (!json_string_length(value) || json_string_length(value) > FILE_JSON_PATH_MAX)
			return err_field(e, field, "%s must be of 1 to %d bytes", field, FILE_JSON_PATH_MAX);
		path = xstrdup(json_string_value(value));
	} else if (!json_is_object(value)) {
		return err_field(e, field, "%s must be a string or an object with b64", field);
	} else if (json_fields(value, field, bytes_fields, ARRAY_LEN(bytes_fields), &f, e) ||
		   file_json_path_b64(field, f.path_b64, &path, e)) {
		return -e->code;
	}
	body->paths[body->count++] = path;
	return 0;
}

static int add_element(struct file_body *body, const json_t *item, size_t index, struct err *e)
{
	char field[48];

	(void)snprintf(field, sizeof(field), "paths[%zu]", index);
	return add_value(body, item, field, e);
}

static int add_file(struct file_body *body, const json_t *item, size_t index, struct err *e)
{
	struct fields f = { 0 };
	char field[48];

	(void)snprintf(field, sizeof(field), "files[%zu]", index);
	if (json_fields(item, field, file_fields, ARRAY_LEN(file_fields), &f, e))
		return -e->code;
	(void)snprintf(field, sizeof(field), "files[%zu].path", index);
	return add_path(body, field, f.path, f.path_b64, e);
}

static int add_all(struct file_body *body, const json_t *list,
		   int (*add)(struct file_body *, const json_t *, size_t, struct err *), struct err *e)
{
	size_t count = json_array_size(list);

	body->paths = xcalloc(count + 1, sizeof(*body->paths));
	for (size_t i = 0; i < count; i++)
		if (add(body, json_array_get(list, i), i, e))
			return -e->code;
	return 0;
}

static int take(struct file_body *body, const struct fields *f, enum file_json_kind kind, struct err *e)
{
	body->recursive = f->recursive;
	body->max = f->max;
	body->files = f->files;
	if (f->paths)
		return add_all(body, f->paths, add_element, e);
	if (f->files)
		return add_all(body, f->files, add_file, e);
	body->paths = xcalloc(2, sizeof(*body->paths));
	if (kind == FILE_JSON_MOVE)
		return add_value(body, f->from, "from", e) || add_value(body, f->to, "to", e) ? -e->code : 0;
	return add_path(body, "path", f->path, f->path_b64, e);
}

int file_json_decode(const char *text, size_t len, enum file_json_kind kind, struct file_body *ret,
		     struct err *e)
{
	_cleanup_(file_json_clear) struct file_body body = { 0 };
	struct fields f = { .max = LIST_DEFAULT };

	if (json_text_parse(text, len, &body.json, e) ||
	    json_fields(body.json, "", tables[kind].fields, tables[kind].count, &f, e) ||
	    take(&body, &f, kind, e))
		return -e->code;
	*ret = body;
	body = (struct file_body){ 0 };
	return 0;
}

int file_json_content(const struct file_body *body, size_t index, char **ret, size_t *ret_len, struct err *e)
{
	const json_t *text = json_object_get(json_array_get(body->files, index), "content_b64");

	if (base64_decode(json_string_value(text), json_string_length(text), ret, ret_len, e))
		return err_field(e, "content_b64", "content_b64 is not base64");
	return 0;
}

/* ---- entries ---- */

/* "KEY":"text", and "KEY_b64" with the exact bytes when that text cannot have them. */
static int add_bytes(struct buf *out, const char *key, const char *bytes, size_t len, struct err *e)
{
	if (buf_addf(out, e, "\"%s\":", key) || json_write_lossy(out, bytes, len, e))
		return -e->code;
	if (utf8_is_valid(bytes, len))
		return 0;
	_cleanup_free_ char *exact = base64_encode(bytes, len);
	return buf_addf(out, e, ",\"%s_b64\":\"%s\"", key, exact);
}

static int add_error(struct buf *out, const struct err *why, struct err *e)
{
	char text[sizeof(why->msg) + 64];

	if (!why->code)
		return buf_addf(out, e, ",\"error\":null}");
	(void)snprintf(text, sizeof(text), "%s: %s", err_name(why->code), why->msg);
	if (buf_addf(out, e, ",\"error\":") || json_write_lossy(out, text, strlen(text), e))
		return -e->code;
	return buf_addf(out, e, "}");
}

static int add_facts(struct buf *out, const struct file_entry *entry, struct err *e)
{
	char mtime[CLOCK_TEXT_SIZE];

	if (entry->err.code)
		return buf_addf(out, e, ",\"type\":null,\"size\":null,\"mtime\":null,\"mode\":null");
	clock_format(entry->mtime_ms, mtime);
	if (buf_addf(out, e, ",\"type\":\"%s\",\"size\":%llu,\"mtime\":\"%s\",\"mode\":\"%04o\"", entry->type,
		     (unsigned long long)entry->size, mtime, entry->mode))
		return -e->code;
	if (!entry->target)
		return 0;
	return buf_addf(out, e, ",") || add_bytes(out, "target", entry->target, entry->target_len, e)
		       ? -e->code
		       : 0;
}

int file_json_entry(struct buf *out, const struct file_entry *entry, bool with_error, struct err *e)
{
	if (buf_addf(out, e, "{") || add_bytes(out, "path", entry->path, entry->path_len, e) ||
	    add_facts(out, entry, e))
		return -e->code;
	return with_error ? add_error(out, &entry->err, e) : buf_addf(out, e, "}");
}

int file_json_result(struct buf *out, const char *path, size_t len, const struct err *why, struct err *e)
{
	if (buf_addf(out, e, "{") || add_bytes(out, "path", path, len, e))
		return -e->code;
	return add_error(out, why, e);
}

int file_json_download(struct buf *out, const char *path, const struct buf *content, const struct err *why,
		       struct err *e)
{
	if (buf_addf(out, e, "{") || add_bytes(out, "path", path, strlen(path), e) ||
	    buf_addf(out, e, ",\"content_b64\":"))
		return -e->code;
	if (content ? json_write_plain(out, content->data ? content->data : "", content->len, e)
		    : buf_addf(out, e, "null"))
		return -e->code;
	return add_error(out, why, e);
}
