/* SPDX-License-Identifier: MIT */
#include "cli/interrupt.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>

int interrupt_open(struct interrupt *ret, struct err *e)
{
	static const int wanted[] = { SIGINT, SIGTERM, SIGHUP };
	sigset_t set;
	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
		struct sigaction now = { 0 };
		/* A blocked signal is queued even when it is ignored (signalfd(2) would then report it). */
		if (!sigaction(wanted[i], NULL, &now) && now.sa_handler != SIG_IGN)
			sigaddset(&set, wanted[i]);
	}
	struct sigaction ignore = { .sa_handler = SIG_IGN };
	if (sigaction(SIGPIPE, &ignore, NULL) || pthread_sigmask(SIG_BLOCK, &set, NULL))
		return err_sys(e, ERR_INTERNAL, errno, "cannot set up signals");
	int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return err_sys(e, ERR_INTERNAL, errno, "cannot watch signals");
	*ret = (struct interrupt){ .fd = fd };
	return 0;
}

void interrupt_await(const struct interrupt *i, int timeout_ms)
{
	struct pollfd fd = { .fd = i->fd, .events = POLLIN };
	(void)poll(&fd, 1, timeout_ms);
}

bool interrupt_take(struct interrupt *i)
{
	struct signalfd_siginfo info;
	bool any = false;
	while (read(i->fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		i->count++;
		if (!i->signal)
			i->signal = (int)info.ssi_signo;
		any = true;
	}
	return any;
}
