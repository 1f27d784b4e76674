/* SPDX-License-Identifier: MIT */
#include "base/clock.h"

#include <time.h>

static int64_t now_us(clockid_t id)
{
	struct timespec t;
	clock_gettime(id, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

int64_t clock_mono_us(void)
{
	return now_us(CLOCK_MONOTONIC);
}

int64_t clock_mono_ms(void)
{
	return now_us(CLOCK_MONOTONIC) / 1000;
}

int64_t clock_wall_ms(void)
{
	return now_us(CLOCK_REALTIME) / 1000;
}

int64_t clock_left_ms(int64_t deadline_mono_ms)
{
	int64_t left = deadline_mono_ms - clock_mono_ms();
	return MAX(left, 0);
}

void clock_format(int64_t wall_ms, char text[CLOCK_TEXT_SIZE])
{
	int64_t ms = (wall_ms % 1000 + 1000) % 1000; /* also before the epoch */
	time_t s = (time_t)((wall_ms - ms) / 1000);
	struct tm tm;
	gmtime_r(&s, &tm);
	size_t n = strftime(text, CLOCK_TEXT_SIZE, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text + n, CLOCK_TEXT_SIZE - n, ".%03dZ", (int)ms);
}
