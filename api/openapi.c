/* SPDX-License-Identifier: MIT */
#include "api/openapi.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

#include "api/routes.h"
#include "base/json.h"

#define BELOW "/v1/sessions/{session}"

extern const char openapi_text[]; /* api/openapi_text.S */

json_t *openapi_source(void)
{
	struct err e;
	json_t *source = NULL;

	if (json_text_parse(openapi_text, strlen(openapi_text), &source, &e))
		abort();
	return source;
}

/* ---- errors ---- */

/* Which errors a request may meet because of what it is, whatever it asks for. */
static const enum err_code of_all[] = { ERR_INVALID, ERR_FORBIDDEN, ERR_URI_TOO_LONG, ERR_INTERNAL };
static const enum err_code of_closed[] = { ERR_UNAUTHORIZED, ERR_OVERLOADED, ERR_STOPPING };
static const enum err_code of_bodies[] = { ERR_TOO_LARGE, ERR_MEDIA_TYPE, ERR_LIMIT, ERR_UNSUPPORTED };
static const enum err_code of_sessions[] = { ERR_NOT_FOUND, ERR_GONE,        ERR_CONFLICT, ERR_TIMEOUT,
					     ERR_ENGINE,    ERR_UNAVAILABLE, ERR_STORE,    ERR_SANDBOX };

struct error_set {
	bool has[ERR_COUNT_];
};

static void add_codes(struct error_set *set, const enum err_code *codes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		set->has[codes[i]] = true;
}

static void add_names(struct error_set *set, const json_t *names)
{
	size_t index;
	json_t *name;

	json_array_foreach (names, index, name)
		for (int code = 1; code < ERR_COUNT_; code++)
			if (!strcmp(err_name((enum err_code)code), json_string_value(name)))
				set->has[code] = true;
}

static void response_name(int status, char name[8])
{
	(void)snprintf(name, 8, "E%d", status);
}

/* A reply that the operation describes itself is left as it is: /health answers 503 with a body of its own.
 */
static void put_errors(json_t *op, const struct error_set *set)
{
	json_t *responses = json_object_get(op, "responses"), *names = json_array();
	char status[8], name[8];

	for (int code = 1; code < ERR_COUNT_; code++) {
		if (!set->has[code])
			continue;
		json_array_append_new(names, json_string(err_name((enum err_code)code)));
		(void)snprintf(status, sizeof(status), "%d", err_http_status((enum err_code)code));
		response_name(err_http_status((enum err_code)code), name);
		if (!json_object_get(responses, status))
			json_object_set_new(
				responses, status,
				json_pack("{s:o}", "$ref", json_sprintf("#/components/responses/%s", name)));
	}
	json_object_set_new(op, "x-errors", names);
}

static const struct {
	int status;
	const char *name, *text;
} error_headers[] = {
	{ 401, "WWW-Authenticate", "Bearer" },
	{ 405, "Allow", "the methods that this path takes" },
	{ 416, "Content-Range", "how many bytes there are" },
	{ 429, "Retry-After", "seconds, where waiting helps" },
	{ 503, "Retry-After", "seconds, where waiting helps" },
};

static json_t *new_response(int status)
{
	json_t *response =
		json_pack("{s:s, s:{s:{s:{s:s}, s:{}}}}", "description", "", "content", "application/json",
			  "schema", "$ref", "#/components/schemas/Error", "examples");

	for (size_t i = 0; i < ARRAY_LEN(error_headers); i++)
		if (error_headers[i].status == status)
			json_object_set_new(response, "headers",
					    json_pack("{s:{s:s, s:{s:s}}}", error_headers[i].name,
						      "description", error_headers[i].text, "schema", "type",
						      "string"));
	return response;
}

/* One code more of a response: its words and an example. */
static void add_code(json_t *response, const char *code, const char *words)
{
	const char *before = json_string_value(json_object_get(response, "description"));
	json_t *type = json_object_get(json_object_get(response, "content"), "application/json");

	json_object_set_new(
		json_object_get(type, "examples"), code,
		json_pack("{s:{s:{s:s, s:s}}}", "value", "error", "code", code, "message", words));
	json_object_set_new(response, "description",
			    json_sprintf("%s%s`%s`: %s", before, *before ? "; " : "", code, words));
}

