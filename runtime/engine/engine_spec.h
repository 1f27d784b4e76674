/* SPDX-License-Identifier: MIT */
/*
 * engine_spec.h - a container's spec as the engines want it, and as they tell it back. Pure.
 *
 * The wish is written once, Docker-shaped, with the whole hardening in it. Docker gets it as it
 * is, Podman a translation into its own API's words. What the engine stored is compared with the
 * wish, member by member: engines ignore what they do not know, so only the comparison proves it.
 */
#ifndef BERTH_ENGINE_SPEC_H
#define BERTH_ENGINE_SPEC_H

#include <jansson.h>

#include "runtime/engine/engine.h"

struct engine_quirks;

/* What the engine's own process may set at most; 0: unknown. */
struct engine_spec_limits {
	int64_t nofile, nproc;
};

struct engine_spec_target {
	const struct engine_quirks *quirks;
	struct engine_spec_limits limits;
	int cgroup; /* 1 or 2 */
};

/* ERR_INVALID naming the field: what no engine is asked for. */
int engine_spec_check(const struct engine_container_spec *spec, struct err *e) NODISCARD;

/* The Docker-shaped body of a create. Owned by the caller. */
json_t *engine_spec_wish(const struct engine_container_spec *spec,
			 const struct engine_spec_target *t) NODISCARD;
/* The same for libpod's create. */
json_t *engine_spec_native(const struct engine_container_spec *spec,
			   const struct engine_spec_target *t) NODISCARD;

/* ERR_ENGINE naming the first member of the inspection that is not as wished. */
int engine_spec_compare(const struct engine_container_spec *spec, const struct engine_spec_target *t,
			const json_t *inspect, struct err *e) NODISCARD;

/* Options of a tmpfs volume, "nr_blocks=...". Owned by the caller. */
char *engine_spec_tmpfs(const struct engine_volume_spec *spec) NODISCARD;
json_t *engine_spec_labels(const struct engine_label *labels, size_t count) NODISCARD;

#endif
