/* SPDX-License-Identifier: MIT */
/*
 * manager.h - what the faces (HTTP, later MCP) ask of Berth: sessions and execs, by plain
 * functions that block with deadlines. It never sees HTTP.
 *
 * Any thread. The lock order stands in docs/ARCHITECTURE.md. No function here is called, and none returns,
 * with a lock held.
 */
#ifndef BERTH_MANAGER_H
#define BERTH_MANAGER_H

#include <jansson.h>

#include "base/err.h"
#include "manager/settings.h"
#include "manager/store/store.h"

struct manager;
struct session; /* a session that lives, reference counted */
struct exec;    /* a command of a session, reference counted */

/*
 * Opens the store, loads the sessions and execs that live, starts the manager's threads, which then find the
 * engine, open the links and reconcile. An engine that is away is no error: it is looked for again. *settings
 * is borrowed for good.
 */
int manager_new(const struct settings *settings, struct manager **ret, struct err *e) NODISCARD;
/* Ends the threads and links; sessions and their jobs stay. Every handler has returned before. */
void manager_free(struct manager *m);
/* Wakes every handler that waits in exec_next(): they get EXEC_SHUTDOWN. */
void manager_quiesce(struct manager *m);
/* With SANDBOX_RUNTIME=local, after each SIGCHLD: reaps. */
void manager_on_children(struct manager *m);

/* Who asks: for audit rows. Borrowed texts. */
struct caller {
	const char *actor;   /* "admin" or "session" */
	const char *address; /* the client's, may be NULL */
};

struct manager_health {
	bool ok;             /* engine and store both work */
	const char *runtime; /* "engine" or "local" (SANDBOX_RUNTIME) */
	bool engine_ok, store_ok;
	char engine[320];       /* "docker 26.1.5 (API 1.45) at unix:///..." or why not */
	char store[320];        /* "ok" or why not */
	char degraded[18][340]; /* what does not work, and known weaknesses; "" ends */
	int64_t sessions_live, execs_running, processes_running;
};
void manager_get_health(struct manager *m, struct manager_health *ret);
/* Sets the gauges of base/metrics.h that are not counted as they change. Never waits for engine or store. */
void manager_set_gauges(struct manager *m);
/* Audits a request without a valid token, at most one a second for each address. */
void manager_note_unauthorized(struct manager *m, const char *address);
/*
 * Audits a request of an authorised client that was refused. subject: its path, or what was to be done. Of
 * more than 100 in a second the others are only counted; one row tells how many.
 */
void manager_note_refused(struct manager *m, const struct caller *who, const char *session,
			  const char *subject, const struct err *why);

/* ---- sessions ---- */

struct session_request {
	const char *image, *name;   /* NULL: the default / none */
	const json_t *labels, *env; /* objects of strings, NULL: none */
	const json_t *mounts;       /* names of SANDBOX_MOUNTS: an array of strings, NULL: none */
	int64_t memory_mb, cpu_milli, pids, ttl_s, idle_s; /* -1: the default */
	const char *network, *isolation;                   /* NULL: "none" / the engine's default, runc */
	const char *workspace_kind, *workspace_name;       /* NULL: "volume" */
	int64_t workspace_mb;                              /* -1: the default */
	bool may_be_endless; /* ttl_s and idle_s may be 0: the caller holds the admin token */
	bool is_default;     /* session_default.c alone asks for it: on the workspace that stays */
};
#define SESSION_MEMORY_MIN_MB 64
#define SESSION_MEMORY_MAX_MB (1024 * 1024)

/*
 * Creates a session and returns when its sandbox was verified. *ret_row is filled (session_row_clear),
 * ret_token is its token, shown once. Nothing is left behind on failure but a row in state failed. Tell
 * apart: ERR_INVALID (field), ERR_NOT_FOUND (image), ERR_LIMIT, ERR_UNAVAILABLE, ERR_ENGINE, ERR_SANDBOX
 * (verification), ERR_STORE.
 */
int sessions_create(struct manager *m, const struct session_request *rq, const struct caller *who,
		    struct session_row *ret_row, char ret_token[64], struct err *e) NODISCARD;

/* The row of a session, gone ones of the last 24 h too. ERR_NOT_FOUND. */
int sessions_get(struct manager *m, const char *id, struct session_row *ret, struct err *e) NODISCARD;
int sessions_list(struct manager *m, const struct session_filter *f, struct session_row **ret_rows,
		  size_t *ret_count, struct err *e) NODISCARD;

struct session_patch {
	int64_t ttl_s, idle_s; /* -1: unchanged. A new ttl counts from now */
	const json_t *labels;  /* NULL: unchanged; else replaces them */
	bool may_be_endless;
};
/* ERR_NOT_FOUND, ERR_GONE, ERR_INVALID. */
int sessions_patch(struct manager *m, const char *id, const struct session_patch *p, const struct caller *who,
		   struct session_row *ret, struct err *e) NODISCARD;

/*
 * Removes the container, its volumes and its processes, but not a workspace that outlives its session. 0 with
 * *ret_gone true when they are gone, false when the engine needs longer than 30 s: it goes on by itself.
 * ERR_NOT_FOUND when it was gone before.
 */
int sessions_delete(struct manager *m, const char *id, const struct caller *who, bool *ret_gone,
		    struct err *e) NODISCARD;

