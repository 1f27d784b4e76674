/* SPDX-License-Identifier: MIT */
/*
 * session_default.h - the one session that SANDBOX_TOKEN stands for. It is made on first use, has neither ttl
 * nor idle limit, and works on a named workspace that outlives it: when it was lost or deleted, the next use
 * makes another one on the same files. It is known by that workspace, also after a restart.
 *
 * Any thread. session_default.lock takes no other lock and is not held over a wait for the engine.
 */
#ifndef BERTH_SESSION_DEFAULT_H
#define BERTH_SESSION_DEFAULT_H

#include "manager/manager.h"

#define SESSION_DEFAULT_WORKSPACE "default"

struct session_default;

/* Is it, or was it, the default session? Pure. */
bool session_default_is(const struct session_row *row);

/* After the sessions were loaded: finds the one of before. m is borrowed. */
struct session_default *session_default_new(struct manager *m) NODISCARD;
void session_default_free(struct session_default *d);

/*
 * The session, ready and linked, made now if need be: once, however many ask; the others wait for it. *ret is
 * a reference. Waits for 90 s at most. The errors of sessions_create(), which all who wait get;
 * ERR_UNAVAILABLE: what is left of the one before cannot be removed yet; ERR_STOPPING.
 */
int session_default_get(struct manager *m, const struct caller *who, struct session **ret,
			struct err *e) NODISCARD;

/* The session as it is, a reference; NULL: there is none now. Never waits. */
struct session *session_default_peek(struct manager *m) NODISCARD;

/*
 * Removes the workspace of a session that has ended, for good. ERR_CONFLICT: it is in use again; ERR_INVALID:
 * the session's workspace went with it; the engine's errors; ERR_NOT_FOUND: no such session.
 */
int sessions_delete_workspace(struct manager *m, const char *id, const struct caller *who,
			      struct err *e) NODISCARD;

#endif
