/* SPDX-License-Identifier: MIT */
#include "runtime/engine/engine_metrics.h"

#include <string.h>

#include "base/clock.h"
#include "base/metrics.h"

static const struct {
	enum engine_verb verb;
	const char *path; /* '*' stands for one segment, at the end for all that follow */
	const char *name;
} calls[] = {
	{ ENGINE_POST, "/containers/create", "container_create" },
	{ ENGINE_POST, "/containers/*/start", "container_start" },
	{ ENGINE_POST, "/containers/*/exec", "exec_create" },
	{ ENGINE_GET, "/containers/json", "container_list" },
	{ ENGINE_GET, "/containers/*/json", "container_inspect" },
	{ ENGINE_DELETE, "/containers/*", "container_remove" },
	{ ENGINE_POST, "/containers/*", "container_other" },
	{ ENGINE_GET, "/containers/*", "container_other" },
	{ ENGINE_HEAD, "/containers/*", "container_other" },
	{ ENGINE_POST, "/exec/*/start", "exec_start" },
	{ ENGINE_GET, "/images/*", "image" },
	{ ENGINE_POST, "/images/*", "image" },
	{ ENGINE_DELETE, "/images/*", "image" },
	{ ENGINE_POST, "/volumes/create", "volume_create" },
	{ ENGINE_DELETE, "/volumes/*", "volume_remove" },
	{ ENGINE_GET, "/volumes", "volume_list" },
	{ ENGINE_GET, "/info", "info" },
	{ ENGINE_GET, "/version", "info" },
	{ ENGINE_GET, "/_ping", "info" },
	{ ENGINE_HEAD, "/_ping", "info" },
};

/* The query does not count. */
static bool fits(const char *pattern, const char *path)
{
	for (; *pattern; pattern++) {
		if (*pattern != '*') {
			if (*path++ != *pattern)
				return false;
			continue;
		}
		if (!pattern[1])
			return *path != '\0';
		path += strcspn(path, "/?");
	}
	return !*path || *path == '?';
}

const char *engine_metrics_name(enum engine_verb verb, const char *path)
{
	for (size_t i = 0; i < ARRAY_LEN(calls); i++)
		if (calls[i].verb == verb && fits(calls[i].path, path))
			return calls[i].name;
	return "other";
}

void engine_metrics_count(enum engine_verb verb, const char *path, int64_t started_us, int r)
{
	metrics_add(METRIC_ENGINE_CALLS, engine_metrics_name(verb, path), metrics_result((enum err_code) - r),
		    1);
	metrics_observe_us(METRIC_ENGINE_CALL_SECONDS, clock_mono_us() - started_us);
}
