/* SPDX-License-Identifier: MIT */
#include "api/response.h"

#include <assert.h>
#include <stdarg.h>
#include <string.h>

#include "base/json.h"

void response_clear(struct response *rs)
{
	free(rs->body);
	if (rs->ctx && rs->free_ctx)
		rs->free_ctx(rs->ctx);
	*rs = (struct response){ 0 };
}

void response_json(struct response *rs, int status, json_t *value)
{
	_cleanup_json_ json_t *owned = value;

	free(rs->body);
	rs->type = NULL;
	rs->body = json_text(owned);
	rs->body_len = strlen(rs->body);
	rs->status = status;
}

void response_empty(struct response *rs, int status)
{
	rs->type = "";
	rs->status = status;
}

void response_text(struct response *rs, int status, const char *type, struct buf *text)
{
	free(rs->body);
	rs->body_len = text->len;
	rs->body = buf_take(text);
	rs->type = type;
	rs->status = status;
}

json_t *response_error_json(const struct err *e)
{
	json_t *fields = json_pack("{s:s, s:o}", "code", err_name(e->code), "message",
				   json_string_lossy(e->msg, strlen(e->msg)));

	if (e->field[0])
		json_object_set_new(fields, "field", json_string_lossy(e->field, strlen(e->field)));
	return fields;
}

void response_error(struct response *rs, const struct err *e)
{
	if (e->retry_after_s > 0)
		response_header(rs, "Retry-After", "%d", e->retry_after_s);
	if (e->code == ERR_UNAUTHORIZED)
		response_header(rs, "WWW-Authenticate", "Bearer");
	response_json(rs, rs->status ? rs->status : err_http_status(e->code),
		      json_pack("{s:o}", "error", response_error_json(e)));
}

void response_later(struct response *rs, response_next_fn next, void *ctx, void (*free_ctx)(void *ctx))
{
	response_bytes(rs, 200, NULL, RESPONSE_LENGTH_UNKNOWN, next, ctx, free_ctx);
}

void response_bytes(struct response *rs, int status, const char *type, uint64_t length, response_next_fn next,
		    void *ctx, void (*free_ctx)(void *ctx))
{
	rs->status = status;
	rs->type = type;
	rs->length = length;
	rs->next = next;
	rs->ctx = ctx;
	rs->free_ctx = free_ctx;
}

void response_stream(struct response *rs, response_next_fn next, void *ctx, void (*free_ctx)(void *ctx))
{
	response_later(rs, next, ctx, free_ctx);
	rs->type = "application/x-ndjson";
}

void response_header(struct response *rs, const char *name, const char *fmt, ...)
{
	struct response_header *h = &rs->headers[rs->header_count];
	va_list args;

	assert(rs->header_count < RESPONSE_HEADERS_MAX);
	rs->header_count++;
	h->name = name;
	va_start(args, fmt);
	(void)vsnprintf(h->value, sizeof(h->value), fmt, args);
	va_end(args);
}
