/* SPDX-License-Identifier: MIT */
/*
 * The output of a process, read from the agent's ring by number and offset, and its stdin. Neither belongs to
 * the owner of the exec: each call finds the link that there is, and goes on over the next one when that is
 * lost.
 */
#include <poll.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "manager/internal.h"

#define READ_MS 10000 /* an answer that need not wait for the process */
#define SLICE_MS 2000 /* a stop of berthd is noticed so often */
#define END_MS 5000   /* the end of which the agent spoke comes over the link, too */
#define WATCH_MS 200  /* a writer's client that has gone is noticed so often */

/* ---- where it is ---- */

/* The link that there is, and the number of the process at its agent; 0: that one does not know it. */
static int locate(struct exec *x, int timeout_ms, struct channel **ret, uint32_t *ret_number, struct err *e)
{
	struct channel_job_info jobs[PROTO_JOBS_MAX];
	size_t count = 0;
	_cleanup_(channel_unref_cleanup_) struct channel *c = NULL;
	int r = session_channel(x->session, timeout_ms, &c, e);
	if (r < 0)
		return r;
	pthread_mutex_lock(&x->lock);
	bool known = x->known_on == c;
	*ret_number = x->job_number;
	pthread_mutex_unlock(&x->lock);
	if (!known) { /* a new link, and nobody has come to this process yet */
		r = channel_list(c, jobs, &count, EXEC_LIST_TIMEOUT_MS, e);
		if (r < 0)
			return r;
		const struct channel_job_info *info = exec_find_tag(jobs, count, x->id);
		*ret_number = info ? info->job : 0;
		exec_set_number(x, c, *ret_number);
	}
	*ret = STEAL_PTR(c);
	return 0;
}

/* ---- output ---- */

struct reading {
	struct exec *x;
	const struct process_wish *w;
	struct process_piece *piece;
	int64_t deadline;
	bool wait;  /* there was nothing at the offset */
	bool asked; /* the agent has answered once */
	bool ended; /* nothing follows */
	struct channel_chunk chunk;
};

enum step { STEP_MORE, STEP_DONE };

static bool is_quiet(const struct reading *g)
{
	return atomic_load(&g->x->session->manager->quiet);
}

/* 0 with the chunk, or what channel_read() says. */
static int read_once(struct reading *g, struct err *e)
{
	_cleanup_(channel_unref_cleanup_) struct channel *c = NULL;
	uint32_t number = 0;
	int left = (int)clock_left_ms(g->deadline);
	int r = locate(g->x, MAX(left, READ_MS), &c, &number, e);
	if (r < 0)
		return r;
	if (!number)
		return err_set(e, ERR_NOT_FOUND, "the sandbox has no record of the process");
	return channel_read(c, number, g->piece->at, g->wait, g->wait ? MIN(left, SLICE_MS) : READ_MS,
			    g->w->client_fd, &g->chunk, e);
}

/* The link is lost, or the agent does not answer: another try within the time, or at least a second one. */
static int judge_failure(struct reading *g, int r, struct err *e)
{
	static const enum err_code final[] = { ERR_CONFLICT, ERR_LIMIT, ERR_GONE, ERR_INTERNAL };
	for (size_t i = 0; i < ARRAY_LEN(final); i++)
		if (r == -(int) final[i])
			return r;
	if (is_quiet(g))
		return err_set(e, ERR_STOPPING, "berthd is stopping");
	if (clock_left_ms(g->deadline) > 0)
		return STEP_MORE;
	/* waited in vain, which is an answer; a link that is lost is none */
	return r == -(int)ERR_TIMEOUT && g->asked ? STEP_DONE : r;
}

/* Its record is lost: it has ended, or it will have as soon as the manager has looked. */
static int judge_unknown(struct reading *g)
{
	g->ended = exec_wait(g->x, (int)MIN(clock_left_ms(g->deadline), SLICE_MS), g->w->client_fd);
	return g->ended || clock_left_ms(g->deadline) == 0 ? STEP_DONE : STEP_MORE;
}

