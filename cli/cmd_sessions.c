/* SPDX-License-Identifier: MIT */
/* cmd_sessions.c - make, list, show and remove sessions. */
#include <string.h>

#include "cli/cmd.h"

#define CREATE_MS 180000
#define REMOVE_MS 60000 /* one DELETE: the server waits up to 30 s for the engine */
#define REMOVE_TIMES 5  /* so often it is asked when the engine needs longer */
#define PAGE 200
#define LIST_MAX 100000
#define ANSWER_MAX 16

static const struct format_column list_columns[] = {
	{ "ID", "id" },
	{ "NAME", "name" },
	{ "STATE", "state" },
	{ "IMAGE", "image" },
	{ "MB", "limits.memory_mb" },
	{ "CPUS", "limits.cpus" },
	{ "CREATED", "created_at" },
	{ "EXPIRES", "expires_at" },
};

static const struct format_column record_columns[] = {
	{ "id", "id" },
	{ "token", "token" }, /* `create` alone has it */
	{ "name", "name" },
	{ "state", "state" },
	{ "reason", "reason" },
	{ "detail", "detail" },
	{ "image", "image" },
	{ "labels", "labels" },
	{ "memory MB", "limits.memory_mb" },
	{ "cpus", "limits.cpus" },
	{ "pids", "limits.pids" },
	{ "network", "network" },
	{ "isolation", "isolation" },
	{ "workspace", "workspace.kind" },
	{ "workspace name", "workspace.name" },
	{ "workspace MB", "workspace.size_mb" },
	{ "ttl s", "ttl_s" },
	{ "idle s", "idle_s" },
	{ "created", "created_at" },
	{ "expires", "expires_at" },
	{ "idle until", "idle_at" },
	{ "ended", "ended_at" },
};

/* ---- create ---- */

/* "named:NAME" and its size. */
static int put_workspace(json_t *body, const struct options *o, struct err *e)
{
	if (!o->workspace && o->workspace_mb < 0)
		return 0;
	const char *text = o->workspace ? o->workspace : "volume";
	const char *colon = strchr(text, ':');
	_cleanup_free_ char *kind = xstrndup(text, colon ? (size_t)(colon - text) : strlen(text));
	json_t *workspace = json_object();
	json_object_set_new(body, "workspace", workspace);
	put_number(workspace, "size_mb", o->workspace_mb);
	int rc = put_text(workspace, "kind", kind, e);
	return rc ? rc : put_text(workspace, "name", colon ? colon + 1 : NULL, e);
}

static void put_limits(json_t *body, const struct options *o)
{
	json_t *limits = json_object();
	put_number(limits, "memory_mb", o->memory_mb);
	if (o->cpu_milli >= 0)
		json_object_set_new(limits, "cpus", json_real((double)o->cpu_milli / 1000));
	put_number(limits, "pids", o->pids);
	if (json_object_size(limits))
		json_object_set(body, "limits", limits);
	json_decref(limits);
}

static int put_pairs(json_t *body, const char *key, const struct texts *texts, const char *option,
		     bool from_env, struct err *e)
{
	json_t *object = NULL;
	int rc = texts->count ? pairs_object(texts, option, from_env, &object, e) : 0;
	if (object)
		json_object_set_new(body, key, object);
	return rc;
}

static int create_body(const struct options *o, json_t **ret, struct err *e)
{
	_cleanup_json_ json_t *body = json_object();
	const struct {
		const char *key, *text;
	} texts[] = { { "image", o->image },
		      { "name", o->name },
		      { "network", o->network },
		      { "isolation", o->isolation } };
	int rc = 0;
	for (size_t i = 0; !rc && i < ARRAY_LEN(texts); i++)
		rc = put_text(body, texts[i].key, texts[i].text, e);
	if (!rc)
		rc = put_workspace(body, o, e);
	if (!rc)
		rc = put_pairs(body, "labels", &o->labels, "label", false, e);
	if (!rc)
		rc = put_pairs(body, "env", &o->env, "env", true, e);
	if (rc)
		return rc;
	put_limits(body, o);
	put_number(body, "ttl_s", o->ttl_s);
	put_number(body, "idle_s", o->idle_s);
	*ret = STEAL_PTR(body);
	return 0;
}

/* A create that is under way is awaited, so that its session can be removed: only the second signal leaves
 * it. */
static int create_signal(void *ctx, const struct client_reply *so_far)
{
	(void)so_far;
	const struct cli *cli = ctx;
	if (cli->interrupt.count > 1)
		return 0;
	note("waiting for the session that is being made; once more ends at once");
	return CREATE_MS;
}

static int keep_session(struct cli *cli, const json_t *object, struct err *e)
{
	const char *id = json_string_value(json_object_get(object, "id"));
	if (!id || !id_is("s_", id))
		return err_set(e, ERR_INTERNAL, "the server's reply names no session");
	snprintf(cli->session, sizeof(cli->session), "%s", id);
	return 0;
}

