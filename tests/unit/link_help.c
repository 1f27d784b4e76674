/* SPDX-License-Identifier: MIT */
#include "tests/unit/link_help.h"

#include <poll.h>
#include <sys/socket.h>

#include "tests/unit/rows.h"

/* ---- the agent's side ---- */

void say_frame(int fd, enum proto_type type, uint8_t aux, uint32_t job, const void *payload, size_t len)
{
	uint8_t frame[PROTO_HEADER + PROTO_PAYLOAD_MAX];
	proto_header(frame, type, aux, job, (uint16_t)len);
	if (len)
		memcpy(frame + PROTO_HEADER, payload, len);
	assert_int_equal(send(fd, frame, PROTO_HEADER + len, MSG_NOSIGNAL), PROTO_HEADER + len);
}

void say_u64(int fd, enum proto_type type, uint8_t aux, uint32_t job, uint16_t tag, uint64_t value)
{
	uint8_t room[32];
	struct proto_writer w = { .out = room, .size = sizeof(room) };
	proto_put_u64(&w, tag, value);
	say_frame(fd, type, aux, job, room, w.used);
}

void say_hello(int fd, uint64_t magic)
{
	static const uint16_t numbers[] = {
		PROTO_F_VERSION,
		PROTO_F_UID,
		PROTO_F_GID,
		PROTO_F_CAP_EFF,
		PROTO_F_CAP_PRM,
		PROTO_F_CAP_BND,
		PROTO_F_CAP_AMB,
		PROTO_F_CAP_INH,
		PROTO_F_NO_NEW_PRIVS,
		PROTO_F_SECCOMP,
		PROTO_F_SECCOMP_FILTERS,
		PROTO_F_ROOT_RO,
		PROTO_F_CGROUP,
		PROTO_F_PIDS_MAX,
		PROTO_F_MEMORY_MAX,
		PROTO_F_SWAP_MAX,
		PROTO_F_CPU_MILLI,
		PROTO_F_SHM_RMID_FORCED,
		PROTO_F_START_NS,
	};
	uint8_t room[1024];
	struct proto_writer w = { .out = room, .size = sizeof(room) };
	proto_put_u64(&w, PROTO_F_MAGIC, magic);
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		proto_put_u64(&w, numbers[i], 7);
	say_frame(fd, PROTO_HELLO, 0, 0, room, w.used);
}

bool hear(struct ear *ear, enum proto_type type)
{
	for (;;) {
		memmove(ear->bytes, ear->bytes + ear->used, ear->len - ear->used);
		ear->len -= ear->used;
		ear->used = 0;
		ssize_t n = proto_parse(ear->bytes, ear->len, &ear->frame);
		assert_true(n >= 0);
		ear->used = (size_t)n;
		if (n > 0 && ear->frame.type == type)
			return true;
		if (n > 0)
			continue;
		struct pollfd p = { .fd = ear->fd, .events = POLLIN };
		if (poll(&p, 1, WAIT_MS) != 1)
			return false;
		ssize_t got = read(ear->fd, ear->bytes + ear->len, sizeof(ear->bytes) - ear->len);
		if (got <= 0)
			return false;
		ear->len += (size_t)got;
	}
}

/* ---- opening ---- */

static void *open_main(void *arg)
{
	struct opening *o = arg;
	o->r = channel_open(o->l->all, stream_of_fd(o->manager_fd), 1, o->timeout_ms, &o->l->channel,
			    &o->l->hello, &o->e);
	return NULL;
}

void begin_link(struct link *l, struct opening *o, pthread_t *thread, int timeout_ms)
{
	int fds[2];
	struct err e;
	*l = (struct link){ 0 };
	assert_int_equal(channels_new(&l->all, &e), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	l->fd = fds[0];
	*o = (struct opening){ .l = l, .manager_fd = fds[1], .timeout_ms = timeout_ms };
	assert_int_equal(pthread_create(thread, NULL, open_main, o), 0);
}

void open_link(struct link *l)
{
	struct opening o;
	pthread_t thread;
	static struct ear ear; /* large; one test at a time */
	begin_link(l, &o, &thread, WAIT_MS);
	ear = (struct ear){ .fd = l->fd };
	assert_true(hear(&ear, PROTO_HELLO));
	say_hello(l->fd, PROTO_MAGIC);
	assert_true(hear(&ear, PROTO_LIST));
	say_frame(l->fd, PROTO_LIST, 0, PROTO_LIST_END, NULL, 0);
	pthread_join(thread, NULL);
	assert_int_equal(o.r, 0);
	assert_int_equal(l->hello.pids_max, 7);
}

void end_link(struct link *l)
{
	channel_unref(l->channel);
	channels_free(l->all);
	close(l->fd);
}

void say_exit(int fd, uint32_t job)
{
	uint8_t room[1024];
	struct proto_writer w = { .out = room, .size = sizeof(room) };
	const struct proto_exit x = { .reason = PROTO_EXITED, .code = 5, .detail = { "fine", 4 } };
	proto_exit_encode(&w, &x);
	say_frame(fd, PROTO_EXIT, 0, job, room, w.used);
}
