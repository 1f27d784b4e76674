/* SPDX-License-Identifier: MIT */
#include "api/guard.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

#include "base/parse.h"

/* RFC 9110, 5.6.2: what a field name is made of. */
static bool is_token(const char *text)
{
	return *text && strspn(text, "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
				     "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == strlen(text);
}

static size_t count_header(const struct request *rq, const char *name)
{
	size_t count = 0;

	for (size_t i = 0; i < rq->header_count; i++)
		count += !strcasecmp(rq->headers[i].name, name);
	return count;
}

/* Headers of which a second one would be read differently by someone on the way. */
static const char *const single_headers[] = {
	"Content-Length",   "Transfer-Encoding", "Host",   "Authorization", "Content-Type", "Origin",
	"Content-Encoding", "Idempotency-Key",   "Expect", "Range",         "If-Range",     "Content-Range",
	"If-Match",         "If-None-Match",
};

static int check_fields(const struct request *rq, struct err *e)
{
	/* "Content-Length : 5" is another header for one reader and the length for another (RFC 9112, 5.1).
	 */
	for (size_t i = 0; i < rq->header_count; i++)
		if (!is_token(rq->headers[i].name))
			return err_set(e, ERR_INVALID,
				       "a header's name has characters that it must not have");
	for (size_t i = 0; i < ARRAY_LEN(single_headers); i++)
		if (count_header(rq, single_headers[i]) > 1)
			return err_set(e, ERR_INVALID, "more than one %s header", single_headers[i]);
	return 0;
}

int guard_framing(const struct request *rq, int64_t *ret_length, struct err *e)
{
	const char *length = request_header(rq, "Content-Length");
	const char *coding = request_header(rq, "Transfer-Encoding");
	int64_t bytes = 0;

	if (check_fields(rq, e))
		return -e->code;
	if (coding && length)
		return err_set(e, ERR_INVALID, "Content-Length together with Transfer-Encoding");
	if (coding && rq->http10)
		return err_set(e, ERR_INVALID, "Transfer-Encoding in an HTTP/1.0 request");
	if (coding && strcasecmp(coding, "chunked"))
		return err_set(e, ERR_UNSUPPORTED, "the only Transfer-Encoding is chunked");
	/* digits only: parse_int takes a sign */
	if (length && (!*length || length[strspn(length, "0123456789")] ||
		       parse_int(length, 0, INT64_MAX - 1, &bytes, e)))
		return err_set(e, ERR_INVALID, "Content-Length is not a number of bytes");
	*ret_length = coding ? GUARD_CHUNKED : bytes;
	return 0;
}

/* Host without its port and brackets; false when it is no such thing. */
static bool host_name(const char *host, char *name, size_t size)
{
	bool bracketed = host[0] == '[';
	const char *start = host + bracketed;
	size_t len = strcspn(start, bracketed ? "]" : ":");
	const char *after = start + len;

	if (bracketed && *after++ != ']')
		return false;
	if (*after == ':')
		after += 1 + strspn(after + 1, "0123456789");
	if (*after || !len || len >= size)
		return false;
	memcpy(name, start, len);
	name[len] = '\0';
	return true;
}

static bool list_has(const char *list, const char *text)
{
	size_t len;

	if (!list)
		return false;
	for (const char *item; (item = parse_list_next(&list, &len));)
		if (strlen(text) == len && !strncasecmp(item, text, len))
			return true;
	return false;
}

static bool is_ip(const char *name)
{
	unsigned char address[16];

	return inet_pton(AF_INET, name, address) == 1 || inet_pton(AF_INET6, name, address) == 1;
}

/*
 * A page of evil.example whose name resolves to 127.0.0.1 (DNS rebinding) still says Host: evil.example.
 * A literal address in Host cannot be rebound, but is only believed where the daemon listens on all of them.
 */
static bool host_is_ours(const struct guard_policy *p, const char *host)
{
	char name[256];

	if (!host_name(host, name, sizeof(name)))
		return false;
	return !strcasecmp(name, p->listen_host) || !strcasecmp(name, "localhost") ||
	       !strcmp(name, "127.0.0.1") || !strcmp(name, "::1") || (p->listens_anywhere && is_ip(name)) ||
	       list_has(p->allowed_hosts, name) || list_has(p->allowed_hosts, host);
}

int guard_origin(const struct guard_policy *p, const struct request *rq, struct err *e)
{
	const char *host = request_header(rq, "Host");
	const char *origin = request_header(rq, "Origin");

	if (!host && !rq->http10)
		return err_set(e, ERR_INVALID, "the Host header is missing");
	if (host && !host_is_ours(p, host))
		return err_set(e, ERR_FORBIDDEN, "this Host is not served here: see SANDBOX_ALLOWED_HOSTS");
	/* Browsers send it with every request that could do harm; that it equals Host proves nothing. */
	if (origin && !list_has(p->allowed_origins, origin))
		return err_set(e, ERR_FORBIDDEN,
			       "requests from this Origin are refused: see SANDBOX_ALLOWED_ORIGINS");
	return 0;
}

static bool charset_is_utf8(const char *parameters)
{
	const char *charset = strcasestr(parameters, "charset=");
	const char *value = charset ? charset + strlen("charset=") : NULL;

	return !value || !strncasecmp(value, "utf-8", 5) || !strncasecmp(value, "\"utf-8\"", 7);
}

static int check_coding(const struct request *rq, struct err *e)
{
	const char *coding = request_header(rq, "Content-Encoding");

	if (coding && strcasecmp(coding, "identity"))
		return err_set(e, ERR_MEDIA_TYPE, "the body must not have a Content-Encoding");
	return 0;
}

int guard_plain_body(const struct request *rq, struct err *e)
{
	/* RFC 9110, 14.5: who does not know partial PUT must not take the part for the whole. */
	if (request_header(rq, "Content-Range"))
		return err_field(e, "Content-Range", "is not taken: send the whole file");
	return check_coding(rq, e);
}

int guard_content_type(const struct request *rq, struct err *e)
{
	static const char json[] = "application/json";
	const char *type = request_header(rq, "Content-Type");
	const char *after;

	if (!type || strncasecmp(type, json, strlen(json)))
		return err_set(e, ERR_MEDIA_TYPE, "the body must have Content-Type application/json");
	after = type + strlen(json);
	after += strspn(after, " \t");
	if ((*after && *after != ';') || !charset_is_utf8(after))
		return err_set(e, ERR_MEDIA_TYPE,
			       "the body must have Content-Type application/json in UTF-8");
	return check_coding(rq, e);
}

int guard_idempotency_key(const struct request *rq, const char **ret, struct err *e)
{
	const char *key = request_header(rq, "Idempotency-Key");
	size_t len = key ? strlen(key) : 1;

	for (const char *c = key; c && *c; c++)
		if (*c <= ' ' || *c > '~')
			len = 0;
	if (len < 1 || len > 200)
		return err_field(e, "Idempotency-Key", "must be 1 to 200 visible ASCII characters");
	*ret = key;
	return 0;
}
