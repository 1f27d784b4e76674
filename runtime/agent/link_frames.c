/* SPDX-License-Identifier: MIT */
#include "runtime/agent/link.h"

#include <signal.h>
#include <string.h>

#define LISTS_MAX 16

/* Each takes a frame: NULL, or what is wrong with it. */
typedef const char *(*frame_fn)(struct links *ls, const struct proto_frame *f);

static const char *on_start(struct links *ls, const struct proto_frame *f)
{
	jobs_start(ls->jobs, f);
	return NULL;
}

static const char *on_go(struct links *ls, const struct proto_frame *f)
{
	jobs_go(ls->jobs, f->job);
	return NULL;
}

static const char *on_data(struct links *ls, const struct proto_frame *f)
{
	if (f->aux != PROTO_STDIN)
		return "data for a stream of output";
	if (f->length > ls->credit)
		return "data without credit of the link";
	ls->credit -= f->length;
	ls->owed += f->length; /* stored, or nobody's any more */
	return jobs_input(ls->jobs, f) ? NULL : "data without credit of the job";
}

static const char *on_window(struct links *ls, const struct proto_frame *f)
{
	uint64_t bytes;

	if (proto_find_u64(f, PROTO_F_BYTES, &bytes) < 0)
		return "window without bytes";
	if (f->job != 0)
		return jobs_credit(ls->jobs, f->job, f->aux, bytes) ? NULL : "window out of range";
	if (bytes > PROTO_LINK_WINDOW || ls->out.credit + bytes > PROTO_LINK_WINDOW)
		return "window beyond the link's";
	ls->out.credit += bytes;
	return NULL;
}

static const char *on_eof(struct links *ls, const struct proto_frame *f)
{
	if (f->aux != PROTO_STDIN)
		return "end of a stream of output";
	jobs_input_end(ls->jobs, f->job);
	return NULL;
}

static const char *on_signal(struct links *ls, const struct proto_frame *f)
{
	uint64_t sig;

	if (proto_find_u64(f, PROTO_F_SIGNAL, &sig) < 0 || sig < 1 || sig >= NSIG)
		return "no such signal";
	jobs_signal(ls->jobs, f->job, (int)sig);
	return NULL;
}

static const char *on_cancel(struct links *ls, const struct proto_frame *f)
{
	uint64_t grace_ms;

	if (proto_find_u64(f, PROTO_F_GRACE_MS, &grace_ms) < 0)
		return "cancel without a grace";
	jobs_cancel(ls->jobs, f->job, grace_ms);
	return NULL;
}

static const char *on_attach(struct links *ls, const struct proto_frame *f)
{
	uint64_t offset;

	if (proto_find_u64(f, PROTO_F_BYTES, &offset) < 0)
		return "attach without an offset";
	jobs_attach(ls->jobs, f->job, f->aux, offset);
	return NULL;
}

static const char *on_list(struct links *ls, const struct proto_frame *f)
{
	(void)f;
	if (ls->lists == LISTS_MAX)
		return "too many lists at once";
	ls->lists++;
	return NULL;
}

static const char *on_forget(struct links *ls, const struct proto_frame *f)
{
	jobs_forget(ls->jobs, f->job);
	return NULL;
}

static const char *on_ping(struct links *ls, const struct proto_frame *f)
{
	uint64_t cookie;

	if (proto_find_u64(f, PROTO_F_COOKIE, &cookie) < 0)
		return "ping without a cookie";
	ls->pongs[ls->pong_count++] = cookie;
	return NULL;
}

static const char *on_read(struct links *ls, const struct proto_frame *f)
{
	struct job_read r = { .job = f->job };
	uint64_t wait = 0;

	if (proto_find_u64(f, PROTO_F_COOKIE, &r.cookie) < 0 ||
	    proto_find_u64(f, PROTO_F_OFFSET, &r.offset) < 0 || r.offset > INT64_MAX)
		return "read without a cookie or an offset";
	(void)proto_find_u64(f, PROTO_F_WAIT, &wait);
	r.wait = wait != 0;
	return jobs_read(ls->jobs, &r) ? NULL : "too many reads at once";
}

static const char *on_pong(struct links *ls, const struct proto_frame *f)
{
	(void)ls, (void)f; /* that something was heard is all it is for */
	return NULL;
}

/* What only the agent sends has no entry. */
static const frame_fn HANDLERS[PROTO_TYPE_COUNT_] = {
	[PROTO_START] = on_start,   [PROTO_GO] = on_go,         [PROTO_DATA] = on_data,
	[PROTO_WINDOW] = on_window, [PROTO_EOF] = on_eof,       [PROTO_SIGNAL] = on_signal,
	[PROTO_CANCEL] = on_cancel, [PROTO_ATTACH] = on_attach, [PROTO_LIST] = on_list,
	[PROTO_FORGET] = on_forget, [PROTO_PING] = on_ping,     [PROTO_PONG] = on_pong,
	[PROTO_READ] = on_read,
};

/* A frame whose answer has no place now waits in the input, and with it all that follow. */
static bool can_take(const struct links *ls)
{
	return ls->pong_count < LINK_PONGS_MAX && jobs_can_refuse(ls->jobs);
}

int link_take_frames(struct links *ls, const char **ret_why)
{
	size_t at = 0;
	struct proto_frame f;

	while (can_take(ls)) {
		ssize_t n = proto_parse(ls->in + at, ls->in_used - at, &f);
		if (n == 0)
			break;
		*ret_why = n < 0 || !HANDLERS[f.type] ? "not a frame of a manager" : HANDLERS[f.type](ls, &f);
		if (*ret_why)
			return -1;
		at += (size_t)n;
	}
	ls->in_used -= at;
	if (at > 0)
		memmove(ls->in, ls->in + at, ls->in_used);
	return 0;
}
