/* SPDX-License-Identifier: MIT */
/* Settings of a berthd that runs in its one sandbox, and secrets in the environment block. */
#include <string.h>

#include "manager/settings.h"
#include "tests/unit/rows.h"

#define TOKEN "a-token-of-24-characters"

static int load(const char *const *env, struct settings *s, struct err *e)
{
	char *argv[] = { (char *)"berthd" };
	enum settings_action action;
	clearenv();
	setenv("SANDBOX_RUNTIME", "local", 1);
	for (; *env; env += 2)
		setenv(env[0], env[1], 1);
	return settings_load(1, argv, s, &action, e);
}

static const struct taken_row {
	const char *name, *env[7], *listen;
} taken[] = {
	{ "it listens on all addresses", { "SANDBOX_TOKEN", TOKEN }, "0.0.0.0:8080" },
	{ "at the port", { "SANDBOX_TOKEN", TOKEN, "SANDBOX_PORT", "9000" }, "0.0.0.0:9000" },
	{ "listen wins",
	  { "SANDBOX_TOKEN", TOKEN, "SANDBOX_PORT", "9000", "SANDBOX_LISTEN", "127.0.0.1:1" },
	  "127.0.0.1:1" },
};

static void taken_test(void **state)
{
	const struct taken_row *row = *state;
	struct settings s;
	struct err e;
	assert_int_equal(load(row->env, &s, &e), 0);
	assert_true(settings_is_local(&s));
	assert_string_equal(s.listen, row->listen);
	assert_null(s.token_file);
	settings_clear(&s);
}

static const struct refused_row {
	const char *name, *env[5], *field;
} refused[] = {
	{ "without a token", { NULL }, "SANDBOX_TOKEN" },
	{ "a runtime that is none", { "SANDBOX_RUNTIME", "loca" }, "SANDBOX_RUNTIME" },
	{ "an administrator's token",
	  { "SANDBOX_TOKEN", TOKEN, "SANDBOX_ADMIN_TOKEN", "x" TOKEN },
	  "SANDBOX_ADMIN_TOKEN" },
	{ "networks of an engine",
	  { "SANDBOX_TOKEN", TOKEN, "SANDBOX_NETWORKS", "bridge" },
	  "SANDBOX_NETWORKS" },
	{ "mounts of an engine",
	  { "SANDBOX_TOKEN", TOKEN, "SANDBOX_MOUNTS", "a=/etc/hosts:/hosts:ro" },
	  "SANDBOX_MOUNTS" },
};

static void refused_test(void **state)
{
	const struct refused_row *row = *state;
	struct settings s;
	struct err e;
	assert_int_equal(load(row->env, &s, &e), -ERR_INVALID);
	assert_string_equal(e.field, row->field);
}

static void token_file_is_known(void **state)
{
	(void)state;
	char path[] = "/tmp/berth-secret-XXXXXX";
	struct settings s;
	struct err e;
	int fd = mkstemp(path);
	assert_int_equal(write(fd, TOKEN, strlen(TOKEN)), strlen(TOKEN));
	close(fd);
	assert_int_equal(load((const char *const[]){ "SANDBOX_TOKEN_FILE", path, NULL }, &s, &e), 0);
	assert_string_equal(s.token, TOKEN);
	assert_string_equal(s.token_file, path);
	settings_clear(&s);
	unlink(path);
}

static void secrets_are_scrubbed(void **state)
{
	(void)state;
	clearenv();
	setenv("SANDBOX_TOKEN", TOKEN, 1);
	setenv("SANDBOX_SHELL", "sh", 1);
	const char *token = getenv("SANDBOX_TOKEN"), *shell = getenv("SANDBOX_SHELL");
	if (!token || !shell)
		abort();
	settings_scrub_environment();
	for (size_t i = 0; i <= strlen(TOKEN); i++)
		assert_int_equal(token[i], 0);
	assert_string_equal(shell, "sh");
	clearenv();
}

int main(void)
{
	struct rows r = { 0 };
	ROWS(&r, taken_test, taken);
	ROWS(&r, refused_test, refused);
	rows_one(&r, "the file that the token came from is known", token_file_is_known);
	rows_one(&r, "secrets are scrubbed from the environment block, and nothing else",
		 secrets_are_scrubbed);
	return rows_run(&r, "settings_local");
}
