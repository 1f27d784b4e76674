/* SPDX-License-Identifier: MIT */
#include "runtime/agent/job.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

/*
 * A job's pipe is always drained, so that nobody in it waits or gets a SIGPIPE for our sake: into
 * the log, or away once the job has ended. Only a job that shall wait for its reader is left.
 */
static void read_stream(struct job *j, struct job_stream *s)
{
	struct jobs *js = j->table;
	bool ended = j->state == JOB_ENDED;
	uint64_t room = ended ? UINT64_MAX : output_room(&s->log);

	if (room == 0) {
		(void)loop_watch(js->loop, &s->pipe, 0);
		return;
	}
	ssize_t n =
		read(s->pipe.fd, js->buffer, room < sizeof(js->buffer) ? (size_t)room : sizeof(js->buffer));
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		loop_close(js->loop, &s->pipe);
		output_finish(&s->log);
		return;
	}
	if (ended)
		return;
	output_append(&s->log, js->buffer, (size_t)n);
	j->output_ms = js->loop->now_ms;
}

void job_on_output(void *ctx, uint32_t events)
{
	struct job *j = ctx;

	(void)events;
	for (int s = 0; s < 2; s++)
		if (j->out[s].pipe.events != 0)
			read_stream(j, &j->out[s]);
}

void job_resume_output(struct job *j)
{
	for (int s = 0; s < 2; s++) {
		struct job_stream *stream = &j->out[s];
		if (stream->pipe.fd >= 0 && stream->pipe.events == 0 &&
		    (j->state == JOB_ENDED || output_room(&stream->log) > 0))
			(void)loop_watch(j->table->loop, &stream->pipe, EPOLLIN);
	}
}

void job_on_input(void *ctx, uint32_t events)
{
	struct job *j = ctx;

	(void)events;
	input_flush(&j->in, j->table->loop, j->table->buffer, sizeof(j->table->buffer));
}
