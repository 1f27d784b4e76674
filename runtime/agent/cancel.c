/* SPDX-License-Identifier: MIT */
#include "runtime/agent/cancel.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>

int cancel_open(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -1;
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

bool cancel_wait(int fd, int in_fd, int timeout_ms)
{
	struct pollfd both[] = { { fd, POLLIN, 0 }, { in_fd, POLLIN, 0 } };

	while (poll(both, 2, timeout_ms) < 0 && errno == EINTR)
		;
	return !both[0].revents;
}

bool cancel_asked(int fd)
{
	return !cancel_wait(fd, -1, 0);
}
