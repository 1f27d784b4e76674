/* SPDX-License-Identifier: MIT */
/*
 * job.h - the jobs of a sandbox: a fixed table, the life of each job, and what is told of it.
 *
 * A job is a spec, up to three streams, and an end. PID 1 owns all of it: deadlines, output and
 * the end; a supervisor process only gathers the job's processes. Today every job is a command;
 * what a job does is decided in the supervisor's child (supervisor.c).
 *
 * A slot lives from the first piece of START until FORGET, and as long as its supervisor: one
 * whose job left descendants behind goes on counting against PROTO_JOBS_MAX.
 *
 * job.c: table and commands. job_launch.c: START. job_io.c: pipes. job_end.c: time and the end.
 * job_emit.c: frames. job_read.c: READ.
 */
#ifndef BERTH_AGENT_JOB_H
#define BERTH_AGENT_JOB_H

#include <sys/resource.h>

#include "runtime/agent/input.h"
#include "runtime/agent/kill.h"
#include "runtime/agent/loop.h"
#include "runtime/agent/outbox.h"
#include "runtime/agent/output.h"
#include "runtime/agent/supervisor.h"
#include "runtime/agent/tree.h"

enum job_state {
	JOB_FREE,
	JOB_COLLECTING, /* pieces of START are coming */
	JOB_STARTING,   /* the supervisor stands before execve */
	JOB_RUNNING,    /* execve has succeeded */
	JOB_ENDED,
};

struct job_stream {
	struct output log;
	struct watch pipe; /* from the job; events 0 while it must wait for its reader */
};

struct job {
	struct jobs *table;
	enum job_state state;
	uint32_t id;
	char tag[PROTO_TAG_MAX + 1];
	bool forgotten; /* nobody asks for it any more: the slot waits for its supervisor */

	int spec_fd; /* the memfd with the pieces of START */
	size_t spec_len;

	unsigned flags; /* PROTO_JOB_* */
	int64_t timeout_ms;
	pid_t supervisor; /* 0 once it was reaped */
	pid_t leader;     /* the command; 0 while unknown */
	int go_fd;        /* -1 once go was said */
	struct watch exec, report;
	struct input in;
	struct job_stream out[2]; /* stdout, stderr */

	int64_t created_ms, deadline_ms, left_ms, output_ms; /* on the agent's clock */
	int64_t go_us, left_us; /* CLOCK_MONOTONIC, for the wall time; 0: not yet */

	struct supervisor_report last; /* sums; the command's wait status once it has left */
	struct supervisor_failure failure;
	bool left;            /* the command has ended */
	bool supervisor_lost; /* somebody killed it */
	const char *cause_detail;
	enum proto_reason cause; /* with has_cause: why PID 1 ends it */
	bool has_cause;
	struct kill kill;
	uint64_t oom_before; /* the OOM killer's count at GO */

	struct proto_exit end; /* of JOB_ENDED */
	/* the link that there is */
	bool linked; /* it started the job or attached to it */
	bool tell_started, exit_sent;
};

/* A START or ATTACH that found no job; told once, then forgotten. */
struct job_refusal {
	uint32_t job;  /* 0: unused */
	bool complete; /* the last piece of START has come */
	const char *detail;
};
#define JOB_REFUSALS_MAX 64

/* A READ that was not answered yet. */
struct job_read {
	uint32_t job; /* 0: unused */
	bool wait;
	uint64_t cookie, offset, number; /* the number orders them by age */
};

struct jobs {
	struct loop *loop;
	int null_fd, oom_fd;
	struct rlimit nofile; /* as it was when the agent started */
	struct kill strays;   /* orphans of supervisors that were killed */
	int64_t sweep_ms;     /* when the next picture of the processes may be taken */
	int64_t cleared_ms;   /* when leftovers were last looked at */
	uint64_t pids_max;    /* of the sandbox; 0: unlimited */
	unsigned turn;        /* whose output comes next */
	struct job all[PROTO_JOBS_MAX];
	struct job_refusal refusals[JOB_REFUSALS_MAX];
	struct job_read reads[PROTO_READS_MAX];
	unsigned read_count;
	uint64_t read_number; /* of the last one */
	struct tree tree;
	uint8_t buffer[64 * 1024]; /* scratch */
};

