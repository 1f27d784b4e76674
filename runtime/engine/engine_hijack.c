/* SPDX-License-Identifier: MIT */
#include "runtime/engine/engine_hijack.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/clock.h"
#include "runtime/engine/engine_json.h"

#define HEAD_MAX 16384
#define READ_BYTES (64 * 1024)
#define REFUSAL_MS 1000 /* for the text of a refusal: the connection may be kept open behind it */

size_t engine_hijack_head(const char *data, size_t len)
{
	const char *end = len ? memmem(data, len, "\r\n\r\n", 4) : NULL;
	return end ? (size_t)(end - data) + 4 : 0;
}

int engine_hijack_status(const char *head, size_t len)
{
	/* "HTTP/1.1 101 UPGRADED" */
	if (len < 13 || memcmp(head, "HTTP/1.", 7) || head[8] != ' ')
		return -1;
	int status = 0;
	for (size_t i = 9; i < 12; i++) {
		if (head[i] < '0' || head[i] > '9')
			return -1;
		status = status * 10 + (head[i] - '0');
	}
	return status;
}

static int wait_for(CURL *h, short events, int64_t deadline_ms)
{
	curl_socket_t fd = CURL_SOCKET_BAD;
	curl_easy_getinfo(h, CURLINFO_ACTIVESOCKET, &fd);
	struct pollfd p = { .fd = fd, .events = events };
	int n;
	do
		n = poll(&p, 1, (int)MIN(clock_left_ms(deadline_ms), INT32_MAX));
	while (n < 0 && errno == EINTR);
	return n;
}

static int send_all(struct engine *g, CURL *h, const char *text, int64_t deadline_ms, struct err *e)
{
	for (size_t at = 0, len = strlen(text); at < len;) {
		size_t n = 0;
		CURLcode code = curl_easy_send(h, text + at, len - at, &n);
		at += n;
		if (code == CURLE_AGAIN && wait_for(h, POLLOUT, deadline_ms) > 0)
			continue;
		if (code)
			return engine_transport_error(
				g, h, code == CURLE_AGAIN ? CURLE_OPERATION_TIMEDOUT : code, e);
	}
	return 0;
}

/* Adds what comes next to in; CURLE_OK with nothing added at the end. */
static CURLcode receive_some(CURL *h, struct buf *in, int64_t deadline_ms)
{
	char piece[4096];
	size_t n = 0;
	struct err ignored;
	CURLcode code;
	/* Read before polling: libcurl may hold bytes that poll() does not see (curl#1134). */
	while ((code = curl_easy_recv(h, piece, sizeof(piece), &n)) == CURLE_AGAIN)
		if (wait_for(h, POLLIN, deadline_ms) <= 0)
			return CURLE_OPERATION_TIMEDOUT;
	if (!code && buf_add(in, piece, n, &ignored))
		return CURLE_WRITE_ERROR;
	return code;
}

/* Reads on until the other side ends or a moment has passed: no length is believed for a text that is only
 * shown. */
static int refuse(CURL *h, struct buf *in, size_t head, int status, int64_t deadline_ms, struct err *e)
{
	int64_t until = MIN(deadline_ms, clock_mono_ms() + REFUSAL_MS);
	size_t before;
	do
		before = in->len;
	while (!memchr(in->data + head, '\n', in->len - head) && !receive_some(h, in, until) &&
	       in->len > before);
	return engine_json_error(status, in->data + head, in->len - head, e);
}

static int read_head(struct engine *g, CURL *h, struct buf *early, int64_t deadline_ms, struct err *e)
{
	_cleanup_buf_ struct buf in = BUF_INIT(HEAD_MAX);
	size_t head = 0;
	while (!(head = engine_hijack_head(in.data, in.len))) {
		size_t before = in.len;
		CURLcode code = receive_some(h, &in, deadline_ms);
		if (code == CURLE_OPERATION_TIMEDOUT)
			return engine_silence_error(g, e);
		if (code || in.len == before)
			return engine_transport_error(g, h, code ? code : CURLE_GOT_NOTHING, e);
	}
	int status = engine_hijack_status(in.data, head);
	if (status < 0)
		return err_set(e, ERR_ENGINE, "the engine's answer is no HTTP");
	if (status != 101 && status != 200)
		return refuse(h, &in, head, status, deadline_ms, e);
	return buf_add(early, in.data + head, in.len - head, e);
}

static int connect_only(struct engine *g, CURL *h, int64_t deadline_ms, struct err *e)
{
	engine_handle_setup(g, h);
	curl_easy_setopt(h, CURLOPT_URL, g->address.base);
	curl_easy_setopt(h, CURLOPT_CONNECT_ONLY,
			 1L); /* 2 is for WebSocket and waits for a body (curl#17621) */
	curl_easy_setopt(h, CURLOPT_CONNECTTIMEOUT_MS,
			 (long)MAX(MIN(clock_left_ms(deadline_ms), ENGINE_CONNECT_MS), 1));
	/* Or each read of the stream would be cut to 16 KiB, however much there is. */
	curl_easy_setopt(h, CURLOPT_BUFFERSIZE, (long)READ_BYTES);
	CURLcode code = curl_easy_perform(h);
	return code ? engine_transport_error(g, h, code, e) : 0;
}

int engine_hijack(struct engine *g, const char *path, const char *body, int64_t deadline_ms,
		  CURL **ret_handle, struct buf *early, struct err *e)
{
	struct engine_facts f;
	engine_get_facts(g, &f);
	_cleanup_free_ char *request =
		xasprintf("POST %s%s HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n"
			  "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
			  f.prefix, path, g->address.host, strlen(body), body);
	CURL *h = curl_easy_init();
	if (!h)
		abort();
	int r = connect_only(g, h, deadline_ms, e);
	r = r ? r : send_all(g, h, request, deadline_ms, e);
	r = r ? r : read_head(g, h, early, deadline_ms, e);
	if (r)
		curl_easy_cleanup(h);
	else
		*ret_handle = h;
	return r;
}
