/* SPDX-License-Identifier: MIT */
/* The store without a file, of a berthd whose commands could open any. */
#include <fcntl.h>
#include <jansson.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/unit/store_help.h"

/* stdout goes into a file meanwhile: the audit's lines. */
struct capture {
	int saved, fd;
};

static void begin_capture(struct capture *c)
{
	char path[] = "/tmp/berth-audit-XXXXXX";
	fflush(stdout);
	c->saved = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 10);
	c->fd = mkstemp(path);
	assert_true(c->saved >= 0 && c->fd >= 0);
	unlink(path);
	assert_int_equal(dup3(c->fd, STDOUT_FILENO, 0), STDOUT_FILENO);
}

static void end_capture(struct capture *c, char *ret, size_t size)
{
	assert_int_equal(dup3(c->saved, STDOUT_FILENO, 0), STDOUT_FILENO);
	ssize_t n = pread(c->fd, ret, size - 1, 0);
	assert_true(n >= 0);
	ret[n] = 0;
	close(c->fd);
	close(c->saved);
}

static void rows_are_kept(void **state)
{
	(void)state;
	struct store *st = NULL, *other = NULL;
	struct err e;
	struct session_row got = { 0 };
	char id[32], *value = NULL;
	must(store_open(NULL, &st, &e), &e);
	must(store_open(NULL, &other, &e), &e);
	const struct session_row row = store_session_of(1, "ready", id);
	must(store_session_insert(st, &row, NULL, &e), &e);
	must(store_session_get(st, id, &got, &e), &e);
	assert_string_equal(got.state, "ready");
	session_row_clear(&got);
	assert_int_equal(store_session_get(other, id, &got, &e), -ERR_NOT_FOUND); /* each has its own */
	must(store_set_value(st, "instance", "i_1", &e), &e);
	must(store_get_value(st, "instance", &value, &e), &e);
	assert_string_equal(value, "i_1");
	free(value);
	must(store_check(st, &e), &e);
	store_close(st);
	store_close(other);
}

static void audit_rows_are_lines(void **state)
{
	(void)state;
	struct store *st = NULL;
	struct err e;
	struct capture c;
	char text[4096];
	must(store_open(NULL, &st, &e), &e);
	const struct audit_row row = { .at_ms = 1000,
				       .actor = "session",
				       .action = "exec.start",
				       .subject = "echo \"a\nb\"\xff",
				       .outcome = "accepted" };
	begin_capture(&c);
	int r = store_audit(st, &row, &e);
	end_capture(&c, text, sizeof(text));
	must(r, &e);
	store_close(st);
	assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1); /* one line */
	json_t *all = json_loads(text, 0, NULL), *fields = json_object_get(all, "audit");
	assert_string_equal(json_string_value(json_object_get(fields, "action")), "exec.start");
	assert_string_equal(json_string_value(json_object_get(fields, "at")), "1970-01-01T00:00:01.000Z");
	assert_non_null(strstr(json_string_value(json_object_get(fields, "subject")), "a\nb"));
	assert_null(json_object_get(fields, "detail"));
	json_decref(all);
}

static void a_row_that_cannot_be_printed_is_refused(void **state)
{
	(void)state;
	struct store *st = NULL;
	struct err e;
	struct capture c;
	char text[64], id[32];
	struct session_row got = { 0 };
	must(store_open(NULL, &st, &e), &e);
	const struct session_row row = store_session_of(1, "ready", id);
	const struct audit_row audit = { .at_ms = 1, .actor = "session", .action = "x" };
	begin_capture(&c);
	int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
	assert_int_equal(dup3(full, STDOUT_FILENO, 0), STDOUT_FILENO);
	close(full);
	int r = store_session_insert(st, &row, &audit, &e);
	end_capture(&c, text, sizeof(text));
	assert_int_equal(r, -ERR_STORE);
	assert_int_equal(store_session_get(st, id, &got, &e), -ERR_NOT_FOUND);
	store_close(st);
}

static void replies_are_few(void **state)
{
	(void)state;
	struct store *st = NULL;
	struct err e;
	char id[32];
	struct exec_row *rows = NULL;
	size_t count = 0;
	must(store_open(NULL, &st, &e), &e);
	const struct session_row session = store_session_of(1, "ready", id);
	must(store_session_insert(st, &session, NULL, &e), &e);
	for (int i = 0; i < STORE_EXECS_KEPT_MEMORY + 20; i++) {
		char exec[32];
		snprintf(exec, sizeof(exec), "e_%d", i);
		const struct exec_row row = store_exec_of(id, exec);
		must(store_wait(store_exec_insert(st, &row, NULL), 5000, &e), &e);
		store_exec_end(st, exec, "exited", "{}", 100 + i, NULL, NULL, NULL);
	}
	store_flush(st);
	must(store_exec_purge(st, 0, &e), &e);
	must(store_exec_list(st, id, 1000, &rows, &count, &e), &e);
	assert_int_equal(count, STORE_EXECS_KEPT_MEMORY);
	exec_rows_free(rows, count);
	store_close(st);
}

int main(void)
{
	struct rows r = { 0 };
	rows_one(&r, "rows in memory are kept, for this store alone", rows_are_kept);
	rows_one(&r, "audit rows of a store in memory are lines of JSON", audit_rows_are_lines);
	rows_one(&r, "a write whose audit row cannot be printed is refused",
		 a_row_that_cannot_be_printed_is_refused);
	rows_one(&r, "replies in memory are few", replies_are_few);
	return rows_run(&r, "store_memory");
}
