/* SPDX-License-Identifier: MIT */
#include "cli/exit_status.h"
#include "tests/unit/rows.h"

static const struct status_row {
	const char *name, *reply;
	int want;
} statuses[] = {
	{ "exited: the command's own", "{\"reason\":\"exited\",\"exit_code\":3}", 3 },
	{ "exited: 0", "{\"reason\":\"exited\",\"exit_code\":0}", 0 },
	{ "exited: 255", "{\"reason\":\"exited\",\"exit_code\":255}", 255 },
	{ "exited without a code is no success", "{\"reason\":\"exited\"}", EXIT_BERTH },
	{ "exited with null is no success", "{\"reason\":\"exited\",\"exit_code\":null}", EXIT_BERTH },
	{ "exited with a text is no success", "{\"reason\":\"exited\",\"exit_code\":\"0\"}", EXIT_BERTH },
	{ "exited below 0 is no success", "{\"reason\":\"exited\",\"exit_code\":-1}", EXIT_BERTH },
	{ "exited with 256 is no success", "{\"reason\":\"exited\",\"exit_code\":256}", EXIT_BERTH },
	{ "signalled: 128 and its number", "{\"reason\":\"signalled\",\"signal\":15}", 143 },
	{ "signalled without a number", "{\"reason\":\"signalled\",\"signal\":null}", EXIT_BERTH },
	{ "signalled with a number out of range", "{\"reason\":\"signalled\",\"signal\":200}", EXIT_BERTH },
	{ "timeout", "{\"reason\":\"timeout\",\"signal\":9}", EXIT_TIMEOUT },
	{ "oom", "{\"reason\":\"oom\",\"signal\":9}", 137 },
	{ "cancelled", "{\"reason\":\"cancelled\"}", 143 },
	{ "output_limit", "{\"reason\":\"output_limit\"}", EXIT_BERTH },
	{ "sandbox_lost", "{\"reason\":\"sandbox_lost\"}", EXIT_BERTH },
	{ "start_failed: ENOENT is not found", "{\"reason\":\"start_failed\",\"errno\":2}", EXIT_NOT_FOUND },
	{ "start_failed: EACCES is not startable", "{\"reason\":\"start_failed\",\"errno\":13}",
	  EXIT_NOT_STARTABLE },
	{ "start_failed without errno", "{\"reason\":\"start_failed\"}", EXIT_NOT_STARTABLE },
	{ "an unknown reason", "{\"reason\":\"eaten\",\"exit_code\":0}", EXIT_BERTH },
	{ "a reason that is no text", "{\"reason\":0,\"exit_code\":0}", EXIT_BERTH },
	{ "no reason", "{\"exit_code\":0}", EXIT_BERTH },
	{ "no object", "[]", EXIT_BERTH },
};

static void status_test(void **state)
{
	const struct status_row *row = *state;
	json_t *reply = json_loads(row->reply, 0, NULL);
	assert_non_null(reply);
	assert_int_equal(exit_status_of(reply), row->want);
	json_decref(reply);
}

int main(void)
{
	struct rows r = { 0 };
	ROWS(&r, status_test, statuses);
	return rows_run(&r, "cli exit status");
}
