/* SPDX-License-Identifier: MIT */
/* The commands of the fake manager: a thread for each gathers the output and the end. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/json.h"
#include "tests/http/fake_manager.h"

static void run_child(const struct exec_request *rq, const int out[2], int in)
{
	size_t count = json_array_size(rq->argv);
	const char **argv = xcalloc(count + 1, sizeof(*argv));

	setpgid(0, 0);
	dup2(in, 0);
	dup2(out[1], 1);
	dup2(out[1], 2);
	for (size_t i = 0; i < count; i++)
		argv[i] = json_string_value(json_array_get(rq->argv, i));
	if (rq->command)
		execl("/bin/bash", "bash", "-c", rq->command, (char *)NULL);
	else
		execvp(argv[0], (char *const *)(uintptr_t)argv);
	_exit(127);
}

static int stdin_of(const struct exec_request *rq)
{
	int fd = memfd_create("stdin", MFD_CLOEXEC);

	if (rq->stdin_len && write(fd, rq->stdin_data, rq->stdin_len) != (ssize_t)rq->stdin_len)
		abort();
	lseek(fd, 0, SEEK_SET);
	return fd;
}

static void take_output(struct exec *x, const char *bytes, size_t len)
{
	struct err e;

	pthread_mutex_lock(&the.lock);
	/* A stream that is not read holds the command up, until it is cancelled. */
	while (x->stream && x->output.len > OUTPUT_MAX / 2 && !the.quiet && !x->reason)
		pthread_cond_wait(&the.changed, &the.lock);
	(void)!buf_add(&x->output, bytes, len, &e);
	pthread_cond_broadcast(&the.changed);
	pthread_mutex_unlock(&the.lock);
}

static void *watch_exec(void *ctx)
{
	struct exec *x = ctx;
	char bytes[32768];
	ssize_t got = 1;

	while (got > 0) {
		struct pollfd p = { .fd = x->out_fd, .events = POLLIN };

		if (!poll(&p, 1, (int)clock_left_ms(x->deadline_ms))) {
			pthread_mutex_lock(&the.lock);
			x->reason = "timeout";
			kill(-x->pid, SIGKILL);
			pthread_mutex_unlock(&the.lock);
		}
		got = read(x->out_fd, bytes, sizeof(bytes));
		if (got > 0)
			take_output(x, bytes, (size_t)got);
	}
	waitpid(x->pid, &x->status, 0);
	close(x->out_fd);
	pthread_mutex_lock(&the.lock);
	if (!x->reason)
		x->reason = WIFEXITED(x->status) ? "exited" : "signalled";
	x->ended = true;
	x->ended_ms = clock_wall_ms();
	pthread_cond_broadcast(&the.changed);
	pthread_mutex_unlock(&the.lock);
	return NULL;
}

static struct exec *find_key(const struct session *s, const char *key)
{
	for (size_t i = 0; key && i < the.exec_count; i++)
		if (the.execs[i]->session == s && the.execs[i]->key && !strcmp(the.execs[i]->key, key))
			return the.execs[i];
	return NULL;
}

static struct exec *new_exec(struct session *s, const struct exec_request *rq)
{
	struct exec *x = xcalloc(1, sizeof(*x));

	id_new("e_", x->id);
	x->session = s;
	x->command = xstrdup(rq->command ? rq->command : "argv");
	x->key = rq->key ? xstrdup(rq->key) : NULL;
	x->request_hash = rq->key ? xstrdup(rq->request_hash) : NULL;
	x->starter = pthread_self();
	x->base64 = rq->base64;
	x->stream = rq->stream;
	x->output = BUF_INIT(OUTPUT_MAX);
	x->started_ms = clock_wall_ms();
	x->deadline_ms = clock_mono_ms() + (rq->timeout_ms < 0 ? 120000 : rq->timeout_ms);
	return x;
}

int exec_start(struct session *s, const struct exec_request *rq, const struct caller *who, int client_fd,
	       struct exec **ret, struct err *e)
{
	int out[2], in;
	pthread_t thread;
	struct exec *x;

	(void)who;
	(void)client_fd;
	pthread_mutex_lock(&the.lock);
	x = find_key(s, rq->key);
	pthread_mutex_unlock(&the.lock);
	if (x && strcmp(x->request_hash, rq->request_hash))
		return err_set(e, ERR_CONFLICT, "this Idempotency-Key came with another request");
	if (x) {
		*ret = x;
		return 0;
	}
	if (pipe2(out, O_CLOEXEC))
		return err_set(e, ERR_LIMIT, "too many commands");
	x = new_exec(s, rq);
	in = stdin_of(rq);
	x->pid = fork();
	if (!x->pid)
		run_child(rq, out, in);
	setpgid(x->pid, x->pid); /* here too: it may be killed by its group before it ran at all */
	close(in);
	close(out[1]);
	x->out_fd = out[0];
	pthread_mutex_lock(&the.lock);
	if (the.exec_count == EXECS_MAX)
		abort(); /* no test runs so many */
	the.execs[the.exec_count++] = x;
	pthread_mutex_unlock(&the.lock);
	pthread_create(&thread, NULL, watch_exec, x);
	pthread_detach(thread);
	*ret = x;
	return 0;
}

static void cancel_locked(struct exec *x)
{
	if (x->ended)
		return;
	x->reason = "cancelled";
	kill(-x->pid, SIGKILL);
	pthread_cond_broadcast(&the.changed);
}

/* Nothing is freed; but a starter that lets go of a command that runs is a client that has hung up. */
void exec_unref(struct exec *x)
{
	if (!x)
		return;
	pthread_mutex_lock(&the.lock);
	if (pthread_equal(x->starter, pthread_self()) && !x->key && !the.quiet)
		cancel_locked(x);
	pthread_mutex_unlock(&the.lock);
}

