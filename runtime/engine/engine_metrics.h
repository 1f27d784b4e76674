/* SPDX-License-Identifier: MIT */
/* engine_metrics.h - counts calls of the engine under names of their own: paths have ids. Any thread. */
#ifndef BERTH_ENGINE_METRICS_H
#define BERTH_ENGINE_METRICS_H

#include "runtime/engine/engine_priv.h"

/* The name of a call in berth_engine_calls_total, by its verb and its path without prefix. A constant. Pure.
 */
const char *engine_metrics_name(enum engine_verb verb, const char *path);

/* Counts one that was begun at started_us (monotonic) and came to r: 0, or a negative error code. */
void engine_metrics_count(enum engine_verb verb, const char *path, int64_t started_us, int r);

#endif
