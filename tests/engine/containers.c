/* SPDX-License-Identifier: MIT */
/* Connecting, images, volumes, containers. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>

#include "base/clock.h"
#include "tests/engine/box.h"

static struct engine_info info;

/* ---- connecting ---- */

static void test_info(void **state)
{
	int i = 0;
	(void)state;
	engine_get_info(g, &info);
	for (const char *w; (w = engine_warning(g, i)); i++)
		print_message("warning: %s\n", w);
	print_message("%s %s api %s runtime %s cgroup %d storage %s\n", info.kind ? "podman" : "docker",
		      info.version, info.api, info.runtime, info.cgroup, info.storage);
	assert_int_equal(i, info.warnings_count);
	assert_true(*info.version && *info.api && *info.runtime && *info.kernel && *info.storage);
	assert_in_range(info.cgroup, 1, 2);
}

static void test_ping(void **state)
{
	bool there = false;
	(void)state;
	OK(engine_ping(g, 5000, &e));
	OK(engine_has_runtime(g, "runc", &there, &e));
	assert_true(there);
	OK(engine_has_runtime(g, "no-such-runtime", &there, &e));
	assert_false(there);
}

/* ---- images ---- */

static void test_image(void **state)
{
	struct engine_image image = { 0 };
	struct err e = { 0 };
	(void)state;
	FAILS(ERR_NOT_FOUND, engine_image_inspect(g, "localhost/berth-test/none:1", &image, &e));
	FAILS(ERR_INVALID, engine_image_inspect(g, "../containers", &image, &e));
	OK(engine_image_inspect(g, IMAGE_VOLUME, &image, &e));
	assert_memory_equal(image.id, "sha256:", 7);
	assert_string_equal(image.env[0], "A=b c");
	assert_null(image.env[1]);
	assert_string_equal(image.volumes[0], "/vol");
	assert_true(image.size_bytes > 1000);
	assert_false(image.has_healthcheck);
	engine_image_clear(&image);
	OK(engine_image_remove(g, "localhost/berth-test/none:1", &e));
}

static void test_broken_import(void **state)
{
	char junk[2048];
	struct err e = { 0 };
	(void)state;
	memset(junk, 'x', sizeof(junk));
	FAILS(ERR_ENGINE,
	      engine_image_import(g, junk, sizeof(junk), "localhost/berth-test/junk:1", NULL, &e));
}

/* ---- volumes ---- */

static void test_volume(void **state)
{
	struct box b;
	struct err e = { 0 };
	(void)state;
	box_init(&b);
	make_volume(b.tmp, 8 << 20, b.labels); /* again, the same: success */
	const struct engine_volume_spec other = { .name = b.tmp };
	FAILS(ERR_CONFLICT, engine_volume_create(g, &other, &e));
	box_start(&b);
	FAILS(ERR_CONFLICT, engine_volume_remove(g, b.work, &e));
	box_clear(&b);
	OK(engine_volume_remove(g, b.work, &e)); /* absent: success */
}

/* ---- containers ---- */

