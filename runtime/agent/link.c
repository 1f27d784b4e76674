/* SPDX-License-Identifier: MIT */
#include "runtime/agent/link.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "runtime/agent/agent.h"
#include "runtime/agent/fd.h"
#include "runtime/agent/socket.h"
#include "runtime/agent/text.h"

#define ACCEPT_MAX 16        /* connections looked at in one go: jobs may connect for ever */
#define HELLO_MS (10 * 1000) /* how long a bridge may take to say hello */
#define BEAT_MS (PROTO_BEAT_S * 1000)
#define SILENCE_MS (PROTO_BEATS_LOST * BEAT_MS)
#define PUMP_MAX 8 /* buffers written in one go */
#define HOLD_MS 5  /* how long frames that are not urgent wait for others */

/* ---- ends ---- */

void link_close(struct links *ls)
{
	if (ls->socket.fd < 0)
		return;
	loop_close(ls->loop, &ls->socket);
	jobs_detach(ls->jobs);
}

/* As good as it can be said: the other side is not waited for. */
static void send_error(int fd, const char *detail)
{
	uint8_t bytes[PROTO_HEADER + PROTO_DETAIL_MAX + 16];
	struct proto_writer w = { bytes + PROTO_HEADER, sizeof(bytes) - PROTO_HEADER, 0, false };

	proto_put_text(&w, PROTO_F_DETAIL, detail);
	proto_header(bytes, PROTO_ERROR, 0, 0, (uint16_t)w.used);
	(void)send(fd, bytes, PROTO_HEADER + w.used, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void break_link(struct links *ls, const char *why)
{
	/* an ERROR may not be put into the middle of another frame */
	if (outbox_flush(&ls->out, ls->socket.fd) == 0)
		send_error(ls->socket.fd, why);
	link_close(ls);
}

static void drop_pending(struct link_pending *p)
{
	loop_close(p->links->loop, &p->socket);
	p->used = 0;
}

/* ---- handshake ---- */

static void put_hello(struct links *ls)
{
	struct proto_writer w = outbox_begin(&ls->out);

	proto_put_u64(&w, PROTO_F_MAGIC, PROTO_MAGIC);
	proto_put_u64(&w, PROTO_F_VERSION, PROTO_VERSION);
	proto_put_u64(&w, PROTO_F_GENERATION, ls->generation);
	memcpy(w.out + w.used, ls->facts, ls->facts_len); /* LINK_FACTS_MAX leaves room for it */
	w.used += ls->facts_len;
	outbox_end(&ls->out, &w, PROTO_HELLO, 0, 0);
}

static void take_over(struct links *ls, struct link_pending *p, uint64_t generation)
{
	int64_t now = ls->loop->now_ms;

	link_close(ls);
	(void)loop_watch(ls->loop, &p->socket, 0);
	ls->socket.fd = p->socket.fd;
	p->socket.fd = -1;
	p->used = 0;
	ls->generation = generation;
	ls->blocked = false;
	ls->heard_ms = ls->told_ms = now;
	ls->held_ms = LOOP_NEVER;
	ls->credit = PROTO_LINK_WINDOW;
	ls->owed = 0;
	ls->pong_count = ls->lists = ls->list_slot = 0;
	ls->in_used = 0;
	outbox_reset(&ls->out);
	put_hello(ls);
	if (loop_watch(ls->loop, &ls->socket, EPOLLIN) < 0)
		link_close(ls);
}

/* NULL when the frame is a hello that may take over. */
static const char *check_hello(const struct links *ls, const struct proto_frame *f, uint64_t *ret_generation)
{
	uint64_t magic, version;

	if (f->type != PROTO_HELLO || proto_find_u64(f, PROTO_F_MAGIC, &magic) < 0 || magic != PROTO_MAGIC)
		return "the first frame is not a hello";
	if (proto_find_u64(f, PROTO_F_VERSION, &version) < 0 || version == 0)
		return "the hello has no version";
	if (version > PROTO_VERSION)
		return "the manager's protocol is newer than the agent's";
	if (proto_find_u64(f, PROTO_F_GENERATION, ret_generation) < 0)
		return "the hello has no generation";
	return *ret_generation > ls->generation ? NULL : "a link of this or a higher generation was here";
}

/*
 * Reads the frame, and not one byte more: those belong to the link. 1 when it is there, 0 when more
 * is to come, -1 when it never will.
 */
static int read_hello(struct link_pending *p, struct proto_frame *ret)
{
	ssize_t size;

	while ((size = proto_parse(p->bytes, p->used, ret)) == 0) {
		size_t want = PROTO_HEADER;
		if (p->used >= PROTO_HEADER)
			want += (size_t)(p->bytes[2] << 8 | p->bytes[3]);
		if (want > LINK_HELLO_MAX)
			return -1;
		ssize_t n = read(p->socket.fd, p->bytes + p->used, want - p->used);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return 0;
		if (n <= 0)
			return -1;
		p->used += (size_t)n;
	}
	return size > 0 ? 1 : -1;
}

static void on_pending(void *ctx, uint32_t events)
{
	struct link_pending *p = ctx;
	struct proto_frame f;
	uint64_t generation;

	(void)events;
	int rc = read_hello(p, &f);
	if (rc == 0)
		return;
	const char *why = rc < 0 ? "the first frame is not a hello" : check_hello(p->links, &f, &generation);
	if (!why) {
		take_over(p->links, p, generation);
		return;
	}
	send_error(p->socket.fd, why);
	drop_pending(p);
}

/* A free place, or that of the bridge that has been silent longest. */
static struct link_pending *take_place(struct links *ls)
{
	struct link_pending *best = &ls->pending[0];

	for (int i = 0; i < LINK_PENDING_MAX; i++) {
		struct link_pending *p = &ls->pending[i];
		if (p->socket.fd < 0)
			return p;
		if (p->until_ms < best->until_ms)
			best = p;
	}
	drop_pending(best);
	return best;
}

/*
 * A bridge: its uid is one that no job can take, and its parent is outside of the sandbox, which
 * no descendant of PID 1 can arrange. A pid of 0 is a process that this namespace does not know.
 */
static bool is_bridge(const struct links *ls, int fd)
{
	struct ucred peer;

	return socket_peer(fd, &peer) == 0 && peer.uid == AGENT_BRIDGE_UID && peer.pid > 0 &&
	       tree_parent(&ls->jobs->tree, peer.pid) == 0;
}

static void on_listener(void *ctx, uint32_t events)
{
	struct links *ls = ctx;

	(void)events;
	for (int i = 0; i < ACCEPT_MAX; i++) {
		int fd = accept4(ls->listener.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0)
			return;
		if (!is_bridge(ls, fd)) {
			close(fd);
			continue;
		}
		struct link_pending *p = take_place(ls);
		p->socket.fd = fd;
		p->until_ms = ls->loop->now_ms + HELLO_MS;
		if (loop_watch(ls->loop, &p->socket, EPOLLIN) < 0)
			drop_pending(p);
	}
}

/* ---- the active link ---- */

static void on_socket(void *ctx, uint32_t events)
{
	struct links *ls = ctx;
	size_t room = LINK_IN_SIZE - ls->in_used;

	if (events & EPOLLOUT)
		ls->blocked = false;
	if (!(events & ~(uint32_t)EPOLLOUT) || room == 0)
		return;
	ssize_t n = read(ls->socket.fd, ls->in + ls->in_used, room);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		link_close(ls);
		return;
	}
	ls->in_used += (size_t)n;
	ls->heard_ms = ls->loop->now_ms;
}

static void emit_control(struct links *ls)
{
	struct outbox *o = &ls->out;

	while (ls->pong_count > 0 && outbox_has_room(o))
		outbox_put(o, PROTO_PONG, 0, 0, PROTO_F_COOKIE, ls->pongs[--ls->pong_count]);
	if (ls->owed >= PROTO_LINK_WINDOW / 4 && outbox_has_room(o)) {
		outbox_put(o, PROTO_WINDOW, 0, 0, PROTO_F_BYTES, ls->owed);
		ls->credit += ls->owed;
		ls->owed = 0;
	}
	while (ls->lists > 0 && outbox_has_room(o)) {
		if (jobs_emit_list(ls->jobs, o, &ls->list_slot))
			continue;
		outbox_put(o, PROTO_LIST, 0, PROTO_LIST_END, 0, 0);
		ls->lists--;
		ls->list_slot = 0;
	}
	if (ls->loop->now_ms - ls->told_ms >= BEAT_MS && outbox_is_empty(o))
		outbox_put(o, PROTO_PING, 0, 0, PROTO_F_COOKIE, (uint64_t)ls->loop->now_ms);
}

/*
 * Each write is a pass through the engine's relay and two of its processes, which costs more than all that
 * PID 1 does for a short command. So what says that it started, and that its output ended, goes along with
 * its end.
 */
static bool can_wait(struct links *ls)
{
	if (ls->out.urgent)
		return false;
	if (ls->held_ms == LOOP_NEVER)
		ls->held_ms = ls->loop->now_ms + HOLD_MS;
	return ls->loop->now_ms < ls->held_ms;
}

/* Writes what there is, a bounded number of buffers. */
static void pump(struct links *ls)
{
	for (int i = 0; i < PUMP_MAX; i++) {
		emit_control(ls);
		(void)jobs_emit(ls->jobs, &ls->out);
		if (outbox_is_empty(&ls->out) || can_wait(ls))
			return;
		ls->held_ms = LOOP_NEVER;
		int rc = outbox_flush(&ls->out, ls->socket.fd);
		if (rc < 0)
			link_close(ls);
		else
			ls->told_ms = ls->loop->now_ms;
		ls->blocked = rc > 0;
		if (rc != 0)
			return;
	}
}

static void step_link(struct links *ls)
{
	const char *why;

	if (ls->loop->now_ms - ls->heard_ms >= SILENCE_MS) {
		link_close(ls);
		return;
	}
	if (link_take_frames(ls, &why) < 0) {
		break_link(ls, why);
		return;
	}
	if (!ls->blocked)
		pump(ls);
	if (ls->socket.fd < 0)
		return;
	uint32_t events = (ls->in_used < LINK_IN_SIZE ? EPOLLIN : 0u) | (ls->blocked ? EPOLLOUT : 0u);
	if (loop_watch(ls->loop, &ls->socket, events) < 0)
		link_close(ls);
}

void links_step(struct links *ls)
{
	for (int i = 0; i < LINK_PENDING_MAX; i++)
		if (ls->pending[i].socket.fd >= 0 && ls->loop->now_ms >= ls->pending[i].until_ms)
			drop_pending(&ls->pending[i]);
	if (ls->socket.fd >= 0)
		step_link(ls);
}

int64_t links_next_ms(const struct links *ls)
{
	int64_t next = LOOP_NEVER;

	for (int i = 0; i < LINK_PENDING_MAX; i++)
		if (ls->pending[i].socket.fd >= 0 && ls->pending[i].until_ms < next)
			next = ls->pending[i].until_ms;
	if (ls->socket.fd < 0)
		return next;
	if (ls->told_ms + BEAT_MS < next && !ls->blocked)
		next = ls->told_ms + BEAT_MS;
	if (ls->heard_ms + SILENCE_MS < next)
		next = ls->heard_ms + SILENCE_MS;
	if (ls->held_ms < next && !ls->blocked)
		next = ls->held_ms;
	return next;
}

bool links_are_over(const struct links *ls)
{
	bool pending = false;

	for (int i = 0; i < LINK_PENDING_MAX; i++)
		pending = pending || ls->pending[i].socket.fd >= 0;
	return ls->listener.fd < 0 && ls->socket.fd < 0 && !pending;
}

/* Whoever made the socket is the manager: there is no bridge to be judged. */
static int take_only(struct links *ls, int fd)
{
	struct link_pending *p = &ls->pending[0];

	p->socket.fd = fd;
	p->until_ms = ls->loop->now_ms + HELLO_MS;
	return fd_nonblock(fd) < 0 ? -1 : loop_watch(ls->loop, &p->socket, EPOLLIN);
}

int links_init(struct links *ls, struct loop *l, struct jobs *js, int fd)
{
	ls->loop = l;
	ls->jobs = js;
	ls->listener = (struct watch){ .fd = -1, .ready = on_listener, .ctx = ls };
	ls->socket = (struct watch){ .fd = -1, .ready = on_socket, .ctx = ls };
	for (int i = 0; i < LINK_PENDING_MAX; i++) {
		ls->pending[i].links = ls;
		ls->pending[i].socket =
			(struct watch){ .fd = -1, .ready = on_pending, .ctx = &ls->pending[i] };
	}
	if (fd >= 0)
		return take_only(ls, fd);
	ls->listener.fd = socket_listen();
	return ls->listener.fd < 0 ? -1 : loop_watch(l, &ls->listener, EPOLLIN);
}
