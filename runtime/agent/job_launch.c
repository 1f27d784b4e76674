/* SPDX-License-Identifier: MIT */
#include "runtime/agent/job.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/agent/fd.h"

/* descriptors that must stay free for links, pictures of /proc and kills */
#define FDS_RESERVED 24
#define LEFTOVERS_MS 1000 /* how often those of ended jobs are looked at */

enum { PIPE_IN, PIPE_OUT, PIPE_ERR, PIPE_GO, PIPE_EXEC, PIPE_REPORT, PIPE_COUNT };

struct pipes {
	int fd[PIPE_COUNT][2];
};

#define _cleanup_pipes_ __attribute__((cleanup(close_pipes)))

static void close_pipes(struct pipes *p)
{
	for (int i = 0; i < PIPE_COUNT; i++) {
		fd_close(&p->fd[i][0]);
		fd_close(&p->fd[i][1]);
	}
}

static int steal(int *fd)
{
	int value = *fd;

	*fd = -1;
	return value;
}

/* Of the spec PID 1 keeps a few numbers; the command's child reads the rest. NULL, or what is wrong with it.
 */
static const char *read_spec(struct job *j, struct output_limits *ret_limits)
{
	struct proto_spec spec;
	const char *why = NULL;

	if (j->spec_len > PROTO_SPEC_MAX)
		return "the spec is too long or could not be stored";
	if (j->spec_len == 0)
		return "the spec is empty";
	void *bytes = mmap(NULL, j->spec_len, PROT_READ, MAP_SHARED, j->spec_fd, 0);
	if (bytes == MAP_FAILED)
		return "no memory for the spec";
	if (proto_spec_decode(bytes, j->spec_len, &spec, &why) == 0) {
		if (spec.tag.at)
			memcpy(j->tag, spec.tag.at, spec.tag.len);
		j->flags = spec.flags;
		j->timeout_ms = (int64_t)spec.timeout_ms;
		*ret_limits = (struct output_limits){ spec.keep, spec.head_bytes, spec.tail_bytes };
	}
	munmap(bytes, j->spec_len);
	return why;
}

static bool is_wanted(const struct job *j, int pipe)
{
	if (pipe == PIPE_IN)
		return j->flags & PROTO_JOB_STDIN;
	return pipe != PIPE_ERR || (j->flags & PROTO_JOB_SPLIT);
}

/* Is it the reading end that is ours? */
static int our_end(int pipe)
{
	return pipe == PIPE_IN || pipe == PIPE_GO ? 1 : 0;
}

static int open_pipes(const struct job *j, struct pipes *p)
{
	struct rlimit limit;

	(void)getrlimit(RLIMIT_NOFILE, &limit);
	for (int i = 0; i < PIPE_COUNT; i++) {
		if (!is_wanted(j, i))
			continue;
		if (pipe2(p->fd[i], O_CLOEXEC) < 0 || fd_nonblock(p->fd[i][our_end(i)]) < 0)
			return -1;
		if ((rlim_t)p->fd[i][1] + FDS_RESERVED > limit.rlim_cur) {
			errno = EMFILE;
			return -1;
		}
	}
	return 0;
}

static int open_logs(struct job *j, const struct output_limits *limits)
{
	for (int s = 0; s < 1 + !!(j->flags & PROTO_JOB_SPLIT); s++) {
		if (output_open(&j->out[s].log, limits) < 0)
			return -1;
		if (j->linked && limits->keep != PROTO_KEEP_RING)
			output_attach(&j->out[s].log, 0);
	}
	return 0;
}

/* Takes our ends of the pipes and waits for all that the job may say. */
static int take_pipes(struct job *j, struct pipes *p)
{
	struct loop *l = j->table->loop;

	if (p->fd[PIPE_IN][1] >= 0) {
		if (input_open(&j->in, steal(&p->fd[PIPE_IN][1])) < 0)
			return -1;
		input_attach(&j->in);
	}
	j->out[0].pipe.fd = steal(&p->fd[PIPE_OUT][0]);
	j->out[1].pipe.fd = steal(&p->fd[PIPE_ERR][0]);
	j->exec.fd = steal(&p->fd[PIPE_EXEC][0]);
	j->report.fd = steal(&p->fd[PIPE_REPORT][0]);
	j->go_fd = steal(&p->fd[PIPE_GO][1]);

	struct watch *all[] = { &j->exec, &j->report, &j->out[0].pipe, &j->out[1].pipe };
	for (int i = 0; i < 4; i++)
		if (all[i]->fd >= 0 && loop_watch(l, all[i], EPOLLIN) < 0)
			return -1;
	return 0;
}

static int fork_supervisor(struct job *j, const struct pipes *p)
{
	struct supervisor_setup setup = {
		.in = j->flags & PROTO_JOB_STDIN ? p->fd[PIPE_IN][0] : j->table->null_fd,
		.out = p->fd[PIPE_OUT][1],
		.err = p->fd[j->flags & PROTO_JOB_SPLIT ? PIPE_ERR : PIPE_OUT][1],
		.go = p->fd[PIPE_GO][0],
		.exec = p->fd[PIPE_EXEC][1],
		.report = p->fd[PIPE_REPORT][1],
		.spec = j->spec_fd,
		.spec_len = j->spec_len,
		.nofile = j->table->nofile,
	};

	pid_t pid = fork();
	if (pid == 0)
		supervisor_run(&setup);
	if (pid < 0)
		return -1;
	j->supervisor = pid;
	return 0;
}

static const char *detail_of(int sys)
{
	switch (sys) {
	case EAGAIN:
		return "process limit";
	case EMFILE:
	case ENFILE:
		return "descriptor limit";
	case ENOMEM:
	case ENOSPC:
		return "memory limit";
	default:
		return "the job could not be set up";
	}
}

void job_launch(struct job *j)
{
	_cleanup_pipes_ struct pipes p;
	struct output_limits limits = { 0 };

	jobs_clear_leftovers(j->table, LEFTOVERS_MS);
	memset(&p, -1, sizeof(p));
	const char *why = read_spec(j, &limits);
	if (why) {
		job_fail_start(j, EINVAL, why);
		return;
	}
	if (open_pipes(j, &p) < 0 || open_logs(j, &limits) < 0 || take_pipes(j, &p) < 0 ||
	    fork_supervisor(j, &p) < 0) {
		int sys = errno;
		job_fail_start(j, sys, detail_of(sys));
		return;
	}
	j->state = JOB_STARTING;
	fd_close(&j->spec_fd);
}
