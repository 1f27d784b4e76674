/* SPDX-License-Identifier: MIT */
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/engine/box.h"

struct engine *g;
char run[ID_SIZE];

static void *read_file(const char *path, size_t *ret_len)
{
	struct stat st;
	_cleanup_fclose_ FILE *f = fopen(path, "re");
	if (!f || stat(path, &st))
		return NULL;
	void *data = xcalloc((size_t)st.st_size, 1);
	*ret_len = fread(data, 1, (size_t)st.st_size, f);
	return data;
}

static int set_up(const char *tar, struct err *e)
{
	static const char *const changes[] = { "ENV A=\"b c\"", "VOLUME /vol", "CMD [\"left\", \"over\"]",
					       NULL };
	size_t len = 0;
	_cleanup_free_ void *data = read_file(tar, &len);
	int r = data ? engine_image_import(g, data, len, IMAGE, NULL, e)
		     : err_set(e, ERR_INVALID, "no file %s", tar);
	return r ? r : engine_image_import(g, data, len, IMAGE_VOLUME, changes, e);
}

static int tear_down(struct err *e)
{
	int r = engine_image_remove(g, IMAGE, e);
	return r ? r : engine_image_remove(g, IMAGE_VOLUME, e);
}

/* With the wrong certificates, or none, nothing is reached. */
static int refuse_strangers(const char *address, const char *folder, struct err *e)
{
	struct engine *stranger = NULL;
	const struct engine_options none = { .address = address, .call_timeout_ms = 5000 };
	const struct engine_options other = { .address = address,
					      .tls_dir = folder,
					      .call_timeout_ms = 5000 };
	if (engine_connect(&none, &stranger, e) != -ERR_UNAVAILABLE && e->code != ERR_ENGINE)
		return err_set(e, ERR_INTERNAL, "an engine with TLS was reached without");
	if (engine_connect(&other, &stranger, e) != -ERR_UNAVAILABLE)
		return err_set(e, ERR_INTERNAL, "an engine was reached with the wrong certificates");
	return 0;
}

/* cmocka wants one array. */
static int run_all(void)
{
	struct CMUnitTest all[64];
	size_t n = container_tests_count + stream_tests_count;
	if (n > ARRAY_LEN(all))
		return 1;
	memcpy(all, container_tests, container_tests_count * sizeof(*all));
	memcpy(all + container_tests_count, stream_tests, stream_tests_count * sizeof(*all));
	return _cmocka_run_group_tests("engine", all, n, NULL, NULL);
}

int main(int argc, char **argv)
{
	struct err e = { 0 };
	sigaction(SIGPIPE, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
	if (argc < 3)
		return 64;
	const struct engine_options o = { .address = argv[1], .tls_dir = argc > 3 ? argv[3] : NULL };
	int r = argc > 4 ? refuse_strangers(argv[1], argv[4], &e) : 0;
	r = r ? r : engine_connect(&o, &g, &e);
	id_new("r_", run);
	r = r ? r : set_up(argv[2], &e);
	int failed = r ? 0 : run_all();
	r = r ? r : tear_down(&e);
	engine_free(g);
	if (r)
		fprintf(stderr, "%s\n", e.msg);
	return r || failed;
}
