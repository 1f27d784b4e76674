/* SPDX-License-Identifier: MIT */
/*
 * handle_metrics.h - GET /metrics: figures for Prometheus, without a token. They name no session, image or
 * tenant; with the admin token those of a tenant carry a `tenant` label, which is "default" as long as there
 * is one tenant.
 */
#ifndef BERTH_HANDLE_METRICS_H
#define BERTH_HANDLE_METRICS_H

#include "api/api.h"
#include "api/response.h"

/* Waits neither for the engine nor for the store. */
int handle_metrics_get(struct api *api, struct request *rq, struct response *rs, struct err *e);

#endif
