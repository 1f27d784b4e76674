/* SPDX-License-Identifier: MIT */
/*
 * JSON: what is refused has a message; what is accepted keeps within the depth and, written out, is accepted
 * again as an equal value. Field tables fill nothing when they refuse, and what they fill is within the
 * bounds.
 */
#include <string.h>

#include "base/json.h"
#include "base/utf8.h"
#include "tests/fuzz/fuzz.h"

struct target {
	const char *text;
	int64_t number, milli;
	bool flag;
	json_t *object, *texts, *map;
};

static const struct json_field fields[] = {
	{ "t", JSON_K_TEXT, offsetof(struct target, text), 1, 8, false },
	{ "i", JSON_K_INT, offsetof(struct target, number), -5, 100, false },
	{ "m", JSON_K_MILLI, offsetof(struct target, milli), 100, 64000, false },
	{ "b", JSON_K_BOOL, offsetof(struct target, flag), 0, 0, false },
	{ "o", JSON_K_OBJECT, offsetof(struct target, object), 0, 0, false },
	{ "a", JSON_K_TEXTS, offsetof(struct target, texts), 1, 3, false },
	{ "e", JSON_K_TEXT_MAP, offsetof(struct target, map), 0, 3, true },
};

static int depth_of(json_t *v)
{
	int depth = 0;
	for (size_t i = 0; i < json_array_size(v); i++)
		depth = MAX(depth, depth_of(json_array_get(v, i)));
	for (void *it = json_object_iter(v); it; it = json_object_iter_next(v, it))
		depth = MAX(depth, depth_of(json_object_iter_value(it)));
	return depth + (json_is_array(v) || json_is_object(v));
}

static void check_error(const struct err *e)
{
	MUST(e->code == ERR_INVALID && *e->msg);
	MUST(utf8_is_valid(e->msg, strlen(e->msg)) && utf8_is_valid(e->field, strlen(e->field)));
	MUST(!strpbrk(e->msg, "\n\r\t"));
}

static void check_fields(const json_t *v)
{
	struct target filled = { .number = 1, .milli = 1000 };
	struct err e = { 0 };
	if (json_fields(v, "x", fields, ARRAY_LEN(fields), &filled, &e)) {
		check_error(&e);
		MUST(!strncmp(e.field, "x", 1));
		MUST(!filled.text && filled.number == 1 && filled.milli == 1000 && !filled.map);
		return;
	}
	MUST(json_is_object(v) && json_object_size(v) <= ARRAY_LEN(fields));
	MUST(!filled.text || (strlen(filled.text) >= 1 && strlen(filled.text) <= 8));
	MUST(filled.number >= -5 && filled.number <= 100);
	MUST(filled.milli >= 100 && filled.milli <= 64000);
	MUST(!filled.texts || (json_array_size(filled.texts) >= 1 && json_array_size(filled.texts) <= 3));
	MUST(filled.map && json_object_size(filled.map) <= 3);
}

/* json_text keeps 15 digits of a real, so one more round must change nothing. */
static void check_round_trip(const json_t *v)
{
	struct err e;
	_cleanup_json_ json_t *again = NULL, *third = NULL;
	_cleanup_free_ char *text = json_text(v);
	if (json_text_parse(text, strlen(text), &again, &e))
		MUST(strstr(e.msg, "out of range")); /* the largest reals round up to infinity */
	if (!again)
		return;
	_cleanup_free_ char *second = json_text(again);
	MUST(!strcmp(text, second));
	MUST(!json_text_parse(second, strlen(second), &third, &e));
	MUST(json_equal(again, third));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err e = { 0 };
	_cleanup_json_ json_t *v = NULL, *lossy = json_string_lossy((const char *)data, size);
	MUST(json_is_string(lossy));
	if (json_text_parse((const char *)data, size, &v, &e)) {
		MUST(!v);
		check_error(&e);
		return 0;
	}
	MUST(utf8_is_valid((const char *)data, size));
	MUST(depth_of(v) <= JSON_DEPTH_MAX);
	check_fields(v);
	check_round_trip(v);
	return 0;
}
