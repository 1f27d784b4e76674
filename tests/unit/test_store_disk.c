/* SPDX-License-Identifier: MIT */
/*
 * The store on bad days: a full disk, one that turns read-only, one that stalls; and kill -9. Runs as root:
 * it mounts small file systems of its own.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "tests/unit/store_help.h"

static const struct audit_row audit = { .actor = "admin", .action = "exec.start", .subject = "true" };

/* Waits for a command of the system; its exit status. */
static int run(const char *const *argv)
{
	pid_t pid = fork();
	if (pid == 0) {
		execvp(argv[0], (char *const *)(uintptr_t)argv);
		_exit(127);
	}
	int status = 0;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

/* ---- a full disk ---- */

#define SESSIONS 150

static void fill_disk(const struct place *p)
{
	static const char block[4096] = "x";
	_cleanup_free_ char *path = xasprintf("%s/filler", p->dir);
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	while (write(fd, block, sizeof(block)) > 0)
		;
	assert_int_equal(errno, ENOSPC);
}

static void free_disk(const struct place *p)
{
	_cleanup_free_ char *path = xasprintf("%s/filler", p->dir);
	assert_int_equal(unlink(path), 0);
}

static void place_on(struct place *p, const char *type, const char *options)
{
	struct err e;
	snprintf(p->dir, sizeof(p->dir), "/tmp/berth-disk-XXXXXX");
	assert_non_null(mkdtemp(p->dir));
	if (mount("berth-test", p->dir, type, 0, options) < 0)
		fail_msg("mount: %s", strerror(errno));
	must(store_open(p->dir, &p->st, &e), &e);
}

static void place_off(struct place *p)
{
	store_close(p->st);
	assert_int_equal(umount(p->dir), 0);
	assert_int_equal(rmdir(p->dir), 0);
}

static void move(struct store *st, int n, const char *from, const char *to)
{
	static const struct audit_row gone = { .actor = "admin",
					       .action = "session.delete",
					       .outcome = "ok" };
	struct err e;
	char id[32];
	struct session_row row = store_session_of(n, to, id);
	row.labels = T("{\"a\":\"b\",\"c\":\"d\"}");
	row.reason = T("deleted");
	row.ended_ms = strcmp(to, "gone") ? 0 : 1;
	must(store_session_update(st, &row, from, &gone, &e), &e);
}

static void note(void *ctx, bool ok)
{
	__atomic_store_n((int *)ctx, ok ? 1 : -1, __ATOMIC_SEQ_CST);
}

static void full_disk(void **state)
{
	(void)state;
	struct place p;
	struct err e;
	int ended = 0;
	struct session_row got;
	place_on(&p, "tmpfs", "size=20m");
	for (int i = 0; i < SESSIONS; i++)
		store_add_session(p.st, i, "ready");
	struct exec_row x = store_exec_of("s_1", "x_1"), y = store_exec_of("s_1", "x_2");
	must(store_wait(store_exec_insert(p.st, &x, &audit), 5000, &e), &e);
	fill_disk(&p);

	/* New commands are refused by name, and nothing of them is there. */
	assert_int_equal(store_wait(store_exec_insert(p.st, &y, &audit), 5000, &e), -ERR_STORE);
	assert_non_null(strstr(e.msg, "full"));
	assert_int_equal(store_audit(p.st, &audit, &e), -ERR_STORE);
	assert_int_equal(store_check(p.st, &e), -ERR_STORE);
	store_exec_end(p.st, "x_1", "exited", "{}", 7, &audit, note, &ended);
	store_session_touch(p.st, "s_2", 1);

	/* Reads go on, and every session can still be deleted. */
	must(store_session_get(p.st, "s_1", &got, &e), &e);
	session_row_clear(&got);
	for (int i = 0; i < SESSIONS; i++)
		move(p.st, i, "ready", "stopping");
	for (int i = 2; i < SESSIONS; i++)
		move(p.st, i, "stopping", "gone");
	assert_int_equal(__atomic_load_n(&ended, __ATOMIC_SEQ_CST), 0); /* kept for later, not lost */

	/* With room it all works again without a restart, the end of the exec included. */
	free_disk(&p);
	must(store_check(p.st, &e), &e);
	must(store_wait(store_exec_insert(p.st, &y, &audit), 5000, &e), &e);
	for (int64_t until = clock_mono_ms() + 10000;
	     !__atomic_load_n(&ended, __ATOMIC_SEQ_CST) && clock_mono_ms() < until;)
		store_flush(p.st);
	assert_int_equal(__atomic_load_n(&ended, __ATOMIC_SEQ_CST), 1);
	store_close(p.st);
	must(store_open(p.dir, &p.st, &e), &e);
	assert_int_equal(store_peek(&p, "SELECT count(*) FROM exec WHERE reason = 'exited'"), 1);
	assert_int_equal(store_peek(&p, "SELECT count(*) FROM session WHERE state = 'gone'"), SESSIONS - 2);
	place_off(&p);
}

static void give_up(void **state)
{
	(void)state;
	struct place p;
	struct err e;
	int ended = 0;
	place_on(&p, "tmpfs", "size=20m");
	store_add_session(p.st, 1, "ready");
	struct exec_row x = store_exec_of("s_1", "x_1");
	must(store_wait(store_exec_insert(p.st, &x, &audit), 5000, &e), &e);
	fill_disk(&p);
	store_exec_end(p.st, "x_1", "exited", "{}", 7, NULL, note, &ended);
	store_close(p.st);
	assert_int_equal(ended, -1); /* its owner knows */
	free_disk(&p);
	must(store_open(p.dir, &p.st, &e), &e);
	assert_int_equal(store_peek(&p, "SELECT count(*) FROM exec WHERE ended_ms = 0"), 1);
	place_off(&p);
}

/* ---- a disk that turns read-only under us, as ext4 does at an error ---- */

struct image {
	struct place p;
	char file[64], device[64];
};

static void image_mount(struct image *m)
{
	snprintf(m->file, sizeof(m->file), "/tmp/berth-image-XXXXXX");
	_cleanup_close_ int fd = mkstemp(m->file);
	assert_true(fd >= 0 && ftruncate(fd, 64 << 20) == 0);
	snprintf(m->p.dir, sizeof(m->p.dir), "/tmp/berth-disk-XXXXXX");
	assert_non_null(mkdtemp(m->p.dir));
	const char *mkfs[] = { "mkfs.ext4", "-q", "-F", m->file, NULL };
	const char *on[] = { "mount", "-o", "loop,errors=remount-ro", m->file, m->p.dir, NULL };
	assert_int_equal(run(mkfs), 0);
	assert_int_equal(run(on), 0);
}

/* The name under which sysfs knows the mounted device. */
static void image_fail(const struct image *m)
{
	struct stat s;
	char link[64], target[256];
	assert_int_equal(stat(m->p.dir, &s), 0);
	snprintf(link, sizeof(link), "/sys/dev/block/%u:%u", (unsigned)(s.st_dev >> 8),
		 (unsigned)(s.st_dev & 0xff));
	ssize_t n = readlink(link, target, sizeof(target) - 1);
	assert_true(n > 0);
	target[n] = 0;
	_cleanup_free_ char *path = xasprintf("/sys/fs/ext4/%s/trigger_fs_error", strrchr(target, '/') + 1);
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0 && write(fd, "1", 1) == 1);
}

