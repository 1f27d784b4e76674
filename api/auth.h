/* SPDX-License-Identifier: MIT */
/* auth.h - who is asking, by a bearer token (RFC 6750), and whether this route is theirs. */
#ifndef BERTH_AUTH_H
#define BERTH_AUTH_H

#include "api/api.h"

/* The token of an Authorization header, borrowed from it; NULL when it is no bearer token. Pure. */
const char *auth_bearer(const char *header);

/*
 * Fills rq->who.actor, is_admin and, below a session, rq->session. ERR_UNAUTHORIZED: no valid token.
 * ERR_FORBIDDEN: a session's token where the admin's is needed. ERR_NOT_FOUND: no such session, or not that
 * of the token. ERR_GONE. ERR_INVALID: a path of a session at the root with the admin token. At the root
 * SANDBOX_TOKEN waits for the default session to be made: then also the errors of session_default_get().
 */
int auth_check(struct api *api, struct request *rq, struct err *e) NODISCARD;

/* Fills rq->who.actor and perhaps rq->session of what has no route to be checked against. */
void auth_identify(struct api *api, struct request *rq);

/* Does it carry the admin token? For what is open to all and says more to some. */
bool auth_is_admin(const struct api *api, const struct request *rq);

#endif
