/* SPDX-License-Identifier: MIT */
#include "cli/client.h"

#include <curl/curl.h>
#include <stdarg.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"

#define REPLY_MAX ((size_t)16 << 20)
#define LINE_MAX_BYTES ((size_t)1 << 20)
#define CONNECT_MS 5000
#define POLL_MS 1000
#define UPLOAD_PIECE (256L * 1024)

struct client {
	const char *address, *token;
	struct interrupt *interrupt;
	bool loopback;
};

/* One call under way. */
struct transfer {
	struct client *client;
	const struct client_request *rq;
	struct client_reply *reply;
	CURL *easy;
	struct buf body; /* the reply, or the line that is not whole yet */
	int64_t deadline_ms, heard_ms;
	int64_t end_ms; /* what a signal has left of it */
	int rc;         /* of the line function or of the bound; then *e is filled */
	struct err *e;
	char curl_text[CURL_ERROR_SIZE];
};

static inline void easy_free(CURL **slot)
{
	curl_easy_cleanup(*slot);
}

static inline void url_free(CURLU **slot)
{
	curl_url_cleanup(*slot);
}

static inline void slist_free(struct curl_slist **slot)
{
	curl_slist_free_all(*slot);
}

static inline void multi_free(CURLM **slot)
{
	curl_multi_cleanup(*slot);
}

/* A proxy from the environment is not meant for this machine itself, and would be shown the token. */
static bool is_loopback(const char *address)
{
	static const char *const names[] = { "localhost", "127.0.0.1", "[::1]" };
	_cleanup_(url_free) CURLU *url = curl_url();
	char *host = NULL;
	bool found = false;
	if (url && !curl_url_set(url, CURLUPART_URL, address, 0) &&
	    !curl_url_get(url, CURLUPART_HOST, &host, 0))
		for (size_t i = 0; i < ARRAY_LEN(names); i++)
			found |= !strcmp(host, names[i]);
	curl_free(host);
	return found;
}

int client_new(const char *address, const char *token, struct client **ret, struct err *e)
{
	if (curl_global_init(CURL_GLOBAL_DEFAULT))
		return err_set(e, ERR_INTERNAL, "libcurl cannot be used");
	struct client *c = xcalloc(1, sizeof(*c));
	*c = (struct client){ .address = address, .token = token, .loopback = is_loopback(address) };
	*ret = c;
	return 0;
}

void client_free(struct client *c)
{
	if (!c)
		return;
	free(c);
	curl_global_cleanup();
}

void client_watch(struct client *c, struct interrupt *i)
{
	c->interrupt = i;
}

void client_reply_clear(struct client_reply *r)
{
	json_decref(r->body);
	*r = (struct client_reply){ 0 };
}

/* A newline ends a line: hand each whole one on, keep the rest. */
static int take_lines(struct transfer *t)
{
	size_t used = 0;
	int rc = 0;
	for (;;) {
		const char *at = t->body.data + used;
		const char *end = t->body.len > used ? memchr(at, '\n', t->body.len - used) : NULL;
		if (!end)
			break;
		_cleanup_json_ json_t *line = NULL;
		rc = json_text_parse(at, (size_t)(end - at), &line, t->e);
		if (rc)
			return err_set(t->e, ERR_INTERNAL, "the stream holds a line that is not JSON");
		rc = t->rq->on_line(t->rq->ctx, line, t->e);
		if (rc)
			return rc;
		used = (size_t)(end + 1 - t->body.data);
	}
	buf_consume(&t->body, used);
	return 0;
}

static bool is_stream(const struct transfer *t)
{
	return t->rq->on_line && t->reply->status == 200;
}

static bool is_raw(const struct transfer *t)
{
	return t->rq->on_bytes && t->reply->status >= 200 && t->reply->status < 300;
}

/* The next bytes of the request's body, for libcurl. */
static size_t on_read(char *room, size_t one, size_t count, void *ctx)
{
	struct transfer *t = ctx;
	ssize_t n = t->rq->on_read(t->rq->ctx, room, one * count, t->e);
	t->heard_ms = clock_mono_ms();
	if (n >= 0)
		return (size_t)n;
	t->rc = (int)n;
	return CURL_READFUNC_ABORT;
}

static size_t on_bytes(char *bytes, size_t one, size_t count, void *ctx)
{
	struct transfer *t = ctx;
	size_t len = one * count;
	if (is_raw(t)) {
		t->rc = t->rq->on_bytes(t->rq->ctx, t->reply, bytes, len, t->e);
		t->heard_ms = clock_mono_ms();
		return t->rc ? 0 : len;
	}
	if (t->body.len + len > (is_stream(t) ? LINE_MAX_BYTES : REPLY_MAX)) {
		t->rc = err_set(t->e, ERR_INTERNAL, "the server's reply is too large");
		return 0;
	}
	t->rc = buf_add(&t->body, bytes, len, t->e);
	if (!t->rc && is_stream(t))
		t->rc = take_lines(t);
	/* Not before: the line function may have stood behind a slow reader for long. */
	t->heard_ms = clock_mono_ms();
	return t->rc ? 0 : len;
}