static void read_only_disk(void **state)
{
	(void)state;
	struct image m;
	struct err e;
	struct session_row got;
	image_mount(&m);
	must(store_open(m.p.dir, &m.p.st, &e), &e);
	store_add_session(m.p.st, 1, "ready");
	image_fail(&m);
	struct exec_row x = store_exec_of("s_1", "x_1");
	for (int i = 0; i < 3; i++)
		assert_int_equal(store_wait(store_exec_insert(m.p.st, &x, &audit), 10000, &e), -ERR_STORE);
	assert_int_equal(store_check(m.p.st, &e), -ERR_STORE);
	must(store_session_get(m.p.st, "s_1", &got, &e), &e);
	assert_string_equal(got.state, "ready");
	session_row_clear(&got);
	store_close(m.p.st);
	assert_int_equal(store_open(m.p.dir, &m.p.st, &e), -ERR_STORE);
	assert_non_null(strstr(e.msg, "Read-only"));
	assert_int_equal(umount(m.p.dir), 0);
	unlink(m.file);
	rmdir(m.p.dir);
}

/* ---- a disk that stalls: somebody else holds the file's write lock ---- */

#define QUEUED 4200

static void stalled_disk(void **state)
{
	(void)state;
	struct place p;
	struct err e;
	int ended = 0;
	struct session_row got;
	store_place(&p);
	store_add_session(p.st, 1, "ready");
	_cleanup_free_ char *path = xasprintf("%s/berth.db", p.dir);
	sqlite3 *other = NULL;
	assert_int_equal(sqlite3_open(path, &other), SQLITE_OK);
	assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);

	struct exec_row x = store_exec_of("s_1", "x_1");
	assert_int_equal(store_wait(store_exec_insert(p.st, &x, &audit), 100, &e),
			 -ERR_TIMEOUT); /* it may happen yet */
	struct store_ticket **tickets = calloc(QUEUED, sizeof(struct store_ticket *));
	int refused = 0;
	for (int i = 0; i < QUEUED; i++) {
		char id[32];
		snprintf(id, sizeof(id), "y_%d", i);
		x.id = id;
		tickets[i] = store_exec_insert(p.st, &x, NULL);
	}
	store_exec_end(p.st, "x_1", "exited", NULL, 7, NULL, note,
		       &ended); /* ends and touches always have room */
	store_session_touch(p.st, "s_1", 7);
	must(store_session_get(p.st, "s_1", &got, &e), &e); /* reads go on */
	session_row_clear(&got);
	for (int i = 0; i < QUEUED; i++) {
		assert_int_equal(store_wait(tickets[i], 0, &e),
				 -ERR_STORE); /* not begun: it will not happen */
		refused += e.retry_after_s > 0;
	}
	assert_true(refused > 0 && refused < QUEUED);
	sqlite3_close(other);
	free(tickets);
	store_place_again(&p);
	assert_int_equal(ended, 1);
	assert_int_equal(store_peek(&p, "SELECT count(*) FROM exec"), 1);
	store_place_end(&p);
}

