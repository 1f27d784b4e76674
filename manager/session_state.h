/* SPDX-License-Identifier: MIT */
/* session_state.h - the states of a session and the moves between them, as a table. Pure. */
#ifndef BERTH_SESSION_STATE_H
#define BERTH_SESSION_STATE_H

#include "base/base.h"

enum session_state {
	SESSION_NONE, /* no state: a move that is not allowed */
	SESSION_CREATING,
	SESSION_READY,
	SESSION_PAUSED,
	SESSION_STOPPING,
	SESSION_GONE,
	SESSION_FAILED, /* was never ready */
	SESSION_STATE_COUNT_
};

enum session_event {
	SESSION_EV_VERIFIED, /* its sandbox is as asked */
	SESSION_EV_FAILED,   /* its sandbox could not be made */
	SESSION_EV_PAUSE,
	SESSION_EV_RESUME,
	SESSION_EV_STOP,    /* deleted, expired, lost: its remains are being removed */
	SESSION_EV_REMOVED, /* nothing of it is left in the engine */
	SESSION_EVENT_COUNT_
};

/* SESSION_NONE when the event is not allowed in this state. */
enum session_state session_state_after(enum session_state state, enum session_event event);
/* "ready", ... ; the words of rows and replies. */
const char *session_state_name(enum session_state state);
/* SESSION_NONE for a word that is none. */
enum session_state session_state_of(const char *name);
/* Has it a sandbox, or may it have one? */
bool session_state_is_live(enum session_state state);

#endif
