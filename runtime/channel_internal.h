/* SPDX-License-Identifier: MIT */
/*
 * channel_internal.h - what channels.c (the thread), channel.c (a link) and job.c (the jobs on it)
 * share. Nobody else includes it.
 */
#ifndef BERTH_CHANNEL_INTERNAL_H
#define BERTH_CHANNEL_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include "base/buf.h"
#include "runtime/channel.h"

enum channel_state { CHANNEL_GREETING, CHANNEL_OPEN, CHANNEL_CLOSED };

/* Something that a job's reader will get, in the order of arrival. */
struct job_item {
	TAILQ_ENTRY(job_item) next;
	int stream;
	uint64_t gap_bytes; /* not 0: a gap, no bytes */
	size_t len;
	char bytes[];
};

struct job {
	struct channel *channel; /* a reference */
	atomic_uint refs;
	LIST_ENTRY(job) entry; /* in channel->jobs; under the channel's lock like all below */
	bool linked;
	uint32_t id;
	int wake_fd; /* an eventfd; readable when a waiting reader should look again */
	bool waiting;
	TAILQ_HEAD(job_items, job_item) items;
	struct job_item *taken; /* the reader's: what it was given last */
	unsigned gaps_queued;
	uint64_t rx_window[3];   /* bytes the agent may still send on each stream */
	uint64_t rx_consumed[3]; /* read by the reader, credit not given back yet */
	uint64_t tx_window;      /* bytes of stdin we may send */
	bool tx_starved;         /* a job_write() took less than all; tell when there is credit */
	bool stdin_closed, started, ended, lost;
	bool tells_start; /* the reader wants to know */
	bool start_news;  /* and was not told yet */
	int pid;
	struct job_end end;

	/* The callback. notify_lock is held while it runs; the channel's lock and those of the callback are
	 * taken in it. */
	pthread_mutex_t notify_lock;
	job_notify_fn notify;
	void *notify_ctx;
	SLIST_ENTRY(job) pending; /* on the epoll thread's list of jobs to be notified */
	bool is_pending;
};

/* A READ that the agent has not answered. */
struct channel_reading {
	uint64_t cookie; /* 0: unused */
	uint32_t job;
	uint64_t offset;
	struct channel_reader *reader; /* NULL: it has left, and the answer is nobody's */
};

struct channel {
	struct channels *all;
	atomic_uint refs;
	LIST_ENTRY(channel) entry; /* in all->open; under all->lock */
	SLIST_ENTRY(channel) grave;

	pthread_mutex_t lock; /* all below */
	pthread_cond_t changed;
	struct stream *stream; /* NULL once closed */
	enum channel_state state;
	struct err why;      /* of CHANNEL_CLOSED */
	struct hello *hello; /* NULL once channel_open() has handed it out */
	uint64_t agent;      /* its start_ns */
	struct buf in;       /* bytes not yet a whole frame */
	struct buf control;  /* frames to be sent first */
	struct buf data;     /* DATA frames, at most the link's window, and what goes in order with them */
	size_t data_cut;     /* bytes of data's first frame still to be sent, when it was cut */
	bool wants_out;      /* EPOLLOUT is asked for */
	bool hungry; /* the epoll thread's: more may be had at once: reading stopped for the others' sake */
	uint64_t tx_window;   /* link credit we hold */
	uint64_t rx_window;   /* link credit the agent holds */
	uint64_t rx_returned; /* received, link credit not given back yet */
	int silent_ticks, idle_ticks;
	uint64_t cookie, pong;
	uint32_t next_job;
	LIST_HEAD(, job) jobs;
	unsigned readers; /* in channel_read() */
	struct channel_reading readings[PROTO_READS_MAX];
	/* the answer to LIST being collected */
	bool listing;
	size_t list_count;
	struct channel_job_info list[PROTO_JOBS_MAX];
};

/* All with c->lock held. */

/* Queues a frame that goes out with the next one, after a second at the latest. False when the link is lost.
 */
bool channel_queue_locked(struct channel *c, enum proto_type type, uint8_t aux, uint32_t job,
			  const void *payload, size_t len);
/* Queues a control frame with these payload bytes and sends what can be sent. False when the link is lost. */
bool channel_send_locked(struct channel *c, enum proto_type type, uint8_t aux, uint32_t job,
			 const void *payload, size_t len);
/* The same with one integer field. */
bool channel_send_u64_locked(struct channel *c, enum proto_type type, uint8_t aux, uint32_t job, uint16_t tag,
			     uint64_t value);
void channel_flush_locked(struct channel *c);
void channel_fail_locked(struct channel *c, enum err_code code, const char *fmt, ...) PRINTF_LIKE(3, 4);
struct job *channel_find_job_locked(struct channel *c, uint32_t id);

/* An answer to a READ arrived. False: it breaks the protocol. (channel_read.c) */
bool channel_on_chunk_locked(struct channel *c, const struct proto_frame *frame);
void channel_wake_readers_locked(struct channel *c);

/* A frame for a job arrived. False: it breaks the protocol. */
bool job_on_frame_locked(struct job *j, const struct proto_frame *frame);
void job_on_lost_locked(struct job *j);
/* Wakes the reader; on the epoll thread its callback follows after the lock is gone. */
void job_signal_locked(struct job *j);
/* Calls the callback of a job; no lock held. */
void job_notify(struct job *j);

/* ---- channels.c ---- */

#define CHANNEL_CHUNK (64 * 1024) /* bytes of one read */

void channels_enter(struct channel *c);
/* Adds, changes or ends the watch on the link's descriptor; 0 or -1 with errno. With c->lock held. */
int channels_watch(struct channel *c, int op, bool out);
/* The last reference is gone: it is freed when no event can name it any more. */
void channels_bury(struct channel *c);
/* Puts a job on the list of those to be notified. Any thread; the epoll thread calls them. */
void channels_notify_later(struct channels *cs, struct job *j);

/* ---- channel.c, for the epoll thread; no lock held ---- */

/* True when it wants to be called again without a new event. */
bool channel_on_ready(struct channel *c, uint32_t events, uint8_t *chunk, size_t size);
/* Once a second at most, so that time in the freezer does not count as silence. */
void channel_tick(struct channel *c);
void channel_destroy(struct channel *c);

#endif
