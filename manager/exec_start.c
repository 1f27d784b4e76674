/* SPDX-License-Identifier: MIT */
/*
 * From a request to a command that runs. START goes out while the row is being written; the command's
 * supervisor stands before execve until GO, which follows the commit: nothing runs whose audit row is not
 * stored, and a durable start costs one flush in parallel.
 */
#include <poll.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "manager/grants.h"
#include "manager/internal.h"

#define SHOWN_MAX 4096 /* bytes of a command in rows and lines */

/* ---- the request ---- */

static int check_texts(const json_t *list, const char *field, size_t max, struct err *e)
{
	size_t i, sum = 0;
	json_t *item;
	json_array_foreach (list, i, item) {
		if (!json_is_string(item))
			return err_field(e, field, "must be an array of strings");
		sum += json_string_length(item) + 1;
	}
	if (json_array_size(list) == 0 || json_array_size(list) > EXEC_ARGS_MAX)
		return err_field(e, field, "must have from 1 to %d items", EXEC_ARGS_MAX);
	return sum <= max ? 0 : err_field(e, field, "must be at most %zu bytes together", max);
}

static int check(const struct session *s, const struct exec_request *rq, struct err *e)
{
	const struct settings *set = s->manager->settings;
	if (!rq->command == !rq->argv)
		return err_field(e, "command", "either command or argv is needed, not both");
	if (rq->command && (!*rq->command || strlen(rq->command) > EXEC_COMMAND_MAX - 4096))
		return err_field(e, "command", "must be from 1 to %d bytes", EXEC_COMMAND_MAX - 4096);
	if (rq->argv && check_texts(rq->argv, "argv", EXEC_COMMAND_MAX - 4096, e) < 0)
		return -(int)e->code;
	if (rq->argv && !*json_string_value(json_array_get(rq->argv, 0)))
		return err_field(e, "argv", "the first item, the program, must not be empty");
	if (rq->cwd && (*rq->cwd != '/' || strlen(rq->cwd) > 4095))
		return err_field(e, "cwd", "must be an absolute path of at most 4095 bytes");
	if (rq->timeout_ms == 0 || rq->timeout_ms > set->max_timeout_s * 1000)
		return err_field(e, "timeout_s", "must be above 0 and at most %lld",
				 (long long)set->max_timeout_s);
	return exec_env_check(rq->env, e);
}

/* What is shown of a command: never its environment or stdin. */
static char *shown(const struct exec_request *rq)
{
	if (rq->command)
		return utf8_escape(rq->command, strlen(rq->command), SHOWN_MAX);
	_cleanup_free_ char *text = json_dumps(rq->argv, JSON_COMPACT);
	return utf8_escape(text, strlen(text), SHOWN_MAX);
}

/* A process has none. */
static int64_t timeout_of(const struct settings *set, const struct exec_request *rq)
{
	if (rq->kind == EXEC_PROCESS)
		return 0;
	return rq->timeout_ms < 0 ? set->default_timeout_s * 1000 : rq->timeout_ms;
}

static struct exec *make_exec(struct session *s, const struct exec_request *rq, const struct caller *who)
{
	const struct settings *set = s->manager->settings;
	char id[ID_SIZE];
	id_new(exec_kinds[rq->kind].prefix, id);
	struct exec *x = exec_new(s, id);
	x->command = shown(rq);
	x->name = rq->name ? xstrdup(rq->name) : NULL;
	x->input.open = rq->open_stdin;
	x->key = rq->key ? xstrdup(rq->key) : NULL;
	x->request_hash = rq->request_hash ? xstrdup(rq->request_hash) : NULL;
	x->actor = xstrdup(who->actor);
	x->address = who->address ? xstrdup(who->address) : NULL;
	x->base64 = rq->base64;
	x->stream = rq->stream;
	x->split = rq->stream && rq->split;
	x->started_ms = clock_wall_ms();
	x->timeout_ms = timeout_of(set, rq);
	x->starter = pthread_self();
	if (rq->stdin_data) {
		x->stdin_data = xcalloc(rq->stdin_len + 1, 1);
		memcpy(x->stdin_data, rq->stdin_data, rq->stdin_len);
		x->stdin_len = x->stdin_held = rq->stdin_len;
	}
	capture_init(&x->capture, (size_t)set->max_output, x->base64);
	return x;
}

/* ---- a key that was seen before ---- */

