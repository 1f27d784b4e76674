/* SPDX-License-Identifier: MIT */
/* Rows of commands and of background processes. */
#include <string.h>

#include "tests/unit/store_help.h"

struct done {
	int calls;
	bool ok;
};

static void on_done(void *ctx, bool ok)
{
	struct done *d = ctx;
	d->calls++;
	d->ok = ok;
}

static void exec_life(void **state)
{
	(void)state;
	static const struct audit_row audit = {
		.at_ms = 3, .actor = "session", .address = "::1", .action = "exec.end"
	};
	struct place p;
	struct err e;
	struct exec_row *rows = NULL, got;
	size_t count = 0;
	struct done done = { 0 }, again = { 0 };
	store_place(&p);
	store_add_session(p.st, 1, "ready");
	struct exec_row row = {
		T("x_1"), T("s_1"), T("echo \xc3\xa9"), T("key"), T("hash"), T("{}"), NULL, NULL,
		7,        0,        EXEC_COMMAND,       NULL,     0,         0
	};
	must(store_wait(store_exec_insert(p.st, &row, NULL), 5000, &e), &e);
	must(store_exec_live(p.st, &rows, &count, &e), &e);
	assert_int_equal(count, 1);
	assert_string_equal(rows[0].options, "{}");
	exec_rows_free(rows, count);
	store_exec_end(p.st, "x_1", "exited", "{\"output\":\"\"}", 9, &audit, on_done, &done);
	store_exec_end(p.st, "x_1", "timeout", NULL, 10, &audit, on_done, &again);
	store_place_again(&p); /* a close waits for the calls, too */
	assert_true(done.calls == 1 && done.ok && again.calls == 1 && again.ok);
	assert_int_equal(store_peek(&p, "SELECT count(*) FROM audit"),
			 1); /* the second end changed nothing */
	must(store_exec_get(p.st, "s_1", "x_1", &got, &e), &e);
	assert_string_equal(got.reason, "exited");
	assert_string_equal(got.reply, "{\"output\":\"\"}");
	assert_int_equal(got.ended_ms, 9);
	exec_row_clear(&got);
	must(store_exec_live(p.st, &rows, &count, &e), &e);
	assert_int_equal(count, 0);
	assert_int_equal(store_exec_get(p.st, "s_2", "x_1", &got, &e),
			 -ERR_NOT_FOUND); /* another session's */
	must(store_exec_purge(p.st, 10, &e), &e);
	assert_int_equal(store_exec_get(p.st, "s_1", "x_1", &got, &e), -ERR_NOT_FOUND);
	assert_int_equal(store_peek(&p, "SELECT count(*) FROM audit"), 1);
	store_place_end(&p);
}

/* What a restart needs of a process stays until it is forgotten, however old. */
static void process_life(void **state)
{
	(void)state;
	static const struct audit_row audit = { .at_ms = 3, .actor = "session", .action = "process.delete" };
	struct place p;
	struct err e;
	struct exec_row *rows = NULL, got;
	size_t count = 0;
	store_place(&p);
	store_add_session(p.st, 1, "ready");
	const struct exec_row row = { .id = T("p_1"),
				      .session = T("s_1"),
				      .started_ms = 7,
				      .kind = EXEC_PROCESS,
				      .name = T("web"),
				      .kept = 1 };
	must(store_wait(store_exec_insert(p.st, &row, NULL), 5000, &e), &e);
	store_exec_started(p.st, "p_1", 42);
	store_exec_end(p.st, "p_1", "exited", "{}", 9, NULL, NULL, NULL);
	store_place_again(&p);
	must(store_exec_purge(p.st, 1000, &e), &e);
	must(store_exec_list(p.st, "s_1", 10, &rows, &count, &e), &e);
	assert_int_equal(count, 0); /* of commands */
	must(store_exec_live(p.st, &rows, &count, &e), &e);
	assert_int_equal(count, 1);
	assert_string_equal(rows[0].name, "web");
	assert_true(rows[0].kind == EXEC_PROCESS && rows[0].pid == 42 && rows[0].ended_ms == 9 &&
		    rows[0].kept);
	exec_rows_free(rows, count);
	must(store_exec_forget(p.st, "p_1", &audit, &e), &e);
	assert_int_equal(store_peek(&p, "SELECT count(*) FROM audit WHERE action = 'process.delete'"), 1);
	must(store_exec_live(p.st, &rows, &count, &e), &e);
	assert_int_equal(count, 0);
	must(store_exec_get(p.st, "s_1", "p_1", &got, &e), &e); /* for its Idempotency-Key */
	exec_row_clear(&got);
	must(store_exec_purge(p.st, 1000, &e), &e);
	assert_int_equal(store_exec_get(p.st, "s_1", "p_1", &got, &e), -ERR_NOT_FOUND);
	store_place_end(&p);
}