/* components.responses, one for each status, and the codes into schemas.ErrorCode. */
static void describe_errors(json_t *components)
{
	json_t *schema = json_object_get(json_object_get(components, "schemas"), "ErrorCode");
	json_t *responses = json_object(), *codes = json_array();
	char name[8];

	for (int code = 1; code < ERR_COUNT_; code++) {
		const char *wire = err_name((enum err_code)code);
		const char *words =
			json_string_value(json_object_get(json_object_get(schema, "x-descriptions"), wire));
		int status = err_http_status((enum err_code)code);

		json_array_append_new(codes, json_string(wire));
		response_name(status, name);
		if (!json_object_get(responses, name))
			json_object_set_new(responses, name, new_response(status));
		add_code(json_object_get(responses, name), wire, words ? words : "");
	}
	json_object_set_new(schema, "enum", codes);
	json_object_set_new(components, "responses", responses);
}

/* ---- operations ---- */

static const struct route *find_route(const char *method, const char *path)
{
	size_t count;
	const struct route *routes = routes_get(&count);

	for (size_t i = 0; i < count; i++)
		if (!strcasecmp(routes[i].method, method) && !strcmp(routes[i].path, path))
			return &routes[i];
	return NULL;
}

static json_t *security(enum route_access access, bool at_root)
{
	if (access == ROUTE_OPEN)
		return json_array();
	if (access == ROUTE_ADMIN)
		return json_pack("[{s:[]}]", "admin");
	if (access == ROUTE_BELOW && at_root)
		return json_pack("[{s:[]}]", "session");
	return json_pack("[{s:[]}, {s:[]}]", "session", "admin");
}

/* Those that the path names, before those of its own. */
static void put_parameters(json_t *op, const char *path)
{
	json_t *all = json_array(), *own = json_object_get(op, "parameters");

	for (const char *at = path; (at = strchr(at, '{')); at++)
		json_array_append_new(all, json_pack("{s:o}", "$ref",
						     json_sprintf("#/components/parameters/%.*s",
								  (int)strcspn(at + 1, "}"), at + 1)));
	json_array_extend(all, own);
	if (json_array_size(all))
		json_object_set(op, "parameters", all);
	json_decref(all);
}

static void put_operation(json_t *paths, const struct route *r, const char *method, const char *path,
			  const json_t *written)
{
	bool at_root = !strcmp(path, r->path);
	json_t *op = json_deep_copy(written);
	struct error_set errors = { 0 };

	add_codes(&errors, of_all, ARRAY_LEN(of_all));
	if (r->access != ROUTE_OPEN)
		add_codes(&errors, of_closed, ARRAY_LEN(of_closed));
	if (r->body != ROUTE_BODY_NONE)
		add_codes(&errors, of_bodies, ARRAY_LEN(of_bodies));
	if (r->access == ROUTE_BELOW)
		add_codes(&errors, of_sessions, ARRAY_LEN(of_sessions));
	errors.has[ERR_LOCAL_MODE] = !strncmp(path, "/v1/", 4);
	add_names(&errors, json_object_get(op, "x-errors"));
	put_errors(op, &errors);
	put_parameters(op, path);
	json_object_set_new(op, "security", security(r->access, at_root));
	if (!at_root) /* ids are unique */
		json_object_set_new(
			op, "operationId",
			json_sprintf("%sInSession", json_string_value(json_object_get(op, "operationId"))));
	if (!json_object_get(paths, path))
		json_object_set_new(paths, path, json_object());
	json_object_set_new(json_object_get(paths, path), method, op);
}

static json_t *make_paths(json_t *written)
{
	json_t *paths = json_object(), *item, *op;
	const char *path, *method;

	json_object_foreach (written, path, item)
		json_object_foreach (item, method, op) {
			const struct route *r = find_route(method, path);
			_cleanup_free_ char *below = xasprintf("%s%s", BELOW, path);

			if (r)
				put_operation(paths, r, method, path, op);
			if (r && r->access == ROUTE_BELOW)
				put_operation(paths, r, method, below, op);
		}
	return paths;
}

json_t *openapi_make(void)
{
	json_t *doc = openapi_source();

	json_object_set_new(json_object_get(doc, "info"), "version", json_string(BERTH_VERSION));
	json_object_set_new(doc, "paths", make_paths(json_object_get(doc, "paths")));
	describe_errors(json_object_get(doc, "components"));
	return doc;
}