/* 1: *ret is the exec of this key; 0: there is none. */
static int find_by_key(struct session *s, const struct exec_request *rq, struct exec **ret, struct err *e)
{
	struct exec_row row = { 0 };
	int r = store_exec_by_key(s->manager->store, s->id, rq->key, &row, e);
	if (r == -ERR_NOT_FOUND)
		return 0;
	if (r == 0 &&
	    (row.kind != (int64_t)rq->kind ||
	     strcmp(row.request_hash ? row.request_hash : "", rq->request_hash ? rq->request_hash : "") != 0))
		r = err_set(e, ERR_CONFLICT, "this Idempotency-Key was used with another request");
	if (r == 0)
		r = exec_lookup(s, row.id, ret, e);
	exec_row_clear(&row);
	return r < 0 ? r : 1;
}

/* ---- the start ---- */

static int make_env(struct session *s, const struct exec_request *rq, char ***ret, struct err *e)
{
	_cleanup_json_ json_t *image = NULL;
	_cleanup_json_ json_t *own = NULL;
	pthread_mutex_lock(&s->lock);
	_cleanup_free_ char *image_text = xstrdup(s->row.image_env);
	_cleanup_free_ char *own_text = xstrdup(s->row.env);
	pthread_mutex_unlock(&s->lock);
	int r = json_text_parse(image_text, strlen(image_text), &image, e);
	if (r == 0)
		r = json_text_parse(own_text, strlen(own_text), &own, e);
	const struct exec_env_sources from = { .image = image,
					       .passed = s->is_default ? grants_get_env(s->manager->grants)
								       : NULL,
					       .session = own,
					       .request = rq->env };
	return r < 0 ? r : exec_env_make(&from, ret, e);
}

static const char **make_argv(const json_t *list)
{
	if (!list)
		return NULL;
	const char **argv = xcalloc(json_array_size(list) + 1, sizeof(*argv));
	for (size_t i = 0; i < json_array_size(list); i++)
		argv[i] = json_string_value(json_array_get(list, i));
	return argv;
}

/* What the agent keeps of the output. In BLOCK mode the tail is also what it can buffer for the reader. */
static void set_keep(const struct exec *x, struct job_spec *spec)
{
	const struct settings *set = x->session->manager->settings;
	spec->keep = x->kind == EXEC_PROCESS ? PROTO_KEEP_RING
		     : x->stream             ? PROTO_KEEP_BLOCK
					     : PROTO_KEEP_ENDS;
	if (x->kind == EXEC_PROCESS) {
		spec->tail_bytes = (uint32_t)set->process_buffer;
		return;
	}
	spec->head_bytes = (uint32_t)CAPTURE_END_BYTES(set->max_output);
	spec->tail_bytes = (uint32_t)MAX(CAPTURE_END_BYTES(set->max_output), PROTO_JOB_WINDOW);
}

static int send_start(struct exec *x, const struct exec_request *rq, struct channel *c, struct err *e)
{
	const struct settings *set = x->session->manager->settings;
	char **env = NULL;
	int r = make_env(x->session, rq, &env, e);
	if (r < 0)
		return r;
	_cleanup_free_ const char **argv = make_argv(rq->argv);
	struct job_spec spec = {
		.tag = x->id,
		.argv = argv,
		.script = rq->command,
		.shell = rq->command ? set->shell : NULL,
		.env = (const char *const *)env,
		.cwd = rq->cwd ? rq->cwd : set->workspace,
		.timeout_ms = x->timeout_ms,
		.has_stdin = rq->stdin_data != NULL || rq->open_stdin,
		.split = x->split,
	};
	set_keep(x, &spec);
	r = job_start(c, &spec, &x->job, e);
	exec_env_free(env);
	if (r == 0) {
		exec_set_number(x, c, job_get_id(x->job));
		pthread_mutex_lock(&x->lock);
		x->agent = channel_get_agent(c);
		pthread_mutex_unlock(&x->lock);
	}
	return r;
}

static struct store_ticket *write_row(struct exec *x, const struct caller *who)
{
	char options[128];
	snprintf(options, sizeof(options), "{\"limit\":%zu,\"base64\":%s,\"split\":%s,\"stdin\":%zu}",
		 x->capture.limit, x->base64 ? "true" : "false", x->split ? "true" : "false", x->stdin_len);
	const struct exec_row row = {
		.id = x->id,
		.session = x->session->id,
		.command = x->command,
		.key = x->key,
		.request_hash = x->request_hash,
		.options = options,
		.started_ms = x->started_ms,
		.kind = x->kind,
		.name = x->name,
		.kept = x->kind == EXEC_PROCESS,
	};
	struct audit_row audit =
		audit_of(who, exec_kinds[x->kind].start, x->session->id, x->command, "accepted", NULL);
	audit.exec = x->id;
	return store_exec_insert(x->session->manager->store, &row, &audit);
}

