/* SPDX-License-Identifier: MIT */
#include "runtime/agent/outbox.h"

#include <errno.h>
#include <sys/socket.h>

void outbox_reset(struct outbox *o)
{
	o->credit = PROTO_LINK_WINDOW;
	o->sent = o->used = 0;
	o->frames = o->urgent = false;
}

bool outbox_is_empty(const struct outbox *o)
{
	return o->sent == o->used;
}

bool outbox_has_room(const struct outbox *o)
{
	return OUTBOX_SIZE - o->used >= OUTBOX_CONTROL;
}

struct proto_writer outbox_begin(struct outbox *o)
{
	size_t room = OUTBOX_SIZE - o->used;

	if (room < PROTO_HEADER)
		return (struct proto_writer){ .failed = true };
	room -= PROTO_HEADER;
	return (struct proto_writer){
		.out = o->bytes + o->used + PROTO_HEADER,
		.size = room < PROTO_PAYLOAD_MAX ? room : PROTO_PAYLOAD_MAX,
	};
}

void outbox_end(struct outbox *o, const struct proto_writer *w, enum proto_type type, uint8_t aux,
		uint32_t job)
{
	if (w->failed)
		return;
	proto_header(o->bytes + o->used, type, aux, job, (uint16_t)w->used);
	o->used += PROTO_HEADER + w->used;
	o->frames = true;
	if (type != PROTO_STARTED && type != PROTO_EOF)
		o->urgent = true;
}

void outbox_put(struct outbox *o, enum proto_type type, uint8_t aux, uint32_t job, uint16_t tag,
		uint64_t value)
{
	struct proto_writer w = outbox_begin(o);

	if (tag != 0)
		proto_put_u64(&w, tag, value);
	outbox_end(o, &w, type, aux, job);
}

int outbox_flush(struct outbox *o, int fd)
{
	while (o->sent < o->used) {
		ssize_t n = send(fd, o->bytes + o->sent, o->used - o->sent, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? 1 : -1;
		o->sent += (size_t)n;
	}
	o->sent = o->used = 0;
	o->urgent = false;
	return 0;
}