int session_create(struct cli *cli, json_t **ret, struct err *e)
{
	_cleanup_json_ json_t *body = NULL;
	int rc = create_body(&cli->opt, &body, e);
	if (rc)
		return rc;
	struct client_request rq = { .method = "POST",
				     .path = "/v1/sessions",
				     .body = body,
				     .timeout_ms = CREATE_MS,
				     .on_signal = create_signal,
				     .ctx = cli };
	_cleanup_reply_ struct client_reply reply = { 0 };
	rc = client_call(cli->client, &rq, &reply, e);
	if (!rc)
		rc = keep_session(cli, reply.body, e);
	if (!rc)
		*ret = STEAL_PTR(reply.body);
	return rc;
}

static void print_session(struct cli *cli, const json_t *session)
{
	if (cli->opt.json)
		format_json(stdout, session);
	else
		format_record(stdout, record_columns, ARRAY_LEN(record_columns), session, cli->color);
}

int cmd_create(struct cli *cli, struct err *e)
{
	_cleanup_json_ json_t *session = NULL;
	int rc = session_create(cli, &session, e);
	if (!rc)
		print_session(cli, session);
	return rc;
}

/* ---- find ---- */

int session_resolve(struct cli *cli, const char *text, struct err *e)
{
	if (id_is("s_", text)) {
		snprintf(cli->session, sizeof(cli->session), "%s", text);
		return 0;
	}
	_cleanup_free_ char *path = client_path("/v1/sessions?name=%s&limit=2", text);
	_cleanup_json_ json_t *page = NULL;
	int rc = call_json(cli, "GET", path, NULL, &page, e);
	if (rc)
		return rc;
	const json_t *found = json_object_get(page, "sessions");
	if (!json_array_size(found))
		return err_set(e, ERR_NOT_FOUND, "no session has the id or name \"%s\"", text);
	if (json_array_size(found) > 1)
		return err_set(e, ERR_CONFLICT,
			       "several sessions are called \"%s\": name one by its id (berth ls --name %s)",
			       text, text);
	return keep_session(cli, json_array_get(found, 0), e);
}

/* Sets a pair of the query; its value is escaped. */
static void add_query(char **path, const char *key, const char *value)
{
	if (!value)
		return;
	_cleanup_free_ char *escaped = client_path("%s", value);
	char *longer = xasprintf("%s&%s=%s", *path, key, escaped);
	free(*path);
	*path = longer;
}

static char *list_path(const struct options *o, int64_t count, const char *cursor)
{
	char *path = xasprintf("/v1/sessions?limit=%lld", (long long)count);
	add_query(&path, "state", o->state);
	add_query(&path, "name", o->name);
	for (size_t i = 0; i < o->labels.count; i++)
		add_query(&path, "label", o->labels.at[i]);
	add_query(&path, "cursor", cursor);
	return path;
}

/* Adds a page to `all`; *cursor becomes where the next one begins, NULL when there is none. */
static int add_page(struct cli *cli, const struct options *o, int64_t count, char **cursor, json_t *all,
		    struct err *e)
{
	_cleanup_free_ char *path = list_path(o, count, *cursor);
	_cleanup_json_ json_t *page = NULL;
	int rc = call_json(cli, "GET", path, NULL, &page, e);
	if (rc)
		return rc;
	json_t *sessions = json_object_get(page, "sessions");
	if (json_array_extend(all, sessions))
		return err_set(e, ERR_INTERNAL, "the server's reply holds no list of sessions");
	const char *next = json_string_value(json_object_get(page, "next"));
	free(*cursor);
	/* A page without sessions that promises another would never end. */
	*cursor = next && json_array_size(sessions) ? xstrdup(next) : NULL;
	return 0;
}

int session_list(struct cli *cli, const struct options *o, json_t **ret_array, struct err *e)
{
	int64_t left = o->limit < 0 ? LIST_MAX : o->limit;
	_cleanup_json_ json_t *all = json_array();
	_cleanup_free_ char *cursor = NULL;
	do {
		size_t before = json_array_size(all);
		int rc = add_page(cli, o, MIN(left, PAGE), &cursor, all, e);
		if (rc)
			return rc;
		left -= (int64_t)(json_array_size(all) - before);
	} while (cursor && left > 0);
	*ret_array = STEAL_PTR(all);
	return 0;
}

