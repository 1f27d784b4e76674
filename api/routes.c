/* SPDX-License-Identifier: MIT */
#include "api/routes.h"

#include <string.h>

#include "api/handle_archive.h"
#include "api/handle_content.h"
#include "api/handle_exec.h"
#include "api/handle_file.h"
#include "api/handle_health.h"
#include "api/handle_metrics.h"
#include "api/handle_openapi.h"
#include "api/handle_process.h"
#include "api/handle_session.h"

#define SESSION_BODY_MAX (1 << 20)

/* clang-format off */
static const struct route routes[] = {
	{ "GET",    "/health",               ROUTE_OPEN,  ROUTE_BODY_NONE,     0,                handle_health_get,     "health",         { 0 } },
	{ "GET",    "/metrics",              ROUTE_OPEN,  ROUTE_BODY_NONE,     0,                handle_metrics_get,    "metrics",        { 0 } },
	{ "GET",    "/openapi.json",         ROUTE_OPEN,  ROUTE_BODY_NONE,     0,                handle_openapi_get,    "openapi",        { 0 } },
	{ "GET",    "/v1/sessions",          ROUTE_ADMIN, ROUTE_BODY_NONE,     0,                handle_session_list,   "session.list",   { "state", "name", "label", "limit", "cursor" } },
	{ "POST",   "/v1/sessions",          ROUTE_ADMIN, ROUTE_BODY_OPTIONAL, SESSION_BODY_MAX, handle_session_create, "session.create", { 0 } },
	{ "GET",    "/v1/sessions/{session}", ROUTE_OWN,  ROUTE_BODY_NONE,     0,                handle_session_get,    "session.get",    { 0 } },
	{ "GET",    "/v1/sessions/{session}/health", ROUTE_OWN, ROUTE_BODY_NONE, 0,              handle_health_session, "session.health", { 0 } },
	{ "PATCH",  "/v1/sessions/{session}", ROUTE_ADMIN, ROUTE_BODY_REQUIRED, SESSION_BODY_MAX, handle_session_patch, "session.patch",  { 0 } },
	{ "DELETE", "/v1/sessions/{session}", ROUTE_ADMIN, ROUTE_BODY_NONE,    0,                handle_session_delete, "session.delete", { "workspace" } },
	{ "POST",   "/exec",                 ROUTE_BELOW, ROUTE_BODY_REQUIRED, 0,                handle_exec_run,       "exec.start",     { 0 } },
	{ "POST",   "/exec/stream",          ROUTE_BELOW, ROUTE_BODY_REQUIRED, 0,                handle_exec_stream,    "exec.start",     { 0 } },
	{ "GET",    "/execs",                ROUTE_BELOW, ROUTE_BODY_NONE,     0,                handle_exec_list,      "exec.list",      { "limit" } },
	{ "GET",    "/execs/{exec}",         ROUTE_BELOW, ROUTE_BODY_NONE,     0,                handle_exec_get,       "exec.get",       { "wait_s" } },
	{ "DELETE", "/execs/{exec}",         ROUTE_BELOW, ROUTE_BODY_NONE,     0,                handle_exec_cancel,    "exec.cancel",    { "grace_s" } },
	{ "POST",   "/processes",            ROUTE_BELOW, ROUTE_BODY_REQUIRED, 0,                handle_process_start,  "process.start",  { 0 } },
	{ "GET",    "/processes",            ROUTE_BELOW, ROUTE_BODY_NONE,     0,                handle_process_list,   "process.list",   { 0 } },
	{ "GET",    "/processes/{process}",  ROUTE_BELOW, ROUTE_BODY_NONE,     0,                handle_process_get,    "process.get",    { "offset", "wait_s", "encoding" } },
	{ "DELETE", "/processes/{process}",  ROUTE_BELOW, ROUTE_BODY_NONE,     0,                handle_process_delete, "process.delete", { "offset", "grace_s", "encoding" } },
	{ "GET",    "/processes/{process}/stream", ROUTE_BELOW, ROUTE_BODY_NONE, 0,              handle_process_stream, "process.stream", { "offset", "encoding" } },
	{ "POST",   "/processes/{process}/stdin", ROUTE_BELOW, ROUTE_BODY_REQUIRED, 0,           handle_process_stdin,  "process.stdin",  { 0 } },
	{ "POST",   "/files/upload",         ROUTE_BELOW, ROUTE_BODY_REQUIRED, 0,                handle_file_upload,    "file.write",     { 0 } },
	{ "POST",   "/files/download",       ROUTE_BELOW, ROUTE_BODY_REQUIRED, 0,                handle_file_download,  "file.read",      { 0 } },
	{ "POST",   "/files/list",           ROUTE_BELOW, ROUTE_BODY_REQUIRED, 0,                handle_file_list,      "file.list",      { 0 } },
	{ "POST",   "/files/stat",           ROUTE_BELOW, ROUTE_BODY_REQUIRED, 0,                handle_file_stat,      "file.stat",      { 0 } },
	{ "POST",   "/files/mkdir",          ROUTE_BELOW, ROUTE_BODY_REQUIRED, 0,                handle_file_mkdir,     "file.mkdir",     { 0 } },
	{ "POST",   "/files/move",           ROUTE_BELOW, ROUTE_BODY_REQUIRED, 0,                handle_file_move,      "file.move",      { 0 } },
	{ "POST",   "/files/delete",         ROUTE_BELOW, ROUTE_BODY_REQUIRED, 0,                handle_file_delete,    "file.delete",    { 0 } },
	{ "GET",    "/files/content",        ROUTE_BELOW, ROUTE_BODY_NONE,     0,                handle_content_get,    "file.read",      { "path", "path_b64" } },
	{ "PUT",    "/files/content",        ROUTE_BELOW, ROUTE_BODY_STREAM,   0,                handle_content_put,    "file.write",     { "path", "path_b64", "mode" } },
	{ "GET",    "/files/archive",        ROUTE_BELOW, ROUTE_BODY_NONE,     0,                handle_archive_get,    "archive.out",    { "path", "path_b64", "format" } },
	{ "PUT",    "/files/archive",        ROUTE_BELOW, ROUTE_BODY_STREAM,   0,                handle_archive_put,    "archive.in",     { "path", "path_b64", "format" } },
};
/* clang-format on */

