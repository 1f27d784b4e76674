/* SPDX-License-Identifier: MIT */
#include "manager/session_state.h"

#include <string.h>

static const enum session_state moves[SESSION_STATE_COUNT_][SESSION_EVENT_COUNT_] = {
	[SESSION_CREATING] = { [SESSION_EV_VERIFIED] = SESSION_READY,
			       [SESSION_EV_FAILED] = SESSION_FAILED,
			       [SESSION_EV_STOP] = SESSION_STOPPING },
	[SESSION_READY] = { [SESSION_EV_PAUSE] = SESSION_PAUSED, [SESSION_EV_STOP] = SESSION_STOPPING },
	[SESSION_PAUSED] = { [SESSION_EV_RESUME] = SESSION_READY, [SESSION_EV_STOP] = SESSION_STOPPING },
	[SESSION_STOPPING] = { [SESSION_EV_REMOVED] = SESSION_GONE },
};

static const char *const names[SESSION_STATE_COUNT_] = {
	[SESSION_NONE] = "none",     [SESSION_CREATING] = "creating", [SESSION_READY] = "ready",
	[SESSION_PAUSED] = "paused", [SESSION_STOPPING] = "stopping", [SESSION_GONE] = "gone",
	[SESSION_FAILED] = "failed",
};

enum session_state session_state_after(enum session_state state, enum session_event event)
{
	return moves[state][event];
}

const char *session_state_name(enum session_state state)
{
	return names[state];
}

enum session_state session_state_of(const char *name)
{
	for (int s = SESSION_CREATING; s < SESSION_STATE_COUNT_; s++)
		if (strcmp(names[s], name) == 0)
			return (enum session_state)s;
	return SESSION_NONE;
}

bool session_state_is_live(enum session_state state)
{
	return state >= SESSION_CREATING && state <= SESSION_STOPPING;
}
