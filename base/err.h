/* SPDX-License-Identifier: MIT */
/*
 * err.h - the one error type. It lives on the caller's stack, owns nothing, and works when
 * memory is gone.
 *
 * Rules: a function that can fail takes `struct err *e` last and returns 0, or a negative code
 * with *e filled and its outputs untouched. The code says what the caller may do about it; the
 * text says what happened and is safe to show to the caller. A function either logs or returns
 * its error, never both. Nobody branches on text.
 */
#ifndef BERTH_ERR_H
#define BERTH_ERR_H

#include "base/base.h"

/* code, wire name, HTTP status, exit status of `berth` */
#define ERR_CODES(X)                                        \
	X(ERR_INVALID, "invalid_argument", 400, 2)          \
	X(ERR_UNAUTHORIZED, "unauthorized", 401, 3)         \
	X(ERR_FORBIDDEN, "forbidden", 403, 3)               \
	X(ERR_NOT_FOUND, "not_found", 404, 4)               \
	X(ERR_METHOD, "method_not_allowed", 405, 2)         \
	X(ERR_TIMEOUT, "deadline_exceeded", 504, 8)         \
	X(ERR_CONFLICT, "conflict", 409, 5)                 \
	X(ERR_GONE, "session_gone", 410, 4)                 \
	X(ERR_PRECONDITION, "precondition_failed", 412, 5)  \
	X(ERR_TOO_LARGE, "too_large", 413, 2)               \
	X(ERR_URI_TOO_LONG, "uri_too_long", 414, 2)         \
	X(ERR_MEDIA_TYPE, "unsupported_media_type", 415, 2) \
	X(ERR_RANGE, "range_not_satisfiable", 416, 2)       \
	X(ERR_NO_SHELL, "no_shell", 422, 6)                 \
	X(ERR_UNPROCESSABLE, "unprocessable", 422, 6)       \
	X(ERR_LIMIT, "limit_exceeded", 429, 7)              \
	X(ERR_INTERNAL, "internal", 500, 8)                 \
	X(ERR_UNSUPPORTED, "not_supported", 501, 6)         \
	X(ERR_LOCAL_MODE, "local_mode", 501, 6)             \
	X(ERR_ENGINE, "engine_failure", 502, 8)             \
	X(ERR_UNAVAILABLE, "engine_unavailable", 503, 8)    \
	X(ERR_STORE, "store_unavailable", 503, 8)           \
	X(ERR_OVERLOADED, "overloaded", 503, 7)             \
	X(ERR_STOPPING, "stopping", 503, 8)                 \
	X(ERR_SANDBOX, "sandbox_failure", 502, 8)           \
	X(ERR_NO_SPACE, "no_space", 507, 8)

/* clang-format off */
enum err_code {
	ERR_NONE = 0,
#define ERR_ENUM_(code, name, http, cli) code,
	ERR_CODES(ERR_ENUM_)
#undef ERR_ENUM_
	ERR_COUNT_
};
/* clang-format on */

struct err {
	enum err_code code;
	int sys;           /* errno at the point of failure, 0 if none */
	int retry_after_s; /* for ERR_LIMIT and the 503s: when waiting helps; 0 means unsaid */
	char field[64];    /* the input field at fault, as the client spells it; "" means none */
	char msg[320];     /* UTF-8, one line, safe to show the caller */
};

/* Each fills *e and returns -code, so that `return err_set(e, ...)` reads well. */
int err_set(struct err *e, enum err_code code, const char *fmt, ...) PRINTF_LIKE(3, 4);
int err_sys(struct err *e, enum err_code code, int sys_errno, const char *fmt, ...) PRINTF_LIKE(4, 5);
int err_field(struct err *e, const char *field, const char *fmt, ...) PRINTF_LIKE(3, 4); /* ERR_INVALID */

/* Puts "context: " before the message, once per layer; returns -e->code. */
int err_wrap(struct err *e, const char *fmt, ...) PRINTF_LIKE(2, 3);

#if defined(__clang_analyzer__) && !defined(ERR_C_) /* sees no further than this file: these never return 0 \
						     */
#define err_set(...) (err_set(__VA_ARGS__), -1)
#define err_sys(...) (err_sys(__VA_ARGS__), -1)
#define err_field(...) (err_field(__VA_ARGS__), -1)
#define err_wrap(...) (err_wrap(__VA_ARGS__), -1)
#endif

/* Wire name, HTTP status and exit status of a code; of ERR_INTERNAL for an unknown one. */
const char *err_name(enum err_code code);
int err_http_status(enum err_code code);
int err_exit_status(enum err_code code);

#endif
