/* SPDX-License-Identifier: MIT */
/*
 * A session runs so many commands at once; the others stand in line. A command that has ended has a place in
 * the agent's table until its end is stored, and a process as long as it is kept; that table is small: those
 * count, too.
 */
#include <string.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "manager/builtin.h"
#include "manager/internal.h"

/* Some are left for probes, and for those that the agent is about to forget. */
#define JOBS_MAX (PROTO_JOBS_MAX - 8 - BUILTIN_SIDE_BY_SIDE)

bool exec_table_has_room(const struct session *s)
{
	return s->slots.taken + s->ending + s->process_jobs < JOBS_MAX;
}

static bool has_room(const struct session *s)
{
	return s->slots.taken < s->manager->settings->max_concurrency && exec_table_has_room(s);
}

static int refuse(int taken, struct err *e)
{
	return err_set(e, ERR_LIMIT, "%d commands of this session run already (SANDBOX_MAX_CONCURRENCY)",
		       taken);
}

void exec_slots_init(struct session *s)
{
	line_init(&s->slots, has_room, refuse);
}

int exec_slot_take(struct session *s, int timeout_ms, int client_fd, struct err *e)
{
	int64_t from_us = clock_mono_us();
	int r = line_take(s, &s->slots, timeout_ms, client_fd, e);
	metrics_observe_us(METRIC_QUEUE_WAIT_SECONDS, clock_mono_us() - from_us);
	return r;
}

static void change(struct session *s, int given, int ending)
{
	pthread_mutex_lock(&s->lock);
	s->ending += ending;
	line_give_locked(s, &s->slots, given);
	pthread_mutex_unlock(&s->lock);
}

void exec_slot_give(struct session *s)
{
	change(s, 1, 0);
}

void exec_slot_end(struct session *s)
{
	change(s, 1, 1);
}

void exec_slot_processes(struct session *s, int jobs)
{
	pthread_mutex_lock(&s->lock);
	s->process_jobs += jobs;
	line_give_locked(s, &s->slots, 0);
	pthread_mutex_unlock(&s->lock);
}

void exec_slot_saved(struct session *s)
{
	change(s, 0, -1);
}

bool exec_found_no_room(const char *detail)
{
	return strcmp(detail, PROTO_TOO_MANY_JOBS) == 0;
}

int exec_no_room(struct err *e)
{
	return err_set(e, ERR_LIMIT,
		       "the sandbox has %d jobs at once and takes no more: a command counts as long as "
		       "anything that it left running in the background",
		       PROTO_JOBS_MAX);
}
