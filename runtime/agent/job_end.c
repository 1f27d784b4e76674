/* SPDX-License-Identifier: MIT */
#include "runtime/agent/job.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/agent/cgroup.h"
#include "runtime/agent/fd.h"

#define REAP_MAX 256                 /* children reaped in one go */
#define DRAIN_SILENCE_MS 100         /* so much silence after the command's end ends its output */
#define DRAIN_MAX_MS 1000            /* and a descendant that goes on writing is not waited for */
#define GO_MAX_MS (300 * 1000)       /* a manager that says START and never GO */
#define SHELL_KILLED (128 + SIGKILL) /* how a shell tells that its child was killed */
#define ERRNO_MAX 4095               /* MAX_ERRNO of the kernel */

/* ---- what the supervisor and its child tell ---- */

/* One record, or the end; false when there is nothing now. A pipe hands a record out whole (pipe(7)). */
static bool read_record(struct watch *pipe, void *record, size_t size, ssize_t *ret)
{
	do
		*ret = read(pipe->fd, record, size);
	while (*ret < 0 && errno == EINTR);
	return *ret >= 0;
}

/*
 * From its last steps before execve on, the command can be traced by its neighbours, who can write here, too.
 * What makes no sense must not reach the manager, which takes a senseless end for a broken agent.
 */
static void check_failure(struct supervisor_failure *f, ssize_t size)
{
	if (size != sizeof(*f) || f->step < STEP_SPEC || f->step > STEP_EXEC || f->sys < 1 ||
	    f->sys > ERRNO_MAX)
		*f = (struct supervisor_failure){ STEP_EXEC, EIO };
}

void job_on_exec(void *ctx, uint32_t events)
{
	struct job *j = ctx;
	ssize_t n;

	(void)events;
	if (j->exec.fd < 0 || !read_record(&j->exec, &j->failure, sizeof(j->failure), &n))
		return;
	if (n > 0)
		check_failure(&j->failure, n);
	loop_close(j->table->loop, &j->exec);
	if (n == 0 && j->go_fd < 0 && j->state == JOB_STARTING && !j->has_cause) {
		j->state = JOB_RUNNING;
		j->tell_started = j->linked;
	}
}

/*
 * Killed by the OOM killer: a process of the job died of a KILL that was not ours, and the counter
 * rose meanwhile. Neither proves it alone.
 */
static bool is_oom(const struct job *j)
{
	int status = j->last.status;
	bool killed = WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL : WEXITSTATUS(status) == SHELL_KILLED;
	return killed && cgroup_oom_kills(j->table->oom_fd) > j->oom_before;
}

static void on_left(struct job *j)
{
	job_on_exec(j, 0); /* whether it began comes before how it ended */
	j->left = true;
	j->left_ms = j->table->loop->now_ms;
	j->left_us = job_clock_us();
	fd_close(&j->go_fd);
	if (j->has_cause || !is_oom(j))
		return;
	j->has_cause = true;
	j->cause = PROTO_OOM;
	kill_begin(&j->kill, j->left_ms, 0); /* what it left behind would go on filling the memory */
}

static void take_report(struct job *j, const struct supervisor_report *r)
{
	switch (r->event) {
	case SUPERVISOR_FORKED:
		j->leader = r->leader;
		break;
	case SUPERVISOR_NO_FORK:
		job_fail_start(j, r->status, r->status == EAGAIN ? "process limit" : "memory limit");
		break;
	case SUPERVISOR_LEFT:
		j->last = *r;
		on_left(j);
		break;
	default: { /* only sums are new */
		int32_t status = j->last.status;
		j->last = *r;
		j->last.status = status;
	}
	}
}

void job_on_report(void *ctx, uint32_t events)
{
	struct job *j = ctx;
	struct supervisor_report r;
	ssize_t n;

	(void)events;
	while (j->report.fd >= 0 && read_record(&j->report, &r, sizeof(r), &n)) {
		if (n == sizeof(r))
			take_report(j, &r);
		else
			loop_close(j->table->loop, &j->report);
	}
}

