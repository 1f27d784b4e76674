/* SPDX-License-Identifier: MIT */
/*
 * store.h - the truth of the manager in SQLite: sessions, execs, audit, a few named values. The
 * only place with SQL.
 *
 * Any thread. Writes are queued to one writer thread, which commits what is queued as one
 * transaction (BEGIN IMMEDIATE, WAL, synchronous FULL), each write in a savepoint of its own; a
 * write that fails is rolled back alone. Reads use read-only connections. When the disk
 * refuses, writes fail with ERR_STORE and reads go on. The file is <dir>/berth.db, mode 0600.
 *
 * A full disk: with less than 4 MiB left, what grows the file is refused (new sessions and execs, audit rows
 * of their own), while updates of sessions, generations, values and purges go on, even with nothing left: 8
 * MiB of the write-ahead log and some of the file are allocated ahead. Those last for thousands of deletes;
 * then they fail, too, and the manager removes the container all the same and lets reconcile write the row
 * later.
 *
 * Not waited for: touches, ends of execs, audit rows for later. They ride along with the next commit or go
 * after 20 ms. While the disk refuses they are kept and tried again every second until the store is closed:
 * touches one per session, ends as many as execs ran, audit rows within the bound of the queue (4096 writes),
 * beyond which one is dropped and logged. A waited write that finds the queue full fails with ERR_STORE and
 * retry_after_s.
 */
#ifndef BERTH_STORE_H
#define BERTH_STORE_H

#include "base/err.h"

struct store;

/*
 * Opens or makes it and applies the embedded migrations. ERR_STORE: the folder cannot be used, another
 * berthd has it (flock on <dir>/lock), a migration that was applied has another checksum now, or
 * the file is of a newer release.
 *
 * dir NULL: a store in memory, which nobody else can open and which ends with the process. Its audit rows are
 * lines of JSON on stdout instead, {"audit": {...}}, and a write whose line cannot be written fails.
 */
int store_open(const char *dir, struct store **ret, struct err *e) NODISCARD;
void store_close(struct store *st); /* commits what is queued */
DEFINE_CLEANUP(struct store *, store_close)

/* Is the last commit known to have worked? Tries a write when it did not. */
int store_check(struct store *st, struct err *e) NODISCARD;

/* Named values: instance id, the agent volume's name. *ret is NULL when unset, else owned by the caller. */
int store_get_value(struct store *st, const char *key, char **ret, struct err *e) NODISCARD;
int store_set_value(struct store *st, const char *key, const char *value, struct err *e) NODISCARD;

/* ---- audit ---- */

/* One row: who did what to which, and what became of it. Texts are borrowed; NULL is stored as NULL. */
struct audit_row {
	int64_t id; /* set by the store, ascending */
	int64_t at_ms;
	const char *actor;   /* "admin", "session", "manager" */
	const char *address; /* of the client; NULL for the manager's own acts */
	const char *action;  /* "session.create", "exec.start", "exec.end", "session.delete", "refused",
				"unauthorized" ... */
	const char *session, *exec;
	const char *subject; /* what was asked: the command, the image, the path */
	const char *outcome; /* "ok", "accepted", an end reason or an error's wire name */
	const char *detail;
};

/* ---- sessions ---- */

/* Every text is owned by the row (session_row_clear) and may be NULL where "0 or NULL" makes sense. */
struct session_row {
	char *id, *name;
	char *labels;                       /* a JSON object of strings, never NULL */
	char *env;                          /* likewise; never shown */
	char *image;                        /* as asked for or by default */
	char *image_id;                     /* the engine's id at create */
	char *image_env;                    /* what the image sets: a JSON array of "K=V" */
	int64_t memory_mb, cpu_milli, pids; /* as verified in the sandbox, as asked before */
	int64_t ttl_s, idle_s;              /* 0: none */
	char *network, *isolation;
	char *workspace_kind, *workspace_name;
	int64_t workspace_mb;
	char *state;  /* see manager/session_state.h */
	char *reason; /* why it is stopping, gone or failed; NULL before */
	char *detail; /* for people */
	char *token_hash;
	char *sandbox;   /* the label its container and volumes carry */
	char *container; /* the engine's id, NULL before create has answered */
	int64_t link_generation;
	int64_t created_ms, ready_ms, expires_ms, idle_ms, ended_ms; /* wall time, 0: none */
};
void session_row_clear(struct session_row *row);

/* Each of these writes the row(s) and the audit row (may be NULL) in one transaction, and returns once it is
 * durable. */
int store_session_insert(struct store *st, const struct session_row *row, const struct audit_row *audit,
			 struct err *e) NODISCARD;
/* Rewrites all columns of a row that exists. ERR_CONFLICT when its state in the store is not `expected_state`
 * (NULL: any). */
int store_session_update(struct store *st, const struct session_row *row, const char *expected_state,
			 const struct audit_row *audit, struct err *e) NODISCARD;
/* Not waited for: a use of the session has moved its idle deadline (the greatest value wins; nothing when
 * idle_s is 0). */
void store_session_touch(struct store *st, const char *id, int64_t idle_ms);
/* Waited for: a link of this generation is about to be opened; never goes down. */
int store_session_generation(struct store *st, const char *id, int64_t generation, struct err *e) NODISCARD;

int store_session_get(struct store *st, const char *id, struct session_row *ret,
		      struct err *e) NODISCARD; /* ERR_NOT_FOUND */
