/* SPDX-License-Identifier: MIT */
/* exec_env.h - the environment of a command: scrubbed, and without any secret of Berth's. Pure. */
#ifndef BERTH_EXEC_ENV_H
#define BERTH_EXEC_ENV_H

#include <jansson.h>

#include "base/err.h"

/* Where a command's variables come from, later ones winning; each may be NULL. */
struct exec_env_sources {
	const json_t *image;   /* an array of "K=V" */
	char *const *passed;   /* "K=V" of berthd's own environment, NULL-terminated */
	const json_t *session; /* an object of strings, as the next */
	const json_t *request;
};

/*
 * "K=V" texts, NULL-terminated: a PATH, the image's, HOME, USER and LANG, and the other sources. Owned by the
 * caller (exec_env_free). ERR_INVALID names the variable: env.NAME.
 */
int exec_env_make(const struct exec_env_sources *from, char ***ret, struct err *e) NODISCARD;
void exec_env_free(char **env);
/* Is this object of variables acceptable in a request? */
int exec_env_check(const json_t *env, struct err *e) NODISCARD;
/* Does this variable carry a token of Berth's somewhere, or name the file with one? */
bool exec_env_is_secret(const char *name);

#endif
