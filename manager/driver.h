/* SPDX-License-Identifier: MIT */
/*
 * driver.h - how the sandbox of a session comes to be, is linked, looked at and ended. One table for each
 * kind: containers of an engine (driver_engine.c), and the very container that berthd runs in
 * (driver_local.c). The manager asks for nothing else of either. Any thread, no lock held, unless said
 * otherwise.
 */
#ifndef BERTH_DRIVER_H
#define BERTH_DRIVER_H

#include "manager/internal.h"

struct driver {
	const char *name; /* as SANDBOX_RUNTIME has it */
	/*
	 * Can this be had? Fills the row's image_id and image_env, and *ret_image, which lives until the
	 * sandbox was made.
	 */
	int (*plan)(struct manager *m, const struct session_request *rq, const struct sandbox_spec *spec,
		    struct session_row *row, struct engine_image *ret_image, struct err *e);
	/* A verified sandbox, or nothing is left of it; takes MANAGER_CREATE_TIMEOUT_MS at most. */
	int (*make)(struct manager *m, const struct sandbox_spec *spec, struct sandbox *ret, struct err *e);
	/* Another link to it, as sandbox_connect(): ERR_NOT_FOUND when it is lost. */
	int (*link)(struct manager *m, const char *container, uint64_t generation, struct channel **ret,
		    struct hello *ret_hello, struct err *e);
	/* Nothing is left afterwards but a named workspace; container may be NULL. */
	int (*destroy)(struct manager *m, const char *sandbox, const char *container, struct err *e);
	int (*remove_workspace)(struct manager *m, const char *name, struct err *e);
	/* Ends sessions whose sandbox is gone, removes what belongs to none. The janitor's. */
	int (*reconcile)(struct manager *m, struct err *e);
	/* Tells fn what happens to sandboxes; returns when that has broken off, soon after *stop. */
	void (*watch)(struct manager *m, const atomic_bool *stop, engine_event_fn fn, void *ctx);
	/* Fills the engine's part. */
	void (*health)(struct manager *m, struct manager_health *ret);
};

/* runtime: "engine" or "local". */
const struct driver *driver_of(const char *runtime);

extern const struct driver driver_engine, driver_local;

#endif