/* Takes the status and the exec's id as soon as they are there: a signal may need the id long before the end.
 */
static size_t on_header(char *line, size_t one, size_t count, void *ctx)
{
	static const char name[] = "X-Exec-Id:";
	struct transfer *t = ctx;
	size_t len = one * count, skip = sizeof(name) - 1;
	long status = 0;
	curl_off_t length = -1;
	if (!curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status))
		t->reply->status = (int)status;
	if (!curl_easy_getinfo(t->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length))
		t->reply->length = length;
	if (len <= skip || strncasecmp(line, name, skip) != 0)
		return len;
	while (skip < len && line[skip] == ' ')
		skip++;
	size_t id_len = strcspn(line + skip, "\r\n");
	if (id_len < ID_SIZE)
		snprintf(t->reply->exec_id, ID_SIZE, "%.*s", (int)id_len, line + skip);
	return len;
}

static struct curl_slist *headers_of(const struct client *c, const struct client_request *rq)
{
	struct curl_slist *list = NULL;
	if (!rq->on_bytes)
		list = curl_slist_append(list, "Accept: application/json");
	/* A refusal of raw bytes shall come before they are sent. Elsewhere the wait for "100 Continue" only
	 * costs a round trip, or a second where nobody sends it. */
	list = curl_slist_append(list, rq->on_read ? "Expect: 100-continue" : "Expect:");
	if (rq->body)
		list = curl_slist_append(list, "Content-Type: application/json");
	if (rq->on_read)
		list = curl_slist_append(list, "Content-Type: application/octet-stream");
	if (c->token) {
		_cleanup_free_ char *header = xasprintf("Authorization: Bearer %s", c->token);
		list = curl_slist_append(list, header);
	}
	return list;
}

