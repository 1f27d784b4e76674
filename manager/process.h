/* SPDX-License-Identifier: MIT */
/*
 * process.h - background processes of a session, for the faces: commands without a timeout whose output stays
 * in a ring of the sandbox's agent, for any number of readers, and whose stdin may stay open. To the manager
 * they are execs of another kind (struct exec).
 *
 * A process is kept, listed and readable, until it is deleted, PROCESS_ENDED_MAX newer ones have ended, or
 * its session ends; also over a restart of berthd. Any thread; no lock is held when a function here is called
 * or returns.
 */
#ifndef BERTH_PROCESS_H
#define BERTH_PROCESS_H

#include "manager/manager.h"
#include "manager/process_piece.h"

#define PROCESS_ENDED_MAX 16
#define PROCESS_KEPT_MAX \
	32 /* running and ended ones of a session; with many running, fewer ended ones are kept */
#define PROCESS_READERS_MAX 32      /* that are in process_read() at once, in one session */
#define PROCESS_WRITERS_MAX 64      /* that stand in line for the stdin of one process */
#define PROCESS_STDIN_MS 30000      /* a process that takes nothing for so long does not read */
#define PROCESS_STDIN_ALL_MS 600000 /* one write altogether */

/*
 * Starts one: rq->kind is EXEC_PROCESS. The errors of exec_start(), where ERR_LIMIT names
 * SANDBOX_MAX_PROCESSES, or says that the agent has no place; and ERR_UNPROCESSABLE when it could not be
 * started; then it is not kept. *ret is a reference (exec_unref).
 */
int process_start(struct session *s, const struct exec_request *rq, const struct caller *who,
		  struct exec **ret, struct err *e) NODISCARD;

/* One that is kept: ERR_NOT_FOUND. A reference. */
int process_find(struct session *s, const char *id, struct exec **ret, struct err *e) NODISCARD;
/* {id, name, command, pid, running, exit_code, reason, signal, started_at, ended_at}, a new reference. */
json_t *process_get_state(struct exec *x) NODISCARD;
/*
 * All that are kept as such, in the order of their start, a new reference; each with `ports`: the TCP ports
 * on which it listens, asked of the sandbox; null when that does not tell within some seconds.
 */
json_t *process_list(struct session *s) NODISCARD;

struct process_wish {
	uint64_t offset;
	size_t max;    /* bytes of output */
	bool exact;    /* bytes, not text */
	int wait_ms;   /* for output or the end, when there is nothing at the offset */
	int client_fd; /* to watch for a hang-up meanwhile; -1: none */
};
/*
 * What there is at an offset; ret is cleared by the caller (process_piece_clear), also after a failure.
 * *ret_ended: the process has ended and nothing follows the piece. ERR_INVALID: the offset is beyond what was
 * written; ERR_LIMIT; ERR_CONFLICT: the client has gone; ERR_STOPPING; and why the sandbox cannot be reached.
 */
int process_read(struct exec *x, const struct process_wish *w, struct process_piece *ret, bool *ret_ended,
		 struct err *e) NODISCARD;

/*
 * Writes to its stdin, after those who came before, and closes it. *ret_taken, also on failure: how many
 * bytes the sandbox has taken. ERR_CONFLICT: it has ended or its stdin is closed, it does not read, the
 * client has gone; ERR_LIMIT: too many stand in line.
 */
struct process_input {
	const char *bytes;
	size_t len;
	bool close;
	int client_fd;
};
int process_write(struct exec *x, const struct process_input *in, size_t *ret_taken, struct err *e) NODISCARD;

/*
 * Ends it, SIGTERM first, the whole tree after grace_ms, and waits for that. ERR_TIMEOUT: the client has
 * gone, berthd stops or it takes too long; it is being ended all the same.
 */
int process_stop(struct exec *x, int grace_ms, int client_fd, struct err *e) NODISCARD;
/* It is not kept any more, and what it left running is killed. ERR_NOT_FOUND: somebody else was quicker. */
int process_forget(struct exec *x, const struct caller *who, struct err *e) NODISCARD;

#endif
