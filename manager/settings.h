/* SPDX-License-Identifier: MIT */
/*
 * settings.h - what berthd is told: one table of settings serves the environment, the file, the
 * flags, --print-config and docs/CONFIGURATION.md.
 *
 * Precedence: flag > environment > file > default. Each secret has a _FILE twin. Read once in main
 * before the first thread; immutable afterwards. The only place that calls getenv().
 */
#ifndef BERTH_SETTINGS_H
#define BERTH_SETTINGS_H

#include <string.h>

#include "base/err.h"

#define SETTINGS_MAX 64

/* Every text is owned by the struct, and NULL when it has neither a value nor a default. */
struct settings {
	/* where */
	char *listen;      /* SANDBOX_LISTEN 127.0.0.1:8080; "[::1]:8080"; beyond loopback it needs a token */
	int64_t port;      /* SANDBOX_PORT: in listen already, which wins when both were given */
	char *data_dir;    /* SANDBOX_DATA */
	char *engine;      /* SANDBOX_ENGINE, else DOCKER_HOST, else NULL: the usual sockets */
	char *engine_tls;  /* SANDBOX_ENGINE_TLS: folder with ca.pem, cert.pem, key.pem */
	char *runtime_dir; /* XDG_RUNTIME_DIR, for rootless sockets; may be NULL */
	char *instance; /* SANDBOX_INSTANCE: label of our containers; NULL: made once and kept in the store */
	char *runtime;  /* SANDBOX_RUNTIME engine | local */
	char *local_agent;      /* SANDBOX_LOCAL_AGENT: the agent's program, for local */
	int64_t local_anywhere; /* SANDBOX_LOCAL_ANYWHERE 0 */
	/* who */
	char *admin_token;   /* SANDBOX_ADMIN_TOKEN */
	char *token;         /* SANDBOX_TOKEN: of the default session; NULL: there is none */
	char *allowed_hosts; /* SANDBOX_ALLOWED_HOSTS: Host headers beyond the listen address and localhost */
	char *allowed_origins; /* SANDBOX_ALLOWED_ORIGINS: none by default */
	/* sessions */
	char *image;          /* SANDBOX_IMAGE localhost/berth/sandbox:latest */
	int64_t memory_mb;    /* ATLAS_SANDBOX_MEM 4g */
	int64_t cpu_milli;    /* ATLAS_SANDBOX_CPUS 2 */
	int64_t pids;         /* ATLAS_SANDBOX_PIDS 1024 */
	int64_t ttl_s;        /* SANDBOX_TTL 3600 */
	int64_t idle_s;       /* SANDBOX_IDLE 900 */
	int64_t workspace_mb; /* SANDBOX_WORKSPACE_MB 10240 */
	char *workspace;      /* SANDBOX_WORKSPACE /workspace: where commands start */
	int64_t max_sessions; /* SANDBOX_MAX_SESSIONS 1000 */
	/* what the administrator adds: grants.h */
	char *network;      /* SANDBOX_NETWORK none: of the default session */
	char *networks;     /* SANDBOX_NETWORKS: comma list of those that a session may ask for */
	int64_t link_local; /* SANDBOX_LINK_LOCAL 0 */
	char *mounts;       /* SANDBOX_MOUNTS: comma list of NAME=HOST:PATH:ro */
	char *pass_env;     /* SANDBOX_PASS_ENV: comma list of names */
	char *project_dir;  /* ATLAS_PROJECT_DIR: the default session's workspace on the host */
	int64_t uid, gid;   /* ATLAS_SANDBOX_UID, _GID: with project_dir; 0: those of its owner */
	/* commands */
	int64_t default_timeout_s; /* SANDBOX_DEFAULT_TIMEOUT 120 */
	int64_t max_timeout_s;     /* SANDBOX_MAX_TIMEOUT 1800 */
	int64_t max_output;        /* SANDBOX_MAX_OUTPUT 100000 characters */
	int64_t max_concurrency;   /* SANDBOX_MAX_CONCURRENCY 4 execs of one session */
	int64_t max_processes;     /* SANDBOX_MAX_PROCESSES 8 background processes of one session */
	int64_t process_buffer;    /* SANDBOX_PROCESS_BUFFER 1 MiB: bytes of output kept of each */
	char *shell;               /* SANDBOX_SHELL bash */
	/* HTTP */
	int64_t max_body;        /* SANDBOX_MAX_BODY 64 MiB */
	int64_t max_connections; /* SANDBOX_MAX_CONNECTIONS 1024 */
	/* engine */
	int64_t new_engine;      /* SANDBOX_NEW_ENGINE 0 */
	int64_t engine_parallel; /* SANDBOX_ENGINE_PARALLEL 4 */
	int64_t reconcile_s;     /* SANDBOX_RECONCILE 30 */
	/* audit */
	int64_t audit_days; /* SANDBOX_AUDIT_DAYS 90; 0: for ever */
	/* log */
	char *log_format; /* ATLAS_LOG_FORMAT pretty | json */
	char *log_color;  /* ATLAS_LOG_COLOR auto | always | never */
	char *log_level;  /* SANDBOX_LOG_LEVEL info */
	char *no_color;   /* NO_COLOR */
	char *token_file; /* that the token was read from; NULL: it came in the environment */
	/* Where each came from, in the order of the table, for settings_print(): constants. */
	const char *sources[SETTINGS_MAX];
};

/* What the command line of berthd asked for besides settings. */
enum settings_action { SETTINGS_RUN, SETTINGS_HELP, SETTINGS_VERSION, SETTINGS_PRINT, SETTINGS_DOCS };

/*
 * Reads argv (--listen ADDR, --data-dir DIR ... each setting has a flag, or --flag=VALUE; --config FILE, else
 * SANDBOX_CONFIG;
 * --print-config; --print-docs; --help; --version), the environment and the file. With help, version and docs
 * nothing else is read. ERR_INVALID names the setting, where it stood and the rule; an unknown SANDBOX_* or
 * ATLAS_* variable, key or flag is one. err->field is the setting's variable. On failure *ret is empty.
 *
 * A secret is given by its variable, its file (NAME_FILE, --name-file, name_file = ...) or the configuration
 * file, not by a flag, which everyone on the machine can read. A file with a secret must be a regular file
 * that nobody but its owner may write and others may not read, unless it lies in /run/secrets/, where engines
 * put theirs.
 */
int settings_load(int argc, char **argv, struct settings *ret, enum settings_action *ret_action,
		  struct err *e) NODISCARD;
void settings_clear(struct settings *s);
/* Is it SANDBOX_RUNTIME=local? */
static inline bool settings_is_local(const struct settings *s)
{
	return s->runtime && strcmp(s->runtime, "local") == 0;
}
/*
 * Overwrites the secrets in the environment block of this process, where its /proc file and a child would
 * have them. Before the first thread.
 */
void settings_scrub_environment(void);

/* The table as text for people / as the Markdown of docs/CONFIGURATION.md / with the values in force, secrets
 * as "(set)". */
void settings_help(FILE *out);
void settings_markdown(FILE *out);
void settings_print(const struct settings *s, FILE *out);

/* The value of a variable of berthd's own environment, for SANDBOX_PASS_ENV; NULL when it is unset, and for
 * each of Berth's secrets. Borrowed. Before the first thread. */
const char *settings_pass_env(const char *name);

#endif
