/* SPDX-License-Identifier: MIT */
#include "base/json.h"
#include "manager/internal.h"
#include "tests/unit/rows.h"

static const struct env_row {
	const char *name, *session, *request;
	const char *variable, *want; /* NULL: not there */
} envs[] = {
	{ "a bare environment has a PATH", NULL, NULL, "PATH",
	  "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" },
	{ "HOME is the sandbox's, whatever the image says, but what is passed wins", NULL, NULL, "HOME",
	  "/p" },
	{ "the image's variables are there", NULL, NULL, "JAVA_HOME", "/opt/java" },
	{ "the session's win over the image's", "{\"JAVA_HOME\":\"/s\"}", NULL, "JAVA_HOME", "/s" },
	{ "the request's win over the session's", "{\"A\":\"s\"}", "{\"A\":\"r\"}", "A", "r" },
	{ "a name that begins like another is another", "{\"AB\":\"s\"}", "{\"A\":\"r\"}", "AB", "s" },
	{ "an empty value stays", NULL, "{\"E\":\"\"}", "E", "" },
	{ "a passed variable is there", NULL, NULL, "KUBECONFIG", "/k" },
	{ "the session's win over passed ones", "{\"A\":\"s\"}", NULL, "A", "s" },
	{ "a token's file is not passed", NULL, NULL, "SANDBOX_TOKEN_FILE", NULL },
	{ "a token of the image's does not get in", NULL, NULL, "SANDBOX_TOKEN", NULL },
};

static const char image_text[] =
	"[\"JAVA_HOME=/opt/java\",\"HOME=/root\",\"SANDBOX_TOKEN=secret\",\"broken\"]";

static json_t *object(const char *text)
{
	struct err e;
	json_t *value = NULL;
	if (text)
		assert_int_equal(json_text_parse(text, strlen(text), &value, &e), 0);
	return value;
}

static const char *value_of(char **env, const char *name)
{
	const char *found = NULL;
	size_t len = strlen(name);
	for (; *env; env++) {
		if (strncmp(*env, name, len) == 0 && (*env)[len] == '=') {
			assert_null(found); /* once only */
			found = *env + len + 1;
		}
	}
	return found;
}

static void env_test(void **state)
{
	const struct env_row *row = *state;
	_cleanup_json_ json_t *session = object(row->session), *request = object(row->request);
	_cleanup_json_ json_t *image = object(image_text);
	struct err e;
	char **env = NULL;
	char *const passed[] = { (char *)"KUBECONFIG=/k", (char *)"A=p", (char *)"HOME=/p",
				 (char *)"SANDBOX_TOKEN_FILE=/t", NULL };
	const struct exec_env_sources from = { image, passed, session, request };
	assert_int_equal(exec_env_make(&from, &env, &e), 0);
	const char *got = value_of(env, row->variable);
	if (row->want)
		assert_string_equal(got, row->want);
	else
		assert_null(got);
	exec_env_free(env);
}

static const struct refuse_row {
	const char *name, *request, *field;
} refusals[] = {
	{ "the admin token cannot be set", "{\"SANDBOX_ADMIN_TOKEN\":\"x\"}", "env.SANDBOX_ADMIN_TOKEN" },
	{ "a token's file cannot be set", "{\"SANDBOX_TOKEN_FILE\":\"x\"}", "env.SANDBOX_TOKEN_FILE" },
	{ "the session token cannot be set", "{\"SANDBOX_TOKEN\":\"x\"}", "env.SANDBOX_TOKEN" },
	{ "a name without letters is refused", "{\"\":\"x\"}", "env." },
	{ "a name with = is refused", "{\"A=B\":\"x\"}", "env.A=B" },
	{ "a value that is no text is refused", "{\"A\":1}", "env" },
};

static void refuse_test(void **state)
{
	const struct refuse_row *row = *state;
	_cleanup_json_ json_t *request = object(row->request);
	struct err e;
	char **env = NULL;
	const struct exec_env_sources from = { .request = request };
	assert_int_equal(exec_env_make(&from, &env, &e), -ERR_INVALID);
	assert_string_equal(e.field, row->field);
	assert_null(env);
}

static void too_many(void **state)
{
	(void)state;
	_cleanup_json_ json_t *image = json_array();
	struct err e;
	char **env = NULL;
	for (int i = 0; i < 2000; i++)
		json_array_append_new(image, json_sprintf("V%d=x", i));
	assert_int_equal(exec_env_make(&(struct exec_env_sources){ .image = image }, &env, &e), -ERR_INVALID);
	assert_string_equal(e.field, "env");
}

int main(void)
{
	struct rows r = { 0 };
	ROWS(&r, env_test, envs);
	ROWS(&r, refuse_test, refusals);
	rows_one(&r, "more variables than there is room for are refused", too_many);
	return rows_run(&r, "exec_env");
}