/* It never ran: the supervisor is told to go, and nothing of it stays. */
static void take_back(struct exec *x)
{
	job_cancel(x->job, 0);
	job_forget(x->job);
	job_unref(x->job);
	x->job = NULL;
	exec_unlist_unstarted(x);
}

static int run(struct exec *x, const struct exec_request *rq, const struct caller *who, struct channel *c,
	       struct err *e)
{
	/* In the list before the agent has it, so that a reconnect does not take the job for a stranger's. */
	exec_list_add(x);
	int r = send_start(x, rq, c, e);
	if (r < 0) {
		exec_unlist_unstarted(x);
		return r;
	}
	struct store_ticket *t = write_row(x, who);
	exec_push_stdin(x);
	r = store_wait(t, MANAGER_STORE_TIMEOUT_MS, e);
	if (r == -ERR_TIMEOUT) { /* the row may come all the same: then it gets an end, too */
		job_cancel(x->job, 0);
		exec_finish(x, NULL, proto_reason_name(PROTO_START_FAILED), e->msg);
		e->code = ERR_STORE;
		return -ERR_STORE;
	}
	if (r < 0) {
		take_back(x);
		return r;
	}
	job_go(x->job);
	return 0;
}

static int hold_stdin(struct manager *m, size_t len, struct err *e)
{
	int64_t all = atomic_fetch_add(&m->stdin_bytes, (int64_t)len) + (int64_t)len;
	if (all <= EXEC_STDIN_ALL_MAX)
		return 0;
	atomic_fetch_sub(&m->stdin_bytes, (int64_t)len);
	err_set(e, ERR_OVERLOADED, "the stdin of all running commands together is too large just now");
	e->retry_after_s = 5;
	return -ERR_OVERLOADED;
}

static int check_shell(struct session *s, struct err *e)
{
	pthread_mutex_lock(&s->lock);
	bool missing = s->no_shell;
	pthread_mutex_unlock(&s->lock);
	return missing ? err_set(e, ERR_NO_SHELL, "the image has no %s: give argv instead of command",
				 s->manager->settings->shell)
		       : 0;
}

static int start_with_slot(struct session *s, const struct exec_request *rq, const struct caller *who,
			   struct exec **ret, struct err *e)
{
	_cleanup_(channel_unref_cleanup_) struct channel *c = NULL;
	int r = session_channel(s, MANAGER_CONNECT_TIMEOUT_MS, &c, e);
	if (r < 0)
		return r;
	/* After the link: a session of an earlier berthd has been looked at by then. */
	r = rq->command ? check_shell(s, e) : 0;
	if (r == 0)
		r = hold_stdin(s->manager, rq->stdin_len, e);
	if (r < 0)
		return r;
	struct exec *x = make_exec(s, rq, who);
	session_touch(s);
	r = run(x, rq, who, c, e);
	if (r < 0) {
		exec_put(x);
		return r;
	}
	x->has_slot = true;
	pthread_mutex_lock(&s->lock);
	x->kept = x->kind == EXEC_PROCESS;
	pthread_mutex_unlock(&s->lock);
	*ret = x;
	return 0;
}

static int take_slot(struct session *s, const struct exec_request *rq, int client_fd, struct err *e)
{
	if (rq->kind == EXEC_PROCESS)
		return process_slot_take(s, e);
	return exec_slot_take(s, (int)timeout_of(s->manager->settings, rq), client_fd, e);
}

static void give_slot(struct session *s, const struct exec_request *rq)
{
	if (rq->kind == EXEC_PROCESS)
		process_slot_give(s);
	else
		exec_slot_give(s);
}

int exec_start(struct session *s, const struct exec_request *rq, const struct caller *who, int client_fd,
	       struct exec **ret, struct err *e)
{
	int r = check(s, rq, e);
	if (r < 0)
		return r;
	if (rq->key && (r = find_by_key(s, rq, ret, e)) != 0)
		return MIN(r, 0);
	r = take_slot(s, rq, client_fd, e);
	if (r < 0)
		return r;
	r = start_with_slot(s, rq, who, ret, e);
	if (r == 0)
		return 0;
	give_slot(s, rq);
	/* Another request with this key was quicker: it has the exec. */
	if (r == -ERR_CONFLICT && rq->key) {
		struct err other;
		int found = find_by_key(s, rq, ret, &other);
		if (found < 0)
			*e = other;
		return found == 1 ? 0 : -(int)e->code;
	}
	return r;
}
