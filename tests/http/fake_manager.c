/* SPDX-License-Identifier: MIT */
/*
 * fake_manager.c - manager.h without engine, sandbox or store: sessions live in memory, and a command runs as
 * a plain child of this process. It lets the HTTP side be tested in seconds and by hostile clients.
 */
#include "manager/manager.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/json.h"
#include "manager/session_default.h"

#define SESSIONS_MAX 64
#define EXECS_MAX 1024
#define OUTPUT_MAX (4 << 20)

struct session {
	char id[ID_SIZE], token[ID_TOKEN_SIZE], name[64];
	char *labels;
	bool gone;
	int64_t ttl_s, idle_s, created_ms;
};

struct exec {
	struct session *session;
	char id[ID_SIZE];
	char *command, *key, *request_hash;
	bool base64, stream;
	pthread_t starter;
	pid_t pid;
	int out_fd;
	struct buf output, piece;
	bool ended;
	int status;
	const char *reason;
	int64_t started_ms, ended_ms, deadline_ms;
};

struct manager {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct session sessions[SESSIONS_MAX];
	struct exec *execs[EXECS_MAX]; /* never freed */
	size_t session_count, exec_count;
	int64_t unauthorized, refused;
	bool quiet;
} the = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

/* ---- the daemon ---- */

int manager_new(const struct settings *settings, struct manager **ret, struct err *e)
{
	(void)settings;
	(void)e;
	*ret = &the;
	return 0;
}

void manager_free(struct manager *m)
{
	for (size_t i = 0; i < m->session_count; i++)
		free(m->sessions[i].labels);
}

void manager_quiesce(struct manager *m)
{
	pthread_mutex_lock(&m->lock);
	m->quiet = true;
	pthread_cond_broadcast(&m->changed);
	pthread_mutex_unlock(&m->lock);
}

void manager_get_health(struct manager *m, struct manager_health *ret)
{
	*ret = (struct manager_health){ .ok = true,
					.engine_ok = true,
					.store_ok = true,
					.engine = "fake",
					.store = "ok",
					.sessions_live = (int64_t)m->session_count,
					.unauthorized = m->unauthorized };
}

void manager_note_unauthorized(struct manager *m, const char *address)
{
	(void)address;
	pthread_mutex_lock(&m->lock);
	m->unauthorized++;
	pthread_mutex_unlock(&m->lock);
}

void manager_note_refused(struct manager *m, const struct caller *who, const char *session,
			  const char *action, const struct err *why)
{
	(void)m;
	(void)why;
	printf("refused %s %s %s\n", who->actor, session ? session : "-", action);
	(void)fflush(stdout);
}

/* ---- sessions ---- */

void session_row_clear(struct session_row *row)
{
	free(row->id);
	free(row->name);
	free(row->labels);
	free(row->state);
	free(row->reason);
	*row = (struct session_row){ 0 };
}

void session_rows_free(struct session_row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++)
		session_row_clear(&rows[i]);
	free(rows);
}

static void fill_row(const struct session *s, struct session_row *row)
{
	*row = (struct session_row){ .id = xstrdup(s->id),
				     .name = s->name[0] ? xstrdup(s->name) : NULL,
				     .labels = xstrdup(s->labels),
				     .state = xstrdup(s->gone ? "gone" : "ready"),
				     .reason = s->gone ? xstrdup("deleted") : NULL,
				     .memory_mb = 4096,
				     .cpu_milli = 1500,
				     .pids = 1024,
				     .ttl_s = s->ttl_s,
				     .idle_s = s->idle_s,
				     .created_ms = s->created_ms };
}

int sessions_create(struct manager *m, const struct session_request *rq, const struct caller *who,
		    struct session_row *ret_row, char ret_token[64], struct err *e)
{
	struct session *s;

	(void)who;
	if (m->session_count == SESSIONS_MAX)
		return err_set(e, ERR_LIMIT, "too many sessions");
	pthread_mutex_lock(&m->lock);
	s = &m->sessions[m->session_count++];
	id_new("s_", s->id);
	id_token("bst_", s->token);
	(void)snprintf(s->name, sizeof(s->name), "%s", rq->name ? rq->name : "");
	s->labels = rq->labels ? json_text(rq->labels) : xstrdup("{}");
	s->ttl_s = rq->ttl_s < 0 ? 3600 : rq->ttl_s;
	s->idle_s = rq->idle_s < 0 ? 900 : rq->idle_s;
	s->created_ms = clock_wall_ms();
	fill_row(s, ret_row);
	(void)snprintf(ret_token, 64, "%s", s->token);
	pthread_mutex_unlock(&m->lock);
	return 0;
}