int cmd_list(struct cli *cli, struct err *e)
{
	_cleanup_json_ json_t *sessions = NULL;
	int rc = session_list(cli, &cli->opt, &sessions, e);
	if (rc)
		return rc;
	const json_t *session = NULL;
	size_t i = 0;
	if (cli->opt.json) {
		format_json(stdout, sessions);
	} else if (cli->opt.quiet) {
		json_array_foreach (sessions, i, session) {
			_cleanup_free_ char *id = format_value(json_object_get(session, "id"));
			puts(id);
		}
	} else {
		format_table(stdout, list_columns, ARRAY_LEN(list_columns), sessions, cli->color);
	}
	return 0;
}

int cmd_show(struct cli *cli, struct err *e)
{
	_cleanup_json_ json_t *session = NULL;
	int rc = session_resolve(cli, cli->opt.operands.at[0], e);
	if (rc)
		return rc;
	_cleanup_free_ char *path = client_path("/v1/sessions/%s", cli->session);
	rc = call_json(cli, "GET", path, NULL, &session, e);
	if (!rc)
		print_session(cli, session);
	return rc;
}

/* ---- remove ---- */

int session_remove(struct cli *cli, const char *id, struct err *e)
{
	_cleanup_free_ char *path = client_path("/v1/sessions/%s", id);
	struct client_request rq = { .method = "DELETE", .path = path, .timeout_ms = REMOVE_MS };
	for (int i = 0; i < REMOVE_TIMES; i++) {
		_cleanup_reply_ struct client_reply reply = { 0 };
		int rc = client_call(cli->client, &rq, &reply, e);
		/* Not found, once we have been told that it is stopping: it is gone. */
		if (i && rc == -ERR_NOT_FOUND)
			return 0;
		if (rc || reply.status != 202)
			return rc;
		note("%s is stopping; the engine takes its time", id);
	}
	return err_set(e, ERR_TIMEOUT, "%s is still stopping: the engine does not end it", id);
}

static int confirm(const struct cli *cli, size_t count, struct err *e)
{
	if (cli->opt.yes || !count)
		return 0;
	if (!isatty(STDIN_FILENO))
		return err_set(e, ERR_INVALID, "rm --all needs --yes where nobody can be asked");
	fprintf(stderr, "Remove %zu session%s? [y/N] ", count, count == 1 ? "" : "s");
	char answer[ANSWER_MAX] = "";
	if (!fgets(answer, sizeof(answer), stdin) || (*answer != 'y' && *answer != 'Y'))
		return err_set(e, ERR_INVALID, "nothing is removed");
	return 0;
}

/* Says each failure and goes on; *first is the first of them. */
static size_t remove_each(struct cli *cli, const json_t *ids, struct err *first)
{
	size_t failed = 0, i = 0;
	const json_t *id = NULL;
	json_array_foreach (ids, i, id) {
		const char *text = json_string_value(id);
		struct err why;
		if (!session_remove(cli, text, &why)) {
			if (!cli->opt.json)
				puts(text);
			continue;
		}
		err_wrap(&why, "%s", text);
		if (json_array_size(ids) > 1)
			say("%s", why.msg);
		if (!failed++)
			*first = why;
	}
	return failed;
}

static int all_ids(struct cli *cli, json_t **ret, struct err *e)
{
	_cleanup_json_ json_t *sessions = NULL;
	int rc = session_list(cli, &cli->opt, &sessions, e);
	if (!rc)
		rc = confirm(cli, json_array_size(sessions), e);
	if (rc)
		return rc;
	json_t *ids = json_array(), *session = NULL;
	size_t i = 0;
	json_array_foreach (sessions, i, session) {
		json_array_append(ids, json_object_get(session, "id"));
	}
	*ret = ids;
	return 0;
}

static int named_ids(struct cli *cli, json_t **ret, struct err *e)
{
	_cleanup_json_ json_t *ids = json_array();
	for (size_t i = 0; i < cli->opt.operands.count; i++) {
		int rc = session_resolve(cli, cli->opt.operands.at[i], e);
		if (rc)
			return rc;
		json_array_append_new(ids, json_string(cli->session));
	}
	*ret = STEAL_PTR(ids);
	return 0;
}

int cmd_remove(struct cli *cli, struct err *e)
{
	if (cli->opt.all == (cli->opt.operands.count > 0))
		return err_set(e, ERR_INVALID, "name the sessions to remove, or give --all");
	_cleanup_json_ json_t *ids = NULL;
	int rc = cli->opt.all ? all_ids(cli, &ids, e) : named_ids(cli, &ids, e);
	if (rc)
		return rc;
	*cli->session = 0; /* the messages name each */
	size_t failed = remove_each(cli, ids, e), count = json_array_size(ids);
	if (failed && count > 1)
		return err_set(e, e->code, "%zu of %zu sessions are not removed", failed, count);
	if (failed)
		return -(int)e->code;
	if (cli->opt.json) {
		_cleanup_json_ json_t *done = json_pack("{s:O}", "removed", ids);
		format_json(stdout, done);
	}
	return 0;
}
