/* SPDX-License-Identifier: MIT */
#include "runtime/agent/report.h"

#include "runtime/agent/entry.h"
#include "runtime/agent/fd.h"

#define RECORD_MAX (PROTO_FIELD_HEADER + BUILTIN_ENTRY_MAX)

void report_init(struct report *r, int fd)
{
	r->fd = fd;
	r->failed = false;
	r->used = 0;
}

int report_flush(struct report *r)
{
	if (!r->failed && r->used > 0 && fd_write_all(r->fd, r->bytes, r->used) < 0)
		r->failed = true;
	r->used = 0;
	return r->failed ? -1 : 0;
}

static int make_room(struct report *r)
{
	return sizeof(r->bytes) - r->used < RECORD_MAX ? report_flush(r) : -r->failed;
}

/* What was put is kept; what did not fit into an entry's room is our own bug, and is not left out silently.
 */
static int keep(struct report *r, const struct proto_writer *w)
{
	r->failed |= w->failed;
	r->used = w->used;
	return r->failed ? -1 : 0;
}

int report_entry(struct report *r, const struct builtin_entry *entry)
{
	if (make_room(r) < 0)
		return -1;
	struct proto_writer w = { r->bytes, sizeof(r->bytes), r->used, false };
	builtin_entry_encode(&w, entry);
	return keep(r, &w);
}

int report_done(struct report *r, const struct builtin_done *done)
{
	if (make_room(r) < 0)
		return -1;
	struct proto_writer w = { r->bytes, sizeof(r->bytes), r->used, false };
	builtin_done_encode(&w, done);
	return keep(r, &w);
}

int report_failure(struct report *r, const char *path, int sys, const char *detail)
{
	struct builtin_entry entry = { .path = entry_path(path), .sys = sys };

	if (detail)
		entry.detail = entry_detail(detail);
	return report_entry(r, &entry);
}
