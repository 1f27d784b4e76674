/* SPDX-License-Identifier: MIT */
/*
 * The store on a disk that works: rows in and out, migrations. Lists are in test_store_list.c, what disks and
 * crashes do in test_store_disk.c.
 */
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>

#include "base/metrics.h"
#include "manager/store/store_migrate.h"
#include "tests/unit/store_help.h"

/* ---- opening ---- */

static void files_are_private(void **state)
{
	(void)state;
	static const char *const names[] = { "berth.db", "berth.db-wal", "berth.db-shm", "lock" };
	struct place p;
	store_place(&p);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		struct stat s;
		_cleanup_free_ char *path = xasprintf("%s/%s", p.dir, names[i]);
		assert_int_equal(stat(path, &s), 0);
		assert_int_equal(s.st_mode & 0777, 0600);
	}
	store_place_end(&p);
}

static void second_manager_is_refused(void **state)
{
	(void)state;
	struct place p;
	struct store *other = NULL;
	struct err e;
	store_place(&p);
	assert_int_equal(store_open(p.dir, &other, &e), -ERR_STORE);
	assert_non_null(strstr(e.msg, "another berthd uses"));
	assert_null(other);
	store_place_end(&p);
}

static void folder_that_cannot_be_made(void **state)
{
	(void)state;
	struct store *st = NULL;
	struct err e;
	assert_int_equal(store_open("/proc/berth", &st, &e), -ERR_STORE);
	assert_non_null(strstr(e.msg, "/proc/berth"));
	assert_int_equal(store_open("/dev/null", &st, &e), -ERR_STORE);
}

static void migrations_are_numbered(void **state)
{
	(void)state;
	size_t n = 0;
	for (; store_migrations[n].name; n++) {
		char want[8];
		snprintf(want, sizeof(want), "%04zu_", n + 1);
		assert_memory_equal(store_migrations[n].name, want, 5);
		assert_int_equal(strlen(store_migrations[n].sql), store_migrations[n].len);
	}
	assert_true(n > 0);
}

struct refused_row {
	const char *name, *sql, *message;
};

static const struct refused_row refused[] = {
	{ "a migration with another checksum is refused",
	  "UPDATE schema_migrations SET checksum = 'x' WHERE version = 1", "has changed" },
	{ "a migration with another name is refused",
	  "UPDATE schema_migrations SET name = '0001_other' WHERE version = 1", "has changed" },
	{ "the file of a newer release is refused",
	  "INSERT INTO schema_migrations VALUES ((SELECT max(version) + 1 FROM schema_migrations), '9999_x', "
	  "'x', 0)",
	  "newer release" },
	{ "a file with a gap is refused", "UPDATE schema_migrations SET version = version + 10",
	  "lacks migration 1" },
	{ "a file that is no database is refused",
	  "PRAGMA writable_schema = 1; UPDATE sqlite_schema SET sql = 'nonsense'", "malformed" },
};

static void refused_test(void **state)
{
	const struct refused_row *row = *state;
	struct place p;
	struct err e;
	store_place(&p);
	store_close(p.st);
	p.st = NULL;
	store_poke(&p, row->sql);
	assert_int_equal(store_open(p.dir, &p.st, &e), -ERR_STORE);
	if (!strstr(e.msg, row->message))
		fail_msg("%s", e.msg);
	store_place_end(&p);
}

/* ---- values ---- */

static void values(void **state)
{
	(void)state;
	struct place p;
	struct err e;
	char *got = T("untouched");
	store_place(&p);
	must(store_get_value(p.st, "instance", &got, &e), &e);
	assert_null(got);
	must(store_set_value(p.st, "instance", "a", &e), &e);
	must(store_set_value(p.st, "instance", "\xc3\xbc b'\"", &e), &e);
	store_place_again(&p);
	must(store_get_value(p.st, "instance", &got, &e), &e);
	assert_string_equal(got, "\xc3\xbc b'\"");
	free(got);
	store_place_end(&p);
}

/* ---- sessions ---- */

static const struct session_row full = {
	.id = T("s_full"),
	.name = T("n'; DROP TABLE session; --"),
	.labels = T("{\"a\":\"\xf0\x9f\x90\x9f\",\"b\":\"\"}"),
	.env = T("{\"K\":\"v\\u0001\"}"),
	.image = T("img"),
	.image_id = T("sha256:1"),
	.memory_mb = 1,
	.cpu_milli = 2,
	.pids = 3,
	.ttl_s = 4,
	.idle_s = 5,
	.network = T("none"),
	.isolation = T("runc"),
	.workspace_kind = T("volume"),
	.workspace_name = T("w"),
	.workspace_mb = 6,
	.state = T("creating"),
	.reason = T("r"),
	.detail = T("d\n"),
	.token_hash = T("th"),
	.sandbox = T("sb"),
	.container = T("c"),
	.link_generation = 7,
	.created_ms = 8,
	.ready_ms = 9,
	.expires_ms = 10,
	.idle_ms = 11,
	.ended_ms = 12,
};

