/* SPDX-License-Identifier: MIT */
#include "hostile.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PATIENCE_MS 300

static const struct {
	const char *name;
	int type, protocol, protocol6;
} WAYS[] = {
	{ "icmp", SOCK_DGRAM, IPPROTO_ICMP, IPPROTO_ICMPV6 },
	{ "tcp", SOCK_STREAM, IPPROTO_TCP, IPPROTO_TCP },
	{ "udp", SOCK_DGRAM, IPPROTO_UDP, IPPROTO_UDP },
};

/* 0 when a connection stands or a datagram left. */
static int try_way(const struct sockaddr_storage *to, size_t way)
{
	static const char ECHO_REQUEST[8] = { 8 };
	int protocol = to->ss_family == AF_INET ? WAYS[way].protocol : WAYS[way].protocol6;
	int fd = socket(to->ss_family, WAYS[way].type | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol);
	int sys = 0, on = 1;

	if (fd < 0)
		return errno;
	(void)setsockopt(fd, SOL_SOCKET, SO_BROADCAST, &on, sizeof(on));
	if (connect(fd, (const struct sockaddr *)to, sizeof(*to)) < 0)
		sys = errno;
	if (sys == EINPROGRESS) {
		struct pollfd p = { .fd = fd, .events = POLLOUT };
		socklen_t len = sizeof(sys);
		sys = poll(&p, 1, PATIENCE_MS) == 1 ? 0 : ETIMEDOUT;
		if (sys == 0)
			(void)getsockopt(fd, SOL_SOCKET, SO_ERROR, &sys, &len);
	} else if (sys == 0 && send(fd, ECHO_REQUEST, sizeof(ECHO_REQUEST), MSG_NOSIGNAL) < 0) {
		sys = errno;
	}
	close(fd);
	return sys;
}

static bool read_address(const char *text, struct sockaddr_storage *ret)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(80) };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(80) };

	memset(ret, 0, sizeof(*ret));
	if (inet_pton(AF_INET, text, &v4.sin_addr) == 1)
		memcpy(ret, &v4, sizeof(v4));
	else if (inet_pton(AF_INET6, text, &v6.sin6_addr) == 1)
		memcpy(ret, &v6, sizeof(v6));
	else
		return false;
	return true;
}

int net_reach(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		struct sockaddr_storage to;
		if (!read_address(argv[i], &to))
			return 64;
		for (size_t way = 0; way < LENGTH(WAYS); way++)
			printf("%s %s %s\n", argv[i], WAYS[way].name, word_of(try_way(&to, way)));
	}
	return 0;
}

int net_loopback(int argc, char **argv)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(at);
	int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)argc;
	(void)argv;
	if (bind(server, (struct sockaddr *)&at, len) < 0 || listen(server, 1) < 0 ||
	    getsockname(server, (struct sockaddr *)&at, &len) < 0)
		return 1;
	puts(word_of(connect(client, (struct sockaddr *)&at, len) < 0 ? errno : 0));
	return 0;
}