const struct route *routes_get(size_t *ret_count)
{
	*ret_count = ARRAY_LEN(routes);
	return routes;
}

/* What may stand for a segment of a path, and where in the request its value goes. */
static const struct {
	const char *piece;
	size_t offset;
} variables[] = {
	{ "{session}", offsetof(struct request, session_id) },
	{ "{exec}", offsetof(struct request, exec_id) },
	{ "{process}", offsetof(struct request, process_id) },
};

static bool is_text(const char *piece, size_t len, const char *text)
{
	return strlen(text) == len && !memcmp(piece, text, len);
}

/* Does this segment fill this piece of a pattern? A value from the path is kept in *rq. */
static bool segment_fits(const char *piece, size_t len, const char *segment, struct request *rq)
{
	for (size_t i = 0; i < ARRAY_LEN(variables); i++) {
		if (!is_text(piece, len, variables[i].piece))
			continue;
		memcpy((char *)rq + variables[i].offset, &segment, sizeof(segment));
		return *segment != '\0';
	}
	return is_text(piece, len, segment);
}

/* The segments from `first` on against a pattern. */
static bool path_fits(const char *pattern, struct request *rq, size_t first)
{
	size_t i = first;

	for (const char *piece = pattern + 1; *piece; i++) {
		size_t len = strcspn(piece, "/");

		if (i == rq->segment_count || !segment_fits(piece, len, rq->segments[i], rq))
			return false;
		piece += len + (piece[len] == '/');
	}
	return i == rq->segment_count;
}

static bool is_below_session(const struct request *rq)
{
	return rq->segment_count > 3 && !strcmp(rq->segments[0], "v1") &&
	       !strcmp(rq->segments[1], "sessions") && rq->segments[2][0];
}

static bool route_fits(const struct route *r, struct request *rq)
{
	rq->session_id = rq->exec_id = rq->process_id = NULL;
	if (r->access != ROUTE_BELOW || !is_below_session(rq))
		return path_fits(r->path, rq, 0);
	rq->session_id = rq->segments[2];
	return path_fits(r->path, rq, 3);
}

static bool method_fits(const struct route *r, const char *method)
{
	return !strcmp(r->method, method) || (!strcmp(r->method, "GET") && !strcmp(method, "HEAD"));
}

static void add_allowed(char allow[ROUTES_ALLOW_SIZE], const char *method)
{
	size_t used = strlen(allow);

	(void)snprintf(allow + used, ROUTES_ALLOW_SIZE - used, "%s%s%s", used ? ", " : "", method,
		       strcmp(method, "GET") ? "" : ", HEAD");
}

static int check_query(const struct request *rq, struct err *e)
{
	for (size_t i = 0; i < rq->query_count; i++) {
		const char *const *known = rq->route->query;

		while (*known && strcmp(*known, rq->query[i].name))
			known++;
		if (!*known)
			return err_field(e, rq->query[i].name, "is no parameter of this path");
	}
	return 0;
}

int routes_find(struct request *rq, char allow[ROUTES_ALLOW_SIZE], struct err *e)
{
	allow[0] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(routes); i++) {
		if (!route_fits(&routes[i], rq))
			continue;
		if (method_fits(&routes[i], rq->method)) {
			rq->route = &routes[i];
			return check_query(rq, e);
		}
		add_allowed(allow, routes[i].method);
	}
	if (allow[0])
		return err_set(e, ERR_METHOD, "this path takes %s", allow);
	return err_set(e, ERR_NOT_FOUND, "no such path");
}
