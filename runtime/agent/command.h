/* SPDX-License-Identifier: MIT */
/* command.h - from a supervisor's fresh child to the job's command. */
#ifndef BERTH_AGENT_COMMAND_H
#define BERTH_AGENT_COMMAND_H

#include "runtime/agent/supervisor.h"

/* Prepares, waits for go and becomes the command; tells setup->exec when it cannot. */
_Noreturn void command_run(const struct supervisor_setup *setup);

#endif
