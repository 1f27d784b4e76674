/* SPDX-License-Identifier: MIT */
/*
 * grants.h - what the administrator lets into sandboxes from outside: networks of the engine, files of the
 * host, variables of berthd's own environment, a folder of the host as the default session's workspace. The
 * default session gets all of it but the networks, of which it has its own; other sessions what their creator
 * names, networks and mounts only.
 *
 * Made before the first thread, immutable afterwards: any thread.
 */
#ifndef BERTH_GRANTS_H
#define BERTH_GRANTS_H

#include <jansson.h>

#include "manager/settings.h"
#include "runtime/sandbox.h"

struct grants;

/*
 * Reads the settings, and looks at what they name on this machine: ERR_INVALID for a file or folder of the
 * host that is missing, is neither file nor folder, or holds an engine's socket or berthd's own data. With an
 * engine on another machine nothing can be looked at. *settings is borrowed for good.
 */
int grants_new(const struct settings *settings, struct grants **ret, struct err *e) NODISCARD;
void grants_free(struct grants *g);
DEFINE_CLEANUP(struct grants *, grants_free)

/* "K=V" of SANDBOX_PASS_ENV, NULL-terminated, borrowed. Never a secret of Berth's. */
char *const *grants_get_env(const struct grants *g);

/* May a session have this network? ERR_INVALID (field network): not listed, not there, or it leads outside.
 */
int grants_check_network(const struct grants *g, struct engine *engine, const char *network, bool is_default,
			 struct err *e) NODISCARD;

/*
 * Fills spec's mounts, borrowed: all with names NULL. names: an array of strings; ERR_INVALID (field mounts)
 * for one that is not among SANDBOX_MOUNTS. ret has room for SANDBOX_MOUNTS_MAX.
 */
int grants_find_mounts(const struct grants *g, const json_t *names, struct sandbox_mount *ret,
		       size_t *ret_count, struct err *e) NODISCARD;

/* The folder of ATLAS_PROJECT_DIR with the ids of the user who works on it; NULL: none is set. Borrowed. */
const char *grants_get_project(const struct grants *g, unsigned *ret_uid, unsigned *ret_gid);

#endif
