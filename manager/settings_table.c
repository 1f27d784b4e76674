/* SPDX-License-Identifier: MIT */
#include "manager/settings_table.h"

#include <string.h>

#include "base/parse.h"
#include "base/utf8.h"

#define TEXT(field, check, fallback) SETTING_TEXT, offsetof(struct settings, field), 0, 0, fallback, check
#define NUMBER(kind, field, min, max, fallback) \
	SETTING_##kind, offsetof(struct settings, field), min, max, fallback, NULL
#define DAY 86400
#define YEAR (366LL * DAY)

/* clang-format off */
const struct setting settings_table[] = {
	{ "listen", { "SANDBOX_LISTEN" }, TEXT(listen, setting_check_listen, "127.0.0.1:8080"), false, "Where",
	  "address and port of the HTTP server, such as 127.0.0.1:8080 or [::1]:8080; port 0 takes a free one. Beyond loopback a token must be set" },
	{ "port", { "SANDBOX_PORT" }, NUMBER(INT, port, 0, 65535, NULL), false, NULL,
	  "the port alone, on 127.0.0.1; `listen` wins when both are given" },
	{ "data_dir", { "SANDBOX_DATA" }, TEXT(data_dir, setting_check_path, "/var/lib/berth"), false, NULL,
	  "folder of the store and the made admin token, on a local disk" },
	{ "engine", { "SANDBOX_ENGINE", "DOCKER_HOST" }, TEXT(engine, setting_check_engine, NULL), false, NULL,
	  "the container engine, unix:///PATH or tcp://HOST:PORT; if unset, the usual sockets of Docker and Podman are tried" },
	{ "engine_tls", { "SANDBOX_ENGINE_TLS" }, TEXT(engine_tls, setting_check_path, NULL), false, NULL,
	  "folder with ca.pem, cert.pem and key.pem for an engine at tcp://" },
	{ "runtime_dir", { "XDG_RUNTIME_DIR" }, TEXT(runtime_dir, setting_check_path, NULL), false, NULL,
	  "where the sockets of a rootless engine are looked for" },
	{ "instance", { "SANDBOX_INSTANCE" }, TEXT(instance, setting_check_instance, NULL), false, NULL,
	  "label of this manager's containers; if unset, made once and kept in the store" },

	{ "runtime", { "SANDBOX_RUNTIME" }, TEXT(runtime, setting_check_runtime, "engine"), false, "Standalone",
	  "engine, or local: commands run beside berthd, in the container that it is PID 1 of, for the one session of SANDBOX_TOKEN" },
	{ "local_agent", { "SANDBOX_LOCAL_AGENT" }, TEXT(local_agent, setting_check_path, "/usr/lib/berth/berth-agent"), false, NULL,
	  "with local: the program berth-agent, of the same build" },
	{ "local_anywhere", { "SANDBOX_LOCAL_ANYWHERE" }, NUMBER(INT, local_anywhere, 0, 1, "0"), false, NULL,
	  "1: local starts where berthd is not PID 1 of a container, too: every command can do there what berthd's user can, and end it" },

	{ "admin_token", { "SANDBOX_ADMIN_TOKEN" }, TEXT(admin_token, setting_check_token, NULL), true, "Who",
	  "the administrator's bearer token, at least 16 characters; if unset, made at the first start and kept in the data folder" },
	{ "token", { "SANDBOX_TOKEN" }, TEXT(token, setting_check_token, NULL), true, NULL,
	  "bearer token of the default session, at least 16 characters: with it the paths of a session stand at the root, and the session is made on first use" },
	{ "allowed_hosts", { "SANDBOX_ALLOWED_HOSTS" }, TEXT(allowed_hosts, setting_check_hosts, NULL), false, NULL,
	  "comma list of Host headers to answer to, besides the listen address and localhost" },
	{ "allowed_origins", { "SANDBOX_ALLOWED_ORIGINS" }, TEXT(allowed_origins, setting_check_origins, NULL), false, NULL,
	  "comma list of web origins whose pages may call, such as https://example.org; none by default" },

	{ "image", { "SANDBOX_IMAGE" }, TEXT(image, setting_check_image, "localhost/berth/sandbox:latest"), false, "Sessions",
	  "image of a session that names none" },
	{ "memory", { "ATLAS_SANDBOX_MEM" }, NUMBER(MB, memory_mb, 64, 1024 * 1024, "4g"), false, NULL,
	  "memory of a session that names none" },
	{ "cpus", { "ATLAS_SANDBOX_CPUS" }, NUMBER(MILLI, cpu_milli, 50, 1024 * 1000, "2"), false, NULL,
	  "processors of a session that names none" },
	{ "pids", { "ATLAS_SANDBOX_PIDS" }, NUMBER(INT, pids, 16, 4194304, "1024"), false, NULL,
	  "most processes and threads of a session that names no limit" },
	{ "ttl", { "SANDBOX_TTL" }, NUMBER(SECONDS, ttl_s, 0, YEAR, "1h"), false, NULL,
	  "life of a session that names none; 0: without end" },
	{ "idle", { "SANDBOX_IDLE" }, NUMBER(SECONDS, idle_s, 0, YEAR, "15m"), false, NULL,
	  "how long a session that names nothing else may be idle before it ends; 0: for ever" },
	{ "workspace_mb", { "SANDBOX_WORKSPACE_MB" }, NUMBER(INT, workspace_mb, 1, 16LL * 1024 * 1024, "10240"), false, NULL,
	  "size in MiB of the workspace of a session that names none" },
	{ "workspace", { "SANDBOX_WORKSPACE" }, TEXT(workspace, setting_check_path, "/workspace"), false, NULL,
	  "folder of the sandbox in which commands start" },
	{ "max_sessions", { "SANDBOX_MAX_SESSIONS" }, NUMBER(INT, max_sessions, 1, 100000, "1000"), false, NULL,
	  "most sessions that live at once" },

	{ "network", { "SANDBOX_NETWORK" }, TEXT(network, setting_check_network, "none"), false, "What is let in",
	  "the engine's network of the default session, or none" },
	{ "networks", { "SANDBOX_NETWORKS" }, TEXT(networks, setting_check_networks, NULL), false, NULL,
	  "comma list of the engine's networks that a session may ask for; none by default" },
	{ "link_local", { "SANDBOX_LINK_LOCAL" }, NUMBER(INT, link_local, 0, 1, "0"), false, NULL,
	  "1: such a network may also lead out of the machine, and so to link-local addresses, where clouds have their metadata; else it must be an internal one" },
	{ "mounts", { "SANDBOX_MOUNTS" }, TEXT(mounts, setting_check_mounts, NULL), false, NULL,
	  "comma list of files and folders of the host, NAME=HOST:PATH:ro: read-only in the default session, and in a session whose creator names them" },
	{ "pass_env", { "SANDBOX_PASS_ENV" }, TEXT(pass_env, setting_check_pass_env, NULL), false, NULL,
	  "comma list of variables of berthd's own environment that the default session's commands get" },
	{ "project_dir", { "ATLAS_PROJECT_DIR" }, TEXT(project_dir, setting_check_path, NULL), false, NULL,
	  "folder of the host that is the default session's /workspace, to read and to write; if unset, a volume is" },
	{ "uid", { "ATLAS_SANDBOX_UID" }, NUMBER(INT, uid, 1, INT32_MAX, NULL), false, NULL,
	  "user id in the sandbox, with project_dir; if unset, that of the folder's owner" },
	{ "gid", { "ATLAS_SANDBOX_GID" }, NUMBER(INT, gid, 1, INT32_MAX, NULL), false, NULL,
	  "likewise the group id" },

	{ "default_timeout", { "SANDBOX_DEFAULT_TIMEOUT" }, NUMBER(SECONDS, default_timeout_s, 1, DAY, "120s"), false, "Commands",
	  "time of a command that names none" },
	{ "max_timeout", { "SANDBOX_MAX_TIMEOUT" }, NUMBER(SECONDS, max_timeout_s, 1, DAY, "1800s"), false, NULL,
	  "longest time a command may ask for" },
	{ "max_output", { "SANDBOX_MAX_OUTPUT" }, NUMBER(INT, max_output, 1000, 16 << 20, "100000"), false, NULL,
	  "characters of output in a reply; head and tail are kept" },
	{ "max_concurrency", { "SANDBOX_MAX_CONCURRENCY" }, NUMBER(INT, max_concurrency, 1, 1000, "4"), false, NULL,
	  "commands of one session that run at once, 48 at most with its processes; more wait their turn" },
	{ "max_processes", { "SANDBOX_MAX_PROCESSES" }, NUMBER(INT, max_processes, 1, 32, "8"), false, NULL,
	  "background processes of one session that run at once" },
	{ "process_buffer", { "SANDBOX_PROCESS_BUFFER" }, NUMBER(BYTES, process_buffer, 4 << 10, 16 << 20, "1m"), false, NULL,
	  "output that is kept of each background process: its last bytes" },
	{ "shell", { "SANDBOX_SHELL" }, TEXT(shell, setting_check_shell, "bash"), false, NULL,
	  "the shell of a command given as text, bash or sh" },

	{ "max_body", { "SANDBOX_MAX_BODY" }, NUMBER(BYTES, max_body, 64 << 10, 4LL << 30, "64m"), false, "HTTP",
	  "largest body of a request" },
	{ "max_connections", { "SANDBOX_MAX_CONNECTIONS" }, NUMBER(INT, max_connections, 16, 65536, "1024"), false, NULL,
	  "most connections at once" },

	{ "engine_parallel", { "SANDBOX_ENGINE_PARALLEL" }, NUMBER(INT, engine_parallel, 1, 64, "4"), false, "Engine",
	  "containers that are created and started at once" },
	{ "new_engine", { "SANDBOX_NEW_ENGINE" }, NUMBER(INT, new_engine, 0, 1, "0"), false, NULL,
	  "1: sessions that live in another engine are given up; set it for one start, when that engine will not come back" },
	{ "reconcile", { "SANDBOX_RECONCILE" }, NUMBER(SECONDS, reconcile_s, 1, DAY, "30s"), false, NULL,
	  "how often the store and the engine's containers are compared" },

	{ "audit_days", { "SANDBOX_AUDIT_DAYS" }, NUMBER(INT, audit_days, 0, 36500, "90"), false, "Audit",
	  "days for which rows of the audit are kept; 0: for ever" },

	{ "log_format", { "ATLAS_LOG_FORMAT" }, TEXT(log_format, setting_check_log_format, "pretty"), false, "Log",
	  "lines for people or for machines, pretty or json" },
	{ "log_color", { "ATLAS_LOG_COLOR" }, TEXT(log_color, setting_check_log_color, "auto"), false, NULL,
	  "auto (on a terminal), always or never" },
	{ "log_level", { "SANDBOX_LOG_LEVEL" }, TEXT(log_level, setting_check_log_level, "info"), false, NULL,
	  "error, warn, info or debug" },
	{ "no_color", { "NO_COLOR" }, TEXT(no_color, NULL, NULL), false, NULL,
	  "any text: no colours unless log_color is always (https://no-color.org)" },
};
/* clang-format on */
const size_t settings_count = ARRAY_LEN(settings_table);
_Static_assert(ARRAY_LEN(settings_table) <= SETTINGS_MAX, "struct settings has a source for each");