/* ---- children of PID 1 ---- */

static struct job *find_supervisor(struct jobs *js, pid_t pid)
{
	for (unsigned i = 0; i < PROTO_JOBS_MAX; i++)
		if (js->all[i].supervisor == pid)
			return &js->all[i];
	return NULL;
}

static void on_supervisor(struct jobs *js, struct job *j, int status)
{
	if (WIFSTOPPED(status)) { /* as good as dead: nobody reaps for it */
		(void)kill(j->supervisor, SIGKILL);
		return;
	}
	job_on_report(j, 0);
	j->supervisor = 0;
	if (WIFEXITED(status) && j->left)
		return;
	j->supervisor_lost = true;
	kill_begin(&js->strays, js->loop->now_ms, 0);
}

/* An orphan of a supervisor that was killed. If it was the command, its end is known after all. */
static void on_stray(struct jobs *js, pid_t pid, int status)
{
	if (WIFSTOPPED(status))
		return;
	for (unsigned i = 0; i < PROTO_JOBS_MAX; i++) {
		struct job *j = &js->all[i];
		if (j->supervisor_lost && j->leader == pid && !j->left) {
			j->last.status = status;
			on_left(j);
		}
	}
	kill_begin(&js->strays, js->loop->now_ms, 0);
}

bool jobs_reap(struct jobs *js)
{
	for (int i = 0; i < REAP_MAX; i++) {
		int status;
		pid_t pid = waitpid(-1, &status, WNOHANG | WUNTRACED);
		if (pid <= 0)
			return false;
		struct job *j = find_supervisor(js, pid);
		if (j)
			on_supervisor(js, j, status);
		else
			on_stray(js, pid, status);
	}
	return true;
}

/* ---- the end ---- */

static void end_job(struct job *j)
{
	j->state = JOB_ENDED;
	fd_close(&j->spec_fd);
	fd_close(&j->go_fd);
	input_clear(&j->in, j->table->loop);
	for (int s = 0; s < 2; s++)
		output_finish(&j->out[s].log);
	j->end.stdout_bytes = j->out[0].log.written;
	j->end.stderr_bytes = j->out[1].log.written;
	j->end.dropped_bytes = j->out[0].log.dropped + j->out[1].log.dropped;
	job_resume_output(j); /* what a descendant still writes is drained from now on */
}

static void take_picture(struct jobs *js)
{
	pid_t supervisors[PROTO_JOBS_MAX];

	for (unsigned i = 0; i < PROTO_JOBS_MAX; i++)
		supervisors[i] = js->all[i].supervisor;
	tree_scan(&js->tree, supervisors, PROTO_JOBS_MAX);
}

static bool is_leftover(const struct job *j)
{
	return j->state == JOB_ENDED && j->supervisor > 0;
}

static bool has_leftovers(const struct jobs *js)
{
	for (unsigned i = 0; i < PROTO_JOBS_MAX; i++)
		if (is_leftover(&js->all[i]))
			return true;
	return false;
}

void jobs_clear_leftovers(struct jobs *js, int64_t pause_ms)
{
	if (js->pids_max == 0 || js->loop->now_ms < js->cleared_ms + pause_ms || !has_leftovers(js))
		return;
	js->cleared_ms = js->loop->now_ms;
	take_picture(js);
	for (unsigned i = 0; i < PROTO_JOBS_MAX; i++)
		if (is_leftover(&js->all[i]) && tree_count(&js->tree, i) > js->pids_max / 2)
			kill_begin(&js->all[i].kill, js->loop->now_ms, 0);
}

