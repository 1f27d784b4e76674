/* SPDX-License-Identifier: MIT */
/* The description of the API and the tables that it is of say the same, in both directions. */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "api/openapi.h"
#include "api/routes.h"
#include "base/json.h"
#include "tests/unit/rows.h"

#define BELOW "/v1/sessions/{session}"

/* A shorthand for deep looks: at(doc, "a", "b", NULL). */
static json_t *at(const json_t *value, const char *key, ...)
{
	va_list args;
	va_start(args, key);
	for (; key && value; key = va_arg(args, const char *))
		value = json_object_get(value, key);
	va_end(args);
	return (json_t *)(uintptr_t)value;
}

/* What "#/a/b" means; names in it have no slashes. */
static json_t *resolve(const json_t *doc, const char *ref)
{
	char *copy = xstrdup(ref), *rest = copy;
	const json_t *value = doc;
	assert_string_equal(strsep(&rest, "/"), "#");
	for (const char *key; value && (key = strsep(&rest, "/"));)
		value = json_object_get(value, key);
	free(copy);
	return (json_t *)(uintptr_t)value;
}

static json_t *operation(const json_t *doc, const char *method, const char *path)
{
	char lower[16] = "";
	for (size_t i = 0; method[i] && i < sizeof(lower) - 1; i++)
		lower[i] = (char)tolower(method[i]);
	return at(doc, "paths", path, lower, NULL);
}

static void complain(bool fine, const char *method, const char *path, const char *what)
{
	if (!fine)
		fail_msg("%s %s: %s", method, path, what);
}

static bool has_query(const struct route *r, const char *name)
{
	for (const char *const *q = r->query; *q; q++)
		if (!strcmp(*q, name))
			return true;
	return false;
}

static void check_parameters(const json_t *doc, const json_t *op, const struct route *r, const char *path)
{
	size_t index, queries = 0, in_path = 0, wanted = 0, braces = 0;
	json_t *p;
	json_array_foreach (at(op, "parameters", NULL), index, p) {
		const char *ref = json_string_value(at(p, "$ref", NULL));
		const json_t *meant = ref ? resolve(doc, ref) : p;
		const char *in = json_string_value(at(meant, "in", NULL));
		const char *name = json_string_value(at(meant, "name", NULL));
		if (!in || !name)
			return complain(false, r->method, path, "a parameter without a name or a place");
		complain(json_is_object(at(meant, "schema", NULL)) &&
				 json_is_string(at(meant, "description", NULL)),
			 r->method, path, name);
		queries += !strcmp(in, "query");
		in_path += !strcmp(in, "path");
		if (!strcmp(in, "query"))
			complain(has_query(r, name), r->method, path, name);
		if (!strcmp(in, "path")) {
			_cleanup_free_ char *piece = xasprintf("{%s}", name);
			complain(strstr(path, piece) != NULL, r->method, path, name);
		}
	}
	for (const char *const *q = r->query; *q; q++)
		wanted++;
	for (const char *c = path; *c; c++)
		braces += *c == '{';
	complain(queries == wanted, r->method, path, "not all parameters of its query are described");
	complain(in_path == braces, r->method, path, "not all parameters of its path are described");
}

static void check_body(const json_t *op, const struct route *r, const char *path)
{
	const json_t *body = at(op, "requestBody", NULL);
	complain((body != NULL) == (r->body != ROUTE_BODY_NONE), r->method, path,
		 "takes a body, or does not");
	if (body)
		complain(json_is_true(at(body, "required", NULL)) == (r->body != ROUTE_BODY_OPTIONAL),
			 r->method, path, "whether its body is required");
}

static bool is_named(const json_t *security, const char *scheme)
{
	size_t index;
	json_t *one;
	json_array_foreach (security, index, one)
		if (at(one, scheme, NULL))
			return true;
	return false;
}

