/* SPDX-License-Identifier: MIT */
/*
 * A session runs so many commands at once; the others stand in line, first come first served. A command that
 * has ended has a place in the agent's table until its end is stored, and that table is small: those count,
 * too.
 */
#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>

#include "base/clock.h"
#include "manager/internal.h"

#define SLICE_MS 1000 /* a stop of berthd is noticed so often */
#define JOBS_MAX \
	(PROTO_JOBS_MAX - 8) /* some are left for probes, and for those that the agent is about to forget */

static bool has_room_locked(const struct session *s)
{
	return s->running < s->manager->settings->max_concurrency && s->running + s->ending < JOBS_MAX;
}

enum place { PLACE_SLOT, PLACE_LINE, PLACE_NONE };

/* Takes a free slot, or else stands in line as w (NULL: does not). */
static enum place take_at_once(struct session *s, struct exec_waiter *w)
{
	pthread_mutex_lock(&s->lock);
	enum place got = PLACE_NONE;
	if (has_room_locked(s) && TAILQ_EMPTY(&s->queue)) {
		s->running++;
		got = PLACE_SLOT;
	} else if (w && s->queued < EXEC_QUEUE_MAX) {
		TAILQ_INSERT_TAIL(&s->queue, w, next);
		s->queued++;
		got = PLACE_LINE;
	}
	pthread_mutex_unlock(&s->lock);
	return got;
}

/* Leaves the line. True when the slot was granted meanwhile. */
static bool leave(struct session *s, struct exec_waiter *w)
{
	pthread_mutex_lock(&s->lock);
	bool granted = w->granted;
	if (!granted) {
		TAILQ_REMOVE(&s->queue, w, next);
		s->queued--;
	}
	pthread_mutex_unlock(&s->lock);
	return granted;
}

static int running(struct session *s)
{
	pthread_mutex_lock(&s->lock);
	int n = s->running;
	pthread_mutex_unlock(&s->lock);
	return n;
}

static int refuse(struct session *s, struct err *e)
{
	err_set(e, ERR_LIMIT, "%d commands of this session run already (SANDBOX_MAX_CONCURRENCY)",
		running(s));
	e->retry_after_s = 1;
	return -ERR_LIMIT;
}

/* Stands in line until the slot is granted, the time is over, the client has gone or berthd stops. */
static int stand_in_line(struct session *s, struct exec_waiter *w, int timeout_ms, int client_fd,
			 struct err *e)
{
	int64_t deadline = clock_mono_ms() + timeout_ms;
	struct pollfd fds[2] = { { .fd = w->wake_fd, .events = POLLIN },
				 { .fd = client_fd, .events = POLLRDHUP } };
	const atomic_bool *quiet = &s->manager->quiet;
	int n;
	do
		n = poll(fds, 2, (int)MIN(clock_left_ms(deadline), SLICE_MS));
	while ((n == 0 && clock_left_ms(deadline) > 0 && !atomic_load(quiet)) || (n < 0 && errno == EINTR));
	bool granted = leave(s, w);
	bool gone = fds[1].revents != 0;
	if (granted && !gone)
		return 0;
	if (granted) /* a client that has gone does not start anything */
		exec_slot_give(s);
	if (gone)
		return err_set(e, ERR_CONFLICT, "the client has gone");
	return atomic_load(quiet) ? err_set(e, ERR_STOPPING, "berthd is stopping") : refuse(s, e);
}

int exec_slot_take(struct session *s, int timeout_ms, int client_fd, struct err *e)
{
	if (take_at_once(s, NULL) == PLACE_SLOT)
		return 0;
	_cleanup_close_ int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (fd < 0)
		return err_sys(e, ERR_INTERNAL, errno, "no descriptor for a waiting command");
	struct exec_waiter w = { .wake_fd = fd };
	switch (take_at_once(s, &w)) {
	case PLACE_SLOT:
		return 0;
	case PLACE_LINE:
		return stand_in_line(s, &w, timeout_ms, client_fd, e);
	default:
		return refuse(s, e);
	}
}

/* Free slots go over to those in line; under the lock, since a waiter is on its thread's stack. */
static void hand_on_locked(struct session *s)
{
	uint64_t one = 1;
	struct exec_waiter *w;
	while ((w = TAILQ_FIRST(&s->queue)) && has_room_locked(s)) {
		TAILQ_REMOVE(&s->queue, w, next);
		s->queued--;
		w->granted = true;
		s->running++;
		(void)!write(w->wake_fd, &one, sizeof(one));
	}
}

static void change(struct session *s, int running, int ending)
{
	pthread_mutex_lock(&s->lock);
	s->running += running;
	s->ending += ending;
	hand_on_locked(s);
	pthread_mutex_unlock(&s->lock);
}

void exec_slot_give(struct session *s)
{
	change(s, -1, 0);
}

void exec_slot_end(struct session *s)
{
	change(s, -1, 1);
}

void exec_slot_saved(struct session *s)
{
	change(s, 0, -1);
}