void job_fail_start(struct job *j, int sys, const char *detail)
{
	if (sys == EAGAIN)
		jobs_clear_leftovers(j->table, 0);
	loop_close(j->table->loop, &j->exec);
	for (int s = 0; s < 2; s++)
		loop_close(j->table->loop, &j->out[s].pipe);
	j->left = true;
	j->end = (struct proto_exit){
		.reason = PROTO_START_FAILED,
		.sys = sys,
		.detail = { detail, __builtin_strlen(detail) },
	};
	end_job(j);
}

static const char *step_detail(int step)
{
	static const char *const NAMES[] = {
		[STEP_SPEC] = "spec",          [STEP_CHDIR] = "chdir", [STEP_SHELL] = "no_shell",
		[STEP_BUILTIN] = "no_builtin", [STEP_EXEC] = "exec",
	};
	return NAMES[step];
}

static enum proto_reason reason_of(const struct job *j, const char **ret_detail)
{
	*ret_detail = NULL;
	if (j->failure.step != 0) {
		*ret_detail = step_detail(j->failure.step);
		return PROTO_START_FAILED;
	}
	if (j->has_cause) {
		*ret_detail = j->cause_detail;
		return j->cause;
	}
	if (j->supervisor_lost) {
		*ret_detail = "supervisor killed";
		return PROTO_CANCELLED;
	}
	return WIFEXITED(j->last.status) ? PROTO_EXITED : PROTO_SIGNALLED;
}

static uint64_t wall_us(const struct job *j)
{
	if (j->go_us == 0)
		return 0;
	return (uint64_t)((j->left ? j->left_us : job_clock_us()) - j->go_us);
}

static unsigned count_lingering(struct job *j)
{
	if (j->supervisor == 0 || !j->last.more || j->kill.phase != KILL_NONE)
		return 0;
	take_picture(j->table);
	return tree_count(&j->table->tree, job_slot(j));
}

static unsigned count_survivors(const struct job *j)
{
	if (j->supervisor_lost)
		return j->table->strays.phase == KILL_OVER ? j->table->strays.left : 0;
	/* a supervisor that does not end has something left to wait for */
	return j->kill.phase == KILL_OVER ? j->kill.left + (j->supervisor > 0) : 0;
}

static void finish(struct job *j)
{
	const char *detail;
	enum proto_reason reason = reason_of(j, &detail);
	int status = j->last.status;

	j->end = (struct proto_exit){
		.reason = reason,
		.code = reason == PROTO_EXITED ? WEXITSTATUS(status) : 0,
		.signal = j->left && WIFSIGNALED(status) ? WTERMSIG(status) : 0,
		.sys = j->failure.sys,
		.wall_us = wall_us(j),
		.user_us = j->last.user_us,
		.sys_us = j->last.sys_us,
		.peak_bytes = j->last.peak_bytes,
		.lingering = count_lingering(j),
		.survivors = count_survivors(j),
		.detail = { detail, detail ? __builtin_strlen(detail) : 0 },
	};
	end_job(j);
}

/* ---- time ---- */

/* Has everything ended that must, so that only output may still come? */
static bool is_over(const struct job *j)
{
	if (j->supervisor_lost)
		return !kill_is_active(&j->table->strays);
	if (j->kill.phase == KILL_NONE)
		return j->left;
	return j->kill.phase == KILL_OVER || (j->left && j->supervisor == 0);
}

static int64_t earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* When no more of a stream is waited for, as it looks now. */
static int64_t stream_drained_ms(const struct job *j, const struct job_stream *s)
{
	int64_t longest = j->left_ms + DRAIN_MAX_MS;

	if (s->pipe.fd < 0 || j->forgotten)
		return 0;
	/* it waits for its reader and loses nothing, unless it was ended by force */
	if (s->pipe.events == 0)
		return j->has_cause || j->supervisor_lost ? earlier(longest, j->deadline_ms) : j->deadline_ms;
	int64_t silent = later(j->output_ms, j->left_ms) + DRAIN_SILENCE_MS;
	return earlier(earlier(silent, longest), j->deadline_ms);
}

