/* SPDX-License-Identifier: MIT */
/*
 * A request as it comes off the wire: "METHOD TARGET\nName: value\n...\n\nBODY".
 *
 * What is let through keeps the promises that handlers rely on: segments without slashes, dots and control
 * characters that mean the same when they are escaped and read again; a body with one end; a Host that is
 * ours; a command or an argv, within its bounds, whose output lines are one line each.
 */
#include <string.h>

#include "api/dispatch.h"
#include "api/exec_json.h"
#include "api/routes.h"
#include "api/session_json.h"
#include "base/base64.h"
#include "base/json.h"
#include "base/utf8.h"
#include "tests/fuzz/fuzz.h"

#define MAX_S 1800

static void check_text(const char *text)
{
	MUST(utf8_is_valid(text, strlen(text)));
	for (const unsigned char *c = (const unsigned char *)text; *c; c++)
		MUST(*c >= ' ' && *c != 0x7f);
}

static void check_error(const struct err *e)
{
	MUST(e->code > ERR_NONE && e->code < ERR_COUNT_ && *e->msg);
	check_text(e->msg);
	check_text(e->field);
}

/* Every byte escaped. */
static void escape_into(struct buf *out, const char *text)
{
	struct err e;
	for (const unsigned char *c = (const unsigned char *)text; *c; c++)
		MUST(!buf_addf(out, &e, "%%%02X", *c));
}

static void check_same(const struct request *a, const struct request *b)
{
	MUST(a->segment_count == b->segment_count && a->query_count == b->query_count);
	for (size_t i = 0; i < a->segment_count; i++)
		MUST(!strcmp(a->segments[i], b->segments[i]));
	for (size_t i = 0; i < a->query_count; i++)
		MUST(!strcmp(a->query[i].name, b->query[i].name) &&
		     !strcmp(a->query[i].value, b->query[i].value));
}

static void check_again(const struct request *rq)
{
	_cleanup_buf_ struct buf text = BUF_INIT(4 * REQUEST_TARGET_MAX);
	struct request again = { .client_fd = -1 };
	struct err e;
	for (size_t i = 0; i < rq->segment_count; i++) {
		MUST(!buf_add(&text, "/", 1, &e));
		escape_into(&text, rq->segments[i]);
	}
	if (!rq->segment_count)
		MUST(!buf_add(&text, "/", 1, &e));
	for (size_t i = 0; i < rq->query_count; i++) {
		MUST(!buf_add(&text, i ? "&" : "?", 1, &e));
		escape_into(&text, rq->query[i].name);
		MUST(!buf_add(&text, "=", 1, &e));
		escape_into(&text, rq->query[i].value);
	}
	if (text.len <= REQUEST_TARGET_MAX) {
		MUST(!request_set_target(&again, text.data, &e));
		check_same(rq, &again);
	}
	request_clear(&again);
}

static void check_target(struct request *rq, const char *target)
{
	char allow[ROUTES_ALLOW_SIZE];
	struct err e = { 0 };
	if (request_set_target(rq, target, &e)) {
		check_error(&e);
		return;
	}
	for (size_t i = 0; i < rq->segment_count; i++) {
		const char *s = rq->segments[i];
		check_text(s);
		MUST(!strchr(s, '/') && strcmp(s, ".") && strcmp(s, ".."));
	}
	for (size_t i = 0; i < rq->query_count; i++) {
		check_text(rq->query[i].name);
		check_text(rq->query[i].value);
	}
	check_again(rq);
	if (routes_find(rq, allow, &e)) {
		check_error(&e);
		MUST((e.code == ERR_METHOD) == (allow[0] != '\0') || e.code == ERR_INVALID);
		return;
	}
	MUST(!strstr(rq->route->path, "{exec}") || (rq->exec_id && *rq->exec_id));
	MUST(rq->route->access != ROUTE_OWN || (rq->session_id && *rq->session_id));
}

static size_t count_of(const struct request *rq, const char *name)
{
	size_t count = 0;
	for (size_t i = 0; i < rq->header_count; i++)
		count += !strcasecmp(rq->headers[i].name, name);
	return count;
}

