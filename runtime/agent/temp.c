/* SPDX-License-Identifier: MIT */
#include "runtime/agent/temp.h"

#include <stdint.h>
#include <stdio.h>
#include <sys/random.h>
#include <unistd.h>

void temp_name(char ret[TEMP_NAME])
{
	uint64_t number = 0;

	if (getrandom(&number, sizeof(number), 0) != sizeof(number)) /* who makes it, makes it with O_EXCL */
		number = (uint64_t)getpid();
	snprintf(ret, TEMP_NAME, ".berth-%016llx.tmp", (unsigned long long)number);
}
