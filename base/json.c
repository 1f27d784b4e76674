/* SPDX-License-Identifier: MIT */
#include "base/json.h"

#include <string.h>

#include "base/utf8.h"

/* ---- text to value ---- */

/* What a text would cost, found before jansson takes memory for it. Strings are skipped. */
struct shape {
	size_t depth, values;
};

static struct shape shape_of(const char *text, size_t len)
{
	struct shape s = { 0 };
	size_t depth = 0;
	for (size_t i = 0; i < len; i++) {
		switch (text[i]) {
		case '"':
			for (i++; i < len && text[i] != '"'; i++)
				i += text[i] == '\\';
			break;
		case '[':
		case '{':
			depth++;
			s.values++;
			s.depth = MAX(s.depth, depth);
			break;
		case ']':
		case '}':
			depth -= depth > 0;
			break;
		case ',':
			s.values++;
			break;
		default:
			break;
		}
	}
	return s;
}

/* The rules that jansson leaves to its user. */
static int check_text(const char *text, size_t len, struct err *e)
{
	size_t valid = utf8_valid_len(text, len), blank = 0;
	if (valid < len)
		return err_set(e, ERR_INVALID, "not JSON: %s at byte %zu",
			       text[valid] ? "invalid UTF-8" : "a NUL byte", valid);
	while (blank < len && strchr(" \t\r\n", text[blank]))
		blank++;
	if (blank == len)
		return err_set(e, ERR_INVALID, "not JSON: the text is empty");
	struct shape s = shape_of(text, len);
	if (s.depth > JSON_DEPTH_MAX)
		return err_set(e, ERR_INVALID, "not accepted: nested deeper than %d", JSON_DEPTH_MAX);
	if (s.values > JSON_VALUES_MAX)
		return err_set(e, ERR_INVALID, "not accepted: more than %d values", JSON_VALUES_MAX);
	return 0;
}

/* Our words where jansson's would puzzle the reader; NULL: its own. */
static const char *words_for(enum json_error_code code)
{
	static const struct {
		enum json_error_code code;
		const char *words;
	} rows[] = {
		{ json_error_premature_end_of_input, "the text ends too early" },
		{ json_error_end_of_input_expected, "something follows the end" },
		{ json_error_null_character, "\\u0000 is not accepted" },
		{ json_error_null_byte_in_key, "\\u0000 is not accepted" },
		{ json_error_numeric_overflow, "a number is out of range" },
		{ json_error_duplicate_key, "a key stands twice in one object" },
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (rows[i].code == code)
			return rows[i].words;
	return NULL;
}

int json_text_parse(const char *text, size_t len, json_t **ret, struct err *e)
{
	if (check_text(text, len, e))
		return -(int)e->code;
	json_error_t why;
	json_t *value = json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &why);
	if (!value) {
		const char *words = words_for(json_error_code(&why));
		return err_set(e, ERR_INVALID, "not JSON: line %d, column %d: %s", why.line, why.column,
			       words ? words : why.text);
	}
	*ret = value;
	return 0;
}

/* ---- value to text ---- */

char *json_text(const json_t *value)
{
	/* 15 digits print 1.8 as 1.8; the 17 of an exact round trip do not. */
	char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
	if (!text)
		abort();
	return text;
}

json_t *json_string_lossy(const char *bytes, size_t len)
{
	_cleanup_buf_ struct buf out = BUF_INIT(3 * len + 3);
	struct utf8_stream s = { 0 };
	struct err e;
	if (utf8_feed(&s, bytes, len, &out, &e) || utf8_finish(&s, &out, &e))
		abort(); /* utf8.h promises that it fits */
	json_t *value = json_stringn_nocheck(out.data ? out.data : "", out.len);
	if (!value)
		abort();
	return value;
}

/* ---- tables of fields ---- */

/* jansson's iterators ask for a mutable object and change nothing. */
static json_t *iterable(const json_t *object)
{
	union {
		const json_t *given;
		json_t *mutable;
	} same = { object };
	return same.mutable;
}

static bool is_int(const json_t *v)
{
	return json_is_integer(v);
}

static bool is_number(const json_t *v)
{
	return json_is_number(v);
}

static bool is_bool(const json_t *v)
{
	return json_is_boolean(v);
}

static bool is_text(const json_t *v)
{
	return json_is_string(v);
}

static bool is_object(const json_t *v)
{
	return json_is_object(v);
}

static bool is_any(const json_t *v)
{
	return v != NULL;
}

static bool is_array(const json_t *v)
{
	return json_is_array(v);
}

static bool is_texts(const json_t *v)
{
	for (size_t i = 0; i < json_array_size(v); i++)
		if (!json_is_string(json_array_get(v, i)))
			return false;
	return json_is_array(v);
}

static bool is_text_map(const json_t *v)
{
	const char *key;
	json_t *item;
	json_object_foreach (iterable(v), key, item)
		if (!json_is_string(item))
			return false;
	return json_is_object(v);
}

static int64_t int_of(const json_t *v)
{
	return json_integer_value(v);
}