static int take_chunk(struct reading *g, struct err *e)
{
	struct process_piece *p = g->piece;
	const struct channel_chunk *k = &g->chunk;
	if (!g->asked && g->w->offset > k->total)
		return err_field(e, "offset", "is beyond the %llu bytes that were written",
				 (unsigned long long)k->total);
	g->asked = true;
	if (!process_piece_add(p, k->offset, k->bytes, k->len))
		return STEP_DONE;
	g->ended = k->state == PROTO_JOB_ENDED && p->at >= k->total;
	bool more = k->len > 0 && p->at < k->total;
	if (g->ended || !p->room)
		return STEP_DONE;
	if (more)
		return STEP_MORE;
	g->wait = process_piece_is_empty(p) && clock_left_ms(g->deadline) > 0;
	if (g->wait && is_quiet(g))
		return err_set(e, ERR_STOPPING, "berthd is stopping");
	return g->wait ? STEP_MORE : STEP_DONE;
}

static int step(struct reading *g, struct err *e)
{
	int r = read_once(g, e);
	if (r == 0)
		return take_chunk(g, e);
	if (r == -(int)ERR_NOT_FOUND)
		return judge_unknown(g);
	return judge_failure(g, r, e);
}

static int enter(struct session *s, struct err *e)
{
	pthread_mutex_lock(&s->lock);
	bool room = s->readers < PROCESS_READERS_MAX;
	s->readers += room;
	pthread_mutex_unlock(&s->lock);
	if (room)
		return 0;
	err_set(e, ERR_LIMIT, "%d readers wait for output of this session already", PROCESS_READERS_MAX);
	e->retry_after_s = 1;
	return -ERR_LIMIT;
}

static void leave(struct session *s)
{
	pthread_mutex_lock(&s->lock);
	s->readers--;
	pthread_mutex_unlock(&s->lock);
}

int process_read(struct exec *x, const struct process_wish *w, struct process_piece *ret, bool *ret_ended,
		 struct err *e)
{
	_cleanup_free_ struct reading *g =
		xcalloc(1, sizeof(*g)); /* a chunk is large for a connection's stack */
	*g = (struct reading){ .x = x, .w = w, .piece = ret, .deadline = clock_mono_ms() + w->wait_ms };
	process_piece_init(ret, w->offset, w->max, w->exact);
	session_touch(x->session);
	int r = enter(x->session, e);
	if (r < 0)
		return r;
	do
		r = step(g, e);
	while (r == STEP_MORE);
	leave(x->session);
	/* What was read before a failure is an answer. */
	if (r < 0 && process_piece_is_empty(ret))
		return r;
	/* Who sees that it has ended shall be able to tell how. */
	g->ended = g->ended && exec_wait(x, END_MS, -1);
	process_piece_end(ret, g->ended);
	*ret_ended = g->ended;
	return 0;
}

/* ---- stdin ---- */

struct process_writer {
	TAILQ_ENTRY(process_writer) next;
	struct exec *x;
	const struct process_input *in;
	int64_t deadline; /* moves on as the process reads */
	int64_t last_deadline;
	bool begun;        /* the next is known */
	uint64_t base;     /* bytes that the agent had taken before */
	size_t at;         /* of ours that were given to the link */
	size_t confirmed;  /* of ours that the agent has taken */
	unsigned attached; /* as of the exec's */
};

static bool client_is_gone(const struct process_writer *w)
{
	struct pollfd fd = { .fd = w->in->client_fd, .events = POLLRDHUP };
	return w->in->client_fd >= 0 && poll(&fd, 1, 0) > 0;
}

