/* SPDX-License-Identifier: MIT */
/* One request and its reply over libcurl: handles with their connections kept open, deadlines, bounds,
 * repetition. */
#include <assert.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "runtime/engine/engine_json.h"
#include "runtime/engine/engine_metrics.h"
#include "runtime/engine/engine_priv.h"

/* ---- handles ---- */

/* libcurl of Debian 12 opens its sockets without SOCK_CLOEXEC. */
static curl_socket_t open_socket(void *ctx, curlsocktype purpose, struct curl_sockaddr *a)
{
	(void)ctx;
	(void)purpose;
	return socket(a->family, a->socktype | SOCK_CLOEXEC, a->protocol);
}

void engine_handle_setup(struct engine *g, CURL *h)
{
	curl_easy_reset(h); /* keeps its open connection */
	curl_easy_setopt(h, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(h, CURLOPT_OPENSOCKETFUNCTION, open_socket);
	curl_easy_setopt(h, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(h, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(h, CURLOPT_PROXY, ""); /* http_proxy of the environment is not for the engine */
	curl_easy_setopt(h, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(h, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(h, CURLOPT_MAXCONNECTS, 1L);
	curl_easy_setopt(h, CURLOPT_CONNECTTIMEOUT_MS, (long)ENGINE_CONNECT_MS);
	if (*g->address.path)
		curl_easy_setopt(h, CURLOPT_UNIX_SOCKET_PATH, g->address.path);
	if (g->address.tls) {
		curl_easy_setopt(h, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
		curl_easy_setopt(h, CURLOPT_CAINFO, g->ca);
		curl_easy_setopt(h, CURLOPT_SSLCERT, g->cert);
		curl_easy_setopt(h, CURLOPT_SSLKEY, g->key);
	}
}

static CURL *handle_take(struct engine *g)
{
	CURL *h = NULL;
	pthread_mutex_lock(&g->lock);
	if (g->idle_count)
		h = g->idle[--g->idle_count];
	pthread_mutex_unlock(&g->lock);
	h = h ? h : curl_easy_init();
	if (!h)
		abort(); /* only when memory is gone, as in xcalloc */
	engine_handle_setup(g, h);
	return h;
}

static void handle_give(struct engine *g, CURL *h)
{
	pthread_mutex_lock(&g->lock);
	bool keep = g->idle_count < ENGINE_POOL_MAX;
	if (keep)
		g->idle[g->idle_count++] = h;
	pthread_mutex_unlock(&g->lock);
	if (!keep)
		curl_easy_cleanup(h);
}

/* ---- one exchange ---- */

struct sending {
	const char *at;
	size_t left;
};

/*
 * The body goes by this callback and not by POSTFIELDS, and there is no seek callback, on purpose:
 * when a kept connection turns out dead libcurl sends a request again by itself. What has a body
 * (create, exec) may have reached the engine by then, and a body that cannot be rewound stops it.
 */
static size_t on_send(char *out, size_t size, size_t count, void *ctx)
{
	struct sending *s = ctx;
	size_t n = MIN(size * count, s->left);
	memcpy(out, s->at, n);
	s->at += n;
	s->left -= n;
	return n;
}

static size_t on_receive(char *bytes, size_t size, size_t count, void *ctx)
{
	struct err ignored; /* a short count makes it CURLE_WRITE_ERROR */
	return buf_add(ctx, bytes, size * count, &ignored) ? 0 : size * count;
}

static void set_verb(CURL *h, const struct engine_request *rq, struct sending *body)
{
	switch (rq->verb) {
	case ENGINE_GET:
		curl_easy_setopt(h, CURLOPT_HTTPGET, 1L);
		break;
	case ENGINE_HEAD:
		curl_easy_setopt(h, CURLOPT_NOBODY, 1L);
		break;
	case ENGINE_DELETE:
		curl_easy_setopt(h, CURLOPT_CUSTOMREQUEST, "DELETE");
		break;
	case ENGINE_POST:
		curl_easy_setopt(h, CURLOPT_POST, 1L);
		curl_easy_setopt(h, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)rq->body_len);
		curl_easy_setopt(h, CURLOPT_READFUNCTION, on_send);
		curl_easy_setopt(h, CURLOPT_READDATA, body);
		break;
	}
}

int engine_silence_error(struct engine *g, struct err *e)
{
	atomic_store(&g->stale, true);
	return err_set(e, ERR_TIMEOUT, "the engine at %s does not answer in time", g->address.text);
}

int engine_transport_error(struct engine *g, CURL *h, CURLcode code, struct err *e)
{
	curl_off_t connected_us = 0;
	long sys = 0;
	if (code == CURLE_WRITE_ERROR)
		return err_set(e, ERR_ENGINE, "the engine's reply is too large");
	curl_easy_getinfo(h, CURLINFO_PRETRANSFER_TIME_T, &connected_us);
	curl_easy_getinfo(h, CURLINFO_OS_ERRNO, &sys);
	if (code == CURLE_OPERATION_TIMEDOUT && connected_us > 0)
		return engine_silence_error(g, e);
	atomic_store(&g->stale, true);
	const char *why =
		sys && code == CURLE_COULDNT_CONNECT ? strerrordesc_np((int)sys) : curl_easy_strerror(code);
	err_set(e, ERR_UNAVAILABLE, "the engine at %s cannot be reached: %s", g->address.text,
		why ? why : "?");
	e->retry_after_s = 5;
	return -(int)e->code;
}

/* The URL of a request under the API version that was negotiated last. */
static char *url_of(struct engine *g, const struct engine_request *rq)
{
	struct engine_facts f;
	engine_get_facts(g, &f);
	const char *prefixes[] = {
		[ENGINE_API] = f.prefix, [ENGINE_API_NATIVE] = f.native_prefix, [ENGINE_API_BARE] = ""
	};
	return xasprintf("%s%s%s", g->address.base, prefixes[rq->api], rq->path);
}

static struct curl_slist *headers_of(const struct engine_request *rq)
{
	/* libcurl waits a second for "100 Continue" on larger bodies: not asked for. */
	struct curl_slist *list = curl_slist_append(NULL, "Expect:");
	if (rq->verb != ENGINE_POST)
		return list;
	_cleanup_free_ char *type = xasprintf("Content-Type: %s", rq->type ? rq->type : "application/json");
	return curl_slist_append(list, type);
}

static int exchange(struct engine *g, const struct engine_request *rq, struct engine_reply *ret,
		    struct err *e)
{
	struct sending body = { rq->body, rq->body_len };
	_cleanup_reply_ struct engine_reply reply = { .body = BUF_INIT(rq->reply_max ? rq->reply_max
										     : ENGINE_REPLY_MAX) };
	_cleanup_free_ char *url = url_of(g, rq);
	struct curl_slist *headers = headers_of(rq);
	CURL *h = handle_take(g);
	curl_easy_setopt(h, CURLOPT_URL, url);
	curl_easy_setopt(h, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(h, CURLOPT_TIMEOUT_MS, (long)MAX(clock_left_ms(rq->deadline_ms), 1));
	curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, on_receive);
	curl_easy_setopt(h, CURLOPT_WRITEDATA, &reply.body);
	set_verb(h, rq, &body);
	CURLcode code = curl_easy_perform(h);
	int r = code ? engine_transport_error(g, h, code, e) : 0;
	curl_easy_getinfo(h, CURLINFO_RESPONSE_CODE, &reply.status);
	handle_give(g, h);
	curl_slist_free_all(headers);
	if (!r) {
		*ret = reply;
		reply.body = BUF_INIT(0);
	}
	return r;
}

/* ---- a call: exchanges until one counts ---- */

/* Only what the engine may be asked twice; a version it refused was not acted on. */
static bool may_repeat(const struct engine_request *rq, int r, const struct engine_reply *reply)
{
	if (!r)
		return rq->api != ENGINE_API_BARE &&
		       engine_json_wants_version(reply->status, reply->body.data, reply->body.len);
	return r == -ERR_UNAVAILABLE && rq->verb != ENGINE_POST && clock_left_ms(rq->deadline_ms) > 0;
}

static int call(struct engine *g, const struct engine_request *rq, struct engine_reply *ret, struct err *e)
{
	/* Bare paths are those of the negotiation itself. */
	bool bare = rq->api == ENGINE_API_BARE;
	int r = !bare && atomic_load(&g->stale) ? engine_negotiate(g, rq->deadline_ms, e) : 0;
	r = r ? r : exchange(g, rq, ret, e);
	if (!may_repeat(rq, r, ret))
		return r;
	engine_reply_clear(ret);
	r = bare ? 0 : engine_negotiate(g, rq->deadline_ms, e);
	return r ? r : exchange(g, rq, ret, e);
}

int engine_call(struct engine *g, const struct engine_request *rq, struct engine_reply *ret, struct err *e)
{
	struct engine_request q = *rq;
	_cleanup_reply_ struct engine_reply reply = { 0 };
	if (!q.deadline_ms)
		q.deadline_ms = clock_mono_ms() + g->call_timeout_ms;
	int64_t started_us = clock_mono_us();
	int r = call(g, &q, &reply, e);
	if (!r && reply.status >= 400)
		r = engine_json_error(reply.status, reply.body.data, reply.body.len, e);
	else if (!r && (reply.status < 200 || (reply.status >= 300 && reply.status != 304)))
		r = err_set(e, ERR_ENGINE, "the engine answers with status %ld", reply.status);
	engine_metrics_count(q.verb, q.path, started_us, r);
	if (r)
		return r;
	*ret = reply;
	reply.body = BUF_INIT(0);
	return 0;
}

int engine_call_json(struct engine *g, const struct engine_request *rq, json_t **ret_json, struct err *e)
{
	_cleanup_reply_ struct engine_reply reply = { 0 };
	int r = engine_call(g, rq, &reply, e);
	if (r || !ret_json)
		return r;
	return engine_json_parse(reply.body.data ? reply.body.data : "", reply.body.len, ret_json, e);
}

int engine_post(struct engine *g, const char *path, const json_t *body, json_t **ret_json, struct err *e)
{
	_cleanup_free_ char *text = body ? json_text(body) : NULL;
	const struct engine_request rq = {
		.verb = ENGINE_POST, .path = path, .body = text, .body_len = text ? strlen(text) : 0
	};
	return engine_call_json(g, &rq, ret_json, e);
}

int engine_get(struct engine *g, const char *path, json_t **ret_json, struct err *e)
{
	const struct engine_request rq = { .verb = ENGINE_GET, .path = path };
	return engine_call_json(g, &rq, ret_json, e);
}

/* ---- paths ---- */

int engine_check_name(const char *what, const char *name, struct err *e)
{
	static const char alphabet[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
	size_t len = name ? strlen(name) : 0;
	/* One character is refused by Docker, and dots alone would be a path. */
	if (len < 2 || len >= ENGINE_NAME_SIZE || strspn(name, alphabet) != len || strspn(name, ".") == len)
		return err_field(e, what, "must be 2 to %d letters, digits, '_', '.' or '-'",
				 ENGINE_NAME_SIZE - 1);
	return 0;
}

int engine_path_query(struct buf *path, const char *key, const char *value, struct err *e)
{
	char *escaped = curl_easy_escape(NULL, value, 0);
	if (!escaped)
		abort();
	bool first = !memchr(path->data, '?', path->len);
	int r = buf_addf(path, e, "%c%s=%s", first ? '?' : '&', key, escaped);
	curl_free(escaped);
	return r;
}

char *engine_label_filter(const char *key, const char *value, bool events)
{
	_cleanup_free_ char *label = xasprintf("%s=%s", key, value);
	_cleanup_json_ json_t *filter = json_pack("{s:[s]}", "label", label);
	assert(filter); /* labels are our own, in UTF-8 */
	if (events)
		json_object_set_new(filter, "type", json_pack("[s]", "container"));
	return json_text(filter);
}
