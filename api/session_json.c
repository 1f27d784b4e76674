/* SPDX-License-Identifier: MIT */
#include "api/session_json.h"

#include <string.h>

#include "api/body.h"
#include "base/clock.h"
#include "base/json.h"

#define TTL_MAX_S (366 * 24 * 3600)
#define LABELS_MAX 64

/* ---- out ---- */

static json_t *text_or_null(const char *text)
{
	return text ? json_string_lossy(text, strlen(text)) : json_null();
}

static json_t *time_or_null(int64_t wall_ms)
{
	char text[CLOCK_TEXT_SIZE];

	if (!wall_ms)
		return json_null();
	clock_format(wall_ms, text);
	return json_string(text);
}

static json_t *object_of(const char *text)
{
	json_t *value = text ? json_loads(text, 0, NULL) : NULL;

	return value ? value : json_object();
}

static json_t *limits_json(const struct session_row *row)
{
	return json_pack("{s:I, s:f, s:I}", "memory_mb", (json_int_t)row->memory_mb, "cpus",
			 (double)row->cpu_milli / 1000, "pids", (json_int_t)row->pids);
}

static json_t *workspace_json(const struct session_row *row)
{
	return json_pack("{s:o, s:o, s:I}", "kind", text_or_null(row->workspace_kind), "name",
			 text_or_null(row->workspace_name), "size_mb", (json_int_t)row->workspace_mb);
}

json_t *session_json(const struct session_row *row)
{
	return json_pack(
		"{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:o, s:o, s:o, s:o}", "id",
		text_or_null(row->id), "name", text_or_null(row->name), "state", text_or_null(row->state),
		"reason", text_or_null(row->reason), "detail", text_or_null(row->detail), "image",
		text_or_null(row->image), "labels", object_of(row->labels), "limits", limits_json(row),
		"network", text_or_null(row->network), "isolation", text_or_null(row->isolation), "workspace",
		workspace_json(row), "ttl_s", (json_int_t)row->ttl_s, "idle_s", (json_int_t)row->idle_s,
		"created_at", time_or_null(row->created_ms), "expires_at", time_or_null(row->expires_ms),
		"idle_at", time_or_null(row->idle_ms), "ended_at", time_or_null(row->ended_ms));
}

json_t *session_json_list(const struct session_row *rows, size_t count, int limit)
{
	json_t *list = json_array();
	bool full = count && count == (size_t)limit;

	for (size_t i = 0; i < count; i++)
		json_array_append_new(list, session_json(&rows[i]));
	return json_pack("{s:o, s:o}", "sessions", list, "next",
			 text_or_null(full ? rows[count - 1].id : NULL));
}

/* ---- in ---- */

struct create_parts {
	struct session_request rq;
	json_t *labels, *env, *mounts, *limits, *workspace;
};

#define AT(member) offsetof(struct create_parts, member)
/* clang-format off */
static const struct json_field create_fields[] = {
	{ .name = "image",     .kind = JSON_K_TEXT,     .offset = AT(rq.image),     .min = 1, .max = 255 },
	{ .name = "name",      .kind = JSON_K_TEXT,     .offset = AT(rq.name),      .min = 1, .max = 63 },
	{ .name = "labels",    .kind = JSON_K_TEXT_MAP, .offset = AT(labels),       .max = LABELS_MAX },
	{ .name = "limits",    .kind = JSON_K_OBJECT,   .offset = AT(limits) },
	{ .name = "ttl_s",     .kind = JSON_K_INT,      .offset = AT(rq.ttl_s),     .max = TTL_MAX_S },
	{ .name = "idle_s",    .kind = JSON_K_INT,      .offset = AT(rq.idle_s),    .max = TTL_MAX_S },
	{ .name = "env",       .kind = JSON_K_TEXT_MAP, .offset = AT(env),          .max = EXEC_ENV_MAX },
	{ .name = "mounts",    .kind = JSON_K_TEXTS,    .offset = AT(mounts),       .max = 16 },
	{ .name = "network",   .kind = JSON_K_TEXT,     .offset = AT(rq.network),   .min = 1, .max = 63 },
	{ .name = "isolation", .kind = JSON_K_TEXT,     .offset = AT(rq.isolation), .min = 1, .max = 63 },
	{ .name = "workspace", .kind = JSON_K_OBJECT,   .offset = AT(workspace) },
};
static const struct json_field limit_fields[] = {
	{ .name = "memory_mb", .kind = JSON_K_INT,   .offset = AT(rq.memory_mb), .min = SESSION_MEMORY_MIN_MB, .max = SESSION_MEMORY_MAX_MB },
	{ .name = "cpus",      .kind = JSON_K_MILLI, .offset = AT(rq.cpu_milli), .min = 10, .max = 1024 * 1000 },
	{ .name = "pids",      .kind = JSON_K_INT,   .offset = AT(rq.pids),      .min = 16, .max = 4194304 },
};
static const struct json_field workspace_fields[] = {
	{ .name = "kind",      .kind = JSON_K_TEXT,  .offset = AT(rq.workspace_kind), .min = 1, .max = 16 },
	{ .name = "name",      .kind = JSON_K_TEXT,  .offset = AT(rq.workspace_name), .min = 1, .max = 63 },
	{ .name = "size_mb",   .kind = JSON_K_INT,   .offset = AT(rq.workspace_mb),   .min = 1, .max = 1024 * 1024 },
};
/* clang-format on */
#undef AT

