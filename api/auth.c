/* SPDX-License-Identifier: MIT */
#include "api/auth.h"

#include <string.h>
#include <strings.h>

#include "api/routes.h"
#include "base/id.h"
#include "manager/session_default.h"

const char *auth_bearer(const char *header)
{
	const char *token;

	if (!header || strncasecmp(header, "Bearer ", 7))
		return NULL;
	token = header + 7 + strspn(header + 7, " ");
	return *token && !strpbrk(token, " \t,") ? token : NULL;
}

static int check_admin(struct api *api, struct request *rq, struct err *e)
{
	rq->who.actor = "admin";
	rq->is_admin = true;
	if (rq->route->access != ROUTE_BELOW)
		return 0;
	if (!rq->session_id)
		return err_set(e, ERR_INVALID, "the admin token names no session: use /v1/sessions/ID%s",
			       rq->route->path);
	return sessions_find(api->manager, rq->session_id, &rq->session, e);
}

/* SANDBOX_TOKEN. Only the root, which names no session, makes the default session. */
static int check_default(struct api *api, struct request *rq, struct err *e)
{
	rq->who.actor = "session";
	if (rq->route->access == ROUTE_ADMIN)
		return err_set(e, ERR_FORBIDDEN, "this needs the admin token");
	if (!rq->session_id)
		return session_default_get(api->manager, &rq->who, &rq->session, e);
	rq->session = session_default_peek(api->manager);
	if (!rq->session || strcmp(rq->session_id, session_get_id(rq->session)))
		return err_set(e, ERR_NOT_FOUND, "no such session");
	return 0;
}

/* The owner of a session that has ended may see what became of it; *e says that and stands for all else. */
static int check_ended(struct api *api, struct request *rq, const char *token, struct err *e)
{
	_cleanup_(session_row_clear) struct session_row row = { 0 };
	struct err ignored; /* it may be purged right now */

	rq->who.actor = "session";
	if (rq->route->access != ROUTE_OWN || !rq->session_id ||
	    sessions_get_by_token(api->manager, token, &row, &ignored) || strcmp(rq->session_id, row.id))
		return -e->code;
	return 0;
}

static int check_session(struct api *api, struct request *rq, const char *token, struct err *e)
{
	if (sessions_find_by_token(api->manager, token, &rq->session, e))
		return e->code == ERR_GONE ? check_ended(api, rq, token, e) : -(int)e->code;
	rq->who.actor = "session";
	/* Another session's path is answered as one that does not exist, whatever the method. */
	if (rq->session_id && strcmp(rq->session_id, session_get_id(rq->session)))
		return err_set(e, ERR_NOT_FOUND, "no such session");
	if (rq->route->access == ROUTE_ADMIN)
		return err_set(e, ERR_FORBIDDEN, "this needs the admin token");
	return 0;
}

void auth_identify(struct api *api, struct request *rq)
{
	const char *token = auth_bearer(request_header(rq, "Authorization"));
	struct err e = { 0 };

	if (!token)
		return;
	if (id_secret_equal(token, api->settings->admin_token))
		rq->who.actor = "admin";
	else if (id_secret_equal(token, api->settings->token) ||
		 !sessions_find_by_token(api->manager, token, &rq->session, &e) || e.code == ERR_GONE)
		rq->who.actor = "session";
}

bool auth_is_admin(const struct api *api, const struct request *rq)
{
	const char *token = auth_bearer(request_header(rq, "Authorization"));

	return token && id_secret_equal(token, api->settings->admin_token);
}

/* There is one session, at the root, and nobody above it. */
static int check_local(struct api *api, struct request *rq, const char *token, struct err *e)
{
	if (!id_secret_equal(token, api->settings->token))
		return err_set(e, ERR_UNAUTHORIZED, "the token is not known");
	if (rq->route->access == ROUTE_BELOW && !rq->session_id)
		return check_default(api, rq, e);
	rq->who.actor = "session";
	return err_set(e, ERR_LOCAL_MODE,
		       "berthd runs in its one sandbox (SANDBOX_RUNTIME=local): there are no others");
}

int auth_check(struct api *api, struct request *rq, struct err *e)
{
	const char *token = auth_bearer(request_header(rq, "Authorization"));

	if (rq->route->access == ROUTE_OPEN)
		return 0;
	if (!token)
		return err_set(e, ERR_UNAUTHORIZED, "a bearer token is needed");
	if (settings_is_local(api->settings))
		return check_local(api, rq, token, e);
	if (id_secret_equal(token, api->settings->admin_token))
		return check_admin(api, rq, e);
	if (id_secret_equal(token, api->settings->token))
		return check_default(api, rq, e);
	return check_session(api, rq, token, e);
}