static void same_text(const char *a, const char *b)
{
	assert_true(a != NULL && b != NULL);
	assert_string_equal(a, b);
}

static void same_session(const struct session_row *a, const struct session_row *b)
{
	same_text(a->id, b->id);
	same_text(a->name, b->name);
	same_text(a->labels, b->labels);
	same_text(a->env, b->env);
	same_text(a->image, b->image);
	same_text(a->image_id, b->image_id);
	same_text(a->network, b->network);
	same_text(a->isolation, b->isolation);
	same_text(a->workspace_kind, b->workspace_kind);
	same_text(a->workspace_name, b->workspace_name);
	same_text(a->state, b->state);
	same_text(a->reason, b->reason);
	same_text(a->detail, b->detail);
	same_text(a->token_hash, b->token_hash);
	same_text(a->sandbox, b->sandbox);
	same_text(a->container, b->container);
	int64_t left[] = { a->memory_mb,    a->cpu_milli,       a->pids,       a->ttl_s,    a->idle_s,
			   a->workspace_mb, a->link_generation, a->created_ms, a->ready_ms, a->expires_ms,
			   a->idle_ms,      a->ended_ms };
	int64_t right[] = { b->memory_mb,    b->cpu_milli,       b->pids,       b->ttl_s,    b->idle_s,
			    b->workspace_mb, b->link_generation, b->created_ms, b->ready_ms, b->expires_ms,
			    b->idle_ms,      b->ended_ms };
	assert_memory_equal(left, right, sizeof(left));
}

static void session_round_trip(void **state)
{
	(void)state;
	struct place p;
	struct err e;
	struct session_row got;
	store_place(&p);
	must(store_session_insert(p.st, &full, NULL, &e), &e);
	store_place_again(&p);
	must(store_session_get(p.st, full.id, &got, &e), &e);
	same_session(&full, &got);
	session_row_clear(&got);
	must(store_session_by_token(p.st, "th", &got, &e), &e);
	same_session(&full, &got);
	session_row_clear(&got);
	assert_int_equal(store_session_by_token(p.st, "other", &got, &e), -ERR_NOT_FOUND);
	assert_int_equal(store_session_insert(p.st, &full, NULL, &e), -ERR_CONFLICT);
	store_place_end(&p);
}

static void update_only_from_the_expected_state(void **state)
{
	(void)state;
	static const struct audit_row audit = {
		.at_ms = 1, .actor = "admin", .action = "session.delete", .session = "s_full"
	};
	struct place p;
	struct err e;
	struct session_row got, row = full;
	store_place(&p);
	must(store_session_insert(p.st, &full, &audit, &e), &e);
	row.state = T("ready");
	row.name = NULL;
	row.expires_ms = 99;
	assert_int_equal(store_session_update(p.st, &row, "ready", &audit, &e), -ERR_CONFLICT);
	assert_non_null(strstr(e.msg, "is creating, no longer ready"));
	row.id = T("s_none");
	assert_int_equal(store_session_update(p.st, &row, "creating", &audit, &e), -ERR_NOT_FOUND);
	row.id = full.id;
	must(store_session_update(p.st, &row, "creating", &audit, &e), &e);
	must(store_session_get(p.st, full.id, &got, &e), &e);
	assert_string_equal(got.state, "ready");
	assert_null(got.name);
	assert_int_equal(got.expires_ms, 99);
	session_row_clear(&got);
	assert_int_equal(store_peek(&p, "SELECT count(*) FROM audit"),
			 2); /* the refused ones left no trace */
	store_place_end(&p);
}

static void generation_never_goes_down(void **state)
{
	(void)state;
	struct place p;
	struct err e;
	struct session_row got, row = full;
	store_place(&p);
	must(store_session_insert(p.st, &full, NULL, &e), &e);
	must(store_session_generation(p.st, full.id, 20, &e), &e);
	must(store_session_generation(p.st, full.id, 19, &e), &e);
	row.link_generation = 8;
	must(store_session_update(p.st, &row, "creating", NULL, &e), &e);
	must(store_session_get(p.st, full.id, &got, &e), &e);
	assert_int_equal(got.link_generation, 20);
	session_row_clear(&got);
	assert_int_equal(store_session_generation(p.st, "s_none", 1, &e), -ERR_NOT_FOUND);
	store_place_end(&p);
}

