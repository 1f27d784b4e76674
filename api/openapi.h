/* SPDX-License-Identifier: MIT */
/*
 * openapi.h - the description of the API that GET /openapi.json serves (OpenAPI 3.1).
 *
 * api/openapi.json is what a person writes: for each operation its words, parameters, bodies, replies,
 * examples, and in `x-errors` the errors that are its own. The rest comes from the tables: which operations
 * there are, the paths below /v1/sessions/{session}, who may ask, the parameters in paths, the errors that
 * any request may meet, and their replies. tests/unit/test_openapi.c fails when the file and the table of
 * routes say different things. Pure.
 */
#ifndef BERTH_OPENAPI_H
#define BERTH_OPENAPI_H

#include <jansson.h>

#include "base/base.h"

/* The file as it is written; a new reference. Aborts when it is no JSON, which is a fault of the build. */
json_t *openapi_source(void) NODISCARD;

/* The description, complete; a new reference. */
json_t *openapi_make(void) NODISCARD;

#endif
