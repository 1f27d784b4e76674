/* SPDX-License-Identifier: MIT */
/* file_json.h - bodies of /files to paths, and entries to JSON. Pure. */
#ifndef BERTH_FILE_JSON_H
#define BERTH_FILE_JSON_H

#include <jansson.h>

#include "base/buf.h"
#include "manager/files.h"

#define FILE_JSON_FILES_MAX 1000 /* of one upload or download */

struct file_body {
	json_t *json;
	char **paths; /* exact bytes, NUL-terminated, owned */
	size_t count;
	json_t *files; /* of an upload: an object for each path; borrowed from json */
	bool recursive;
	int64_t max;
};
void file_json_clear(struct file_body *body);

/* What a kind of body may have. ERR_INVALID names the field. */
enum file_json_kind {
	FILE_JSON_PATH,     /* {path} */
	FILE_JSON_LIST,     /* {path, recursive?, max?} */
	FILE_JSON_MOVE,     /* {from, to}: two paths */
	FILE_JSON_STAT,     /* {paths} */
	FILE_JSON_DELETE,   /* {paths, recursive?} */
	FILE_JSON_DOWNLOAD, /* {paths} */
	FILE_JSON_UPLOAD,   /* {files: [{path, content_b64}]} */
};
int file_json_decode(const char *text, size_t len, enum file_json_kind kind, struct file_body *ret,
		     struct err *e) NODISCARD;
/* The bytes of an upload's file, owned by the caller. */
int file_json_content(const struct file_body *body, size_t index, char **ret, size_t *ret_len,
		      struct err *e) NODISCARD;
/* A path out of its base64: no NUL, 1 to FILE_JSON_PATH_MAX bytes. Owned by the caller. */
#define FILE_JSON_PATH_MAX 4095
int file_json_path_b64(const char *field, const char *text, char **ret, struct err *e) NODISCARD;

/*
 * Each adds one object. ERR_TOO_LARGE as buf_add(); then a part of it may be there. A path that is no UTF-8
 * is shown with replacement characters, and path_b64 has its bytes.
 */

/* {path, type, size, mtime, mode, target?}, with with_error also error; all null but for a path of an error.
 */
int file_json_entry(struct buf *out, const struct file_entry *entry, bool with_error,
		    struct err *e) NODISCARD;
/* {path, error} */
int file_json_result(struct buf *out, const char *path, size_t len, const struct err *why,
		     struct err *e) NODISCARD;
/* {path, content_b64, error}: the content's text is base64; NULL: null. */
int file_json_download(struct buf *out, const char *path, const struct buf *content, const struct err *why,
		       struct err *e) NODISCARD;

#endif
