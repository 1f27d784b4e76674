/* SPDX-License-Identifier: MIT */
/*
 * json.h - JSON in and out through jansson, with the guards that it leaves to its user, and
 * tables of fields instead of hand-written decoding. Pure.
 */
#ifndef BERTH_JSON_H
#define BERTH_JSON_H

#include <jansson.h>

#include "base/err.h"

#define JSON_DEPTH_MAX 32
#define JSON_VALUES_MAX 250000 /* a value of two bytes of text takes some 40 of memory */

#define _cleanup_json_ _cleanup_(json_decref_slot_)
static inline void json_decref_slot_(json_t **slot)
{
	json_decref(*slot); /* takes NULL */
}

/*
 * Parses a whole text. ERR_INVALID with a message that names the rule: empty, not JSON (line and
 * column), NUL byte, invalid UTF-8, duplicate key, deeper than JSON_DEPTH_MAX, more than
 * JSON_VALUES_MAX values, number out of range, something after the end. *ret is owned by the caller
 * (json_decref).
 */
int json_text_parse(const char *text, size_t len, json_t **ret, struct err *e) NODISCARD;

/* Compact text, owned by the caller. */
char *json_text(const json_t *value) NODISCARD;

/* A string from bytes that may be no UTF-8: replacement characters. Never NULL. */
json_t *json_string_lossy(const char *bytes, size_t len) NODISCARD;

enum json_kind {
	JSON_K_TEXT,     /* const char *, borrowed from the value; min..max bytes */
	JSON_K_INT,      /* int64_t, min..max */
	JSON_K_MILLI,    /* int64_t in thousandths from a JSON number; min..max thousandths */
	JSON_K_BOOL,     /* bool */
	JSON_K_OBJECT,   /* json_t *, borrowed */
	JSON_K_ANY,      /* json_t *, borrowed: whatever it is */
	JSON_K_ARRAY,    /* json_t *, borrowed: min..max items of any kind */
	JSON_K_TEXTS,    /* json_t *, borrowed: array of strings, min..max items */
	JSON_K_TEXT_MAP, /* json_t *, borrowed: object of strings, min..max entries */
};

struct json_field {
	const char *name;
	enum json_kind kind;
	size_t offset; /* into the struct that is filled */
	int64_t min, max;
	bool required;
};

/*
 * Fills a struct from an object by a table. A field that is absent or null keeps what is in the struct
 * (its default). ERR_INVALID names the field (path "limits.pids" when `path` is "limits", "" for
 * the whole text) and the rule: not an object, unknown field, wrong type, out of range, missing.
 * On failure nothing of the struct is changed.
 */
int json_fields(const json_t *object, const char *path, const struct json_field *table, size_t count,
		void *out, struct err *e) NODISCARD;

#endif
