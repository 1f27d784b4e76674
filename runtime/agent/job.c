/* SPDX-License-Identifier: MIT */
#include "runtime/agent/job.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "runtime/agent/cgroup.h"
#include "runtime/agent/fd.h"

#define CREDIT_MAX (1ull << 30) /* more outstanding than that is a peer that has lost count */
#define GRACE_MAX_MS (3600 * 1000)

int64_t job_clock_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static struct watch idle_watch(void (*ready)(void *, uint32_t), void *ctx)
{
	return (struct watch){ .fd = -1, .ready = ready, .ctx = ctx };
}

static void clear_slot(struct jobs *js, struct job *j)
{
	*j = (struct job){ .table = js, .spec_fd = -1, .go_fd = -1 };
	j->exec = idle_watch(job_on_exec, j);
	j->report = idle_watch(job_on_report, j);
	j->in.fd = -1;
	j->in.pipe = idle_watch(job_on_input, j);
	for (int s = 0; s < 2; s++) {
		j->out[s].log.fd = -1;
		j->out[s].pipe = idle_watch(job_on_output, j);
	}
	j->deadline_ms = LOOP_NEVER;
}

int jobs_init(struct jobs *js, struct loop *l)
{
	struct cgroup_limits limits;

	cgroup_read(&limits);
	js->pids_max = limits.pids_max;
	js->loop = l;
	js->null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	js->oom_fd = cgroup_open_oom();
	if (js->null_fd < 0 || getrlimit(RLIMIT_NOFILE, &js->nofile) < 0)
		return -1;
	/* the table needs up to ten descriptors for each job */
	struct rlimit raised = { js->nofile.rlim_max, js->nofile.rlim_max };
	(void)setrlimit(RLIMIT_NOFILE, &raised);
	for (unsigned i = 0; i < PROTO_JOBS_MAX; i++)
		clear_slot(js, &js->all[i]);
	return tree_init(&js->tree);
}

unsigned job_slot(const struct job *j)
{
	return (unsigned)(j - j->table->all);
}

struct job *job_find(struct jobs *js, uint32_t id)
{
	for (unsigned i = 0; i < PROTO_JOBS_MAX; i++)
		if (js->all[i].state != JOB_FREE && js->all[i].id == id && !js->all[i].forgotten)
			return &js->all[i];
	return NULL;
}

void job_release(struct job *j)
{
	struct loop *l = j->table->loop;

	loop_close(l, &j->exec);
	loop_close(l, &j->report);
	input_clear(&j->in, l);
	for (int s = 0; s < 2; s++) {
		loop_close(l, &j->out[s].pipe);
		output_clear(&j->out[s].log);
	}
	fd_close(&j->spec_fd);
	fd_close(&j->go_fd);
	clear_slot(j->table, j);
}

/* ---- START ---- */

static struct job_refusal *find_refusal(struct jobs *js, uint32_t id)
{
	for (int i = 0; i < JOB_REFUSALS_MAX; i++)
		if (js->refusals[i].job == id)
			return &js->refusals[i];
	return NULL;
}

bool jobs_can_refuse(const struct jobs *js)
{
	for (int i = 0; i < JOB_REFUSALS_MAX; i++)
		if (js->refusals[i].job == 0)
			return true;
	return false;
}

static void refuse(struct jobs *js, uint32_t id, bool complete, const char *detail)
{
	struct job_refusal *r = find_refusal(js, 0);

	if (r)
		*r = (struct job_refusal){ id, complete, detail };
}

static struct job *take_slot(struct jobs *js, uint32_t id)
{
	for (unsigned i = 0; i < PROTO_JOBS_MAX; i++) {
		struct job *j = &js->all[i];
		if (j->state != JOB_FREE)
			continue;
		j->state = JOB_COLLECTING;
		j->id = id;
		j->linked = true;
		j->created_ms = js->loop->now_ms;
		return j;
	}
	return NULL;
}

/* A piece that could not be stored leaves spec_len beyond its limit, which job_launch() tells. */
static void collect(struct job *j, const struct proto_frame *f)
{
	if (j->spec_fd < 0)
		j->spec_fd = memfd_create("spec", MFD_CLOEXEC);
	bool fits = f->length <= PROTO_SPEC_MAX - j->spec_len && j->spec_len <= PROTO_SPEC_MAX;
	if (fits && pwrite(j->spec_fd, f->payload, f->length, (off_t)j->spec_len) == f->length)
		j->spec_len += f->length;
	else
		j->spec_len = PROTO_SPEC_MAX + 1;
}

