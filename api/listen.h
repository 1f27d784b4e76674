/* SPDX-License-Identifier: MIT */
/* listen.h - the listening socket, and what is set on each accepted one. */
#ifndef BERTH_LISTEN_H
#define BERTH_LISTEN_H

#include <sys/socket.h>

#include "base/err.h"

struct listen_address {
	char host[64]; /* without brackets */
	char port[8];
};

/* "127.0.0.1:8080", "[::1]:8080", "localhost:0". ERR_INVALID. Pure. */
int listen_parse(const char *text, struct listen_address *ret, struct err *e) NODISCARD;
/* 0.0.0.0 or ::. Pure. */
bool listen_is_wildcard(const struct listen_address *a);

/* A listening socket, owned by the caller, and its port. ERR_CONFLICT: the port is in use; ERR_INVALID: not
 * ours. */
int listen_open(const struct listen_address *a, int *ret_fd, int *ret_port, struct err *e) NODISCARD;

/*
 * Small replies leave at once; a client that has vanished without a FIN, or takes no bytes, is known to be
 * gone after 30 s.
 */
#define LISTEN_STALL_MS 30000
void listen_tune_client(int fd);
/* Until it is called again, a client that takes no bytes is gone after so long (tcp(7), TCP_USER_TIMEOUT). */
void listen_allow_stall(int fd, int64_t ms);

#define LISTEN_NAME_SIZE 64
/* The numeric address of a peer without its port; an IPv4 client of an IPv6 socket as IPv4. Pure. */
void listen_peer_name(const struct sockaddr *peer, char ret[LISTEN_NAME_SIZE]);

#endif
