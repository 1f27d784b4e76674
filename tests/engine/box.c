/* SPDX-License-Identifier: MIT */
#include "tests/engine/box.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/clock.h"

void make_volume(const char *name, int64_t bytes, const struct engine_label *labels)
{
	const struct engine_volume_spec v = { .name = name,
					      .tmpfs_bytes = bytes,
					      .tmpfs_inodes = bytes ? 1000 : 0,
					      .uid = 10001,
					      .gid = 10001,
					      .labels = labels,
					      .label_count = 2 };
	OK(engine_volume_create(g, &v, &e));
}

void box_init(struct box *b)
{
	char id[ID_SIZE];
	id_new("t_", id);
	*b = (struct box){ .labels = { { LABEL, run }, { DETAIL, b->name } },
			   .argv = { "/inside", "stay", NULL } };
	snprintf(b->name, sizeof(b->name), "berth-%s", id);
	snprintf(b->work, sizeof(b->work), "berth-%s-w", id);
	snprintf(b->tmp, sizeof(b->tmp), "berth-%s-t", id);
	make_volume(b->work, 0, b->labels);
	make_volume(b->tmp, 8 << 20, b->labels);
	b->mounts[0] = (struct engine_mount){ b->work, "/work", false, false };
	b->mounts[1] = (struct engine_mount){ b->tmp, "/tmp", false, false };
	b->mounts[2] = (struct engine_mount){ "/etc/hostname", "/vol/host", true, false };
	b->spec = (struct engine_container_spec){ .name = b->name,
						  .image = IMAGE,
						  .entrypoint = b->argv,
						  .workdir = "/work",
						  .uid = 10001,
						  .gid = 10001,
						  .memory_bytes = 64 << 20,
						  .cpu_milli = 1500,
						  .pids = 50,
						  .nofile = 4096,
						  .network = "none",
						  .mounts = b->mounts,
						  .mount_count = 2,
						  .labels = b->labels,
						  .label_count = 2 };
}

void box_start(struct box *b)
{
	OK(engine_container_create(g, &b->spec, b->id, &e));
	OK(engine_container_start(g, b->id, &e));
}

void box_clear(struct box *b)
{
	if (*b->id)
		OK(engine_container_remove(g, b->id, 20000, &e));
	OK(engine_volume_remove(g, b->work, &e));
	OK(engine_volume_remove(g, b->tmp, &e));
}

enum engine_state box_state(const struct box *b)
{
	struct engine_container_state s = { 0 };
	OK(engine_container_inspect(g, b->id, &s, &e));
	return s.state;
}

ssize_t read_all(struct stream *s, struct buf *out)
{
	static char piece[65536];
	int64_t deadline = clock_mono_ms() + 20000;
	struct err e;
	while (clock_left_ms(deadline)) {
		ssize_t n = s->ops->read(s, piece, sizeof(piece));
		if (n == -EAGAIN) {
			struct pollfd p = { .fd = s->fd, .events = POLLIN };
			poll(&p, 1, (int)clock_left_ms(deadline));
			continue;
		}
		if (n <= 0)
			return n;
		assert_int_equal(buf_add(out, piece, (size_t)n, &e), 0);
	}
	return -ETIMEDOUT;
}

void exec_text(const struct box *b, const char *const *argv, struct buf *out)
{
	struct stream *s = NULL;
	OK(engine_exec_open(g, b->id, argv, 10001, 10001, &s, &e));
	assert_int_equal(read_all(s, out), 0);
	stream_close(s);
}
