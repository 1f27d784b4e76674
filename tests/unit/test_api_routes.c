/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "api/routes.h"
#include "tests/unit/rows.h"

struct find_row {
	const char *name, *method, *target;
	int want;
	const char *route;          /* its name; the value of Allow with ERR_METHOD */
	const char *session, *exec; /* the second also of a process; NULL: none */
};

static const struct find_row finds[] = {
	{ "route: health", "GET", "/health", 0, "health", NULL, NULL },
	{ "route: health of a session", "GET", "/v1/sessions/s_1/health", 0, "session.health", "s_1", NULL },
	{ "route: HEAD is served by GET", "HEAD", "/health", 0, "health", NULL, NULL },
	{ "route: sessions by method", "POST", "/v1/sessions", 0, "session.create", NULL, NULL },
	{ "route: a session", "GET", "/v1/sessions/s_1", 0, "session.get", "s_1", NULL },
	{ "route: delete", "DELETE", "/v1/sessions/s_1", 0, "session.delete", "s_1", NULL },
	{ "route: exec at the root", "POST", "/exec", 0, "exec.start", NULL, NULL },
	{ "route: exec below a session", "POST", "/v1/sessions/s_1/exec", 0, "exec.start", "s_1", NULL },
	{ "route: stream below a session", "POST", "/v1/sessions/s_1/exec/stream", 0, "exec.start", "s_1",
	  NULL },
	{ "route: an exec at the root", "GET", "/execs/e_1?wait_s=3", 0, "exec.get", NULL, "e_1" },
	{ "route: an exec below a session", "GET", "/v1/sessions/s_1/execs/e_1", 0, "exec.get", "s_1",
	  "e_1" },
	{ "route: cancel", "DELETE", "/v1/sessions/s_1/execs/e_1", 0, "exec.cancel", "s_1", "e_1" },
	{ "route: a process at the root", "GET", "/processes/p_1?offset=3&wait_s=1", 0, "process.get", NULL,
	  "p_1" },
	{ "route: below a process", "POST", "/v1/sessions/s_1/processes/p_1/stdin", 0, "process.stdin", "s_1",
	  "p_1" },
	{ "route: an empty process", "GET", "/processes//stream", ERR_NOT_FOUND, NULL, NULL, NULL },
	{ "route: a method it has not", "PUT", "/v1/sessions", ERR_METHOD, "GET, HEAD, POST", NULL, NULL },
	{ "route: methods have one case", "post", "/exec", ERR_METHOD, "POST", NULL, NULL },
	{ "route: the root", "GET", "/", ERR_NOT_FOUND, NULL, NULL, NULL },
	{ "route: a longer path", "GET", "/health/x", ERR_NOT_FOUND, NULL, NULL, NULL },
	{ "route: a slash behind", "GET", "/health/", ERR_NOT_FOUND, NULL, NULL, NULL },
	{ "route: a path has one case", "GET", "/Health", ERR_NOT_FOUND, NULL, NULL, NULL },
	{ "route: the start of a name", "GET", "/heal", ERR_NOT_FOUND, NULL, NULL, NULL },
	{ "route: an empty session", "GET", "/v1/sessions/", ERR_NOT_FOUND, NULL, NULL, NULL },
	{ "route: below an empty session", "POST", "/v1/sessions//exec", ERR_NOT_FOUND, NULL, NULL, NULL },
	{ "route: an empty exec", "GET", "/execs/", ERR_NOT_FOUND, NULL, NULL, NULL },
	{ "route: sessions are not below a session", "GET", "/v1/sessions/s_1/v1/sessions", ERR_NOT_FOUND,
	  NULL, NULL, NULL },
	{ "route: a parameter of another path", "GET", "/v1/sessions?wait_s=1", ERR_INVALID, NULL, NULL,
	  NULL },
	{ "route: a parameter where none is taken", "GET", "/health?x", ERR_INVALID, NULL, NULL, NULL },
};

static void find_test(void **state)
{
	const struct find_row *row = *state;
	struct request rq = { .client_fd = -1, .method = row->method };
	char allow[ROUTES_ALLOW_SIZE];
	struct err e = { 0 };
	assert_int_equal(request_set_target(&rq, row->target, &e), 0);
	assert_int_equal(routes_find(&rq, allow, &e), -row->want);
	if (row->want == ERR_METHOD)
		assert_string_equal(allow, row->route);
	if (!row->want) {
		assert_string_equal(rq.route->name, row->route);
		assert_string_equal(rq.session_id ? rq.session_id : "-", row->session ? row->session : "-");
		const char *name = rq.exec_id ? rq.exec_id : rq.process_id;
		assert_string_equal(name ? name : "-", row->exec ? row->exec : "-");
	}
	request_clear(&rq);
}

static bool has_known_pieces_only(const char *path)
{
	for (const char *at = path; (at = strchr(at, '{')); at++)
		if (strncmp(at, "{session}", 9) && strncmp(at, "{exec}", 6) && strncmp(at, "{process}", 9))
			return false;
	return true;
}

/* What the code that reads the table relies on. */
static void table_test(void **state)
{
	(void)state;
	size_t count;
	const struct route *routes = routes_get(&count);
	for (size_t i = 0; i < count; i++) {
		const struct route *r = &routes[i];
		assert_true(r->path[0] == '/' && r->path[1] && r->path[strlen(r->path) - 1] != '/');
		assert_true(has_known_pieces_only(r->path));
		assert_non_null(r->handler);
		assert_true(r->name && *r->name);
		assert_null(r->query[ROUTE_QUERY_MAX - 1]);
		assert_true(strcmp(r->method, "GET") || r->body == ROUTE_BODY_NONE);
		/* An own route names the session in its path; one below a session must not. */
		assert_int_equal(strstr(r->path, "{session}") != NULL && r->access != ROUTE_ADMIN,
				 r->access == ROUTE_OWN);
		for (size_t k = 0; k < i; k++)
			assert_true(strcmp(r->path, routes[k].path) || strcmp(r->method, routes[k].method));
	}
}

int main(void)
{
	struct rows r = { 0 };
	ROWS(&r, find_test, finds);
	rows_one(&r, "route: the table is sound", table_test);
	return rows_run(&r, "api_routes");
}
