/* SPDX-License-Identifier: MIT */
#include "api/handle_health.h"

#include <string.h>

#include "base/json.h"

static json_t *part(bool ok, const char *detail)
{
	return json_pack("{s:b, s:o}", "ok", ok, "detail", json_string_lossy(detail, strlen(detail)));
}

int handle_health_get(struct api *api, struct request *rq, struct response *rs, struct err *e)
{
	struct manager_health h = { 0 };
	json_t *warnings = json_array();

	(void)rq;
	(void)e;
	manager_get_health(api->manager, &h);
	for (size_t i = 0; i < ARRAY_LEN(h.warnings) && h.warnings[i][0]; i++)
		json_array_append_new(warnings, json_string_lossy(h.warnings[i], strlen(h.warnings[i])));
	response_json(rs, h.ok ? 200 : 503,
		      json_pack("{s:b, s:s, s:s, s:s, s:I, s:I, s:o, s:o, s:o}", "ok", h.ok, "version",
				BERTH_VERSION, "runtime", h.runtime, "workspace", api->settings->workspace,
				"busy", (json_int_t)h.execs_running, "sessions", (json_int_t)h.sessions_live,
				"engine", part(h.engine_ok, h.engine), "store", part(h.store_ok, h.store),
				"warnings", warnings));
	return 0;
}
