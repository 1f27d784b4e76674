/* SPDX-License-Identifier: MIT */
/* exit_status.h - what `berth run` and `berth exec` return for the end of a command, as `docker run` does.
 * Pure. */
#ifndef BERTH_CLI_EXIT_STATUS_H
#define BERTH_CLI_EXIT_STATUS_H

#include <jansson.h>

#include "base/base.h"

#define EXIT_TIMEOUT 124
#define EXIT_BERTH 125 /* Berth failed, the command's own end is unknown */
#define EXIT_NOT_STARTABLE 126
#define EXIT_NOT_FOUND 127
#define EXIT_SIGNAL 128 /* and the signal's number */

/*
 * From the reply of an exec: its own code when the reason is "exited", else by the table in exit_status.c;
 * EXIT_BERTH for a reply that says nothing this knows.
 */
int exit_status_of(const json_t *reply);

#endif