static void test_lifecycle(void **state)
{
	struct box b;
	struct err e = { 0 };
	struct engine_container_state s;
	(void)state;
	box_init(&b);
	OK(engine_container_create(g, &b.spec, b.id, &e));
	assert_int_equal(box_state(&b), ENGINE_CREATED);
	OK(engine_container_kill(g, b.id, &e)); /* not running: success */
	OK(engine_container_start(g, b.id, &e));
	OK(engine_container_start(g, b.id, &e)); /* again: success */
	assert_int_equal(box_state(&b), ENGINE_RUNNING);
	OK(engine_container_pause(g, b.id, false, &e));
	OK(engine_container_pause(g, b.id, true, &e));
	OK(engine_container_pause(g, b.id, true, &e));
	assert_int_equal(box_state(&b), ENGINE_PAUSED);
	OK(engine_container_pause(g, b.id, false, &e));
	OK(engine_container_pause(g, b.id, false, &e));
	OK(engine_container_kill(g, b.id, &e));
	OK(engine_container_kill(g, b.id, &e));
	for (int i = 0; i < 100 && box_state(&b) != ENGINE_EXITED; i++)
		poll(NULL, 0, 20);
	OK(engine_container_inspect(g, b.id, &s, &e));
	assert_int_equal(s.state, ENGINE_EXITED);
	assert_int_equal(s.exit_code, 137);
	assert_false(s.oom_killed);
	FAILS(ERR_CONFLICT, engine_exec_open(g, b.id, b.argv, 10002, 10002, &(struct stream *){ NULL }, &e));
	char id[ENGINE_ID_SIZE];
	memcpy(id, b.id, sizeof(id));
	box_clear(&b);
	OK(engine_container_remove(g, id, 5000, &e)); /* absent: success */
	FAILS(ERR_NOT_FOUND, engine_container_inspect(g, id, &s, &e));
	FAILS(ERR_NOT_FOUND, engine_container_start(g, id, &e));
	FAILS(ERR_NOT_FOUND, engine_container_kill(g, id, &e));
	FAILS(ERR_NOT_FOUND, engine_exec_open(g, id, b.argv, 10002, 10002, &(struct stream *){ NULL }, &e));
}

static void test_remove_paused(void **state)
{
	struct box b;
	(void)state;
	box_init(&b);
	box_start(&b);
	OK(engine_container_pause(g, b.id, true, &e));
	int64_t before = clock_mono_ms();
	box_clear(&b);
	assert_in_range(clock_mono_ms() - before, 0, 5000);
}

static void test_refused_creates(void **state)
{
	struct box b;
	char id[ENGINE_ID_SIZE] = "untouched";
	struct err e = { 0 };
	(void)state;
	box_init(&b);
	OK(engine_container_create(g, &b.spec, b.id, &e));
	FAILS(ERR_CONFLICT, engine_container_create(g, &b.spec, id, &e));
	struct engine_container_spec spec = b.spec;
	char name[64];
	snprintf(name, sizeof(name), "%s-x", b.name);
	spec.name = name;
	spec.image = "localhost/berth-test/none:1";
	FAILS(ERR_NOT_FOUND, engine_container_create(g, &spec, id, &e));
	spec = b.spec;
	spec.name = name;
	spec.network = "host";
	FAILS(ERR_INVALID, engine_container_create(g, &spec, id, &e));
	spec.network = "none";
	spec.runtime = "no-such-runtime";
	FAILS(ERR_ENGINE, engine_container_create(g, &spec, id, &e));
	assert_string_equal(id, "untouched");
	box_clear(&b);
}

static void test_missing_program(void **state)
{
	struct box b;
	struct err e = { 0 };
	(void)state;
	box_init(&b);
	b.argv[0] = "/no/such/program";
	OK(engine_container_create(g, &b.spec, b.id, &e));
	FAILS(ERR_ENGINE, engine_container_start(g, b.id, &e));
	assert_non_null(strstr(e.msg, "no such file"));
	box_clear(&b);
}

/* An image's VOLUME: a mount over it is right; without one no unbounded place appears. */
static void test_image_volume(void **state)
{
	struct box b;
	struct err e = { 0 };
	(void)state;
	box_init(&b);
	b.spec.image = IMAGE_VOLUME;
	if (info.kind == ENGINE_DOCKER) {
		FAILS(ERR_ENGINE, engine_container_create(g, &b.spec, b.id, &e));
		assert_non_null(strstr(e.msg, "/vol"));
		*b.id = 0;
	} else {
		OK(engine_container_create(g, &b.spec, b.id, &e));
	}
	b.mounts[2] = (struct engine_mount){ b.tmp, "/vol", false, false };
	b.mounts[1] = (struct engine_mount){ b.work, "/other", true, false };
	if (*b.id)
		OK(engine_container_remove(g, b.id, 20000, &e));
	b.spec.mount_count = 3;
	OK(engine_container_create(g, &b.spec, b.id, &e));
	box_clear(&b);
}