void jobs_start(struct jobs *js, const struct proto_frame *f)
{
	bool more = f->aux == PROTO_MORE;
	struct job_refusal *refused = find_refusal(js, f->job);

	if (refused && !refused->complete) {
		refused->complete = !more;
		return;
	}
	struct job *j = job_find(js, f->job);
	if (j && j->state != JOB_COLLECTING) {
		refuse(js, f->job, !more, "duplicate_job");
		return;
	}
	if (!j && !(j = take_slot(js, f->job))) {
		refuse(js, f->job, !more, PROTO_TOO_MANY_JOBS);
		return;
	}
	collect(j, f);
	if (!more)
		job_launch(j);
}

/* ---- the other commands ---- */

void jobs_go(struct jobs *js, uint32_t id)
{
	struct job *j = job_find(js, id);

	if (!j || j->state != JOB_STARTING || j->go_fd < 0)
		return;
	j->oom_before = cgroup_oom_kills(js->oom_fd);
	j->go_us = job_clock_us();
	if (j->timeout_ms > 0)
		j->deadline_ms = js->loop->now_ms + j->timeout_ms;
	(void)fd_write_all(j->go_fd, "g", 1); /* a command that is gone has its end reported */
	fd_close(&j->go_fd);
}

bool jobs_input(struct jobs *js, const struct proto_frame *f)
{
	struct job *j = job_find(js, f->job);

	if (!j || j->in.fd < 0)
		return true; /* the job has ended meanwhile */
	return input_append(&j->in, js->loop, f->payload, f->length);
}

void jobs_input_end(struct jobs *js, uint32_t id)
{
	struct job *j = job_find(js, id);

	if (j && j->in.fd >= 0)
		input_finish(&j->in, js->loop);
}

bool jobs_credit(struct jobs *js, uint32_t id, int stream, uint64_t bytes)
{
	struct job *j = job_find(js, id);

	if (stream == PROTO_STDIN || bytes > CREDIT_MAX)
		return false;
	if (!j || !j->out[stream - 1].log.attached)
		return true;
	j->out[stream - 1].log.credit += bytes;
	return j->out[stream - 1].log.credit <= CREDIT_MAX;
}

/*
 * To the process group of the command. The command may have been reaped by its supervisor already
 * and its pid be another's: a child of the supervisor with that pid is the job's in any case.
 */
static void signal_group(struct job *j, int sig)
{
	if (j->leader > 0 && j->supervisor > 0 && tree_parent(&j->table->tree, j->leader) == j->supervisor)
		(void)kill(-j->leader, sig);
}

void jobs_signal(struct jobs *js, uint32_t id, int sig)
{
	struct job *j = job_find(js, id);

	if (j && j->state == JOB_RUNNING && !j->left)
		signal_group(j, sig);
}

/* Of a job that has ended, what lingers is ended. */
void jobs_cancel(struct jobs *js, uint32_t id, uint64_t grace_ms)
{
	struct job *j = job_find(js, id);

	if (!j || j->supervisor == 0)
		return;
	if (!j->left && !j->has_cause) {
		j->has_cause = true;
		j->cause = PROTO_CANCELLED;
	}
	fd_close(&j->go_fd); /* a command that was not let go ends by itself */
	signal_group(j, SIGTERM);
	signal_group(j, SIGCONT); /* a stopped process does not see TERM */
	kill_begin(&j->kill, js->loop->now_ms, grace_ms < GRACE_MAX_MS ? (int64_t)grace_ms : GRACE_MAX_MS);
}

void jobs_attach(struct jobs *js, uint32_t id, int stream, uint64_t offset)
{
	struct job *j = job_find(js, id);

	if (!j || j->state == JOB_COLLECTING) {
		refuse(js, id, true, "unknown_job");
		return;
	}
	if (stream == PROTO_STDIN || !j->linked)
		input_attach(&j->in);
	j->linked = true;
	j->exit_sent = false;
	if (stream != PROTO_STDIN)
		output_attach(&j->out[stream - 1].log, offset);
}

/* One that is being killed is forgotten, too: its record goes when it has ended. */
void jobs_forget(struct jobs *js, uint32_t id)
{
	struct job *j = job_find(js, id);

	if (!j || (j->state != JOB_ENDED && j->kill.phase == KILL_NONE))
		return;
	j->forgotten = true;
	if (j->state == JOB_ENDED && j->supervisor == 0)
		job_release(j);
}

void jobs_detach(struct jobs *js)
{
	memset(js->refusals, 0, sizeof(js->refusals));
	memset(js->reads, 0, sizeof(js->reads));
	js->read_count = 0;
	for (unsigned i = 0; i < PROTO_JOBS_MAX; i++) {
		struct job *j = &js->all[i];
		if (j->state == JOB_COLLECTING)
			job_release(j);
		j->linked = j->tell_started = j->exit_sent = false;
		j->in.credit = 0;
		for (int s = 0; s < 2; s++)
			output_detach(&j->out[s].log);
	}
}