static int64_t drained_ms(const struct job *j)
{
	return later(stream_drained_ms(j, &j->out[0]), stream_drained_ms(j, &j->out[1]));
}

static void end_by_time(struct job *j, enum proto_reason cause, const char *detail)
{
	if (j->left || j->has_cause)
		return;
	j->has_cause = true;
	j->cause = cause;
	j->cause_detail = detail;
	fd_close(&j->go_fd);
	kill_begin(&j->kill, j->table->loop->now_ms, 0);
}

static void step(struct job *j)
{
	int64_t now = j->table->loop->now_ms;

	kill_tick(&j->kill, now);
	if (j->state == JOB_ENDED) {
		if (j->forgotten && j->supervisor == 0)
			job_release(j);
		return;
	}
	if (now >= j->deadline_ms)
		end_by_time(j, PROTO_TIMEOUT, NULL);
	if (j->go_fd >= 0 && now - j->created_ms >= GO_MAX_MS)
		end_by_time(j, PROTO_CANCELLED, "no go");
	if (is_over(j) && now >= drained_ms(j))
		finish(j);
}

static bool wants_picture(const struct jobs *js)
{
	for (unsigned i = 0; i < PROTO_JOBS_MAX; i++)
		if (kill_is_active(&js->all[i].kill) && js->all[i].supervisor > 0)
			return true;
	return kill_is_active(&js->strays);
}

/* One picture for all killings; as long as it took, the loop does other things before the next. */
static void sweep(struct jobs *js)
{
	int64_t began_us = job_clock_us();

	if (!wants_picture(js) || js->loop->now_ms < js->sweep_ms)
		return;
	take_picture(js);
	for (unsigned i = 0; i < PROTO_JOBS_MAX; i++)
		if (kill_is_active(&js->all[i].kill) && js->all[i].supervisor > 0)
			kill_round(&js->all[i].kill, &js->tree, i);
	if (kill_is_active(&js->strays))
		kill_round(&js->strays, &js->tree, TREE_STRAY);
	js->sweep_ms = js->loop->now_ms + 1 + (job_clock_us() - began_us) / 1000;
}

void jobs_step(struct jobs *js)
{
	kill_tick(&js->strays, js->loop->now_ms);
	sweep(js);
	for (unsigned i = 0; i < PROTO_JOBS_MAX; i++) {
		struct job *j = &js->all[i];
		if (j->state == JOB_FREE || j->state == JOB_COLLECTING)
			continue;
		job_resume_output(j);
		step(j);
	}
}

void jobs_end_all(struct jobs *js)
{
	for (unsigned i = 0; i < PROTO_JOBS_MAX; i++) {
		struct job *j = &js->all[i];
		if (j->supervisor == 0)
			continue;
		fd_close(&j->go_fd);
		kill_begin(&j->kill, js->loop->now_ms, 0);
	}
	kill_begin(&js->strays, js->loop->now_ms, 0);
}

bool jobs_are_over(const struct jobs *js)
{
	for (unsigned i = 0; i < PROTO_JOBS_MAX; i++)
		if (js->all[i].supervisor > 0)
			return false;
	return !kill_is_active(&js->strays);
}

int64_t jobs_next_ms(const struct jobs *js)
{
	int64_t next = wants_picture(js) ? js->sweep_ms : LOOP_NEVER;

	for (unsigned i = 0; i < PROTO_JOBS_MAX; i++) {
		const struct job *j = &js->all[i];
		if (j->state == JOB_FREE || j->state == JOB_COLLECTING)
			continue;
		if (j->kill.phase == KILL_GRACE || j->kill.phase == KILL_ACTIVE)
			next = earlier(next, j->kill.until_ms);
		if (j->state == JOB_ENDED)
			continue;
		/* what waits for a kill, or for its reader, is woken by that and not by the clock */
		if (is_over(j))
			next = earlier(next, drained_ms(j));
		else if (!j->left && !j->has_cause)
			next = earlier(next, j->deadline_ms);
	}
	return next;
}