static bool has_line(const struct buf *text, const char *want)
{
	bool there = strstr(text->data, want) != NULL;
	if (!there)
		print_error("missing: %s\n", want);
	return there;
}

/* What the engine said is one thing, what the kernel says inside another. */
static void test_hardening(void **state)
{
	static const char *const lines[] = {
		"CapInh:\t0000000000000000",
		"CapPrm:\t0000000000000000",
		"CapEff:\t0000000000000000",
		"CapBnd:\t0000000000000000",
		"CapAmb:\t0000000000000000",
		"NoNewPrivs:\t1",
		"Seccomp:\t2",
		"Uid:\t10001\t10001\t10001\t10001",
		"Gid:\t10001\t10001\t10001\t10001",
		"shm_rmid_forced\n1\n",
		"kernel/hostname\nsandbox\n",
		"size=8192k,nr_inodes=1000,mode=700,uid=10001,gid=10001",
	};
	static const char *const facts[] = { "/inside", "facts", NULL };
	static const char *const touch[] = { "/inside", "touch", "/work",    "/tmp", "/",
					     "/vol",    "/etc",  "/var/tmp", "/run", NULL };
	_cleanup_buf_ struct buf said = BUF_INIT(1 << 20), wrote = BUF_INIT(1 << 16);
	struct box b;
	(void)state;
	box_init(&b);
	b.mounts[0].copy_up = true; /* as the helper that fills a workspace */
	OK(engine_container_create(g, &b.spec, b.id, &e));
	OK(engine_container_remove(g, b.id, 20000, &e));
	b.mounts[0].copy_up = false;
	b.spec.mount_count = 3;
	box_start(&b);
	exec_text(&b, facts, &said);
	for (size_t i = 0; i < ARRAY_LEN(lines); i++)
		assert_true(has_line(&said, lines[i]));
	exec_text(&b, touch, &wrote);
	assert_true(has_line(&wrote, "/work=0") && has_line(&wrote, "/tmp=0"));
	char text[32];
	static const char *const closed[] = { "/", "/vol", "/etc" };
	for (size_t i = 0; i < ARRAY_LEN(closed); i++) {
		snprintf(text, sizeof(text), "\n%s=%d\n", closed[i], EROFS);
		if (!strstr(wrote.data, text))
			print_error("%s\n", wrote.data);
		assert_non_null(strstr(wrote.data, text));
	}
	box_clear(&b);
}

static void test_list(void **state)
{
	struct box b[2];
	struct engine_item *items = NULL;
	size_t count = 0;
	char one[ID_SIZE];
	(void)state;
	memcpy(one, run, sizeof(one));
	id_new("l_", run); /* a label of its own */
	box_init(&b[0]);
	box_init(&b[1]);
	box_start(&b[0]);
	OK(engine_container_create(g, &b[1].spec, b[1].id, &e));
	OK(engine_container_list(g, LABEL, run, DETAIL, &items, &count, &e));
	assert_int_equal(count, 2);
	for (size_t i = 0; i < 2; i++) {
		const struct box *is = &b[strcmp(items[i].id, b[0].id) ? 1 : 0];
		assert_string_equal(items[i].id, is->id);
		assert_string_equal(items[i].name, is->name);
		assert_string_equal(items[i].sandbox, is->name);
		assert_int_equal(items[i].state, is == &b[0] ? ENGINE_RUNNING : ENGINE_CREATED);
		assert_in_range(items[i].created_s, clock_wall_ms() / 1000 - 60, clock_wall_ms() / 1000 + 5);
	}
	free(items);
	OK(engine_volume_list(g, LABEL, run, DETAIL, &items, &count, &e));
	assert_int_equal(count, 4);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(strncmp(items[i].name, items[i].sandbox, strlen(items[i].sandbox)), 0);
	free(items);
	box_clear(&b[0]);
	box_clear(&b[1]);
	OK(engine_container_list(g, LABEL, run, DETAIL, &items, &count, &e));
	assert_int_equal(count, 0);
	free(items);
	OK(engine_volume_list(g, LABEL, run, DETAIL, &items, &count, &e));
	assert_int_equal(count, 0);
	free(items);
	memcpy(run, one, sizeof(one));
}

