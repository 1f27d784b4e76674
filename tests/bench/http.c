/* SPDX-License-Identifier: MIT */
#include "tests/bench/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include "tests/bench/bench.h"

#define DEADLINE_S 120
#define UNTIL_EOF UINT64_MAX

struct http {
	int fd;
	bool chunked;
	uint64_t left;  /* bytes of the body, or of the chunk; UNTIL_EOF */
	size_t at, end; /* what was read and not used */
	char in[1 << 17];
};

static int connect_to(const struct sockaddr *address, socklen_t len)
{
	const struct timeval deadline = { .tv_sec = DEADLINE_S };
	int one = 1, fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, address, len) < 0)
		die("cannot connect: %s", strerror(errno));
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &deadline, sizeof(deadline));
	if (address->sa_family == AF_INET)
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return fd;
}

struct http *http_open(const char *address)
{
	struct http *h = xcalloc(1, sizeof(*h));
	struct sockaddr_un local = { .sun_family = AF_UNIX };
	struct sockaddr_in net = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const char *colon = strrchr(address, ':');
	if (*address == '/') {
		snprintf(local.sun_path, sizeof(local.sun_path), "%s", address);
		h->fd = connect_to((const struct sockaddr *)&local, sizeof(local));
	} else {
		net.sin_port = htons((uint16_t)strtol(colon ? colon + 1 : address, NULL, 10));
		h->fd = connect_to((const struct sockaddr *)&net, sizeof(net));
	}
	return h;
}

void http_close(struct http *h)
{
	if (h)
		close(h->fd);
	free(h);
}

/* ---- reading ---- */

/* False at the end of the connection. */
static bool fill(struct http *h)
{
	ssize_t n;
	h->at = h->end = 0;
	do
		n = recv(h->fd, h->in, sizeof(h->in), 0);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		die("no answer: %s", strerror(errno));
	h->end = (size_t)n;
	return n > 0;
}

/* A line without its CRLF. */
static void read_line(struct http *h, char *line, size_t size)
{
	size_t len = 0;
	for (;;) {
		if (h->at == h->end && !fill(h))
			die("the connection ended in the midst of an answer");
		char c = h->in[h->at++];
		if (c == '\n')
			break;
		if (c != '\r' && len < size - 1)
			line[len++] = c;
	}
	line[len] = 0;
}

static uint64_t read_chunk_size(struct http *h)
{
	char line[64];
	read_line(h, line, sizeof(line));
	return strtoull(line, NULL, 16);
}

static bool header_is(const char *line, const char *name, const char **ret_value)
{
	size_t len = strlen(name);
	if (strncasecmp(line, name, len) || line[len] != ':')
		return false;
	*ret_value = line + len + 1 + strspn(line + len + 1, " ");
	return true;
}

static int read_head(struct http *h)
{
	char line[4096] = "";
	const char *value = NULL;
	read_line(h, line, sizeof(line));
	int status = strncmp(line, "HTTP/1.", 7) ? 0 : (int)strtol(line + 9, NULL, 10);
	h->chunked = false;
	h->left = status == 204 || status == 304 ? 0 : UNTIL_EOF;
	for (read_line(h, line, sizeof(line)); *line; read_line(h, line, sizeof(line))) {
		if (header_is(line, "Content-Length", &value))
			h->left = strtoull(value, NULL, 10);
		else if (header_is(line, "Transfer-Encoding", &value))
			h->chunked = !strncasecmp(value, "chunked", 7);
	}
	if (h->chunked)
		h->left = read_chunk_size(h);
	return status;
}

/* Behind the last byte of a chunk; false at the end of them all. */
static bool next_chunk(struct http *h)
{
	char empty[8];
	read_line(h, empty, sizeof(empty));
	h->left = read_chunk_size(h);
	if (!h->left)
		read_line(h, empty, sizeof(empty));
	h->chunked = h->left > 0;
	return h->chunked;
}

size_t http_read(struct http *h, void *out, size_t size)
{
	if (!h->left) {
		if (h->chunked) /* an empty body's only chunk */
			read_line(h, (char[8]){ 0 }, 8);
		h->chunked = false;
		return 0;
	}
	if (h->at == h->end && !fill(h)) {
		if (h->left != UNTIL_EOF)
			die("the connection ended in the midst of a body");
		return 0;
	}
	size_t n = MIN(size, h->end - h->at);
	if (h->left != UNTIL_EOF)
		n = (size_t)MIN((uint64_t)n, h->left);
	memcpy(out, h->in + h->at, n);
	h->at += n;
	if (h->left == UNTIL_EOF)
		return n;
	h->left -= n;
	if (!h->left && h->chunked)
		next_chunk(h);
	return n;
}

void http_read_all(struct http *h, struct buf *b)
{
	char piece[8192];
	struct err e;
	buf_reset(b);
	for (size_t n; (n = http_read(h, piece, sizeof(piece)));)
		if (buf_add(b, piece, n, &e))
			die("an answer is too long: %s", e.msg);
}

/* ---- asking ---- */

static void send_all(struct http *h, const char *bytes, size_t len)
{
	for (size_t at = 0; at < len;) {
		ssize_t n = send(h->fd, bytes + at, len - at, MSG_NOSIGNAL);
		if (n < 0 && errno != EINTR)
			die("cannot send: %s", strerror(errno));
		at += (size_t)MAX(n, 0);
	}
}

int http_ask(struct http *h, const char *method, const char *path, const char *headers, const char *body)
{
	char request[8192];
	int n = snprintf(request, sizeof(request),
			 "%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n%s"
			 "Content-Length: %zu\r\n\r\n%s",
			 method, path, headers, strlen(body), body);
	if (n < 0 || (size_t)n >= sizeof(request))
		die("a request is too long");
	send_all(h, request, (size_t)n);
	return read_head(h);
}
