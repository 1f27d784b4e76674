/* SPDX-License-Identifier: MIT */
/* The agent's socket, as somebody who is not the bridge. */
#include "hostile.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runtime/agent/agent.h"
#include "runtime/protocol/protocol.h"

#define PATIENCE_MS 5000

static int open_socket(struct sockaddr_un *ret_addr, socklen_t *ret_len)
{
	*ret_addr = (struct sockaddr_un){ .sun_family = AF_UNIX };
	memcpy(ret_addr->sun_path + 1, AGENT_SOCKET_NAME, sizeof(AGENT_SOCKET_NAME) - 1);
	*ret_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + sizeof(AGENT_SOCKET_NAME));
	return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

static void send_hello(int fd)
{
	uint8_t frame[128];
	struct proto_writer w = { frame + PROTO_HEADER, sizeof(frame) - PROTO_HEADER, 0, false };

	proto_put_u64(&w, PROTO_F_MAGIC, PROTO_MAGIC);
	proto_put_u64(&w, PROTO_F_VERSION, PROTO_VERSION);
	proto_put_u64(&w, PROTO_F_GENERATION, UINT64_MAX);
	proto_header(frame, PROTO_HELLO, 0, 0, (uint16_t)w.used);
	(void)send(fd, frame, PROTO_HEADER + w.used, MSG_NOSIGNAL);
}

/* "answered TYPE" is the end of all hope, "closed" is the promise. */
int agent_connect(int argc, char **argv)
{
	struct sockaddr_un addr;
	socklen_t len;
	int fd = open_socket(&addr, &len);
	uint8_t first;

	(void)argc;
	(void)argv;
	if (connect(fd, (struct sockaddr *)&addr, len) < 0) {
		puts(word_of(errno));
		return 0;
	}
	send_hello(fd);
	struct pollfd p = { .fd = fd, .events = POLLIN };
	if (poll(&p, 1, PATIENCE_MS) != 1) {
		puts("silence");
		return 0;
	}
	if (recv(fd, &first, 1, 0) == 1)
		printf("answered %u\n", first);
	else
		puts("closed");
	return 0;
}

int agent_bind(int argc, char **argv)
{
	struct sockaddr_un addr;
	socklen_t len;
	int fd = open_socket(&addr, &len);

	(void)argc;
	(void)argv;
	puts(word_of(bind(fd, (struct sockaddr *)&addr, len) < 0 ? errno : 0));
	return 0;
}

static void connect_until(time_t end)
{
	struct timespec now;

	do {
		struct sockaddr_un addr;
		socklen_t len;
		int fd = open_socket(&addr, &len);
		struct timeval brief = { .tv_usec = 10000 };
		(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &brief, sizeof(brief));
		(void)connect(fd, (struct sockaddr *)&addr, len);
		close(fd);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (now.tv_sec < end);
}

int agent_flood(int argc, char **argv)
{
	struct timespec now;

	if (argc < 3)
		return 64;
	clock_gettime(CLOCK_MONOTONIC, &now);
	time_t end = now.tv_sec + number_of(argv[2]);
	puts("ready");
	for (long i = 0; i < number_of(argv[1]); i++)
		if (fork() == 0) {
			connect_until(end);
			_exit(0);
		}
	while (waitpid(-1, NULL, 0) > 0)
		;
	puts("done");
	return 0;
}
