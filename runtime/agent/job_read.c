/* SPDX-License-Identifier: MIT */
/*
 * READ: any number of readers, each with a place of its own, take pieces of what a job keeps in its ring.
 * What is due is found when there is room for the answer, as with all other frames.
 */
#include "runtime/agent/job.h"

/*
 * With more than so many waiting, the one that has waited longest is answered without a byte: readers that
 * have gone cannot take their READ back, and a new one must find a place.
 */
#define WAITING_MAX (PROTO_READS_MAX - 8)

/* The job whose ring is read, or NULL. */
static struct job *find_ring(struct jobs *js, uint32_t id)
{
	struct job *j = job_find(js, id);

	if (!j || j->state == JOB_COLLECTING)
		return NULL;
	/* one that failed to start has no output at all */
	return j->out[0].log.fd < 0 || j->out[0].log.keep == PROTO_KEEP_RING ? j : NULL;
}

static bool is_waiting(struct jobs *js, const struct job_read *r)
{
	if (r->job == 0 || !r->wait)
		return false;
	struct job *j = find_ring(js, r->job);
	return j && j->state != JOB_ENDED && output_find(&j->out[0].log, r->offset).len == 0;
}

static void bound_waiting(struct jobs *js)
{
	struct job_read *oldest = NULL;
	unsigned count = 0;

	for (unsigned i = 0; i < PROTO_READS_MAX; i++) {
		struct job_read *r = &js->reads[i];
		if (!is_waiting(js, r))
			continue;
		count++;
		if (!oldest || r->number < oldest->number)
			oldest = r;
	}
	if (count > WAITING_MAX)
		oldest->wait = false;
}

bool jobs_read(struct jobs *js, const struct job_read *r)
{
	unsigned place = 0;

	if (js->read_count == PROTO_READS_MAX)
		return false;
	while (js->reads[place].job != 0)
		place++;
	js->reads[place] = *r;
	js->reads[place].number = ++js->read_number;
	if (++js->read_count > WAITING_MAX)
		bound_waiting(js);
	return true;
}

static void put_chunk(struct jobs *js, struct job_read *r, const struct proto_chunk *chunk, struct outbox *o)
{
	struct proto_writer w = outbox_begin(o);

	proto_chunk_encode(&w, chunk);
	outbox_end(o, &w, PROTO_CHUNK, 0, r->job);
	o->credit -= chunk->len;
	r->job = 0;
	js->read_count--;
}

bool job_emit_read(struct jobs *js, unsigned place, struct outbox *o)
{
	struct job_read *r = &js->reads[place];

	if (r->job == 0 || is_waiting(js, r))
		return false;
	struct job *j = find_ring(js, r->job);
	struct proto_chunk chunk = { .cookie = r->cookie };
	if (!j) {
		put_chunk(js, r, &chunk, o);
		return true;
	}
	struct output *log = &j->out[0].log;
	struct output_piece piece = output_find(log, r->offset);
	size_t len = piece.len < PROTO_CHUNK_MAX ? piece.len : PROTO_CHUNK_MAX;
	size_t allowed = job_allowed(o->credit, len);
	if (len > 0 && (allowed == 0 || OUTBOX_SIZE - o->used < allowed + OUTBOX_CONTROL))
		return false;
	ssize_t n = allowed > 0 ? output_read_at(log, piece.offset, js->buffer, allowed) : 0;
	chunk = (struct proto_chunk){
		.cookie = r->cookie,
		.known = true,
		.state = (enum proto_state)(j->state - JOB_STARTING + PROTO_JOB_STARTING),
		.offset = piece.offset,
		.total = log->written,
		.bytes = js->buffer,
		.len = n > 0 ? (size_t)n : 0,
	};
	put_chunk(js, r, &chunk, o);
	return true;
}