/* ---- kill -9 ---- */

#define KILLS 12
#define WRITERS 4

struct victim {
	struct store *st;
	int pipe, round, n;
};

/* Writes and says so, until it is killed. */
static void *write_and_tell(void *arg)
{
	const struct victim *v = arg;
	for (int i = 0;; i++) {
		struct err e;
		char id[32] = "";
		snprintf(id, sizeof(id), "x_%d_%d_%d", v->round, v->n, i);
		struct exec_row row = store_exec_of("s_1", id);
		if (store_wait(store_exec_insert(v->st, &row, &audit), 10000, &e) < 0 ||
		    write(v->pipe, id, sizeof(id)) < 0)
			_exit(1);
		if (i % 3 == 0)
			store_exec_end(v->st, id, "exited", "{}", 1, NULL, NULL, NULL);
	}
	return NULL;
}

static void victim_main(const char *dir, int fd, int round)
{
	struct victim v[WRITERS];
	pthread_t thread;
	struct store *st = NULL;
	struct err e;
	if (store_open(dir, &st, &e) < 0)
		_exit(2);
	for (int i = 0; i < WRITERS; i++) {
		v[i] = (struct victim){ st, fd, round, i };
		pthread_create(&thread, NULL, write_and_tell, &v[i]);
	}
	for (;;)
		pause();
}

/* Lets it acknowledge some writes, kills it, and returns how many of them are missing. */
static int kill_one(const struct place *p, int round, int *ret_told)
{
	int fds[2], missing = 0, told = 0;
	char id[32];
	assert_int_equal(pipe(fds), 0);
	pid_t pid = fork();
	if (pid == 0)
		victim_main(p->dir, fds[1], round);
	close(fds[1]);
	FILE *in = fdopen(fds[0], "r");
	char(*ids)[32] = calloc(100000, sizeof(*ids));
	while (fread(id, sizeof(id), 1, in) == 1) {
		memcpy(ids[told++], id, sizeof(id));
		if (told == 20 + 137 * round)
			kill(pid, SIGKILL);
	}
	fclose(in);
	int status = 0;
	waitpid(pid, &status, 0);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	struct err e;
	struct exec_row got;
	struct store *st = NULL;
	must(store_open(p->dir, &st, &e), &e);
	for (int i = 0; i < told; i++) {
		int rc = store_exec_get(st, "s_1", ids[i], &got, &e);
		if (rc == 0)
			exec_row_clear(&got);
		missing += rc < 0;
	}
	store_close(st);
	free(ids);
	*ret_told = told;
	return missing;
}

static void killed(void **state)
{
	(void)state;
	struct place p;
	struct err e;
	store_place(&p);
	store_add_session(p.st, 1, "ready");
	store_close(p.st);
	p.st = NULL;
	for (int round = 0; round < KILLS; round++) {
		int told = 0;
		assert_int_equal(kill_one(&p, round, &told), 0);
		assert_true(told >= 20 + 137 * round);
	}
	must(store_open(p.dir, &p.st, &e), &e);
	assert_int_equal(store_peek(&p, "SELECT count(*) FROM exec WHERE NOT EXISTS (SELECT 1 FROM audit)"),
			 0);
	assert_int_equal(store_peek(&p, "SELECT count(*) FROM exec") -
				 store_peek(&p, "SELECT count(*) FROM audit"),
			 0);
	assert_int_equal(
		store_peek(&p, "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check <> 'ok'"),
		0);
	store_place_end(&p);
}

int main(void)
{
	struct rows r = { 0 };
	setvbuf(stdout, NULL, _IOLBF, 0); /* log lines and cmocka's keep their order */
	rows_one(&r, "a full disk refuses new commands, still deletes, and recovers by itself", full_disk);
	rows_one(&r, "an end that a full disk never took is reported at the close", give_up);
	rows_one(&r, "a disk that turns read-only fails writes and not reads", read_only_disk);
	rows_one(&r, "a stalled disk: deadlines, a bounded queue, room for ends", stalled_disk);
	rows_one(&r, "kill -9 loses nothing that was acknowledged", killed);
	return rows_run(&r, "store_disk");
}
