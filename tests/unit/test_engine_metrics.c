/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "base/metrics.h"
#include "runtime/engine/engine_metrics.h"
#include "tests/unit/rows.h"

static const struct name_row {
	const char *name;
	enum engine_verb verb;
	const char *path, *want;
} names[] = {
	{ "call: create", ENGINE_POST, "/containers/create?name=x", "container_create" },
	{ "call: create without a name", ENGINE_POST, "/containers/create", "container_create" },
	{ "call: start", ENGINE_POST, "/containers/0123abcd/start", "container_start" },
	{ "call: unpause", ENGINE_POST, "/containers/0123abcd/unpause", "container_other" },
	{ "call: inspect", ENGINE_GET, "/containers/0123abcd/json", "container_inspect" },
	{ "call: list", ENGINE_GET, "/containers/json?all=true&filters=%7b%7d", "container_list" },
	{ "call: remove", ENGINE_DELETE, "/containers/0123abcd?force=true&v=true", "container_remove" },
	{ "call: archive", ENGINE_HEAD, "/containers/0123abcd/archive?path=/", "container_other" },
	{ "call: new exec", ENGINE_POST, "/containers/0123abcd/exec", "exec_create" },
	{ "call: exec start", ENGINE_POST, "/exec/0123abcd/start", "exec_start" },
	{ "call: image with slashes", ENGINE_GET, "/images/localhost/berth/agent:1/json", "image" },
	{ "call: import", ENGINE_POST, "/images/create?fromSrc=-", "image" },
	{ "call: new volume", ENGINE_POST, "/volumes/create", "volume_create" },
	{ "call: volume removed", ENGINE_DELETE, "/volumes/berth-1", "volume_remove" },
	{ "call: volumes", ENGINE_GET, "/volumes?filters=x", "volume_list" },
	{ "call: version", ENGINE_GET, "/version", "info" },
	{ "call: ping", ENGINE_GET, "/_ping", "info" },
	{ "call: longer than a name", ENGINE_GET, "/volumesx", "other" },
	{ "call: no such verb", ENGINE_DELETE, "/info", "other" },
	{ "call: nothing", ENGINE_GET, "", "other" },
	{ "call: an empty segment at the end", ENGINE_DELETE, "/volumes/", "other" },
};

static void name_test(void **state)
{
	const struct name_row *row = *state;
	assert_string_equal(engine_metrics_name(row->verb, row->path), row->want);
}

static void count_test(void **state)
{
	(void)state;
	int64_t ok = metrics_get(METRIC_ENGINE_CALLS, "volume_create", "ok");
	int64_t conflict = metrics_get(METRIC_ENGINE_CALLS, "volume_create", "conflict");
	int64_t failed = metrics_get(METRIC_ENGINE_CALLS, "volume_create", "failed");
	engine_metrics_count(ENGINE_POST, "/volumes/create", clock_mono_us(), 0);
	engine_metrics_count(ENGINE_POST, "/volumes/create", clock_mono_us(), -ERR_CONFLICT);
	engine_metrics_count(ENGINE_POST, "/volumes/create", clock_mono_us(), -ERR_INVALID);
	assert_int_equal(metrics_get(METRIC_ENGINE_CALLS, "volume_create", "ok"), ok + 1);
	assert_int_equal(metrics_get(METRIC_ENGINE_CALLS, "volume_create", "conflict"), conflict + 1);
	assert_int_equal(metrics_get(METRIC_ENGINE_CALLS, "volume_create", "failed"), failed + 1);
}

int main(void)
{
	struct rows r = { 0 };
	ROWS(&r, name_test, names);
	rows_one(&r, "call: counted by what became of it", count_test);
	return rows_run(&r, "engine_metrics");
}