static int check_locked(struct process_writer *w, struct err *e)
{
	struct exec *x = w->x;
	if (x->reply)
		return err_set(e, ERR_CONFLICT, "process %s has ended", x->id);
	if (!x->input.open)
		return err_set(e, ERR_CONFLICT, "the stdin of process %s is closed", x->id);
	if (atomic_load(&x->session->manager->quiet))
		return err_set(e, ERR_STOPPING, "berthd is stopping");
	if (client_is_gone(w))
		return err_set(e, ERR_CONFLICT, "the client has gone");
	if (clock_left_ms(MIN(w->deadline, w->last_deadline)) == 0)
		return err_set(e, ERR_CONFLICT, "process %s does not read its stdin", x->id);
	return 0;
}

/* For a while, or until something has changed. */
static void wait_locked(struct process_writer *w)
{
	int64_t until = MIN(MIN(w->deadline, w->last_deadline), clock_mono_ms() + WATCH_MS);
	struct timespec t = { .tv_sec = until / 1000, .tv_nsec = until % 1000 * 1000000 };
	pthread_cond_timedwait(&w->x->changed, &w->x->lock, &t);
}

/* 0 when it is its turn. */
static int stand_in_line(struct process_writer *w, struct err *e)
{
	struct process_stdin *in = &w->x->input;
	int r = 0;
	pthread_mutex_lock(&w->x->lock);
	if (in->writers_count >= PROCESS_WRITERS_MAX) {
		pthread_mutex_unlock(&w->x->lock);
		err_set(e, ERR_LIMIT, "%d requests wait for the stdin of this process already",
			PROCESS_WRITERS_MAX);
		e->retry_after_s = 1;
		return -ERR_LIMIT;
	}
	in->writers_count++;
	TAILQ_INSERT_TAIL(&in->writers, w, next);
	while ((r = check_locked(w, e)) == 0 && TAILQ_FIRST(&in->writers) != w)
		wait_locked(w);
	pthread_mutex_unlock(&w->x->lock);
	w->deadline = clock_mono_ms() + PROCESS_STDIN_MS;
	return r;
}

static void leave_line(struct process_writer *w)
{
	struct process_stdin *in = &w->x->input;
	pthread_mutex_lock(&w->x->lock);
	TAILQ_REMOVE(&in->writers, w, next);
	in->writers_count--;
	pthread_cond_broadcast(&w->x->changed);
	pthread_mutex_unlock(&w->x->lock);
}

/* The job and its link, references; waits for a link when there is none. */
static int borrow(struct process_writer *w, struct job **ret, struct channel **ret_c, struct err *e)
{
	struct exec *x = w->x;
	int r;
	pthread_mutex_lock(&x->lock);
	while ((r = check_locked(w, e)) == 0 && (!x->job || !job_is_on(x->job, x->known_on)))
		wait_locked(w);
	if (r == 0) {
		*ret = job_ref(x->job);
		*ret_c = channel_ref(x->known_on);
		/* What was under way over the link that was lost is sent again. */
		if (w->begun && x->input.attached != w->attached)
			w->at = w->confirmed =
				(size_t)MIN(x->input.taken - MIN(x->input.taken, w->base), w->in->len);
		w->attached = x->input.attached;
	}
	pthread_mutex_unlock(&x->lock);
	return r;
}

/* What the agent says of the stdin. */
struct answer {
	uint64_t taken; /* bytes in all */
	bool open, ended;
};

/* The question goes behind the bytes. */
static int ask(struct process_writer *w, struct channel *c, struct answer *ret, struct err *e)
{
	struct channel_job_info jobs[PROTO_JOBS_MAX];
	size_t count = 0;
	int r = channel_list(c, jobs, &count, PROCESS_STDIN_MS, e);
	if (r < 0)
		return r;
	const struct channel_job_info *info = exec_find_tag(jobs, count, w->x->id);
	if (!info)
		return err_set(e, ERR_CONFLICT, "the sandbox does not know process %s any more", w->x->id);
	*ret = (struct answer){ .taken = (uint64_t)info->stdin_bytes,
				.open = info->stdin_open,
				.ended = info->state == PROTO_JOB_ENDED };
	pthread_mutex_lock(&w->x->lock);
	w->x->input.open = ret->open;
	pthread_mutex_unlock(&w->x->lock);
	return 0;
}

