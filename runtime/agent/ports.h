/* SPDX-License-Identifier: MIT */
/* ports.h - the built-in `ports` (runtime/protocol/builtin.h): on which TCP ports jobs listen. */
#ifndef BERTH_AGENT_PORTS_H
#define BERTH_AGENT_PORTS_H

int ports_run(int argc, char **argv);

#endif
