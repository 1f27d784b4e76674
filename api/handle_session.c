/* SPDX-License-Identifier: MIT */
#include "api/handle_session.h"

#include <string.h>

#include "api/session_json.h"
#include "base/id.h"
#include "base/json.h"
#include "manager/session_default.h"

#define _cleanup_row_ _cleanup_(session_row_clear)

int handle_session_create(struct api *api, struct request *rq, struct response *rs, struct err *e)
{
	_cleanup_json_ json_t *body = NULL;
	_cleanup_row_ struct session_row row = { 0 };
	struct session_request wanted;
	char token[ID_TOKEN_SIZE];
	json_t *reply;

	if (request_json(rq, &body, e) || session_json_create(body, &wanted, e))
		return -e->code;
	wanted.may_be_endless = rq->is_admin;
	if (sessions_create(api->manager, &wanted, &rq->who, &row, token, e))
		return -e->code;
	reply = session_json(&row);
	json_object_set_new(reply, "token", json_string(token));
	response_header(rs, "Location", "/v1/sessions/%s", row.id);
	response_json(rs, 201, reply);
	return 0;
}

int handle_session_list(struct api *api, struct request *rq, struct response *rs, struct err *e)
{
	_cleanup_free_ char *label = NULL;
	struct session_filter filter;
	struct session_row *rows;
	size_t count;

	if (session_json_filter(rq, &filter, &label, e) ||
	    sessions_list(api->manager, &filter, &rows, &count, e))
		return -e->code;
	response_json(rs, 200, session_json_list(rows, count, filter.limit));
	session_rows_free(rows, count);
	return 0;
}

int handle_session_get(struct api *api, struct request *rq, struct response *rs, struct err *e)
{
	_cleanup_row_ struct session_row row = { 0 };

	if (sessions_get(api->manager, rq->session_id, &row, e))
		return -e->code;
	response_json(rs, 200, session_json(&row));
	return 0;
}

int handle_session_patch(struct api *api, struct request *rq, struct response *rs, struct err *e)
{
	_cleanup_json_ json_t *body = NULL;
	_cleanup_row_ struct session_row row = { 0 };
	struct session_patch patch;

	if (request_json(rq, &body, e) || session_json_patch(body, &patch, e))
		return -e->code;
	patch.may_be_endless = rq->is_admin;
	if (sessions_patch(api->manager, rq->session_id, &patch, &rq->who, &row, e))
		return -e->code;
	response_json(rs, 200, session_json(&row));
	return 0;
}

int handle_session_delete(struct api *api, struct request *rq, struct response *rs, struct err *e)
{
	const char *workspace = request_query(rq, "workspace");
	bool gone = true;
	int r;

	if (workspace && strcmp(workspace, "delete"))
		return err_field(e, "workspace", "must be delete, or not be given");
	r = sessions_delete(api->manager, rq->session_id, &rq->who, &gone, e);
	/* The workspace of one that is gone can still be removed. */
	if (workspace && gone && (!r || r == -ERR_NOT_FOUND))
		r = sessions_delete_workspace(api->manager, rq->session_id, &rq->who, e);
	if (r)
		return r;
	response_json(rs, gone ? 200 : 202,
		      json_pack("{s:s, s:s}", "id", rq->session_id, "state", gone ? "gone" : "stopping"));
	return 0;
}