static int confirm(struct process_writer *w, struct channel *c, struct answer *ret, struct err *e)
{
	int r = ask(w, c, ret, e);
	if (r == 0)
		w->confirmed = (size_t)MIN(ret->taken - MIN(ret->taken, w->base), w->in->len);
	return r;
}

/* Where this writer begins. Writers before may have left without knowing how far they came. */
static int begin_write(struct process_writer *w, struct channel *c, struct err *e)
{
	struct answer answer;
	int r = ask(w, c, &answer, e);
	if (r < 0)
		return r == -(int)ERR_CONFLICT ? r : STEP_MORE;
	w->begun = true;
	w->base = answer.taken;
	return STEP_MORE;
}

/* The link took what it had credit for. Waits for more. */
static int await_credit(struct process_writer *w, struct err *e)
{
	pthread_mutex_lock(&w->x->lock);
	int r = check_locked(w, e);
	if (r == 0)
		wait_locked(w);
	pthread_mutex_unlock(&w->x->lock);
	return r;
}

static int finish_write(struct process_writer *w, struct job *j, struct channel *c, struct err *e)
{
	struct answer answer;
	if (w->in->close)
		job_close_stdin(j);
	int r = confirm(w, c, &answer, e);
	if (r < 0)
		return r == -(int)ERR_CONFLICT ? r : STEP_MORE; /* over the next link */
	if (w->confirmed < w->in->len)
		return STEP_MORE;
	if (!answer.open && !answer.ended && !w->in->close)
		return err_set(e, ERR_CONFLICT, "process %s has closed its stdin", w->x->id);
	return STEP_DONE;
}

static int write_some(struct process_writer *w, struct err *e)
{
	_cleanup_(job_unref_cleanup_) struct job *j = NULL;
	_cleanup_(channel_unref_cleanup_) struct channel *c = NULL;
	size_t taken = 0;
	int r = borrow(w, &j, &c, e);
	if (r < 0)
		return r;
	if (!w->begun)
		return begin_write(w, c, e);
	if (w->at < w->in->len && job_write(j, w->in->bytes + w->at, w->in->len - w->at, &taken, e) < 0)
		return await_credit(w, e); /* the link is lost, or the end is on its way here */
	w->at += taken;
	if (taken)
		w->deadline = clock_mono_ms() + PROCESS_STDIN_MS;
	if (w->at < w->in->len)
		return await_credit(w, e);
	return finish_write(w, j, c, e);
}

/*
 * How many were taken is told also when it went wrong; and that nothing did, when the link was lost with the
 * word that all were, and the process has ended since. True: all were taken.
 */
static bool count_taken(struct process_writer *w)
{
	struct answer answer;
	struct err ignored;
	pthread_mutex_lock(&w->x->lock);
	_cleanup_(channel_unref_cleanup_) struct channel *c =
		w->x->known_on ? channel_ref(w->x->known_on) : NULL;
	pthread_mutex_unlock(&w->x->lock);
	if (!c || !w->begun || !channel_is_open(c) || confirm(w, c, &answer, &ignored) < 0)
		return false;
	return answer.ended && w->confirmed == w->in->len;
}

int process_write(struct exec *x, const struct process_input *in, size_t *ret_taken, struct err *e)
{
	int64_t now = clock_mono_ms();
	struct process_writer w = { .x = x,
				    .in = in,
				    .deadline = now + PROCESS_STDIN_MS,
				    .last_deadline = now + PROCESS_STDIN_ALL_MS };
	session_touch(x->session);
	*ret_taken = 0;
	int r = stand_in_line(&w, e);
	if (r == -(int)ERR_LIMIT)
		return r;
	if (r == 0) {
		do
			r = write_some(&w, e);
		while (r == STEP_MORE);
		if (r < 0 && count_taken(&w))
			r = STEP_DONE;
	}
	leave_line(&w);
	*ret_taken = w.confirmed;
	return r < 0 ? r : 0;
}