static void set_up(struct transfer *t, const char *url, const char *body, struct curl_slist *headers)
{
	CURL *h = t->easy;
	curl_easy_setopt(h, CURLOPT_URL, url);
	curl_easy_setopt(h, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(h, CURLOPT_CUSTOMREQUEST, t->rq->method);
	curl_easy_setopt(h, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(h, CURLOPT_USERAGENT, "berth/" BERTH_VERSION);
	curl_easy_setopt(h, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(h, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(h, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
	curl_easy_setopt(h, CURLOPT_ERRORBUFFER, t->curl_text);
	curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, on_bytes);
	curl_easy_setopt(h, CURLOPT_WRITEDATA, t);
	curl_easy_setopt(h, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(h, CURLOPT_HEADERDATA, t);
	if (t->client->loopback)
		curl_easy_setopt(h, CURLOPT_PROXY, "");
	if (t->rq->on_read) {
		curl_easy_setopt(h, CURLOPT_UPLOAD, 1L);
		curl_easy_setopt(h, CURLOPT_READFUNCTION, on_read);
		curl_easy_setopt(h, CURLOPT_READDATA, t);
		curl_easy_setopt(h, CURLOPT_INFILESIZE_LARGE, (curl_off_t)t->rq->read_length);
		curl_easy_setopt(h, CURLOPT_UPLOAD_BUFFERSIZE, UPLOAD_PIECE);
	}
	if (body) {
		curl_easy_setopt(h, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)strlen(body));
		curl_easy_setopt(h, CURLOPT_POSTFIELDS, body);
	}
}

/* What libcurl says, as what the caller can do about it. */
static int from_curl(const struct transfer *t, CURLcode code)
{
	const char *address = t->client->address;
	const char *text = t->curl_text[0] ? t->curl_text : curl_easy_strerror(code);
	static const CURLcode absent[] = { CURLE_COULDNT_CONNECT, CURLE_COULDNT_RESOLVE_HOST,
					   CURLE_COULDNT_RESOLVE_PROXY };
	if (t->rc)
		return t->rc;
	for (size_t i = 0; i < ARRAY_LEN(absent); i++)
		if (code == absent[i])
			return err_set(t->e, ERR_UNAVAILABLE,
				       "no Berth answers at %s: start it (make up, or systemctl start "
				       "berthd) or name "
				       "another by --address or BERTH_ADDRESS",
				       address);
	if (code == CURLE_OPERATION_TIMEDOUT)
		return err_set(t->e, ERR_UNAVAILABLE, "%s cannot be reached in %d s: is the address right?",
			       address, CONNECT_MS / 1000);
	return err_set(t->e, ERR_UNAVAILABLE, "the connection to %s broke: %s", address, text);
}

static int late(const struct transfer *t)
{
	return err_set(t->e, ERR_TIMEOUT, "%s does not answer in time", t->client->address);
}

/* How long one may wait for the next thing; 0: a deadline has passed. */
static int wait_ms(const struct transfer *t)
{
	bool moves = is_stream(t) || t->rq->on_read || is_raw(t);
	int64_t deadline = moves ? t->heard_ms + t->rq->idle_ms : t->deadline_ms;
	int64_t left = clock_left_ms(MIN(deadline, t->end_ms));
	return (int)MIN(left, POLL_MS);
}

/* True when the call is to end. */
static bool signal_ends(struct transfer *t)
{
	struct interrupt *i = t->client->interrupt;
	if (!i || !interrupt_take(i))
		return false;
	int go_on_ms = t->rq->on_signal ? t->rq->on_signal(t->rq->ctx, t->reply) : 0;
	t->end_ms = MIN(t->end_ms, clock_mono_ms() + go_on_ms);
	return !go_on_ms;
}

static int run(struct transfer *t, CURLM *multi)
{
	struct interrupt *i = t->client->interrupt;
	struct curl_waitfd watched = { .fd = i ? i->fd : -1, .events = CURL_WAIT_POLLIN };
	for (;;) {
		int running = 0, queued = 0;
		CURLMcode mc = curl_multi_perform(multi, &running);
		if (mc)
			return err_set(t->e, ERR_INTERNAL, "libcurl: %s", curl_multi_strerror(mc));
		const CURLMsg *done = curl_multi_info_read(multi, &queued);
		if (done)
			return done->data.result ? from_curl(t, done->data.result) : 0;
		int wait = wait_ms(t);
		if (!wait)
			return late(t);
		curl_multi_poll(multi, &watched, i ? 1 : 0, wait, NULL);
		if (signal_ends(t))
			return err_set(t->e, ERR_TIMEOUT, "interrupted");
	}
}

/* Wire names and HTTP statuses back to codes: what the server says by name, else by status. */
static enum err_code code_of(const char *name, int status)
{
	for (int code = 1; name && code < ERR_COUNT_; code++)
		if (!strcmp(err_name(code), name))
			return code;
	for (int code = 1; code < ERR_COUNT_; code++)
		if (err_http_status(code) == status)
			return code;
	return ERR_INTERNAL;
}

static int from_server(const struct transfer *t)
{
	const json_t *error = json_object_get(t->reply->body, "error");
	const char *name = json_string_value(json_object_get(error, "code"));
	const char *text = json_string_value(json_object_get(error, "message"));
	const char *field = json_string_value(json_object_get(error, "field"));
	if (!name || !text)
		return err_set(t->e, ERR_INTERNAL,
			       "%s answers HTTP %d, but not as Berth does: is the address right?",
			       t->client->address, t->reply->status);
	enum err_code code = code_of(name, t->reply->status);
	if (code == ERR_UNAUTHORIZED)
		return err_set(
			t->e, code,
			"%s does not take this token: check --token, BERTH_TOKEN or the config file (%s)",
			t->client->address, text);
	int rc = err_set(t->e, code, "%s", text);
	if (field)
		snprintf(t->e->field, sizeof(t->e->field), "%s", field);
	return rc;
}

static int finish(struct transfer *t)
{
	bool ok = t->reply->status >= 200 && t->reply->status < 300;
	if (is_raw(t))
		return 0;
	if (is_stream(t))
		return t->body.len ? err_set(t->e, ERR_UNAVAILABLE, "the stream ends in the middle of a line")
				   : 0;
	struct err ignored;
	if (t->body.len && json_text_parse(t->body.data, t->body.len, &t->reply->body, &ignored) && ok)
		return err_set(t->e, ERR_INTERNAL, "%s answers, but not with JSON: is the address right?",
			       t->client->address);
	return ok ? 0 : from_server(t);
}

int client_call(struct client *c, const struct client_request *rq, struct client_reply *ret, struct err *e)
{
	*ret = (struct client_reply){ .length = -1 };
	int64_t now = clock_mono_ms();
	_cleanup_free_ char *url = xasprintf("%s%s", c->address, rq->path);
	_cleanup_free_ char *body = rq->body ? json_text(rq->body) : NULL;
	_cleanup_(slist_free) struct curl_slist *headers = headers_of(c, rq);
	_cleanup_(multi_free) CURLM *multi = curl_multi_init();
	_cleanup_(easy_free) CURL *easy = curl_easy_init();
	struct transfer t = { .client = c,
			      .rq = rq,
			      .reply = ret,
			      .easy = easy,
			      .body = BUF_INIT(REPLY_MAX),
			      .e = e,
			      .heard_ms = now,
			      .deadline_ms = now + rq->timeout_ms,
			      .end_ms = INT64_MAX };
	if (!headers || !multi || !easy)
		return err_set(e, ERR_INTERNAL, "libcurl is out of memory");
	set_up(&t, url, body, headers);
	curl_multi_add_handle(multi, easy);
	int rc = run(&t, multi);
	if (!rc)
		rc = finish(&t);
	curl_multi_remove_handle(multi, easy);
	buf_clear(&t.body);
	return rc;
}

char *client_path(const char *format, ...)
{
	char *path = xstrdup("");
	va_list ap;
	va_start(ap, format);
	for (const char *at = format; *at;) {
		const char *hole = strstr(at, "%s");
		size_t len = hole ? (size_t)(hole - at) : strlen(at);
		char *text = hole ? curl_easy_escape(NULL, va_arg(ap, const char *), 0) : NULL;
		char *longer = xasprintf("%s%.*s%s", path, (int)len, at, text ? text : "");
		curl_free(text);
		free(path);
		path = longer;
		at += len + (hole ? 2 : 0);
	}
	va_end(ap);
	return path;
}