/* 0, or -1 with errno. */
int jobs_init(struct jobs *js, struct loop *l);

/* ---- frames of the manager; those for a job that is not there are ignored where nothing is said ---- */

/* May another START or ATTACH be taken? */
bool jobs_can_refuse(const struct jobs *js);
void jobs_start(struct jobs *js, const struct proto_frame *f);
void jobs_go(struct jobs *js, uint32_t id);
/* False when there was no credit for the bytes. */
bool jobs_input(struct jobs *js, const struct proto_frame *f);
void jobs_input_end(struct jobs *js, uint32_t id);
/* False when the stream is none of output, or the sum is beyond reason. */
bool jobs_credit(struct jobs *js, uint32_t id, int stream, uint64_t bytes);
void jobs_signal(struct jobs *js, uint32_t id, int sig);
void jobs_cancel(struct jobs *js, uint32_t id, uint64_t grace_ms);
void jobs_attach(struct jobs *js, uint32_t id, int stream, uint64_t offset);
void jobs_forget(struct jobs *js, uint32_t id);
/* False when there are PROTO_READS_MAX already. */
bool jobs_read(struct jobs *js, const struct job_read *r);

/* Kills all that runs, and what was left running. */
void jobs_end_all(struct jobs *js);
/* Is nothing left that jobs_end_all() has to wait for? */
bool jobs_are_over(const struct jobs *js);

/* The link is lost: nobody reads, half a START never was. */
void jobs_detach(struct jobs *js);

/* ---- frames to the manager ---- */

/* Puts in what is due and fits. True when something was. */
bool jobs_emit(struct jobs *js, struct outbox *o);
/* One LIST frame; *slot is where to begin and moves on. False when there are no more jobs. */
bool jobs_emit_list(struct jobs *js, struct outbox *o, unsigned *slot);

/* ---- the loop ---- */

/* Reaps children of PID 1, a bounded number; true when there may be more. */
bool jobs_reap(struct jobs *js);
/* What time brings: deadlines, kills, ends. */
void jobs_step(struct jobs *js);
/* When jobs_step() wants to be called at the latest. */
int64_t jobs_next_ms(const struct jobs *js);

/* ---- among the job_*.c ---- */

struct job *job_find(struct jobs *js, uint32_t id);
unsigned job_slot(const struct job *j);
void job_launch(struct job *j);
/* The job ends before its command began. detail is a constant. */
void job_fail_start(struct job *j, int sys, const char *detail);
void job_release(struct job *j);
/*
 * What a command left running may stay, but not be all there is: a bomb whose command has ended has no
 * timeout any more, and would keep later commands from making processes. So leftovers of one job that hold
 * more than half of those there may be are killed. Looks at most every pause_ms, since a picture costs time.
 */
void jobs_clear_leftovers(struct jobs *js, int64_t pause_ms);
int64_t job_clock_us(void);
void job_on_output(void *ctx, uint32_t events); /* ctx is the job, as in the next */
void job_on_input(void *ctx, uint32_t events);
void job_on_exec(void *ctx, uint32_t events);
void job_on_report(void *ctx, uint32_t events);
/* How many of these bytes go with this credit; 0: wait for more of it. */
size_t job_allowed(uint64_t credit, size_t len);
/* Answers the READ at this place if it is due and the answer fits. */
bool job_emit_read(struct jobs *js, unsigned place, struct outbox *o);
/* Lets a stream that waited for its reader go on when there is room. */
void job_resume_output(struct job *j);

#endif