static void check_headers(const struct request *rq)
{
	static const struct guard_policy policy = { .listen_host = "127.0.0.1", .allowed_hosts = "box:1" };
	const char *key = NULL;
	int64_t length = -1;
	struct err e = { 0 };
	if (guard_framing(rq, &length, &e)) {
		check_error(&e);
		MUST(length == -1);
	} else {
		MUST(length >= 0 && count_of(rq, "content-length") + count_of(rq, "transfer-encoding") <= 1);
		MUST((length == GUARD_CHUNKED) == (count_of(rq, "transfer-encoding") == 1));
	}
	if (guard_origin(&policy, rq, &e))
		check_error(&e);
	else
		MUST(!count_of(rq, "origin") && (count_of(rq, "host") || rq->http10));
	if (guard_content_type(rq, &e))
		check_error(&e);
	if (guard_idempotency_key(rq, &key, &e))
		check_error(&e);
	else
		MUST(!key || (strlen(key) >= 1 && strlen(key) <= 200));
}

static void check_line(const char *bytes, size_t len, bool base64)
{
	_cleanup_buf_ struct buf out = BUF_INIT(8 * len + 1000);
	const struct exec_output piece = { .stream = 1, .data = bytes, .len = len };
	struct err e;
	MUST(!exec_json_output_line(&out, &piece, base64, &e));
	MUST(memchr(out.data, '\n', out.len) == out.data + out.len - 1);
	_cleanup_json_ json_t *line = json_loadb(out.data, out.len, JSON_ALLOW_NUL, NULL);
	MUST(line && json_object_size(line) == 2);
	json_t *sent = json_object_get(line, "data");
	_cleanup_free_ char *back = NULL;
	size_t back_len = json_string_length(sent);
	if (base64)
		MUST(!base64_decode(json_string_value(sent), back_len, &back, &back_len, &e));
	MUST(back_len == len && !memcmp(back ? back : json_string_value(sent), bytes, len));
}

static void check_exec(const char *body, size_t len, bool stream)
{
	_cleanup_(exec_json_clear) struct exec_body x = { 0 };
	struct err e = { 0 };
	if (exec_json_decode(body, len, stream, MAX_S, &x, &e)) {
		check_error(&e);
		MUST(!x.json && !x.stdin_bytes);
		return;
	}
	MUST(!x.rq.command != !x.rq.argv);
	MUST(!x.rq.command || (*x.rq.command && strlen(x.rq.command) <= EXEC_COMMAND_MAX));
	MUST(!x.rq.argv || (json_array_size(x.rq.argv) >= 1 && json_array_size(x.rq.argv) <= EXEC_ARGS_MAX));
	MUST(x.rq.timeout_ms == -1 || (x.rq.timeout_ms >= 1 && x.rq.timeout_ms <= MAX_S * 1000));
	MUST(stream || !x.rq.split);
	MUST(x.rq.stdin_data || !x.rq.stdin_len);
}

static void check_session(const char *body, size_t len)
{
	_cleanup_json_ json_t *json = NULL;
	struct session_request rq;
	struct session_patch patch;
	struct err e = { 0 };
	if (json_text_parse(body, len, &json, &e))
		return;
	if (session_json_create(json, &rq, &e)) {
		check_error(&e);
	} else {
		MUST(rq.memory_mb == -1 ||
		     (rq.memory_mb >= SESSION_MEMORY_MIN_MB && rq.memory_mb <= SESSION_MEMORY_MAX_MB));
		MUST(rq.cpu_milli == -1 || rq.cpu_milli >= 10);
		MUST(rq.ttl_s >= -1 && rq.idle_s >= -1 && !rq.may_be_endless);
	}
	if (session_json_patch(json, &patch, &e))
		check_error(&e);
}

/* Takes the head apart in place; returns the body. */
static char *read_head(struct request *rq, char *text, const char **ret_target)
{
	char *rest = text, *line = strsep(&rest, "\n");
	struct err e;
	rq->method = strsep(&line, " ");
	*ret_target = line ? line : "";
	while (rest) {
		char *value = strsep(&rest, "\n");
		char *name = strsep(&value, ":");
		if (!*name && !value)
			break;
		if (request_add_header(rq, name, value, &e))
			MUST(rq->header_count == REQUEST_HEADERS_MAX);
	}
	return rest ? rest : text + strlen(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_free_ char *text = xcalloc(size + 1, 1);
	struct request rq = { .client_fd = -1 };
	const char *target;
	memcpy(text, data, size);
	char *body = read_head(&rq, text, &target);
	size_t len = size - (size_t)(body - text);
	check_target(&rq, target);
	check_headers(&rq);
	check_exec(body, len, false);
	check_exec(body, len, true);
	check_session(body, len);
	if (utf8_is_valid(body, len))
		check_line(body, len, false);
	check_line(body, len, true);
	request_clear(&rq);
	return 0;
}
