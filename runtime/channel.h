/* SPDX-License-Identifier: MIT */
/*
 * channel.h - the manager's side of one agent link: jobs multiplexed over a stream.
 *
 * All links of a process live on one epoll thread (struct channels). Any other thread may call
 * the functions here; they take the channel's lock, queue frames and wait on its condition.
 * Nothing that a peer sends is believed: a broken frame or bytes without credit end the link.
 *
 * Lock order: a job's notify_lock -> channels -> channel -> leaf. A callback is made with notify_lock alone
 * held.
 */
#ifndef BERTH_CHANNEL_H
#define BERTH_CHANNEL_H

#include "base/err.h"
#include "runtime/hello.h"
#include "runtime/protocol/protocol.h"
#include "runtime/stream.h"

struct channels; /* the epoll thread */
struct channel;  /* one link */
struct job;      /* one job on it, as the manager sees it */

int channels_new(struct channels **ret, struct err *e) NODISCARD;
void channels_free(struct channels *cs); /* every channel was closed before; ends the thread */

/*
 * Says hello over a fresh stream (which moves in, also on failure) and waits for the answer.
 * *ret_hello is filled. The channel has one reference, the caller's. ERR_SANDBOX with the stream's
 * complaint when the other side is no agent; ERR_TIMEOUT.
 */
int channel_open(struct channels *cs, struct stream *s, uint64_t generation, int timeout_ms,
		 struct channel **ret, struct hello *ret_hello, struct err *e) NODISCARD;
struct channel *channel_ref(struct channel *c) NODISCARD;
void channel_unref(struct channel *c); /* the last one closes the link; takes NULL */
DEFINE_CLEANUP(struct channel *, channel_unref)

/* Which run of the agent is at the other end: equal for two channels when it is the same process. */
uint64_t channel_get_agent(const struct channel *c);

/* False once the link is lost. */
bool channel_is_open(struct channel *c);
/* Ends the link: every waiter gets ERR_SANDBOX. The jobs in the sandbox go on. */
void channel_close(struct channel *c);
/* A ping and its answer. */
int channel_ping(struct channel *c, int timeout_ms, struct err *e) NODISCARD;

struct channel_job_info {
	uint32_t job;
	char tag[PROTO_TAG_MAX + 1];
	enum proto_state state;
	int pid;
	int64_t age_ms;
	int64_t stdin_bytes; /* of stdin that the agent has taken so far */
	bool stdin_open;     /* it takes more */
};
/* The jobs that the agent has, as of after all bytes of stdin that were written before. ret_jobs: room for
 * PROTO_JOBS_MAX. */
int channel_list(struct channel *c, struct channel_job_info *ret_jobs, size_t *ret_count, int timeout_ms,
		 struct err *e) NODISCARD;

/*
 * A piece of what a job with PROTO_KEEP_RING has written, for any number of readers at once. With wait it is
 * there when there is a byte at `offset` or the job has ended, or empty before (ask again); without, at once.
 * client_fd: a socket to watch meanwhile, or -1. ERR_NOT_FOUND: the agent has no such job; ERR_TIMEOUT;
 * ERR_CONFLICT: the client has gone; ERR_LIMIT: more than PROTO_READS_MAX - 16 readers; ERR_SANDBOX: the link
 * is lost.
 */
struct channel_chunk {
	uint64_t offset; /* of the first byte: above the one asked for when that has left the ring */
	uint64_t total;  /* bytes written so far */
	enum proto_state state;
	size_t len;
	char bytes[PROTO_CHUNK_MAX];
};
int channel_read(struct channel *c, uint32_t job, uint64_t offset, bool wait, int timeout_ms, int client_fd,
		 struct channel_chunk *ret, struct err *e) NODISCARD;

/* ---- jobs ---- */

struct job_spec {
	const char *tag;
	const char *const *argv; /* NULL-terminated, or NULL and `script` */
	const char *script;
	const char *shell;
	const char *builtin; /* with argv as its arguments, which may be NULL (runtime/protocol/builtin.h) */
	const char *const *env; /* "K=V", NULL-terminated */
	const char *cwd;
	int64_t timeout_ms;
	enum proto_keep keep;
	uint32_t head_bytes, tail_bytes;
	bool has_stdin, split;
};

