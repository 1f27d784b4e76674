/* SPDX-License-Identifier: MIT */
/* The one thread that owns all links: their events, their seconds, the callbacks of their jobs, their memory.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "base/clock.h"
#include "runtime/channel_internal.h"

#define EVENTS 64
#define TICK_MS 1000

struct channels {
	int epoll_fd, wake_fd;
	pthread_t thread;
	atomic_bool stop;
	pthread_mutex_t lock; /* of open */
	LIST_HEAD(, channel) open;
	pthread_mutex_t leaf; /* of the next two; nothing is taken while it is held */
	SLIST_HEAD(, job) pending;
	SLIST_HEAD(, channel) graves;
	/* the thread's own */
	bool hungry; /* some link wants to be read again at once */
	uint8_t chunk[CHANNEL_CHUNK];
};

static void wake(int fd)
{
	uint64_t one = 1;
	(void)!write(fd, &one, sizeof(one)); /* full means that it is awake already */
}

/* ---- called by links and jobs ---- */

void channels_enter(struct channel *c)
{
	pthread_mutex_lock(&c->all->lock);
	LIST_INSERT_HEAD(&c->all->open, c, entry);
	pthread_mutex_unlock(&c->all->lock);
}

int channels_watch(struct channel *c, int op, bool out)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLRDHUP | (out ? EPOLLOUT : 0u), .data.ptr = c };
	return epoll_ctl(c->all->epoll_fd, op, c->stream->fd, &ev);
}

void channels_bury(struct channel *c)
{
	struct channels *cs = c->all;
	pthread_mutex_lock(&cs->lock);
	LIST_REMOVE(c, entry);
	pthread_mutex_unlock(&cs->lock);
	pthread_mutex_lock(&cs->leaf);
	SLIST_INSERT_HEAD(&cs->graves, c, grave);
	pthread_mutex_unlock(&cs->leaf);
	wake(cs->wake_fd);
}

void channels_notify_later(struct channels *cs, struct job *j)
{
	pthread_mutex_lock(&cs->leaf);
	if (!j->is_pending) {
		j->is_pending = true;
		atomic_fetch_add(&j->refs, 1);
		SLIST_INSERT_HEAD(&cs->pending, j, pending);
	}
	pthread_mutex_unlock(&cs->leaf);
	if (!pthread_equal(pthread_self(), cs->thread))
		wake(cs->wake_fd);
}

/* ---- the thread ---- */

static struct job *take_pending(struct channels *cs)
{
	pthread_mutex_lock(&cs->leaf);
	struct job *j = SLIST_FIRST(&cs->pending);
	if (j) {
		SLIST_REMOVE_HEAD(&cs->pending, pending);
		j->is_pending = false;
	}
	pthread_mutex_unlock(&cs->leaf);
	return j;
}

static struct channel *take_grave(struct channels *cs)
{
	pthread_mutex_lock(&cs->leaf);
	struct channel *c = SLIST_FIRST(&cs->graves);
	if (c)
		SLIST_REMOVE_HEAD(&cs->graves, grave);
	pthread_mutex_unlock(&cs->leaf);
	return c;
}

static void after_events(struct channels *cs)
{
	struct job *j;
	while ((j = take_pending(cs))) {
		job_notify(j);
		job_unref(j);
	}
	struct channel *c;
	while ((c = take_grave(cs)))
		channel_destroy(c);
}

static void each(struct channels *cs, void (*fn)(struct channels *, struct channel *))
{
	struct channel *c;
	pthread_mutex_lock(&cs->lock);
	LIST_FOREACH (c, &cs->open, entry)
		fn(cs, c);
	pthread_mutex_unlock(&cs->lock);
}

static void tick_one(struct channels *cs, struct channel *c)
{
	(void)cs;
	channel_tick(c);
}

/* A kind of stream that buffers holds what epoll cannot see. */
static void feed_one(struct channels *cs, struct channel *c)
{
	if (c->hungry)
		cs->hungry = channel_on_ready(c, EPOLLIN, cs->chunk, sizeof(cs->chunk)) || cs->hungry;
}

static void on_event(struct channels *cs, const struct epoll_event *ev)
{
	uint64_t count;
	if (!ev->data.ptr)
		(void)!read(cs->wake_fd, &count, sizeof(count));
	else if (channel_on_ready(ev->data.ptr, ev->events, cs->chunk, sizeof(cs->chunk)))
		cs->hungry = true;
}

static void *channels_main(void *arg)
{
	struct channels *cs = arg;
	struct epoll_event events[EVENTS];
	int64_t next_tick = clock_mono_ms() + TICK_MS;
	while (!atomic_load(&cs->stop)) {
		int n = epoll_wait(cs->epoll_fd, events, EVENTS,
				   cs->hungry ? 0 : (int)clock_left_ms(next_tick));
		bool again = cs->hungry;
		cs->hungry = false;
		for (int i = 0; i < n; i++)
			on_event(cs, &events[i]);
		if (again)
			each(cs, feed_one);
		if (clock_mono_ms() >= next_tick) {
			each(cs, tick_one);
			next_tick = clock_mono_ms() + TICK_MS;
		}
		after_events(cs);
	}
	after_events(cs);
	return NULL;
}

int channels_new(struct channels **ret, struct err *e)
{
	struct channels *cs = xcalloc(1, sizeof(*cs));
	pthread_mutex_init(&cs->lock, NULL);
	pthread_mutex_init(&cs->leaf, NULL);
	cs->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	cs->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = NULL };
	if (cs->epoll_fd < 0 || cs->wake_fd < 0 ||
	    epoll_ctl(cs->epoll_fd, EPOLL_CTL_ADD, cs->wake_fd, &ev) < 0 ||
	    pthread_create(&cs->thread, NULL, channels_main, cs) != 0) {
		int sys = errno;
		cleanup_close_(&cs->epoll_fd);
		cleanup_close_(&cs->wake_fd);
		free(cs);
		return err_sys(e, ERR_INTERNAL, sys, "cannot start the channels' thread");
	}
	*ret = cs;
	return 0;
}

void channels_free(struct channels *cs)
{
	if (!cs)
		return;
	atomic_store(&cs->stop, true);
	wake(cs->wake_fd);
	pthread_join(cs->thread, NULL);
	close(cs->epoll_fd);
	close(cs->wake_fd);
	pthread_mutex_destroy(&cs->lock);
	pthread_mutex_destroy(&cs->leaf);
	free(cs);
}