static void check_security(const json_t *op, const struct route *r, const char *path)
{
	const json_t *security = at(op, "security", NULL);
	bool admin = r->access != ROUTE_OPEN && (r->access != ROUTE_BELOW || strcmp(path, r->path));
	bool session = r->access == ROUTE_OWN || r->access == ROUTE_BELOW;
	complain(json_is_array(security), r->method, path, "no security");
	complain((json_array_size(security) == 0) == (r->access == ROUTE_OPEN), r->method, path,
		 "who may ask");
	complain(is_named(security, "admin") == admin, r->method, path, "the admin token");
	complain(is_named(security, "session") == session, r->method, path, "a session's token");
}

/* Every JSON body and reply has a schema and an example; what is no JSON needs a schema. */
static void check_content(const json_t *content, const char *method, const char *path)
{
	const char *type;
	json_t *media;
	json_object_foreach ((json_t *)(uintptr_t)content, type, media) {
		complain(at(media, "schema", NULL) != NULL, method, path, type);
		if (!strcmp(type, "application/json"))
			complain(at(media, "example", NULL) || at(media, "examples", NULL), method, path,
				 "an example is missing");
	}
}

static int code_of(const char *name)
{
	for (int code = 1; code < ERR_COUNT_; code++)
		if (!strcmp(err_name(code), name))
			return code;
	return 0;
}

static void check_replies(const json_t *doc, const json_t *op, const char *method, const char *path)
{
	const char *status;
	json_t *reply, *name;
	size_t index, good = 0;
	json_object_foreach (at(op, "responses", NULL), status, reply) {
		const char *ref = json_string_value(at(reply, "$ref", NULL));
		const json_t *meant = ref ? resolve(doc, ref) : reply;
		good += *status == '2';
		complain(json_is_string(at(meant, "description", NULL)), method, path, status);
		check_content(at(meant, "content", NULL), method, path);
	}
	complain(good > 0, method, path, "no reply of success");
	json_array_foreach (at(op, "x-errors", NULL), index, name) {
		int code = code_of(json_string_value(name));
		char text[8];
		complain(code > 0, method, path, json_string_value(name));
		snprintf(text, sizeof(text), "%d", err_http_status(code));
		complain(at(op, "responses", text, NULL) != NULL, method, path, text);
	}
}

static void check_route(const json_t *doc, const struct route *r, const char *path)
{
	const json_t *op = operation(doc, r->method, path);
	complain(op != NULL, r->method, path, "is not described in api/openapi.json");
	complain(json_is_string(at(op, "summary", NULL)) && json_array_size(at(op, "tags", NULL)) == 1,
		 r->method, path, "summary and tag");
	check_parameters(doc, op, r, path);
	check_body(op, r, path);
	check_security(op, r, path);
	check_content(at(op, "requestBody", "content", NULL), r->method, path);
	check_replies(doc, op, r->method, path);
}

static void every_route_is_described(void **state)
{
	(void)state;
	_cleanup_json_ json_t *doc = openapi_make();
	size_t count, described = 0, wanted = 0;
	const struct route *routes = routes_get(&count);
	for (size_t i = 0; i < count; i++) {
		_cleanup_free_ char *below = xasprintf("%s%s", BELOW, routes[i].path);
		check_route(doc, &routes[i], routes[i].path);
		if (routes[i].access == ROUTE_BELOW)
			check_route(doc, &routes[i], below);
		wanted += routes[i].access == ROUTE_BELOW ? 2 : 1;
	}
	const char *path;
	json_t *item;
	json_object_foreach (at(doc, "paths", NULL), path, item)
		described += json_object_size(item);
	assert_int_equal(described, wanted);
}

static bool has_route(const char *method, const char *path)
{
	size_t count;
	const struct route *routes = routes_get(&count);
	for (size_t i = 0; i < count; i++)
		if (!strcasecmp(routes[i].method, method) && !strcmp(routes[i].path, path))
			return true;
	return false;
}

