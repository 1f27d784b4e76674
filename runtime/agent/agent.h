/* SPDX-License-Identifier: MIT */
/* agent.h - the numbers that the agent, its bridge, its supervisors and its starter have in common. */
#ifndef BERTH_AGENT_H
#define BERTH_AGENT_H

/* Abstract, so that no job can unlink or replace it; the leading NUL is added by the users. */
#define AGENT_SOCKET_NAME "berth-agent"

/* The uid of the bridge. No job can take it: there are no capabilities and no new privileges. */
#define AGENT_BRIDGE_UID 10002

/* `berth-agent local`: the socket whose other end is its manager's. */
#define AGENT_LOCAL_FD 3

#endif
