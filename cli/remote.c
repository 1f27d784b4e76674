/* SPDX-License-Identifier: MIT */
#include "cli/remote.h"

#include <errno.h>
#include <string.h>

#include "base/base64.h"
#include "base/utf8.h"
#include "cli/pipes.h"

#define BEGIN_MS 60000

char *remote_query(const char *path)
{
	if (utf8_is_valid(path, strlen(path)))
		return client_path("path=%s", path);
	_cleanup_free_ char *text = base64_encode(path, strlen(path));
	return client_path("path_b64=%s", text);
}

void remote_put_path(json_t *object, const char *path)
{
	if (utf8_is_valid(path, strlen(path))) {
		json_object_set_new(object, "path", json_string(path));
		return;
	}
	_cleanup_free_ char *text = base64_encode(path, strlen(path));
	json_object_set_new(object, "path_b64", json_string(text));
}

/* An element of a list of paths. */
static json_t *path_element(const char *path)
{
	if (utf8_is_valid(path, strlen(path)))
		return json_string(path);
	_cleanup_free_ char *text = base64_encode(path, strlen(path));
	return json_pack("{s:s}", "b64", text);
}

int remote_type(struct cli *cli, const char *path, char ret[16], struct err *e)
{
	_cleanup_free_ char *url = client_path("/v1/sessions/%s/files/stat", cli->session);
	_cleanup_json_ json_t *body = json_pack("{s:[o]}", "paths", path_element(path));
	_cleanup_json_ json_t *reply = NULL;
	int rc = call_json(cli, "POST", url, body, &reply, e);
	if (rc)
		return rc;
	const json_t *entry = json_array_get(reply, 0);
	const char *type = json_string_value(json_object_get(entry, "type"));
	if (!json_is_object(entry))
		return err_set(e, ERR_INTERNAL, "the server's reply tells nothing of the path");
	snprintf(ret, 16, "%s", type ? type : "");
	return 0;
}

/* ---- bytes ---- */

struct transfer {
	struct cli *cli;
	int fd;
	struct progress progress;
};

static int take(void *ctx, const struct client_reply *so_far, const char *bytes, size_t len, struct err *e)
{
	struct transfer *t = ctx;
	t->progress.total = so_far->length;
	progress_add(&t->progress, len);
	return pipes_write(t->fd, &t->cli->interrupt, bytes, len, e);
}

static ssize_t give(void *ctx, char *room, size_t size, struct err *e)
{
	struct transfer *t = ctx;
	ssize_t n = pipes_read_some(t->fd, &t->cli->interrupt, room, size, e);
	if (n > 0)
		progress_add(&t->progress, (size_t)n);
	return n;
}

static int move(struct transfer *t, struct client_request *rq, const char *what, int64_t total, bool quiet,
		struct err *e)
{
	_cleanup_reply_ struct client_reply reply = { 0 };
	rq->timeout_ms = BEGIN_MS;
	rq->idle_ms = REMOTE_IDLE_MS;
	rq->ctx = t;
	progress_begin(&t->progress, what, total, quiet);
	int rc = client_call(t->cli->client, rq, &reply, e);
	progress_end(&t->progress);
	return rc;
}

int remote_get(struct cli *cli, const char *path, int fd, const char *what, bool quiet, struct err *e)
{
	struct transfer t = { .cli = cli, .fd = fd };
	struct client_request rq = { .method = "GET", .path = path, .on_bytes = take };
	return move(&t, &rq, what, -1, quiet, e);
}

int remote_put(struct cli *cli, const char *path, int fd, int64_t length, const char *what, bool quiet,
	       struct err *e)
{
	struct transfer t = { .cli = cli, .fd = fd };
	struct client_request rq = { .method = "PUT", .path = path, .on_read = give, .read_length = length };
	return move(&t, &rq, what, length, quiet, e);
}
