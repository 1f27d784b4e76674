/* SPDX-License-Identifier: MIT */
/* server.h - Berth's HTTP API on its listening address. Started and stopped by main's thread. */
#ifndef BERTH_SERVER_H
#define BERTH_SERVER_H

#include "base/err.h"

struct settings;
struct manager;
struct server;

/*
 * Listens on s->listen and serves. Both arguments are borrowed until server_stop(). ERR_CONFLICT: the port is
 * in use; ERR_INVALID: the address is none of ours.
 */
int server_start(const struct settings *s, struct manager *m, struct server **ret, struct err *e) NODISCARD;

/* The port that it listens on, also when 0 was asked for. */
int server_port(const struct server *s);

/*
 * Stops listening, wakes what waits for commands (manager_quiesce), gives requests deadline_ms to end, then
 * cuts them off; returns when no thread of the server runs any more. Frees s. The manager is still whole.
 */
void server_stop(struct server *s, int deadline_ms);

#endif
