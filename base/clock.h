/* SPDX-License-Identifier: MIT */
/* clock.h - time in milliseconds. Deadlines inside a process are monotonic; rows and displays are wall time.
 */
#ifndef BERTH_CLOCK_H
#define BERTH_CLOCK_H

#include "base/base.h"

int64_t clock_mono_ms(void);
int64_t clock_mono_us(void);

/* Since the epoch. */
int64_t clock_wall_ms(void);

/* Milliseconds left until a monotonic deadline, never below 0. */
int64_t clock_left_ms(int64_t deadline_mono_ms);

/* "2026-01-31T12:00:00.123Z" into text. */
#define CLOCK_TEXT_SIZE 32
void clock_format(int64_t wall_ms, char text[CLOCK_TEXT_SIZE]);

#endif