static struct session *by_id(struct manager *m, const char *id)
{
	struct session *found = NULL;

	pthread_mutex_lock(&m->lock);
	for (size_t i = 0; i < m->session_count; i++)
		if (!strcmp(m->sessions[i].id, id))
			found = &m->sessions[i];
	pthread_mutex_unlock(&m->lock);
	return found;
}

int sessions_get(struct manager *m, const char *id, struct session_row *ret, struct err *e)
{
	struct session *s = by_id(m, id);

	if (!s)
		return err_set(e, ERR_NOT_FOUND, "no such session");
	fill_row(s, ret);
	return 0;
}

int sessions_list(struct manager *m, const struct session_filter *f, struct session_row **ret_rows,
		  size_t *ret_count, struct err *e)
{
	struct session_row *rows = xcalloc(SESSIONS_MAX, sizeof(*rows));
	bool started = !f->after;
	size_t count = 0;

	(void)e;
	for (size_t i = 0; i < m->session_count && count < (size_t)f->limit; i++) {
		const struct session *s = &m->sessions[i];

		if (started && s->gone == (f->state && !strcmp(f->state, "gone")) &&
		    (!f->name || !strcmp(f->name, s->name)))
			fill_row(s, &rows[count++]);
		started = started || !strcmp(s->id, f->after);
	}
	*ret_rows = rows;
	*ret_count = count;
	return 0;
}

int sessions_find(struct manager *m, const char *id, struct session **ret, struct err *e)
{
	struct session *s = by_id(m, id);

	if (!s)
		return err_set(e, ERR_NOT_FOUND, "no such session");
	if (s->gone)
		return err_set(e, ERR_GONE, "the session is gone: deleted");
	*ret = s;
	return 0;
}

int sessions_patch(struct manager *m, const char *id, const struct session_patch *p, const struct caller *who,
		   struct session_row *ret, struct err *e)
{
	struct session *s;

	(void)who;
	if (sessions_find(m, id, &s, e))
		return -e->code;
	s->ttl_s = p->ttl_s < 0 ? s->ttl_s : p->ttl_s;
	s->idle_s = p->idle_s < 0 ? s->idle_s : p->idle_s;
	fill_row(s, ret);
	return 0;
}

int sessions_delete(struct manager *m, const char *id, const struct caller *who, bool *ret_gone,
		    struct err *e)
{
	struct session *s = by_id(m, id);

	(void)who;
	if (!s || s->gone)
		return err_set(e, ERR_NOT_FOUND, "no such session");
	s->gone = *ret_gone = true;
	return 0;
}

static const char *id_of_token(struct manager *m, const char *token)
{
	const char *id = NULL;

	pthread_mutex_lock(&m->lock);
	for (size_t i = 0; i < m->session_count; i++)
		if (!strcmp(m->sessions[i].token, token))
			id = m->sessions[i].id;
	pthread_mutex_unlock(&m->lock);
	return id;
}

int sessions_find_by_token(struct manager *m, const char *token, struct session **ret, struct err *e)
{
	const char *id = id_of_token(m, token);

	return id ? sessions_find(m, id, ret, e) : err_set(e, ERR_UNAUTHORIZED, "no session has this token");
}

int sessions_get_by_token(struct manager *m, const char *token, struct session_row *ret, struct err *e)
{
	const char *id = id_of_token(m, token);

	return id ? sessions_get(m, id, ret, e) : err_set(e, ERR_UNAUTHORIZED, "no session has this token");
}

/* There is no default session here. */

int session_default_get(struct manager *m, const struct caller *who, struct session **ret, struct err *e)
{
	(void)m;
	(void)who;
	(void)ret;
	return err_set(e, ERR_UNAVAILABLE, "no default session");
}

struct session *session_default_peek(struct manager *m)
{
	(void)m;
	return NULL;
}

int sessions_delete_workspace(struct manager *m, const char *id, const struct caller *who, struct err *e)
{
	(void)m;
	(void)id;
	(void)who;
	return err_field(e, "workspace", "goes with the session");
}

void session_unref(struct session *s)
{
	(void)s;
}

const char *session_get_id(const struct session *s)
{
	return s->id;
}

/* ---- execs: a thread for each gathers the output and the end ---- */

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