static void greatest_touch_wins(void **state)
{
	(void)state;
	struct place p;
	struct err e;
	struct session_row got, row = full;
	store_place(&p);
	must(store_session_insert(p.st, &full, NULL, &e), &e);
	row.id = T("s_endless");
	row.token_hash = row.sandbox = NULL;
	row.idle_s = row.idle_ms = 0;
	must(store_session_insert(p.st, &row, NULL, &e), &e);
	store_session_touch(p.st, full.id, 500);
	store_session_touch(p.st, full.id, 900);
	store_session_touch(p.st, full.id, 700);
	store_session_touch(p.st, "s_endless", 700);
	store_flush(p.st);
	store_session_touch(p.st, full.id, 800);
	store_place_again(&p);
	must(store_session_get(p.st, full.id, &got, &e), &e);
	assert_int_equal(got.idle_ms, 900);
	session_row_clear(&got);
	must(store_session_get(p.st, "s_endless", &got, &e), &e);
	assert_int_equal(got.idle_ms, 0); /* no idle limit, no deadline */
	session_row_clear(&got);
	store_place_end(&p);
}

static void bad_rows_are_refused_alone(void **state)
{
	(void)state;
	struct place p;
	struct err e;
	char id[32];
	store_place(&p);
	struct session_row row = store_session_of(1, "dancing", id);
	assert_int_equal(store_session_insert(p.st, &row, NULL, &e), -ERR_INTERNAL);
	row = store_session_of(1, "ready", id);
	row.labels = T("[]");
	assert_int_equal(store_session_insert(p.st, &row, NULL, &e), -ERR_INTERNAL);
	row = store_session_of(1, "ready", id);
	must(store_session_insert(p.st, &row, NULL, &e), &e);
	must(store_check(p.st, &e), &e);
	store_place_end(&p);
}

/* ---- purge ---- */

static void purge(void **state)
{
	(void)state;
	struct place p;
	struct err e;
	char id[32];
	store_place(&p);
	for (int i = 0; i < 450; i++) {
		struct session_row row = store_session_of(i, i < 430 ? "gone" : "failed", id);
		row.labels = T("{\"a\":\"b\"}");
		row.ended_ms = 100 + i;
		must(store_session_insert(p.st, &row, NULL, &e), &e);
	}
	struct exec_row x = store_exec_of("s_0", "x_0");
	struct audit_row audit = { .actor = "admin", .action = "exec.start", .exec = "x_0" };
	must(store_wait(store_exec_insert(p.st, &x, &audit), 5000, &e), &e);
	store_add_session(p.st, 1000, "ready");
	must(store_session_purge(p.st, 100 + 440, &e), &e);
	assert_int_equal(store_peek(&p, "SELECT count(*) FROM session"), 11);
	assert_int_equal(store_peek(&p, "SELECT count(*) FROM session_label"), 10);
	assert_int_equal(store_peek(&p, "SELECT count(*) FROM exec"), 0);
	assert_int_equal(store_peek(&p, "SELECT count(*) FROM audit WHERE at_ms > 0"), 1);
	store_place_end(&p);
}

/* ---- many writers ---- */

#define WRITERS 24
#define EACH 20

struct writer {
	struct store *st;
	int n;
};

static void *write_execs(void *arg)
{
	const struct writer *w = arg;
	static const struct audit_row audit = { .actor = "session", .action = "exec.start" };
	for (int i = 0; i < EACH; i++) {
		char id[32];
		struct err e;
		snprintf(id, sizeof(id), "x_%d_%d", w->n, i);
		struct exec_row row = store_exec_of("s_1", id), got;
		if (store_wait(store_exec_insert(w->st, &row, &audit), 20000, &e) < 0 ||
		    store_exec_get(w->st, "s_1", id, &got, &e) <
			    0) /* what was acknowledged is seen at once */
			return T("failed");
		exec_row_clear(&got);
		store_session_touch(w->st, "s_1", i);
		store_exec_end(w->st, id, "exited", "{}", i + 1, &audit, NULL, NULL);
	}
	return NULL;
}

