/* SPDX-License-Identifier: MIT */
/* bridge.h - `berth-agent bridge`: relays stdin and stdout to PID 1's socket. */
#ifndef BERTH_AGENT_BRIDGE_H
#define BERTH_AGENT_BRIDGE_H

/* Returns when either side has ended: 0, or 1 when PID 1 could not be reached. Complains on stderr. */
int bridge_run(void);

#endif
