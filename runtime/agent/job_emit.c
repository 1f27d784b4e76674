/* SPDX-License-Identifier: MIT */
/*
 * Frames about jobs are made when there is room for them, from what each job still has to tell;
 * so nothing is queued, and a job that floods takes its turn like any other.
 */
#include "runtime/agent/job.h"

#define STREAMS (2 * PROTO_JOBS_MAX)
#define TURNS (STREAMS + PROTO_READS_MAX) /* streams, then READs */
/*
 * Less credit than this is not used for a part of what there is: credit comes back in the sizes in
 * which it was used, and many jobs on one window would end up with frames of a few bytes.
 */
#define CREDIT_MIN (PROTO_PAYLOAD_MAX / 4)

static bool emit_refusals(struct jobs *js, struct outbox *o)
{
	bool any = false;

	for (int i = 0; i < JOB_REFUSALS_MAX && outbox_has_room(o); i++) {
		struct job_refusal *r = &js->refusals[i];
		if (r->job == 0 || !r->complete)
			continue;
		struct proto_exit end = {
			.reason = PROTO_START_FAILED,
			.detail = { r->detail, __builtin_strlen(r->detail) },
		};
		struct proto_writer w = outbox_begin(o);
		proto_exit_encode(&w, &end);
		outbox_end(o, &w, PROTO_EXIT, 0, r->job);
		r->job = 0;
		any = true;
	}
	return any;
}

static bool emit_control(struct job *j, struct outbox *o)
{
	bool any = false;

	if (j->tell_started && outbox_has_room(o)) {
		outbox_put(o, PROTO_STARTED, 0, j->id, PROTO_F_PID, (uint64_t)j->leader);
		j->tell_started = false;
		any = true;
	}
	/* in few and large portions, while the sender has three quarters left */
	if (j->in.owed >= PROTO_JOB_WINDOW / 4 && outbox_has_room(o)) {
		outbox_put(o, PROTO_WINDOW, PROTO_STDIN, j->id, PROTO_F_BYTES, j->in.owed);
		j->in.credit += j->in.owed;
		j->in.owed = 0;
		any = true;
	}
	return any;
}

size_t job_allowed(uint64_t credit, size_t len)
{
	if (credit >= len)
		return len;
	return credit < CREDIT_MIN ? 0 : (size_t)credit;
}

static bool emit_bytes(struct job *j, int stream, struct output *log, size_t len, struct outbox *o)
{
	struct proto_writer w = outbox_begin(o);

	len = job_allowed(log->credit < o->credit ? log->credit : o->credit, len);
	if (len == 0 || w.failed || w.size < len)
		return false;
	ssize_t n = output_read(log, w.out, len);
	if (n < 0)
		return false;
	w.used = (size_t)n;
	outbox_end(o, &w, PROTO_DATA, (uint8_t)stream, j->id);
	log->credit -= (size_t)n;
	o->credit -= (size_t)n;
	job_resume_output(j);
	return true;
}

/* The next frame of a stream: bytes, a gap or its end. */
static bool emit_stream(struct job *j, int stream, struct outbox *o)
{
	struct output *log = &j->out[stream - 1].log;

	if (log->fd < 0 || !log->attached || log->eof_sent || !outbox_has_room(o))
		return false;
	struct output_next next = output_next(log);
	if (next.gap > 0) {
		outbox_put(o, PROTO_GAP, (uint8_t)stream, j->id, PROTO_F_BYTES, next.gap);
		return true;
	}
	if (next.len > 0)
		return emit_bytes(j, stream, log, next.len, o);
	if (!output_is_done(log))
		return false;
	outbox_put(o, PROTO_EOF, (uint8_t)stream, j->id, 0, 0);
	log->eof_sent = true;
	return true;
}

static bool emit_turn(struct jobs *js, unsigned at, struct outbox *o)
{
	if (at >= STREAMS)
		return job_emit_read(js, at - STREAMS, o);
	struct job *j = &js->all[at / 2];
	return j->state != JOB_FREE && !j->forgotten && emit_stream(j, PROTO_STDOUT + (int)(at % 2), o);
}

/* A round over all streams of all jobs and all READs, one frame each; the next one begins behind the last
 * that had its turn. */
static bool emit_output(struct jobs *js, struct outbox *o)
{
	unsigned first = js->turn;
	bool any = false;

	for (unsigned i = 0; i < TURNS && outbox_has_room(o); i++) {
		unsigned at = (first + i) % TURNS;
		if (!emit_turn(js, at, o))
			continue;
		js->turn = (at + 1) % TURNS;
		any = true;
	}
	return any;
}

static bool is_told(const struct output *log)
{
	if (log->fd < 0 || (log->keep == PROTO_KEEP_RING && !log->attached))
		return true;
	return log->attached && log->eof_sent;
}

/* An end follows the output of the streams that are sent; one that never began has none. */
static bool emit_exit(struct job *j, struct outbox *o)
{
	if (j->state != JOB_ENDED || j->forgotten || !j->linked || j->exit_sent || !outbox_has_room(o))
		return false;
	if (j->end.reason != PROTO_START_FAILED && (!is_told(&j->out[0].log) || !is_told(&j->out[1].log)))
		return false;
	struct proto_writer w = outbox_begin(o);
	proto_exit_encode(&w, &j->end);
	outbox_end(o, &w, PROTO_EXIT, 0, j->id);
	j->exit_sent = true;
	return true;
}

bool jobs_emit(struct jobs *js, struct outbox *o)
{
	bool any = emit_refusals(js, o);

	for (unsigned i = 0; i < PROTO_JOBS_MAX; i++)
		if (js->all[i].state != JOB_FREE && js->all[i].linked)
			any |= emit_control(&js->all[i], o);
	any |= emit_output(js, o);
	for (unsigned i = 0; i < PROTO_JOBS_MAX; i++)
		any |= emit_exit(&js->all[i], o);
	return any;
}

bool jobs_emit_list(struct jobs *js, struct outbox *o, unsigned *slot)
{
	for (; *slot < PROTO_JOBS_MAX; ++*slot) {
		const struct job *j = &js->all[*slot];
		if (j->state == JOB_FREE || j->state == JOB_COLLECTING || j->forgotten)
			continue;
		struct proto_writer w = outbox_begin(o);
		proto_put_text(&w, PROTO_F_TAG, j->tag);
		proto_put_u64(&w, PROTO_F_STATE, j->state - JOB_STARTING + PROTO_JOB_STARTING);
		proto_put_u64(&w, PROTO_F_PID, (uint64_t)j->leader);
		proto_put_u64(&w, PROTO_F_AGE_MS, (uint64_t)(js->loop->now_ms - j->created_ms));
		proto_put_u64(&w, PROTO_F_STDIN_BYTES, j->in.taken);
		proto_put_u64(&w, PROTO_F_STDIN_OPEN, input_is_open(&j->in));
		outbox_end(o, &w, PROTO_LIST, 0, j->id);
		++*slot;
		return true;
	}
	return false;
}