static void writers_share_commits(void **state)
{
	(void)state;
	struct place p;
	struct writer w[WRITERS];
	pthread_t threads[WRITERS];
	store_place(&p);
	store_add_session(p.st, 1, "ready");
	int64_t commits = metrics_get(METRIC_STORE_COMMIT_SECONDS, NULL, NULL);
	int64_t writes = metrics_get(METRIC_STORE_WRITES, "ok", NULL);
	int64_t failures = metrics_get(METRIC_STORE_WRITES, "failed", NULL);
	for (int i = 0; i < WRITERS; i++) {
		w[i] = (struct writer){ p.st, i };
		assert_int_equal(pthread_create(&threads[i], NULL, write_execs, &w[i]), 0);
	}
	for (int i = 0; i < WRITERS; i++) {
		void *failed = NULL;
		pthread_join(threads[i], &failed);
		assert_null(failed);
	}
	store_flush(p.st);
	commits = metrics_get(METRIC_STORE_COMMIT_SECONDS, NULL, NULL) - commits;
	assert_in_range(commits, 1, WRITERS * EACH - 1); /* fewer commits than starts alone */
	assert_true(metrics_get(METRIC_STORE_WRITES, "ok", NULL) - writes >= 2 * WRITERS * EACH);
	assert_int_equal(metrics_get(METRIC_STORE_WRITES, "failed", NULL), failures);
	assert_int_equal(store_peek(&p, "SELECT count(*) FROM exec WHERE reason = 'exited'"), WRITERS * EACH);
	assert_int_equal(store_peek(&p, "SELECT count(*) FROM audit"), 2 * WRITERS * EACH);
	store_place_end(&p);
}

static void audit_alone(void **state)
{
	(void)state;
	struct place p;
	struct err e;
	struct audit_row row = { .at_ms = 5,
				 .actor = "admin",
				 .action = "refused",
				 .outcome = "limit_exceeded",
				 .subject = "\xe2\x82\xac" };
	store_place(&p);
	store_audit_later(p.st, &row);
	must(store_audit(p.st, &row, &e), &e);
	assert_int_equal(
		store_peek(&p,
			   "SELECT count(*) FROM audit WHERE subject = '\xe2\x82\xac' AND detail IS NULL"),
		2);
	store_audit_later(p.st, &row);
	store_place_again(&p); /* closing commits what is queued */
	assert_int_equal(store_peek(&p, "SELECT max(id) FROM audit"), 3);
	store_place_end(&p);
}

static void audit_purge(void **state)
{
	(void)state;
	struct place p;
	struct err e;
	struct audit_row row = { .actor = "admin", .action = "exec.start" };
	store_place(&p);
	for (int i = 0; i < 1203; i++) {
		row.at_ms = i + 1;
		store_audit_later(p.st, &row);
	}
	must(store_audit(p.st, &row, &e), &e);
	must(store_audit_purge(p.st, 1, &e), &e);
	assert_int_equal(store_peek(&p, "SELECT count(*) FROM audit"), 1204);
	must(store_audit_purge(p.st, 1201, &e), &e);
	assert_int_equal(store_peek(&p, "SELECT count(*) FROM audit"), 4);
	assert_int_equal(store_peek(&p, "SELECT min(at_ms) FROM audit"), 1201);
	must(store_audit_purge(p.st, 5000, &e), &e);
	assert_int_equal(store_peek(&p, "SELECT count(*) FROM audit"), 0);
	store_place_end(&p);
}

int main(void)
{
	struct rows r = { 0 };
	setvbuf(stdout, NULL, _IOLBF, 0); /* log lines and cmocka's keep their order */
	rows_one(&r, "the files are readable for their owner only", files_are_private);
	rows_one(&r, "a second manager on the same folder is refused", second_manager_is_refused);
	rows_one(&r, "a folder that cannot be made is named", folder_that_cannot_be_made);
	rows_one(&r, "the embedded migrations count from 1 without a gap", migrations_are_numbered);
	ROWS(&r, refused_test, refused);
	rows_one(&r, "a named value comes back after a restart", values);
	rows_one(&r, "every column of a session comes back", session_round_trip);
	rows_one(&r, "a session is updated from the expected state only, and its audit row with it",
		 update_only_from_the_expected_state);
	rows_one(&r, "a link generation never goes down", generation_never_goes_down);
	rows_one(&r, "the greatest touch wins, and none gives a session an idle limit", greatest_touch_wins);
	rows_one(&r, "a row that breaks a rule is refused alone", bad_rows_are_refused_alone);
	rows_one(&r, "a purge takes ended sessions with execs and labels, not the audit", purge);
	rows_one(&r, "many writers share commits and nothing is lost", writers_share_commits);
	rows_one(&r, "audit rows alone, for now and for later", audit_alone);
	rows_one(&r, "old audit rows go, the oldest first, and new ones stay", audit_purge);
	return rows_run(&r, "store");
}
