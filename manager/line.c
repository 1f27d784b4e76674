/* SPDX-License-Identifier: MIT */
#include "manager/line.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>

#include "base/clock.h"
#include "manager/internal.h"

#define SLICE_MS 1000 /* a stop of berthd is noticed so often */

/* On the stack of the thread that waits. */
struct line_waiter {
	TAILQ_ENTRY(line_waiter) next;
	int wake_fd;
	bool granted;
};

void line_init(struct line *l, bool (*has_room)(const struct session *), int (*refuse)(int, struct err *))
{
	*l = (struct line){ .has_room = has_room, .refuse = refuse };
	TAILQ_INIT(&l->queue);
}

enum place { PLACE_TAKEN, PLACE_LINE, PLACE_NONE };

/* Takes a free place, or else stands in line as w (NULL: does not). */
static enum place take_at_once(struct session *s, struct line *l, struct line_waiter *w)
{
	pthread_mutex_lock(&s->lock);
	enum place got = PLACE_NONE;
	if (l->has_room(s) && TAILQ_EMPTY(&l->queue)) {
		l->taken++;
		got = PLACE_TAKEN;
	} else if (w && l->queued < EXEC_QUEUE_MAX) {
		TAILQ_INSERT_TAIL(&l->queue, w, next);
		l->queued++;
		got = PLACE_LINE;
	}
	pthread_mutex_unlock(&s->lock);
	return got;
}

/* Leaves the line. True when the place was granted meanwhile. */
static bool leave(struct session *s, struct line *l, struct line_waiter *w)
{
	pthread_mutex_lock(&s->lock);
	bool granted = w->granted;
	if (!granted) {
		TAILQ_REMOVE(&l->queue, w, next);
		l->queued--;
	}
	pthread_mutex_unlock(&s->lock);
	return granted;
}

static int refuse(struct session *s, struct line *l, struct err *e)
{
	pthread_mutex_lock(&s->lock);
	int taken = l->taken;
	pthread_mutex_unlock(&s->lock);
	int r = l->refuse(taken, e);
	e->retry_after_s = 1;
	return r;
}

/* Stands in line until the place is granted, the time is over, the client has gone or berthd stops. */
static int stand(struct session *s, struct line *l, struct line_waiter *w, int timeout_ms, int client_fd,
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
	bool granted = leave(s, l, w);
	bool gone = fds[1].revents != 0;
	if (granted && !gone)
		return 0;
	if (granted) { /* a client that has gone does not start anything */
		pthread_mutex_lock(&s->lock);
		line_give_locked(s, l, 1);
		pthread_mutex_unlock(&s->lock);
	}
	if (gone)
		return err_set(e, ERR_CONFLICT, "the client has gone");
	return atomic_load(quiet) ? err_set(e, ERR_STOPPING, "berthd is stopping") : refuse(s, l, e);
}

int line_take(struct session *s, struct line *l, int timeout_ms, int client_fd, struct err *e)
{
	if (take_at_once(s, l, NULL) == PLACE_TAKEN)
		return 0;
	_cleanup_close_ int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (fd < 0)
		return err_sys(e, ERR_INTERNAL, errno, "no descriptor for a waiting request");
	struct line_waiter w = { .wake_fd = fd };
	switch (take_at_once(s, l, &w)) {
	case PLACE_TAKEN:
		return 0;
	case PLACE_LINE:
		return stand(s, l, &w, timeout_ms, client_fd, e);
	default:
		return refuse(s, l, e);
	}
}

/* Under the lock to its end, since a waiter is on its thread's stack. */
void line_give_locked(struct session *s, struct line *l, int places)
{
	uint64_t one = 1;
	struct line_waiter *w;
	l->taken -= places;
	while ((w = TAILQ_FIRST(&l->queue)) && l->has_room(s)) {
		TAILQ_REMOVE(&l->queue, w, next);
		l->queued--;
		w->granted = true;
		l->taken++;
		(void)!write(w->wake_fd, &one, sizeof(one));
	}
}
