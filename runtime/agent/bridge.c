/* SPDX-License-Identifier: MIT */
#include "runtime/agent/bridge.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/agent/fd.h"
#include "runtime/agent/socket.h"

#define CONNECT_TIMEOUT_S 10
#define LINGER_MS 2000 /* after one side ended: how long the other may take for what is on its way */
#define CHUNK (64 * 1024)

/* One direction. */
struct flow {
	int from, to;
	size_t used, sent; /* of the buffer */
	bool ended;        /* `from` has no more */
	uint8_t buffer[CHUNK];
};

static bool is_transient(void)
{
	return errno == EAGAIN || errno == EINTR;
}

static bool has_bytes(const struct flow *f)
{
	return f->sent < f->used;
}

/* Moves what can be moved now; false when the direction is broken. */
static bool flow_move(struct flow *f)
{
	if (!has_bytes(f) && !f->ended) {
		ssize_t n = read(f->from, f->buffer, CHUNK);
		if (n < 0)
			return is_transient();
		f->ended = n == 0;
		f->used = (size_t)n;
		f->sent = 0;
	}
	if (has_bytes(f)) {
		ssize_t n = write(f->to, f->buffer + f->sent, f->used - f->sent);
		if (n < 0)
			return is_transient();
		f->sent += (size_t)n;
	}
	return true;
}

static void flow_drop(struct flow *f)
{
	f->ended = true;
	f->used = f->sent = 0;
}

static bool flow_is_over(const struct flow *f)
{
	return f->ended && !has_bytes(f);
}

static struct pollfd waits_for(const struct flow *f)
{
	if (has_bytes(f))
		return (struct pollfd){ .fd = f->to, .events = POLLOUT };
	return (struct pollfd){ .fd = f->ended ? -1 : f->from, .events = POLLIN };
}

/* Moves what poll() has found. False: it is over. */
static bool move(struct flow *up, struct flow *down, const struct pollfd fds[2])
{
	if (fds[1].revents && !flow_move(down))
		return false;
	/* PID 1 has hung up on us: its last words may still be on their way */
	if (fds[0].revents && !flow_move(up))
		flow_drop(up);
	return true;
}

/*
 * The engine's side ends: PID 1 is told by a half-close and answers with its own end. PID 1's
 * side ends: what it sent is delivered, if that is possible at all.
 */
static void relay(int link)
{
	static struct flow up, down;
	bool half_closed = false, hung_up = false;

	up.from = STDIN_FILENO;
	up.to = down.from = link;
	down.to = STDOUT_FILENO;
	while (!flow_is_over(&down)) {
		/* the third only for its hang-up, which nobody reads while stdout takes nothing */
		struct pollfd fds[] = { waits_for(&up), waits_for(&down), { .fd = hung_up ? -1 : link } };
		bool ending = up.ended || down.ended || hung_up;
		int n = poll(fds, 3, ending ? LINGER_MS : -1);
		if (n == 0 || (n < 0 && errno != EINTR))
			return;
		hung_up = hung_up || fds[2].revents;
		if (!move(&up, &down, fds))
			return;
		if (flow_is_over(&up) && !half_closed) {
			(void)shutdown(link, SHUT_WR);
			half_closed = true;
		}
	}
}

int bridge_run(void)
{
	_cleanup_close_ int link = socket_connect(CONNECT_TIMEOUT_S);
	struct ucred peer;

	if (link < 0) {
		dprintf(STDERR_FILENO, "berth-agent bridge: cannot reach PID 1: %s\n",
			strerrordesc_np(errno));
		return 1;
	}
	/* a job may have bound the name while there was no PID 1 that did */
	if (socket_peer(link, &peer) < 0 || peer.pid != 1) {
		dprintf(STDERR_FILENO, "berth-agent bridge: the socket belongs to pid %d, not to PID 1\n",
			peer.pid);
		return 1;
	}
	if (fd_nonblock(STDIN_FILENO) < 0 || fd_nonblock(STDOUT_FILENO) < 0)
		return 1;
	struct sigaction ignore = { .sa_handler = SIG_IGN };
	(void)sigaction(SIGPIPE, &ignore, NULL);
	relay(link);
	return 0;
}