/* The live session: ERR_NOT_FOUND, or ERR_GONE with the reason. The caller owns a reference. */
int sessions_find(struct manager *m, const char *id, struct session **ret, struct err *e) NODISCARD;
/* By a session token: ERR_UNAUTHORIZED when no session has it, ERR_GONE. */
int sessions_find_by_token(struct manager *m, const char *token, struct session **ret,
			   struct err *e) NODISCARD;
/* Its row, of a session that has ended in the last 24 h too. ERR_UNAUTHORIZED. */
int sessions_get_by_token(struct manager *m, const char *token, struct session_row *ret,
			  struct err *e) NODISCARD;
void session_unref(struct session *s);
DEFINE_CLEANUP(struct session *, session_unref)
const char *session_get_id(const struct session *s);

struct session_health {
	bool ok;                 /* ready, and its link is open */
	int64_t busy, processes; /* commands and background processes that run */
	json_t *tools;           /* {name: version} of its image, a new reference */
};
/* As far as is known: waits for nothing. */
void session_get_health(struct session *s, struct session_health *ret);
/* The tools of the standard image, {} until a session has told; a new reference. */
json_t *manager_get_tools(struct manager *m) NODISCARD;

/* ---- execs ---- */

struct exec_request {
	enum exec_kind kind;    /* of a process (manager/process.h): no stdin, timeout, encoding, stream */
	const char *name;       /* of a process; NULL: none */
	bool open_stdin;        /* of a process: a stdin that stays open */
	const char *command;    /* a text for the shell, or NULL and: */
	const json_t *argv;     /* an array of strings */
	const char *stdin_data; /* NULL: stdin is /dev/null */
	size_t stdin_len;
	int64_t timeout_ms;       /* -1: the default */
	const char *cwd;          /* NULL: the workspace */
	const json_t *env;        /* on top of the session's; NULL: none */
	bool base64;              /* output as base64 of the exact bytes */
	bool stream;              /* every byte is wanted: a slow reader slows the command */
	bool split;               /* stderr apart (stream only) */
	const char *key;          /* Idempotency-Key or NULL */
	const char *request_hash; /* with a key: hash of the body as sent */
};
#define EXEC_STDIN_ALL_MAX (512ll << 20) /* bytes of stdin that all running commands hold together */
#define EXEC_QUEUE_MAX 256               /* commands of one session that wait for a slot */
#define EXEC_COMMAND_MAX (1 << 20)
#define EXEC_ARGS_MAX 4096
#define EXEC_ENV_MAX 512

/*
 * Starts a command, after its audit row is durable, having waited in the session's queue when too many run.
 * With a key that the session has seen, *ret is that exec and nothing is started (ERR_CONFLICT when the
 * request differs). client_fd: socket to watch while queued, or -1. ERR_INVALID (field), ERR_LIMIT (429,
 * after its timeout in the queue, or at once when that is full), ERR_OVERLOADED, ERR_NO_SHELL, ERR_STORE,
 * ERR_SANDBOX, ERR_GONE.
 */
int exec_start(struct session *s, const struct exec_request *rq, const struct caller *who, int client_fd,
	       struct exec **ret, struct err *e) NODISCARD;
void exec_unref(struct exec *x);
DEFINE_CLEANUP(struct exec *, exec_unref)
const char *exec_get_id(const struct exec *x);

enum exec_event {
	EXEC_QUIET,    /* nothing within timeout_ms */
	EXEC_OUTPUT,   /* text (UTF-8, whole characters) or raw bytes with base64 */
	EXEC_END,      /* the reply is there: exec_get_reply() */
	EXEC_HANGUP,   /* the client is gone: the command is being cancelled, unless it has a key */
	EXEC_SHUTDOWN, /* berthd stops; the command goes on */
};
struct exec_output {
	int stream;       /* 1 or 2 */
	const char *data; /* borrowed until the next call */
	size_t len;
	uint64_t dropped; /* bytes lost before this data */
};
/*
 * Waits for the next piece of output or the end. Output comes to the thread that started the exec, which
 * calls it until it returns EXEC_END, EXEC_HANGUP or EXEC_SHUTDOWN; to unref the exec before is a hang-up of
 * its client. Any other thread (an Idempotency-Key seen before) gets EXEC_QUIET and the end.
 */
enum exec_event exec_next(struct exec *x, int timeout_ms, int client_fd, struct exec_output *ret);

/* Waits until the exec has ended or timeout_ms passed, for any number of watchers. False: it still runs. */
bool exec_wait(struct exec *x, int timeout_ms, int client_fd);
/* The reply as JSON (the body of POST /exec), a new reference; NULL while it runs. */
json_t *exec_get_reply(struct exec *x) NODISCARD;
/* {id, state: "running"|"ended", command, started_at, ended_at, reason}, a new reference. */
json_t *exec_get_state(struct exec *x) NODISCARD;

/* An exec by id: one that runs, or an ended one of the last 15 minutes. ERR_NOT_FOUND. */
int exec_find(struct session *s, const char *id, struct exec **ret, struct err *e) NODISCARD;
/* The list of states, newest first, a new reference. */
int exec_list(struct session *s, int limit, json_t **ret, struct err *e) NODISCARD;
/* SIGTERM, then after grace_ms the whole tree; does not wait. */
void exec_cancel(struct exec *x, int grace_ms);

#endif