/* In thousandths, rounded; what int64 cannot hold becomes its end, which no table allows. */
static int64_t milli_of(const json_t *v)
{
	double milli = json_number_value(v) * 1000;
	if (milli > 9e18 || milli < -9e18)
		return milli > 0 ? INT64_MAX : INT64_MIN;
	return (int64_t)(milli + (milli < 0 ? -0.5 : 0.5));
}

static int64_t length_of(const json_t *v)
{
	return (int64_t)json_string_length(v);
}

static int64_t items_of(const json_t *v)
{
	return (int64_t)json_array_size(v);
}

static int64_t entries_of(const json_t *v)
{
	return (int64_t)json_object_size(v);
}

/* What each kind accepts, and the number that min and max judge (NULL: they do not). */
static const struct kind {
	const char *must_be;
	bool (*fits)(const json_t *v);
	int64_t (*size_of)(const json_t *v);
	const char *have, *unit; /* "must HAVE from 1 to 2 UNIT" */
} kinds[] = {
	[JSON_K_TEXT] = { "a string", is_text, length_of, "have", " bytes" },
	[JSON_K_INT] = { "a whole number", is_int, int_of, "be", "" },
	[JSON_K_MILLI] = { "a number", is_number, milli_of, "be", "" },
	[JSON_K_BOOL] = { "true or false", is_bool, NULL, "", "" },
	[JSON_K_OBJECT] = { "an object", is_object, NULL, "", "" },
	[JSON_K_ANY] = { "a value", is_any, NULL, "", "" },
	[JSON_K_ARRAY] = { "an array", is_array, items_of, "have", " items" },
	[JSON_K_TEXTS] = { "an array of strings", is_texts, items_of, "have", " items" },
	[JSON_K_TEXT_MAP] = { "an object of strings", is_text_map, entries_of, "have", " entries" },
};

/* ERR_INVALID for the field "path.name", whose name may be a client's: the message begins with it. */
static int refuse(struct err *e, const char *path, const char *name, const char *rule)
{
	char field[sizeof(e->field)];
	_cleanup_free_ char *safe = utf8_escape(name, strlen(name), 32);
	snprintf(field, sizeof(field), "%s%s%s", path, *path ? "." : "", safe);
	return err_field(e, field, "%s %s", field, rule);
}

static void bound_text(enum json_kind kind, int64_t bound, char ret[32])
{
	long long b = bound;
	if (kind == JSON_K_MILLI && b % 1000)
		snprintf(ret, 32, "%.3f", (double)b / 1000);
	else
		snprintf(ret, 32, "%lld", kind == JSON_K_MILLI ? b / 1000 : b);
}

static int check_field(const json_t *v, const char *path, const struct json_field *f, struct err *e)
{
	const struct kind *k = &kinds[f->kind];
	char rule[128], min[32], max[32];
	if (!k->fits(v)) {
		snprintf(rule, sizeof(rule), "must be %s", k->must_be);
		return refuse(e, path, f->name, rule);
	}
	int64_t size = k->size_of ? k->size_of(v) : 0;
	if (!k->size_of || (size >= f->min && size <= f->max))
		return 0;
	bound_text(f->kind, f->min, min);
	bound_text(f->kind, f->max, max);
	snprintf(rule, sizeof(rule), "must %s from %s to %s%s", k->have, min, max, k->unit);
	return refuse(e, path, f->name, rule);
}

static void store_field(json_t *v, const struct json_field *f, void *out)
{
	void *slot = (char *)out + f->offset;
	switch (f->kind) {
	case JSON_K_TEXT:
		*(const char **)slot = json_string_value(v);
		break;
	case JSON_K_INT:
		*(int64_t *)slot = int_of(v);
		break;
	case JSON_K_MILLI:
		*(int64_t *)slot = milli_of(v);
		break;
	case JSON_K_BOOL:
		*(bool *)slot = json_is_true(v);
		break;
	case JSON_K_OBJECT:
	case JSON_K_ANY:
	case JSON_K_ARRAY:
	case JSON_K_TEXTS:
	case JSON_K_TEXT_MAP:
		*(json_t **)slot = v;
		break;
	}
}

static bool is_known(const char *name, const struct json_field *table, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(table[i].name, name))
			return true;
	return false;
}

static bool is_given(const json_t *v)
{
	return v && !json_is_null(v);
}

static int check_object(const json_t *object, const char *path, const struct json_field *table, size_t count,
			struct err *e)
{
	const char *key;
	json_t *v;
	if (!json_is_object(object))
		return err_field(e, path, "%s must be an object", *path ? path : "the text");
	json_object_foreach (iterable(object), key, v)
		if (!is_known(key, table, count))
			return refuse(e, path, key, "is not a known field");
	for (size_t i = 0; i < count; i++) {
		v = json_object_get(object, table[i].name);
		if (is_given(v)) {
			if (check_field(v, path, &table[i], e))
				return -(int)e->code;
		} else if (table[i].required) {
			return refuse(e, path, table[i].name, "is missing");
		}
	}
	return 0;
}

int json_fields(const json_t *object, const char *path, const struct json_field *table, size_t count,
		void *out, struct err *e)
{
	if (check_object(object, path, table, count, e))
		return -(int)e->code;
	for (size_t i = 0; i < count; i++) {
		json_t *v = json_object_get(object, table[i].name);
		if (is_given(v))
			store_field(v, &table[i], out);
	}
	return 0;
}
