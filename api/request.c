/* SPDX-License-Identifier: MIT */
#include "api/request.h"

#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "base/parse.h"
#include "base/utf8.h"

void request_clear(struct request *rq)
{
	free(rq->storage);
	request_drop_body(rq);
	if (rq->sink.ctx)
		rq->sink.free(rq->sink.ctx);
	if (rq->session)
		session_unref(rq->session);
	*rq = (struct request){ .client_fd = -1 };
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* Decodes %XX in place; in a query '+' is a blank, as HTML forms and most client libraries write it. */
static int unescape(char *text, bool in_query, struct err *e)
{
	const char *in = text;
	char *out = text;

	while (*in) {
		char c = *in++;

		if (c == '+' && in_query)
			c = ' ';
		if (c == '%') {
			int high = hex_digit(in[0]);
			int low = high < 0 ? -1 : hex_digit(in[1]);

			if (low < 0)
				return err_set(e, ERR_INVALID, "the request target has a broken %% escape");
			c = (char)(high << 4 | low);
			in += 2;
			/* %00 would cut the text short for everything written in C behind this point. */
			if ((unsigned char)c < 0x20 || c == 0x7f)
				return err_set(e, ERR_INVALID,
					       "the request target has an escaped control character");
		}
		*out++ = c;
	}
	*out = '\0';
	if (!utf8_is_valid(text, (size_t)(out - text)))
		return err_set(e, ERR_INVALID, "the request target is not UTF-8");
	return 0;
}

static int add_segment(struct request *rq, char *text, struct err *e)
{
	if (rq->segment_count == REQUEST_SEGMENTS_MAX)
		return err_set(e, ERR_NOT_FOUND, "no such path");
	if (unescape(text, false, e))
		return -e->code;
	/* Judged after decoding: %2e%2e and %2f must not mean what they do to a file system. */
	if (!strcmp(text, ".") || !strcmp(text, "..") || strchr(text, '/'))
		return err_set(e, ERR_INVALID, "the path has a dot segment or an escaped slash");
	rq->segments[rq->segment_count++] = text;
	return 0;
}

static int split_path(struct request *rq, char *path, struct err *e)
{
	char *rest = path + 1; /* after the first slash */

	if (!*rest)
		return 0;
	while (rest) {
		char *segment = strsep(&rest, "/");

		if (add_segment(rq, segment, e))
			return -e->code;
	}
	return 0;
}

static int add_parameter(struct request *rq, char *item, struct err *e)
{
	char *value = item;
	char *name = strsep(&value, "=");

	if (unescape(name, true, e) || (value && unescape(value, true, e)))
		return -e->code;
	if (request_query(rq, name))
		return err_field(e, name, "is given twice");
	if (rq->query_count == REQUEST_QUERY_MAX)
		return err_set(e, ERR_INVALID, "more than %d query parameters", REQUEST_QUERY_MAX);
	rq->query[rq->query_count++] = (struct request_pair){ name, value ? value : "" };
	return 0;
}

static int split_query(struct request *rq, char *query, struct err *e)
{
	while (query) {
		char *item = strsep(&query, "&");

		if (*item && add_parameter(rq, item, e))
			return -e->code;
	}
	return 0;
}

int request_set_target(struct request *rq, const char *target, struct err *e)
{
	char *path, *query;

	if (strnlen(target, REQUEST_TARGET_MAX + 1) > REQUEST_TARGET_MAX)
		return err_set(e, ERR_URI_TOO_LONG, "the request target is longer than %d bytes",
			       REQUEST_TARGET_MAX);
	/* Absolute form is for proxies (RFC 9112, 3.2.2): its host could contradict the Host header. */
	if (target[0] != '/')
		return err_set(e, ERR_INVALID, "the request target must be a path that starts with /");
	for (const char *c = target; *c; c++)
		if (*c <= ' ' || *c > '~' || *c == '#' || *c == '\\')
			return err_set(e, ERR_INVALID,
				       "the request target has a character that must be escaped");

	free(rq->storage);
	rq->storage = path = xstrdup(target);
	rq->segment_count = rq->query_count = 0;
	query = path;
	strsep(&query, "?");
	if (split_path(rq, path, e) || split_query(rq, query, e))
		return -e->code;
	rq->target = target;
	return 0;
}

int request_add_header(struct request *rq, const char *name, const char *value, struct err *e)
{
	if (rq->header_count == REQUEST_HEADERS_MAX)
		return err_set(e, ERR_INVALID, "more than %d headers", REQUEST_HEADERS_MAX);
	rq->headers[rq->header_count++] = (struct request_pair){ name, value ? value : "" };
	return 0;
}

const char *request_header(const struct request *rq, const char *name)
{
	for (size_t i = 0; i < rq->header_count; i++)
		if (!strcasecmp(rq->headers[i].name, name))
			return rq->headers[i].value;
	return NULL;
}

const char *request_query(const struct request *rq, const char *name)
{
	for (size_t i = 0; i < rq->query_count; i++)
		if (!strcmp(rq->query[i].name, name))
			return rq->query[i].value;
	return NULL;
}

int request_query_milli(const struct request *rq, const char *name, int64_t min, int64_t max, int64_t *ret,
			struct err *e)
{
	const char *text = request_query(rq, name);

	if (text && parse_milli(text, min, max, ret, e))
		return err_field(e, name, "must be a number from %g to %g", (double)min / 1000,
				 (double)max / 1000);
	return 0;
}

int request_query_int(const struct request *rq, const char *name, int64_t min, int64_t max, int64_t *ret,
		      struct err *e)
{
	const char *text = request_query(rq, name);

	if (text && parse_int(text, min, max, ret, e))
		return err_field(e, name, "must be a whole number from %lld to %lld", (long long)min,
				 (long long)max);
	return 0;
}

int request_take_budget(struct request *rq, size_t len, struct err *e)
{
	if (!rq->budget)
		return 0;
	if (atomic_fetch_add(rq->budget, len) + len > REQUEST_BODIES_MAX) {
		atomic_fetch_sub(rq->budget, len);
		err_set(e, ERR_OVERLOADED, "the bodies of all requests together are too large just now");
		e->retry_after_s = 1;
		return -ERR_OVERLOADED;
	}
	rq->budget_taken += len;
	return 0;
}

int request_add_body(struct request *rq, const void *bytes, size_t len, struct err *e)
{
	if (len > rq->body.max - rq->body.len)
		return err_set(e, ERR_TOO_LARGE, "the body is larger than %zu bytes", rq->body.max);
	if (request_take_budget(rq, len, e))
		return -e->code;
	return buf_add(&rq->body, bytes, len, e);
}

void request_free_body(struct request *rq)
{
	buf_clear(&rq->body);
}

void request_drop_body(struct request *rq)
{
	request_free_body(rq);
	if (rq->budget)
		atomic_fetch_sub(rq->budget, rq->budget_taken);
	rq->budget_taken = 0;
}

int request_json(const struct request *rq, json_t **ret, struct err *e)
{
	if (rq->body.len)
		return json_text_parse(rq->body.data, rq->body.len, ret, e);
	*ret = json_object();
	return 0;
}
