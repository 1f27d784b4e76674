/* SPDX-License-Identifier: MIT */
/*
 * conns.h - the connections that are open, and their deadlines. The HTTP library's own timeout is for
 * inactivity only: a client that trickles a byte now and then holds a connection for ever. Here each
 * phase of a connection has an absolute deadline, and a thread shuts the sockets that pass theirs.
 *
 * Any thread. A connection is added before and removed after its socket is used, so that a shut never hits
 * a descriptor that means something else by then.
 */
#ifndef BERTH_CONNS_H
#define BERTH_CONNS_H

#include "base/err.h"

struct conns;
struct conn;

struct conns_limits {
	int total;       /* connections beyond it are crowded */
	int per_address; /* likewise, for one address that is not loopback */
	int headers_ms;  /* from accept or the first line to the last header; 0: 15000 */
	int crowded_ms;  /* likewise for a crowded one; 0: 2000 */
	int idle_ms;     /* a kept connection without a request; 0: 60000 */
	int body_ms;     /* a body that does not come at min_rate; 0: 15000 */
	int reply_ms;    /* likewise for a reply that is not taken; 0: 60000 */
	int min_rate;    /* bytes per second; 0: 16384 */
	int tick_ms;     /* how often deadlines are looked at; 0: 1000 */
};

struct conns *conns_new(const struct conns_limits *limits) NODISCARD;
void conns_free(struct conns *cs); /* all connections were removed */
DEFINE_CLEANUP(struct conns *, conns_free)

/* address is copied. The connection is in phase headers. */
struct conn *conns_add(struct conns *cs, int fd, const char *address, bool loopback) NODISCARD;
void conns_remove(struct conn *c);

int conn_get_fd(const struct conn *c);
const char *conn_get_address(const struct conn *c);
/* It is one too many: serve nothing but the health check, and close it then. */
bool conn_is_crowded(const struct conn *c);

/* A request's first line is there: its headers must follow. */
void conn_expect_headers(struct conn *c);
/* The headers are there. It counts as busy until conn_end(). */
void conn_begin(struct conn *c);
/* So many bytes of the body have come; the next ones must come in time. */
void conn_expect_body(struct conn *c, uint64_t so_far);
/*
 * Likewise of a body that goes on as it comes, after its taker was busy for so long, which is not the
 * client's fault. However fast it was before, it may not stand still.
 */
void conn_expect_more(struct conn *c, uint64_t so_far, int64_t busy_ms);
/* A handler works: the deadlines are its own. */
void conn_work(struct conn *c);
/* So many bytes must be taken by the client. */
void conn_expect_reader(struct conn *c, uint64_t bytes, int64_t more_ms);
/* The reply is out; the next request may come. */
void conn_end(struct conn *c);

/* Stopping: connections that are not busy are shut now, the others when they end. */
void conns_drain(struct conns *cs);
/* After conns_drain(): waits until none is busy; false when timeout_ms passed before. */
bool conns_wait_quiet(struct conns *cs, int timeout_ms);

#endif