/* A session that runs without end must not fill the disk with replies; its neighbour's stay. */
static void exec_count(void **state)
{
	(void)state;
	struct place p;
	struct err e;
	store_place(&p);
	store_add_session(p.st, 1, "ready");
	store_add_session(p.st, 2, "ready");
	store_flush(p.st);
	store_poke(
		&p,
		"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1500) "
		"INSERT INTO exec (id, session, started_ms, ended_ms) SELECT 'x_' || i, 's_1', i, i FROM n");
	store_poke(&p, "INSERT INTO exec (id, session, started_ms, ended_ms) VALUES ('y_1', 's_2', 1, 1), "
		       "('y_2', 's_1', 1, 0)");
	must(store_exec_purge(p.st, 0, &e), &e);
	assert_int_equal(store_peek(&p, "SELECT count(*) FROM exec WHERE session = 's_1' AND ended_ms > 0"),
			 STORE_EXECS_KEPT);
	assert_int_equal(
		store_peek(&p, "SELECT min(ended_ms) FROM exec WHERE session = 's_1' AND ended_ms > 0"), 501);
	assert_int_equal(store_peek(&p, "SELECT count(*) FROM exec WHERE id IN ('y_1', 'y_2')"), 2);
	store_place_end(&p);
}

static void exec_keys(void **state)
{
	(void)state;
	struct place p;
	struct err e;
	struct exec_row got;
	store_place(&p);
	store_add_session(p.st, 1, "ready");
	store_add_session(p.st, 2, "ready");
	struct exec_row a = store_exec_of("s_1", "x_a"), b = store_exec_of("s_1", "x_b"),
			c = store_exec_of("s_2", "x_c");
	a.key = b.key = c.key = T("same");
	struct store_ticket *first = store_exec_insert(p.st, &a, NULL),
			    *second = store_exec_insert(p.st, &b, NULL);
	must(store_wait(first, 5000, &e), &e);
	assert_int_equal(store_wait(second, 5000, &e), -ERR_CONFLICT);
	must(store_wait(store_exec_insert(p.st, &c, NULL), 5000, &e), &e);
	must(store_exec_by_key(p.st, "s_1", "same", &got, &e), &e);
	assert_string_equal(got.id, "x_a");
	exec_row_clear(&got);
	struct exec_row lost = store_exec_of("s_none", "x_d");
	assert_int_equal(store_wait(store_exec_insert(p.st, &lost, NULL), 5000, &e), -ERR_NOT_FOUND);
	store_place_end(&p);
}

static void exec_list_is_newest_first(void **state)
{
	(void)state;
	struct place p;
	struct err e;
	struct exec_row *rows = NULL;
	size_t count = 0;
	store_place(&p);
	store_add_session(p.st, 1, "ready");
	for (int i = 0; i < 5; i++) {
		char id[16];
		snprintf(id, sizeof(id), "x_%d", i);
		struct exec_row row = store_exec_of("s_1", id);
		row.started_ms = i / 2;
		row.reply = T("{}");
		must(store_wait(store_exec_insert(p.st, &row, NULL), 5000, &e), &e);
	}
	must(store_exec_list(p.st, "s_1", 3, &rows, &count, &e), &e);
	assert_int_equal(count, 3);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(rows[i].id[2], '4' - i);
		assert_null(rows[i].reply);
	}
	exec_rows_free(rows, count);
	store_place_end(&p);
}

int main(void)
{
	struct rows r = { 0 };
	rows_one(&r, "an exec starts, runs, ends once and is purged", exec_life);
	rows_one(&r, "a process is kept until it is forgotten", process_life);
	rows_one(&r, "a session keeps its newest thousand replies", exec_count);
	rows_one(&r, "an idempotency key is unique within its session", exec_keys);
	rows_one(&r, "execs are listed newest first without replies", exec_list_is_newest_first);
	return rows_run(&r, "store_exec");
}
