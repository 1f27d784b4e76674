/* SPDX-License-Identifier: MIT */
#include "api/handle_health.h"

#include <string.h>

#include "api/auth.h"
#include "base/id.h"
#include "base/json.h"
#include "manager/session_default.h"

#define _cleanup_session_ _cleanup_(session_unref_cleanup_)

static json_t *part(bool ok, const char *detail)
{
	return json_pack("{s:b, s:o}", "ok", ok, "detail", json_string_lossy(detail, strlen(detail)));
}

/* The six fields that a server with one sandbox has. */
static json_t *six(const struct api *api, const struct session_health *h)
{
	return json_pack("{s:b, s:s, s:s, s:I, s:I, s:o}", "ok", h->ok, "version", BERTH_VERSION, "workspace",
			 api->settings->workspace, "busy", (json_int_t)h->busy, "processes",
			 (json_int_t)h->processes, "tools", h->tools);
}

static void reply_session(const struct api *api, struct session *s, struct response *rs)
{
	struct session_health h;

	session_get_health(s, &h);
	response_json(rs, h.ok ? 200 : 503, six(api, &h));
}

/* The session that a token opens, the default session without one; NULL: none, or none now. Makes none. */
static struct session *session_of(struct api *api, struct request *rq, bool *ret_named)
{
	const char *token = auth_bearer(request_header(rq, "Authorization"));
	struct session *s = NULL;
	struct err ignored;

	*ret_named = false;
	if (!token || id_secret_equal(token, api->settings->admin_token) ||
	    id_secret_equal(token, api->settings->token))
		return api->settings->token ? session_default_peek(api->manager) : NULL;
	*ret_named = !sessions_find_by_token(api->manager, token, &s, &ignored);
	return s;
}

/* The manager's own, with the six fields of the default session, or of all sessions where there is none. */
static json_t *whole(struct api *api, struct session *s, const struct manager_health *h)
{
	struct session_health own = { .busy = h->execs_running, .processes = h->processes_running };
	json_t *degraded = json_array(), *reply;

	if (s)
		session_get_health(s, &own);
	else
		own.tools = manager_get_tools(api->manager);
	own.ok = h->ok;
	for (size_t i = 0; i < ARRAY_LEN(h->degraded) && h->degraded[i][0]; i++)
		json_array_append_new(degraded, json_string_lossy(h->degraded[i], strlen(h->degraded[i])));
	reply = six(api, &own);
	json_object_set_new(reply, "runtime", json_string(h->runtime));
	json_object_set_new(reply, "sessions", json_integer((json_int_t)h->sessions_live));
	json_object_set_new(reply, "engine", part(h->engine_ok, h->engine));
	json_object_set_new(reply, "store", part(h->store_ok, h->store));
	/* No sandboxes are made ahead yet. */
	json_object_set_new(
		reply, "pool",
		json_pack("{s:i, s:i, s:i, s:i}", "ready", 0, "filling", 0, "hits", 0, "misses", 0));
	json_object_set_new(reply, "degraded", degraded);
	return reply;
}

int handle_health_get(struct api *api, struct request *rq, struct response *rs, struct err *e)
{
	struct manager_health h = { 0 };
	bool named;
	_cleanup_session_ struct session *s = session_of(api, rq, &named);

	(void)e;
	if (named) {
		reply_session(api, s, rs);
		return 0;
	}
	manager_get_health(api->manager, &h);
	response_json(rs, h.ok ? 200 : 503, whole(api, s, &h));
	return 0;
}

int handle_health_session(struct api *api, struct request *rq, struct response *rs, struct err *e)
{
	_cleanup_session_ struct session *s = NULL;

	if (sessions_find(api->manager, rq->session_id, &s, e))
		return -e->code;
	reply_session(api, s, rs);
	return 0;
}