/* ---- 16 at once ---- */

static void *parallel_one(void *ctx)
{
	struct box *b = ctx;
	struct err e = { 0 };
	int r = engine_container_create(g, &b->spec, b->id, &e);
	r = r ? r : engine_container_start(g, b->id, &e);
	r = r ? r : engine_container_remove(g, b->id, 60000, &e);
	if (r)
		print_error("parallel: %s\n", e.msg);
	*b->id = 0;
	return r ? b : NULL;
}

static void test_parallel(void **state)
{
	enum { N = 16 };
	static struct box b[N];
	pthread_t t[N];
	int failed = 0;
	(void)state;
	for (int i = 0; i < N; i++)
		box_init(&b[i]);
	int64_t before = clock_mono_ms();
	for (int i = 0; i < N; i++)
		assert_int_equal(pthread_create(&t[i], NULL, parallel_one, &b[i]), 0);
	for (int i = 0; i < N; i++) {
		void *r = NULL;
		pthread_join(t[i], &r);
		failed += r != NULL;
	}
	print_message("16 creates, starts and removals at once: %d ms\n", (int)(clock_mono_ms() - before));
	assert_int_equal(failed, 0);
	for (int i = 0; i < N; i++)
		box_clear(&b[i]);
}

/* ---- costs ---- */

static int by_size(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

static double median_ms(int64_t *us, size_t n)
{
	qsort(us, n, sizeof(*us), by_size);
	size_t middle = n / 2;
	return (double)us[middle] / 1000;
}

static void test_costs(void **state)
{
	enum { N = 9 };
	static int64_t took[4][N];
	(void)state;
	for (int i = 0; i < N; i++) {
		struct box b;
		box_init(&b);
		int64_t t[5] = { clock_mono_us() };
		OK(engine_ping(g, 5000, &e));
		t[1] = clock_mono_us();
		OK(engine_container_create(g, &b.spec, b.id, &e));
		t[2] = clock_mono_us();
		OK(engine_container_start(g, b.id, &e));
		t[3] = clock_mono_us();
		OK(engine_container_remove(g, b.id, 20000, &e));
		t[4] = clock_mono_us();
		for (int k = 0; k < 4; k++)
			took[k][i] = t[k + 1] - t[k];
		*b.id = 0;
		box_clear(&b);
	}
	print_message("medians: ping %.2f ms, create and read back %.1f ms, start %.1f ms, remove %.1f ms\n",
		      median_ms(took[0], N), median_ms(took[1], N), median_ms(took[2], N),
		      median_ms(took[3], N));
}

const struct CMUnitTest container_tests[] = {
	cmocka_unit_test(test_info),
	cmocka_unit_test(test_ping),
	cmocka_unit_test(test_image),
	cmocka_unit_test(test_broken_import),
	cmocka_unit_test(test_volume),
	cmocka_unit_test(test_lifecycle),
	cmocka_unit_test(test_remove_paused),
	cmocka_unit_test(test_refused_creates),
	cmocka_unit_test(test_missing_program),
	cmocka_unit_test(test_image_volume),
	cmocka_unit_test(test_hardening),
	cmocka_unit_test(test_list),
	cmocka_unit_test(test_parallel),
	cmocka_unit_test(test_costs),
};
const size_t container_tests_count = ARRAY_LEN(container_tests);
