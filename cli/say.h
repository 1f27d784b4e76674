/* SPDX-License-Identifier: MIT */
/* say.h - lines for people on stderr, "berth: ...". */
#ifndef BERTH_CLI_SAY_H
#define BERTH_CLI_SAY_H

#include "base/base.h"

void say(const char *format, ...) PRINTF_LIKE(1, 2);
/* Only when stderr is a terminal: how far it is. */
void note(const char *format, ...) PRINTF_LIKE(1, 2);

#endif
