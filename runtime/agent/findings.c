/* SPDX-License-Identifier: MIT */
#include "runtime/agent/findings.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "runtime/agent/entry.h"
#include "runtime/agent/fd.h"

int findings_init(struct findings *f)
{
	f->fd = memfd_create("findings", MFD_CLOEXEC);
	f->reported = 0;
	f->done = (struct builtin_done){ 0 };
	report_init(&f->report, f->fd);
	return f->fd < 0 ? -1 : 0;
}

void findings_refuse(struct findings *f, const char *path, int sys, const char *why)
{
	f->done.refused++;
	if (f->reported == BUILTIN_REPORT_MAX)
		return;
	f->reported++;
	(void)report_failure(&f->report, path, sys, why); /* findings_tell() says it */
}

void findings_end(struct findings *f, int sys, const char *what, const char *why)
{
	if (f->done.sys != 0)
		return;
	f->done.sys = sys;
	snprintf(f->detail, sizeof(f->detail), "%s%s%s", what ? what : "", what && why ? ": " : "",
		 why ? why : "");
	f->done.detail = (struct proto_text){ f->detail, strlen(f->detail) };
}

int findings_tell(struct findings *f, int fd)
{
	char bytes[PIPE_BUF];
	ssize_t n;

	f->done.truncated = f->done.refused > f->reported;
	if (report_done(&f->report, &f->done) < 0 || report_flush(&f->report) < 0 ||
	    lseek(f->fd, 0, SEEK_SET) < 0)
		return -1;
	while ((n = read(f->fd, bytes, sizeof(bytes))) > 0)
		if (fd_write_all(fd, bytes, (size_t)n) < 0)
			return -1;
	fd_close(&f->fd);
	return n < 0 ? -1 : 0;
}
