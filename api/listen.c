/* SPDX-License-Identifier: MIT */
#include "api/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>

#include "base/parse.h"

#define BACKLOG 1024

int listen_parse(const char *text, struct listen_address *ret, struct err *e)
{
	const char *colon = strrchr(text, ':');
	bool bracketed = text[0] == '[';
	size_t len = colon ? (size_t)(colon - text) : 0;
	struct listen_address a = { 0 };
	int64_t port;

	if (!len || (bracketed && text[len - 1] != ']'))
		return err_field(e, "SANDBOX_LISTEN",
				 "must be ADDRESS:PORT such as 127.0.0.1:8080 or [::1]:8080");
	if (bracketed) {
		text++;
		len -= 2;
	}
	if (!len || len >= sizeof(a.host) || (!bracketed && memchr(text, ':', len)) ||
	    parse_int(colon + 1, 0, 65535, &port, e))
		return err_field(e, "SANDBOX_LISTEN",
				 "must be ADDRESS:PORT such as 127.0.0.1:8080 or [::1]:8080");
	memcpy(a.host, text, len);
	(void)snprintf(a.port, sizeof(a.port), "%d", (int)port);
	*ret = a;
	return 0;
}

bool listen_is_wildcard(const struct listen_address *a)
{
	return !strcmp(a->host, "0.0.0.0") || !strcmp(a->host, "::");
}

static int port_of(int fd)
{
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} bound = { .v6 = { 0 } };
	socklen_t len = sizeof(bound);

	if (getsockname(fd, &bound.any, &len))
		return 0;
	return ntohs(bound.any.sa_family == AF_INET6 ? bound.v6.sin6_port : bound.v4.sin_port);
}

static int open_socket(const struct addrinfo *ai, const struct listen_address *a, int *ret_fd, struct err *e)
{
	static const int on = 1;
	_cleanup_close_ int fd = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	/* REUSEADDR: a restart must not wait for old connections in TIME_WAIT. */
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
	    bind(fd, ai->ai_addr, ai->ai_addrlen) || listen(fd, BACKLOG)) {
		if (errno == EADDRINUSE)
			return err_sys(e, ERR_CONFLICT, errno,
				       "port %s of %s is in use: stop what uses it, or set SANDBOX_LISTEN",
				       a->port, a->host);
		return err_sys(e, ERR_INVALID, errno, "cannot listen on %s port %s: see SANDBOX_LISTEN",
			       a->host, a->port);
	}
	*ret_fd = STEAL_FD(fd);
	return 0;
}

int listen_open(const struct listen_address *a, int *ret_fd, int *ret_port, struct err *e)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV };
	struct addrinfo *found;
	int fd = -1, rc = getaddrinfo(a->host, a->port, &hints, &found);

	if (rc)
		return err_field(e, "SANDBOX_LISTEN", "no such address %s: %s", a->host, gai_strerror(rc));
	rc = open_socket(found, a, &fd, e);
	freeaddrinfo(found);
	if (rc)
		return rc;
	*ret_fd = fd;
	*ret_port = port_of(fd);
	return 0;
}

void listen_tune_client(int fd)
{
	static const struct {
		int level, option, value;
	} options[] = {
		{ IPPROTO_TCP, TCP_NODELAY, 1 },   { SOL_SOCKET, SO_KEEPALIVE, 1 },
		{ IPPROTO_TCP, TCP_KEEPIDLE, 15 }, { IPPROTO_TCP, TCP_KEEPINTVL, 5 },
		{ IPPROTO_TCP, TCP_KEEPCNT, 3 },   { IPPROTO_TCP, TCP_USER_TIMEOUT, LISTEN_STALL_MS },
	};

	/* Fails only for what is no TCP socket; then there is nothing to tune. */
	for (size_t i = 0; i < ARRAY_LEN(options); i++)
		(void)setsockopt(fd, options[i].level, options[i].option, &options[i].value, sizeof(int));
}

void listen_peer_name(const struct sockaddr *peer, char ret[LISTEN_NAME_SIZE])
{
	const void *v4 = &((const struct sockaddr_in *)(const void *)peer)->sin_addr;
	const struct in6_addr *v6 = &((const struct sockaddr_in6 *)(const void *)peer)->sin6_addr;
	const char *done = NULL;

	if (peer->sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(v6))
		done = inet_ntop(AF_INET, &v6->s6_addr[12], ret, LISTEN_NAME_SIZE);
	else if (peer->sa_family == AF_INET6)
		done = inet_ntop(AF_INET6, v6, ret, LISTEN_NAME_SIZE);
	else if (peer->sa_family == AF_INET)
		done = inet_ntop(AF_INET, v4, ret, LISTEN_NAME_SIZE);
	if (!done)
		(void)snprintf(ret, LISTEN_NAME_SIZE, "unknown");
}

void listen_allow_stall(int fd, int64_t ms)
{
	unsigned timeout = (unsigned)MIN(ms, (int64_t)INT_MAX);
	(void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout, sizeof(timeout));
}