const char *exec_get_id(const struct exec *x)
{
	return x->id;
}

static bool hung_up(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLRDHUP };

	return fd >= 0 && poll(&p, 1, 0) > 0;
}

/* Whole characters only, but at the end. */
static size_t whole(const struct exec *x, size_t len)
{
	const unsigned char *at = (const unsigned char *)x->output.data;
	size_t back = 0;

	if (x->base64 || x->ended)
		return len;
	while (back < len && back < 3 && (at[len - 1 - back] & 0xc0) == 0x80)
		back++;
	return back < len && at[len - 1 - back] >= 0xc0 ? len - 1 - back : len;
}

static enum exec_event next_locked(struct exec *x, struct exec_output *ret)
{
	size_t len = x->stream ? MIN(x->output.len, (size_t)32768) : 0;
	struct err e;

	len = len ? whole(x, len) : 0;
	if (len) {
		buf_reset(&x->piece);
		x->piece.max = 32768;
		(void)!buf_add(&x->piece, x->output.data, len, &e);
		buf_consume(&x->output, len);
		pthread_cond_broadcast(&the.changed);
		*ret = (struct exec_output){ .stream = 1, .data = x->piece.data, .len = len };
		return EXEC_OUTPUT;
	}
	if (x->ended)
		return EXEC_END;
	return the.quiet ? EXEC_SHUTDOWN : EXEC_QUIET;
}

/* The fake looks for a hang-up ten times a second; the manager polls the socket together with its own events.
 */
static void wait_a_little_locked(void)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += 100000000;
	if (until.tv_nsec >= 1000000000)
		until.tv_sec++, until.tv_nsec -= 1000000000;
	(void)pthread_cond_timedwait(&the.changed, &the.lock, &until);
}

enum exec_event exec_next(struct exec *x, int timeout_ms, int client_fd, struct exec_output *ret)
{
	int64_t deadline = clock_mono_ms() + timeout_ms;
	enum exec_event event;

	pthread_mutex_lock(&the.lock);
	while ((event = next_locked(x, ret)) == EXEC_QUIET && clock_left_ms(deadline) > 0) {
		if (hung_up(client_fd)) {
			event = EXEC_HANGUP;
			break;
		}
		wait_a_little_locked();
	}
	pthread_mutex_unlock(&the.lock);
	if (event == EXEC_HANGUP && !x->key)
		exec_cancel(x, 0);
	return event;
}

bool exec_wait(struct exec *x, int timeout_ms, int client_fd)
{
	int64_t deadline = clock_mono_ms() + timeout_ms;
	bool ended;

	pthread_mutex_lock(&the.lock);
	while (!x->ended && !the.quiet && clock_left_ms(deadline) > 0 && !hung_up(client_fd))
		wait_a_little_locked();
	ended = x->ended;
	pthread_mutex_unlock(&the.lock);
	return ended;
}

json_t *exec_get_reply(struct exec *x)
{
	bool ended, exited;

	pthread_mutex_lock(&the.lock);
	ended = x->ended; /* from then on nothing changes */
	pthread_mutex_unlock(&the.lock);
	if (!ended)
		return NULL;
	exited = WIFEXITED(x->status) && !strcmp(x->reason, "exited");
	return json_pack("{s:o, s:o, s:b, s:b, s:I, s:s, s:s, s:n, s:i, s:i, s:i}", "output",
			 json_string_lossy(x->output.data ? x->output.data : "", x->output.len), "exit_code",
			 exited ? json_integer(WEXITSTATUS(x->status)) : json_null(), "truncated", 0,
			 "timed_out", !strcmp(x->reason, "timeout"), "duration_ms",
			 (json_int_t)(x->ended_ms - x->started_ms), "id", x->id, "reason", x->reason,
			 "signal", "peak_memory", 0, "cpu_ms", 0, "dropped_bytes", 0);
}

static json_t *state_locked(const struct exec *x)
{
	return json_pack("{s:s, s:s, s:s, s:o}", "id", x->id, "state", x->ended ? "ended" : "running",
			 "command", x->command, "reason", x->ended ? json_string(x->reason) : json_null());
}

json_t *exec_get_state(struct exec *x)
{
	json_t *state;

	pthread_mutex_lock(&the.lock);
	state = state_locked(x);
	pthread_mutex_unlock(&the.lock);
	return state;
}

int exec_find(struct session *s, const char *id, struct exec **ret, struct err *e)
{
	struct exec *found = NULL;

	pthread_mutex_lock(&the.lock);
	for (size_t i = 0; i < the.exec_count; i++)
		if (the.execs[i]->session == s && !strcmp(the.execs[i]->id, id))
			found = the.execs[i];
	pthread_mutex_unlock(&the.lock);
	if (!found)
		return err_set(e, ERR_NOT_FOUND, "no such exec");
	*ret = found;
	return 0;
}

int exec_list(struct session *s, int limit, json_t **ret, struct err *e)
{
	json_t *list = json_array();

	(void)e;
	pthread_mutex_lock(&the.lock);
	for (size_t i = the.exec_count; i-- && json_array_size(list) < (size_t)limit;)
		if (the.execs[i]->session == s)
			json_array_append_new(list, state_locked(the.execs[i]));
	pthread_mutex_unlock(&the.lock);
	*ret = list;
	return 0;
}

void exec_cancel(struct exec *x, int grace_ms)
{
	(void)grace_ms;
	pthread_mutex_lock(&the.lock);
	cancel_locked(x);
	pthread_mutex_unlock(&the.lock);
}
