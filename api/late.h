/* SPDX-License-Identifier: MIT */
/*
 * late.h - an answer in the midst of a request's body, which the HTTP library cannot give: written to the
 * socket as it is, whose connection has to be dropped after it.
 */
#ifndef BERTH_LATE_H
#define BERTH_LATE_H

#include "api/response.h"

/*
 * Sends it, then reads and throws away what the client still sends, for some seconds at most: a socket that
 * is closed with unread bytes is reset, which would take the answer with it. reason: of the status line. Any
 * connection's thread.
 */
void late_answer(int fd, const struct response *rs, const char *reason);

#endif