void setting_flag(const struct setting *row, char ret[32])
{
	snprintf(ret, 32, "%s", row->key);
	for (char *p = ret; *p; p++)
		*p = *p == '_' ? '-' : *p;
}

bool setting_is_flag(const struct setting *row, const char *flag, size_t len)
{
	char own[32];
	setting_flag(row, own);
	return strlen(own) == len && memcmp(own, flag, len) == 0;
}

/* ---- values ---- */

static char **text_at(const struct setting *row, struct settings *s)
{
	return (char **)(void *)((char *)s + row->offset);
}

static int64_t *number_at(const struct setting *row, struct settings *s)
{
	return (int64_t *)(void *)((char *)s + row->offset);
}

static int check_text(const char *text, struct err *e)
{
	if (!utf8_is_valid(text, strlen(text)))
		return err_set(e, ERR_INVALID, "must be valid UTF-8");
	for (const char *p = text; *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			return err_set(e, ERR_INVALID, "must be without control characters");
	return 0;
}

static int parse_number(const struct setting *row, const char *text, int64_t *ret, struct err *e)
{
	switch (row->kind) {
	case SETTING_MB:
	case SETTING_BYTES:
		return parse_bytes(text, ret, e);
	case SETTING_MILLI:
		return parse_milli(text, row->min, row->max, ret, e);
	case SETTING_SECONDS:
		return parse_duration_s(text, ret, e);
	default:
		return parse_int(text, row->min, row->max, ret, e);
	}
}

/* A number in the notation of its kind. */
static char *format_number(enum setting_kind kind, int64_t n)
{
	static const struct {
		int64_t factor;
		char unit;
	} sizes[] = { { 1 << 30, 'g' }, { 1 << 20, 'm' }, { 1 << 10, 'k' } },
	  times[] = { { 3600, 'h' }, { 60, 'm' } };
	if (kind == SETTING_MILLI)
		return n % 1000 ? xasprintf("%lld.%03lld", (long long)n / 1000, (long long)n % 1000)
				: xasprintf("%lld", (long long)n / 1000);
	bool time = kind == SETTING_SECONDS, size = kind == SETTING_MB || kind == SETTING_BYTES;
	n = kind == SETTING_MB ? n << 20 : n;
	for (size_t i = 0; size && n && i < ARRAY_LEN(sizes); i++)
		if (n % sizes[i].factor == 0)
			return xasprintf("%lld%c", (long long)(n / sizes[i].factor), sizes[i].unit);
	for (size_t i = 0; time && n && i < ARRAY_LEN(times); i++)
		if (n % times[i].factor == 0)
			return xasprintf("%lld%c", (long long)(n / times[i].factor), times[i].unit);
	return xasprintf(time ? "%llds" : "%lld", (long long)n);
}

static int set_number(const struct setting *row, struct settings *s, const char *text, struct err *e)
{
	int64_t n = 0;
	if (parse_number(row, text, &n, e) < 0)
		return -(int)e->code;
	n = row->kind == SETTING_MB ? n >> 20 : n;
	if (n < row->min || n > row->max) {
		_cleanup_free_ char *min = format_number(row->kind, row->min),
				    *max = format_number(row->kind, row->max);
		return err_set(e, ERR_INVALID, "must be from %s to %s", min, max);
	}
	*number_at(row, s) = n;
	return 0;
}

int setting_set(const struct setting *row, struct settings *s, const char *text, struct err *e)
{
	if (row->kind != SETTING_TEXT)
		return set_number(row, s, text, e);
	if (check_text(text, e) < 0 || (row->check && row->check(text, e) < 0))
		return -(int)e->code;
	free(*text_at(row, s));
	*text_at(row, s) = xstrdup(text);
	return 0;
}

char *setting_get(const struct setting *row, const struct settings *s)
{
	struct settings *same = (struct settings *)(uintptr_t)s; /* read only */
	if (row->kind != SETTING_TEXT)
		return format_number(row->kind, *number_at(row, same));
	return *text_at(row, same) ? xstrdup(*text_at(row, same)) : NULL;
}

void setting_clear(const struct setting *row, struct settings *s)
{
	if (row->kind != SETTING_TEXT)
		return;
	free(*text_at(row, s));
	*text_at(row, s) = NULL;
}
