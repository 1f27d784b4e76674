/* SPDX-License-Identifier: MIT */
#include "runtime/agent/socket.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "runtime/agent/agent.h"
#include "runtime/agent/fd.h"

#define BACKLOG 16
#define RETRY_MS 10

static socklen_t address(struct sockaddr_un *ret)
{
	*ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
	memcpy(ret->sun_path + 1, AGENT_SOCKET_NAME, sizeof(AGENT_SOCKET_NAME) - 1);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + sizeof(AGENT_SOCKET_NAME));
}

static int give_up(int fd)
{
	int sys = errno;

	close(fd);
	errno = sys;
	return -1;
}

int socket_listen(void)
{
	struct sockaddr_un addr;
	socklen_t len = address(&addr);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -1;
	if (bind(fd, (struct sockaddr *)&addr, len) < 0 || listen(fd, BACKLOG) < 0)
		return give_up(fd);
	return fd;
}

int socket_connect(int timeout_s)
{
	struct sockaddr_un addr;
	socklen_t len = address(&addr);
	struct timeval timeout = { .tv_sec = timeout_s };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	/* a full backlog blocks connect(2) for as long as a send may (unix(7), socket(7)) */
	if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout)) < 0)
		return give_up(fd);
	/* refused: an engine calls a container started before its PID 1 has come to listen */
	int left = timeout_s * 1000 / RETRY_MS, rc;
	while ((rc = connect(fd, (struct sockaddr *)&addr, len)) < 0 && errno == ECONNREFUSED && left-- > 0)
		(void)poll(NULL, 0, RETRY_MS);
	if (rc < 0 || fd_nonblock(fd) < 0)
		return give_up(fd);
	return fd;
}

int socket_peer(int fd, struct ucred *ret)
{
	socklen_t len = sizeof(*ret);
	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, ret, &len);
}
