/* SPDX-License-Identifier: MIT */
/* facts.h - what PID 1 knows of its own sandbox, for the manager to compare with what it asked for. */
#ifndef BERTH_AGENT_FACTS_H
#define BERTH_AGENT_FACTS_H

#include "runtime/protocol/protocol.h"

/* Gathers everything a hello tells but the generation; to be called once, after seccomp_install(). */
void facts_gather(struct proto_writer *w);

/* The mounts that the agent can write to, each with a test write (facts_mounts.c). */
void facts_put_mounts(struct proto_writer *w);

#endif
