/* SPDX-License-Identifier: MIT */
/*
 * engine_facts.h - what an engine is: its kind, the API version to speak, how it differs from
 * others (the quirks), and which weaknesses of its release are known. Pure: reads the texts of
 * GET /version and GET /info.
 */
#ifndef BERTH_ENGINE_FACTS_H
#define BERTH_ENGINE_FACTS_H

#include <jansson.h>

#include "runtime/engine/engine.h"

/* Where Docker and Podman differ beyond words: one constant row for each kind. */
struct engine_quirks {
	const char *name;
	bool native;        /* containers are created, read back and listed through libpod's own API */
	bool nproc_default; /* gives containers an nproc limit of its own, which may be above what it may set
			     */
	bool miscounts;     /* after a restart beside living containers: engine_container_recount() */
	bool outlives;      /* containers live on when the engine restarts */
	const char *ipc;    /* how "private" is told back, besides "private" */
};
const struct engine_quirks *engine_quirks_of(enum engine_kind kind);

#define ENGINE_WARNINGS_MAX 16

struct engine_facts {
	struct engine_info info;
	const struct engine_quirks *quirks;
	char prefix[24];                           /* of Docker-shaped paths: "/v1.41" */
	char native_prefix[32];                    /* of libpod's paths: "/v4.0.0/libpod" */
	const char *warnings[ENGINE_WARNINGS_MAX]; /* constants */
};

/* Facts from a /version; ERR_UNSUPPORTED when no common version exists, ERR_ENGINE when it is no engine. */
int engine_facts_version(struct engine_facts *f, const json_t *version, struct err *e) NODISCARD;
/* Adds those of /info, and the warnings of both. */
int engine_facts_info(struct engine_facts *f, const json_t *info, struct err *e) NODISCARD;

/* One more known weakness; beyond ENGINE_WARNINGS_MAX it is dropped. */
void engine_facts_warn(struct engine_facts *f, const char *constant_text);

/* "1.41" as 1041, -1 when it is no such version. */
int engine_api_number(const char *text);
/* The first three numbers of "1.1.5+ds1" as 1001005; missing ones count as 0, no number at all as -1. */
int64_t engine_release_number(const char *text);

#endif