/* May be absent: then nothing is read. */
static int read_part(const json_t *part, const char *path, const struct json_field *table, size_t count,
		     struct create_parts *out, struct err *e)
{
	return part ? json_fields(part, path, table, count, out, e) : 0;
}

int session_json_create(const json_t *body, struct session_request *ret, struct err *e)
{
	struct create_parts p = {
		.rq = { .memory_mb = -1,
			.cpu_milli = -1,
			.pids = -1,
			.ttl_s = -1,
			.idle_s = -1,
			.workspace_mb = -1 },
	};

	if (json_fields(body, "", create_fields, ARRAY_LEN(create_fields), &p, e) ||
	    read_part(p.limits, "limits", limit_fields, ARRAY_LEN(limit_fields), &p, e) ||
	    read_part(p.workspace, "workspace", workspace_fields, ARRAY_LEN(workspace_fields), &p, e) ||
	    body_check_name(p.rq.name, "name", e) ||
	    body_check_name(p.rq.workspace_name, "workspace.name", e) ||
	    body_check_labels(p.labels, "labels", e) || body_check_env(p.env, "env", e))
		return -e->code;
	p.rq.labels = p.labels;
	p.rq.env = p.env;
	p.rq.mounts = p.mounts;
	*ret = p.rq;
	return 0;
}

struct patch_parts {
	struct session_patch patch;
	json_t *labels;
};

/* clang-format off */
static const struct json_field patch_fields[] = {
	{ .name = "ttl_s",  .kind = JSON_K_INT,      .offset = offsetof(struct patch_parts, patch.ttl_s),  .max = TTL_MAX_S },
	{ .name = "idle_s", .kind = JSON_K_INT,      .offset = offsetof(struct patch_parts, patch.idle_s), .max = TTL_MAX_S },
	{ .name = "labels", .kind = JSON_K_TEXT_MAP, .offset = offsetof(struct patch_parts, labels),       .max = LABELS_MAX },
};
/* clang-format on */

int session_json_patch(const json_t *body, struct session_patch *ret, struct err *e)
{
	struct patch_parts p = { .patch = { .ttl_s = -1, .idle_s = -1 } };

	if (json_fields(body, "", patch_fields, ARRAY_LEN(patch_fields), &p, e) ||
	    body_check_labels(p.labels, "labels", e))
		return -e->code;
	p.patch.labels = p.labels;
	*ret = p.patch;
	return 0;
}

static int check_state(const char *state, struct err *e)
{
	static const char *const states[] = { "creating", "ready", "paused", "stopping", "gone", "failed" };

	for (size_t i = 0; state && i < ARRAY_LEN(states); i++)
		if (!strcmp(states[i], state))
			return 0;
	return state ? err_field(e, "state", "must be creating, ready, paused, stopping, gone or failed") : 0;
}

int session_json_filter(const struct request *rq, struct session_filter *ret, char **label_storage,
			struct err *e)
{
	struct session_filter f = { .state = request_query(rq, "state"),
				    .name = request_query(rq, "name"),
				    .label_key = request_query(rq, "label"),
				    .after = request_query(rq, "cursor") };
	int64_t limit = 100;

	if (check_state(f.state, e) || request_query_int(rq, "limit", 1, 1000, &limit, e))
		return -e->code;
	f.limit = (int)limit;
	*label_storage = NULL;
	if (f.label_key) {
		char *value = *label_storage = xstrdup(f.label_key);

		f.label_key = strsep(&value, "=");
		f.label_value = value;
	}
	*ret = f;
	return 0;
}
