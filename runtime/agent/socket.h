/* SPDX-License-Identifier: MIT */
/* socket.h - the abstract socket between PID 1 and its bridges. */
#ifndef BERTH_AGENT_SOCKET_H
#define BERTH_AGENT_SOCKET_H

#include <sys/socket.h>

/* A bound, listening, non-blocking socket; -1 with errno. */
int socket_listen(void);

/* Connects, waiting at most timeout_s; -1 with errno. */
int socket_connect(int timeout_s);

/* Who is on the other side, as the kernel had it at connect(2). 0 or -1. */
int socket_peer(int fd, struct ucred *ret);

#endif
