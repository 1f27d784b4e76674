/* SPDX-License-Identifier: MIT */
/* agent.h - the numbers that PID 1, its bridge and its supervisors have in common. */
#ifndef BERTH_AGENT_H
#define BERTH_AGENT_H

/* Abstract, so that no job can unlink or replace it; the leading NUL is added by the users. */
#define AGENT_SOCKET_NAME "berth-agent"

/* The uid of the bridge. No job can take it: there are no capabilities and no new privileges. */
#define AGENT_BRIDGE_UID 10002

#endif
