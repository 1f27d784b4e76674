/* SPDX-License-Identifier: MIT */
#include "cli/exit_status.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

/* Reasons other than "exited" whose status is fixed. */
static const struct {
	const char *reason;
	int status;
} fixed[] = {
	{ "timeout", EXIT_TIMEOUT },
	{ "oom", EXIT_SIGNAL + SIGKILL },
	{ "cancelled", EXIT_SIGNAL + SIGTERM },
	{ "output_limit", EXIT_BERTH },
	{ "sandbox_lost", EXIT_BERTH },
};

static int int_of(const json_t *reply, const char *key, int otherwise)
{
	const json_t *v = json_object_get(reply, key);
	json_int_t n = json_integer_value(v);
	return json_is_integer(v) && n >= 0 && n <= 255 ? (int)n : otherwise;
}

/* The shell's rule (POSIX, Exit Status for Commands): 127 not found, 126 found but not executable. */
static int start_failed(const json_t *reply)
{
	return int_of(reply, "errno", 0) == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_STARTABLE;
}

int exit_status_of(const json_t *reply)
{
	const char *reason = json_string_value(json_object_get(reply, "reason"));
	if (!reason)
		return EXIT_BERTH;
	if (!strcmp(reason, "exited"))
		return int_of(reply, "exit_code", EXIT_BERTH);
	if (!strcmp(reason, "start_failed"))
		return start_failed(reply);
	if (!strcmp(reason, "signalled")) {
		int signo = int_of(reply, "signal", 0);
		return signo > 0 && signo < 128 ? EXIT_SIGNAL + signo : EXIT_BERTH;
	}
	for (size_t i = 0; i < ARRAY_LEN(fixed); i++)
		if (!strcmp(fixed[i].reason, reason))
			return fixed[i].status;
	return EXIT_BERTH;
}
