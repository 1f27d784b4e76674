/* SPDX-License-Identifier: MIT */
#include "manager/session_state.h"
#include "tests/unit/rows.h"

static const struct move_row {
	const char *name;
	enum session_state from;
	enum session_event event;
	enum session_state to;
} moves[] = {
	{ "a created session that is verified is ready", SESSION_CREATING, SESSION_EV_VERIFIED,
	  SESSION_READY },
	{ "one that could not be made has failed", SESSION_CREATING, SESSION_EV_FAILED, SESSION_FAILED },
	{ "one that is being created can be stopped", SESSION_CREATING, SESSION_EV_STOP, SESSION_STOPPING },
	{ "a ready one pauses", SESSION_READY, SESSION_EV_PAUSE, SESSION_PAUSED },
	{ "a paused one resumes", SESSION_PAUSED, SESSION_EV_RESUME, SESSION_READY },
	{ "a paused one can be stopped", SESSION_PAUSED, SESSION_EV_STOP, SESSION_STOPPING },
	{ "a ready one stops", SESSION_READY, SESSION_EV_STOP, SESSION_STOPPING },
	{ "a stopping one is gone when nothing is left", SESSION_STOPPING, SESSION_EV_REMOVED, SESSION_GONE },
	{ "a stopping one does not stop twice", SESSION_STOPPING, SESSION_EV_STOP, SESSION_NONE },
	{ "a ready one cannot be gone without stopping", SESSION_READY, SESSION_EV_REMOVED, SESSION_NONE },
	{ "a ready one is not verified again", SESSION_READY, SESSION_EV_VERIFIED, SESSION_NONE },
	{ "a ready one cannot fail", SESSION_READY, SESSION_EV_FAILED, SESSION_NONE },
};

static void move_test(void **state)
{
	const struct move_row *row = *state;
	assert_int_equal(session_state_after(row->from, row->event), row->to);
}

static void ends_are_ends(void **state)
{
	(void)state;
	for (int ev = 0; ev < SESSION_EVENT_COUNT_; ev++) {
		assert_int_equal(session_state_after(SESSION_GONE, (enum session_event)ev), SESSION_NONE);
		assert_int_equal(session_state_after(SESSION_FAILED, (enum session_event)ev), SESSION_NONE);
	}
}

static void names_go_both_ways(void **state)
{
	(void)state;
	for (int s = SESSION_CREATING; s < SESSION_STATE_COUNT_; s++)
		assert_int_equal(session_state_of(session_state_name((enum session_state)s)), s);
	assert_int_equal(session_state_of("none"), SESSION_NONE);
	assert_int_equal(session_state_of("Ready"), SESSION_NONE);
	assert_true(session_state_is_live(SESSION_CREATING) && session_state_is_live(SESSION_STOPPING));
	assert_false(session_state_is_live(SESSION_GONE) || session_state_is_live(SESSION_FAILED));
}

int main(void)
{
	struct rows r = { 0 };
	ROWS(&r, move_test, moves);
	rows_one(&r, "no event leads out of gone and failed", ends_are_ends);
	rows_one(&r, "each state has a name of its own", names_go_both_ways);
	return rows_run(&r, "session_state");
}