static void nothing_is_described_that_is_not_there(void **state)
{
	(void)state;
	_cleanup_json_ json_t *source = openapi_source();
	const char *path, *method;
	json_t *item, *op;
	json_object_foreach (at(source, "paths", NULL), path, item)
		json_object_foreach (item, method, op)
			complain(has_route(method, path), method, path, "has no route");
}

static void the_codes_are_those_of_the_table(void **state)
{
	(void)state;
	_cleanup_json_ json_t *doc = openapi_make();
	const json_t *schema = at(doc, "components", "schemas", "ErrorCode", NULL);
	const json_t *words = at(schema, "x-descriptions", NULL), *codes = at(schema, "enum", NULL);
	assert_int_equal(json_array_size(codes), ERR_COUNT_ - 1);
	assert_int_equal(json_object_size(words), ERR_COUNT_ - 1);
	for (int code = 1; code < ERR_COUNT_; code++) {
		char status[8];
		snprintf(status, sizeof(status), "E%d", err_http_status(code));
		const json_t *reply = at(doc, "components", "responses", status, NULL);
		assert_string_equal(json_string_value(json_array_get(codes, (size_t)code - 1)),
				    err_name(code));
		if (!json_is_string(at(words, err_name(code), NULL)))
			fail_msg("api/openapi.json does not say when %s is answered", err_name(code));
		assert_non_null(at(reply, "content", "application/json", "examples", err_name(code), NULL));
	}
}

static void check_refs(const json_t *doc, const json_t *value, size_t *count)
{
	const char *key;
	json_t *item;
	size_t index;
	json_array_foreach (value, index, item)
		check_refs(doc, item, count);
	json_object_foreach ((json_t *)(uintptr_t)value, key, item) {
		if (!strcmp(key, "$ref")) {
			(*count)++;
			if (!resolve(doc, json_string_value(item)))
				fail_msg("%s is not there", json_string_value(item));
		} else {
			check_refs(doc, item, count);
		}
	}
}

static void every_reference_leads_somewhere(void **state)
{
	(void)state;
	_cleanup_json_ json_t *doc = openapi_make(), *source = openapi_source();
	size_t count = 0;
	check_refs(doc, doc, &count);
	assert_true(count > 100);
	const char *name;
	json_t *schema;
	/* And every schema is led to. */
	_cleanup_free_ char *text = json_text(source);
	json_object_foreach (at(source, "components", "schemas", NULL), name, schema) {
		_cleanup_free_ char *ref = xasprintf("\"#/components/schemas/%s\"", name);
		if (!strstr(text, ref) && strcmp(name, "Error"))
			fail_msg("nothing uses the schema %s", name);
	}
}

static void operations_have_ids_of_their_own(void **state)
{
	(void)state;
	_cleanup_json_ json_t *doc = openapi_make(), *ids = json_object();
	const char *path, *method;
	json_t *item, *op;
	json_object_foreach (at(doc, "paths", NULL), path, item)
		json_object_foreach (item, method, op) {
			const char *id = json_string_value(at(op, "operationId", NULL));
			complain(id && !at(ids, id, NULL), method, path, id ? id : "no operationId");
			json_object_set_new(ids, id, json_true());
		}
	assert_string_equal(json_string_value(at(doc, "info", "version", NULL)), BERTH_VERSION);
}

int main(void)
{
	struct rows r = { 0 };
	rows_one(&r, "openapi: every route is described, at the root and below a session",
		 every_route_is_described);
	rows_one(&r, "openapi: nothing is described that is not there",
		 nothing_is_described_that_is_not_there);
	rows_one(&r, "openapi: the error codes are those of the table", the_codes_are_those_of_the_table);
	rows_one(&r, "openapi: every reference leads somewhere", every_reference_leads_somewhere);
	rows_one(&r, "openapi: operations have ids of their own", operations_have_ids_of_their_own);
	return rows_run(&r, "openapi");
}
