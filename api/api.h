/* SPDX-License-Identifier: MIT */
/*
 * api.h - what every handler is given: the settings, the manager, and the guards that were made
 * from the settings. Made by server.c before its first thread; read-only but for the atomics.
 */
#ifndef BERTH_API_H
#define BERTH_API_H

#include <stdatomic.h>

#include "api/guard.h"
#include "manager/manager.h"

struct api {
	const struct settings *settings; /* borrowed */
	struct manager *manager;         /* borrowed */
	struct guard_policy guard;
	char *openapi;            /* the text of GET /openapi.json */
	char openapi_tag[80];     /* its ETag */
	atomic_bool stopping;     /* new requests are refused */
	atomic_size_t body_bytes; /* of all requests in memory */
};

#endif
