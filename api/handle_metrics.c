/* SPDX-License-Identifier: MIT */
#include "api/handle_metrics.h"

#include "api/auth.h"
#include "base/metrics.h"

#define TENANT "default"

int handle_metrics_get(struct api *api, struct request *rq, struct response *rs, struct err *e)
{
	_cleanup_buf_ struct buf text = BUF_INIT(METRICS_TEXT_MAX);

	manager_set_gauges(api->manager);
	if (metrics_write(&text, auth_is_admin(api, rq) ? TENANT : NULL, e) ||
	    metrics_write_process(&text, e))
		return -e->code;
	response_text(rs, 200, METRICS_TYPE, &text);
	return 0;
}