/* By the hash of a session token; gone ones too. */
int store_session_by_token(struct store *st, const char *token_hash, struct session_row *ret,
			   struct err *e) NODISCARD;

struct session_filter {
	const char *state;                   /* NULL: all but gone and failed */
	const char *name;                    /* NULL: any */
	const char *label_key, *label_value; /* key NULL: any; value NULL: has the key */
	const char *after; /* the cursor: id of the last one of the page before; NULL: from the start. Purged:
			      ERR_INVALID "cursor" */
	int limit;         /* 1..1000 */
};
/* In order of creation (created_ms, id). free each row and the array: session_rows_free(). */
int store_session_list(struct store *st, const struct session_filter *f, struct session_row **ret_rows,
		       size_t *ret_count, struct err *e) NODISCARD;
void session_rows_free(struct session_row *rows, size_t count);
/* Removes gone and failed sessions that ended before this time, with their execs. */
int store_session_purge(struct store *st, int64_t ended_before_ms, struct err *e) NODISCARD;

/* ---- execs: commands and background processes ---- */

/* The numbers are stored. */
enum exec_kind { EXEC_COMMAND = 0, EXEC_PROCESS = 1 };

struct exec_row {
	char *id, *session;
	char *command;      /* for display, escaped, cut to 4 KiB */
	char *key;          /* Idempotency-Key, NULL: none; unique within the session */
	char *request_hash; /* of the request's body, to tell a repeated key with another body */
	char *options;      /* JSON: what a manager that restarts needs to go on (limit, encoding, split) */
	char *reply;        /* JSON, NULL while it runs */
	char *reason;       /* NULL while it runs */
	int64_t started_ms, ended_ms; /* ended 0: runs */
	int64_t kind;                 /* enum exec_kind */
	char *name;                   /* of a process; NULL: none */
	int64_t pid;                  /* of a process; 0: not known (yet) */
	int64_t kept;                 /* 1: a process that is listed, running or ended */
};
void exec_row_clear(struct exec_row *row);
void exec_rows_free(struct exec_row *rows, size_t count);

struct store_ticket; /* a write under way */
/*
 * Queues the exec's row and the audit row and returns at once. The ticket must be given to
 * store_wait().
 */
struct store_ticket *store_exec_insert(struct store *st, const struct exec_row *row,
				       const struct audit_row *audit) NODISCARD;
/* Waits until it is durable and frees the ticket. ERR_CONFLICT: the key or id exists;
 * ERR_NOT_FOUND: the session does not; ERR_STORE; ERR_TIMEOUT (the write may still happen). */
int store_wait(struct store_ticket *t, int timeout_ms, struct err *e) NODISCARD;

/*
 * Not waited for: the end of an exec. Ignored (ok, no audit row) when it has an end already. `on_durable`
 * (may be NULL) is called once on the writer thread, without locks: after the commit, or with ok false when
 * the store is closed before the disk took it.
 */
typedef void (*store_done_fn)(void *ctx, bool ok);
void store_exec_end(struct store *st, const char *id, const char *reason, const char *reply, int64_t ended_ms,
		    const struct audit_row *audit, store_done_fn on_durable, void *ctx);

/* Not waited for: the process runs as this pid. */
void store_exec_started(struct store *st, const char *id, int64_t pid);
/* The process is not kept any more; its row goes as a command's does. audit may be NULL. The second is not
 * waited for. */
int store_exec_forget(struct store *st, const char *id, const struct audit_row *audit,
		      struct err *e) NODISCARD;
void store_exec_forget_later(struct store *st, const char *id);

int store_exec_get(struct store *st, const char *session, const char *id, struct exec_row *ret,
		   struct err *e) NODISCARD;
int store_exec_by_key(struct store *st, const char *session, const char *key, struct exec_row *ret,
		      struct err *e) NODISCARD;
/* Commands only, newest first, at most limit, replies left out (NULL). */
int store_exec_list(struct store *st, const char *session, int limit, struct exec_row **ret_rows,
		    size_t *ret_count, struct err *e) NODISCARD;
/* All execs without an end, and all processes that are kept, of all sessions, in the order of their start. */
int store_exec_live(struct store *st, struct exec_row **ret_rows, size_t *ret_count, struct err *e) NODISCARD;
/* Removes the rows of execs that ended before this time and are not kept, and of each session all but the
 * newest STORE_EXECS_KEPT that ended, in memory STORE_EXECS_KEPT_MEMORY: replies must not fill either. Their
 * audit rows stay. */
#define STORE_EXECS_KEPT 1000
#define STORE_EXECS_KEPT_MEMORY 100
int store_exec_purge(struct store *st, int64_t ended_before_ms, struct err *e) NODISCARD;

/* ---- audit ---- */

/* Waited for. */
int store_audit(struct store *st, const struct audit_row *row, struct err *e) NODISCARD;
/*
 * Removes rows from before this time, oldest first, and no more than STORE_AUDIT_PURGE_MAX of them: the rest
 * is for the next call. They go in the order in which they came, so a row from a clock that ran ahead keeps
 * those behind it.
 */
#define STORE_AUDIT_PURGE_MAX 20000
int store_audit_purge(struct store *st, int64_t before_ms, struct err *e) NODISCARD;
/* Not waited for. */
void store_audit_later(struct store *st, const struct audit_row *row);

#endif
