/* SPDX-License-Identifier: MIT */
/* temp.h - names for what is not whole yet. */
#ifndef BERTH_AGENT_TEMP_H
#define BERTH_AGENT_TEMP_H

#define TEMP_NAME 40 /* bytes, NUL included */

/* A name that nothing has but by a chance of one in 2^64; it begins with ".berth-". */
void temp_name(char ret[TEMP_NAME]);

#endif