struct job_end {
	enum proto_reason reason;
	int code, signal, sys; /* as in struct proto_exit */
	int64_t wall_us, user_us, sys_us, peak_bytes, dropped_bytes;
	unsigned lingering, survivors;
	char detail[PROTO_DETAIL_MAX + 1];
};

/*
 * Sends START; the output of a job with PROTO_KEEP_RING is not sent (channel_read()), only its end. The
 * supervisor stands until job_go(). ERR_TOO_LARGE when the spec is over PROTO_SPEC_MAX; ERR_SANDBOX when the
 * link is lost. The caller owns one reference.
 */
int job_start(struct channel *c, const struct job_spec *spec, struct job **ret, struct err *e) NODISCARD;
void job_go(struct job *j);
uint32_t job_get_id(const struct job *j); /* its number at the agent, above 0 */
/*
 * Takes up a job that the agent already has (channel_list), reading its output from these offsets; stdin may
 * be written on from info->stdin_bytes.
 */
int job_attach(struct channel *c, const struct channel_job_info *info, bool split, uint64_t stdout_offset,
	       uint64_t stderr_offset, struct job **ret, struct err *e) NODISCARD;
/* The same for a job with PROTO_KEEP_RING: its end is told and its stdin may be written, its output is read
 * by channel_read(). */
int job_adopt(struct channel *c, const struct channel_job_info *info, struct job **ret,
	      struct err *e) NODISCARD;
struct job *job_ref(struct job *j) NODISCARD;
/* Is this its link, and not lost? */
bool job_is_on(struct job *j, const struct channel *c);
/* Has its command been started, as far as the agent has said over this link? */
bool job_is_started(struct job *j);
void job_unref(
	struct job *j); /* a job without an end is not touched in the sandbox, but nobody reads it any more */
DEFINE_CLEANUP(struct job *, job_unref)

enum job_event {
	JOB_TIMEOUT, /* nothing in time */
	JOB_OUTPUT,  /* bytes of stream `stream` */
	JOB_GAP,     /* `gap_bytes` of stream `stream` are lost here */
	JOB_END,     /* job_get_end() is filled; comes last, again and again */
	JOB_LOST, /* the link is lost, the job may go on: attach again later; comes last, again and again */
	JOB_STARTED,  /* its command runs: job_get_pid(). Only of a job with PROTO_KEEP_RING */
	JOB_WRITABLE, /* stdin has credit again (after a job_write() that took less than all) */
	JOB_HANGUP,   /* the client's socket was closed or broken (only when client_fd >= 0) */
};
struct job_output {
	int stream; /* PROTO_STDOUT or PROTO_STDERR */
	size_t len;
	uint64_t gap_bytes;
	const char *bytes; /* borrowed until the next job_next() or the last job_unref() */
};
/*
 * Waits for the next thing, in the order in which the agent sent it. Taking bytes gives their
 * credit back. client_fd: a socket to watch for POLLRDHUP, POLLHUP and POLLERR meanwhile, or -1.
 * One reader at a time.
 */
enum job_event job_next(struct job *j, int timeout_ms, int client_fd, struct job_output *ret);
/*
 * Calls fn(ctx) on the epoll thread, no lock held, whenever job_next() would return something;
 * it must be short. NULL ends that; once this returned, the old fn is not called any more.
 */
typedef void (*job_notify_fn)(void *ctx);
void job_set_notify(struct job *j, job_notify_fn fn, void *ctx);
int job_get_pid(struct job *j);                   /* as the agent has it, 0 before JOB_STARTED */
const struct job_end *job_get_end(struct job *j); /* borrowed; after JOB_END */

/*
 * Takes as many bytes as there is credit for, without waiting; *ret_taken may be 0, then JOB_WRITABLE is
 * reported when there is credit. ERR_CONFLICT when stdin is closed, ERR_SANDBOX when the link is lost.
 */
int job_write(struct job *j, const void *bytes, size_t len, size_t *ret_taken, struct err *e) NODISCARD;
void job_close_stdin(struct job *j);
void job_cancel(struct job *j, int grace_ms);
void job_forget(struct job *j); /* the end is stored: the agent may free its record */
/* As job_cancel(), for a job by its number. */
void channel_cancel_job(struct channel *c, uint32_t id, int grace_ms);
/* For a job of the agent's list: it has ended, and its end is stored. */
void channel_forget_job(struct channel *c, uint32_t id);
/* Kills and forgets a job of the agent's list that nobody here knows. */
void channel_drop_job(struct channel *c, uint32_t id);

#endif
