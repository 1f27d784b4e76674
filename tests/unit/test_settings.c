/* SPDX-License-Identifier: MIT */
/* What berthd is told: sources and their order, rules, secrets, and the texts made from the table. */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "manager/settings_table.h"
#include "tests/unit/rows.h"

#define TOKEN "0123456789abcdef"
#define ARGS_MAX 8

/* One start of berthd: flags, environment, and the text of its file. */
struct start {
	const char *args[ARGS_MAX];
	const char *env[4]; /* NAME=VALUE */
	const char *file;
};

static void write_file(const char *path, const char *text, mode_t mode)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
}

/* NAME=VALUE */
static void set_variable(const char *text)
{
	_cleanup_free_ char *name = xstrndup(text, strcspn(text, "="));
	assert_int_equal(setenv(name, text + strlen(name) + 1, 1), 0);
}

static int start(const struct start *st, struct settings *s, enum settings_action *action, struct err *e)
{
	char path[] = "/tmp/berth-settings-XXXXXX";
	char *argv[ARGS_MAX + 3] = { (char *)"berthd" };
	int argc = 1;
	clearenv();
	for (size_t i = 0; i < ARRAY_LEN(st->env) && st->env[i]; i++)
		set_variable(st->env[i]);
	for (size_t i = 0; i < ARGS_MAX && st->args[i]; i++)
		argv[argc++] = (char *)(uintptr_t)st->args[i];
	if (st->file) {
		close(mkstemp(path));
		write_file(path, st->file, 0600);
		argv[argc++] = (char *)"--config";
		argv[argc++] = path;
	}
	int rc = settings_load(argc, argv, s, action, e);
	if (st->file)
		unlink(path);
	return rc;
}

static const struct setting *row_of(const char *key)
{
	for (size_t i = 0; i < settings_count; i++)
		if (strcmp(settings_table[i].key, key) == 0)
			return &settings_table[i];
	fail_msg("no setting %s", key);
	return NULL;
}

/* ---- what is taken ---- */

struct taken_row {
	const char *name;
	struct start start;
	const char *key, *value, *source;
};

static const struct taken_row taken[] = {
	{ "default: listen on loopback", { .env = { NULL } }, "listen", "127.0.0.1:8080", "default" },
	{ "default: memory", { .env = { NULL } }, "memory", "4g", "default" },
	{ "default: cpus", { .env = { NULL } }, "cpus", "2", "default" },
	{ "default: idle", { .env = { NULL } }, "idle", "15m", "default" },
	{ "default: the engine is looked for", { .env = { NULL } }, "engine", NULL, "default" },
	{ "the environment wins over the default",
	  { .env = { "SANDBOX_TTL=90s" } },
	  "ttl",
	  "90s",
	  "SANDBOX_TTL" },
	{ "the file wins over the default", { .file = "ttl = 2h\n" }, "ttl", "2h", "file" },
	{ "the environment wins over the file",
	  { .env = { "SANDBOX_TTL=60" }, .file = "ttl = 2h\n" },
	  "ttl",
	  "1m",
	  "SANDBOX_TTL" },
	{ "a flag wins over the environment",
	  { .args = { "--ttl", "7" }, .env = { "SANDBOX_TTL=60" } },
	  "ttl",
	  "7s",
	  "flag" },
	{ "a flag with an equals sign", { .args = { "--data-dir=/x=y" } }, "data_dir", "/x=y", "flag" },
	{ "of two equal flags the later counts",
	  { .args = { "--ttl", "7", "--ttl", "8" } },
	  "ttl",
	  "8s",
	  "flag" },
	{ "an empty variable is none",
	  { .env = { "SANDBOX_TTL=" }, .file = "ttl = 5\n" },
	  "ttl",
	  "5s",
	  "file" },
	{ "DOCKER_HOST names the engine",
	  { .env = { "DOCKER_HOST=unix:///a" } },
	  "engine",
	  "unix:///a",
	  "DOCKER_HOST" },
	{ "SANDBOX_ENGINE wins over DOCKER_HOST",
	  { .env = { "DOCKER_HOST=ssh://a", "SANDBOX_ENGINE=tcp://b:2376" } },
	  "engine",
	  "tcp://b:2376",
	  "SANDBOX_ENGINE" },
	{ "a port alone listens on loopback",
	  { .env = { "SANDBOX_PORT=9000" } },
	  "listen",
	  "127.0.0.1:9000",
	  "SANDBOX_PORT" },
	{ "listen wins over port",
	  { .env = { "SANDBOX_PORT=9000", "SANDBOX_LISTEN=[::1]:1" } },
	  "listen",
	  "[::1]:1",
	  "SANDBOX_LISTEN" },
	{ "a listen in the file wins over a port in the environment",
	  { .env = { "SANDBOX_PORT=9000" }, .file = "listen = 127.0.0.2:0\n" },
	  "listen",
	  "127.0.0.2:0",
	  "file" },
	{ "beyond loopback with a token",
	  { .env = { "SANDBOX_LISTEN=0.0.0.0:80", "SANDBOX_ADMIN_TOKEN=" TOKEN } },
	  "listen",
	  "0.0.0.0:80",
	  "SANDBOX_LISTEN" },
	{ "beyond loopback with the default session's token",
	  { .env = { "SANDBOX_LISTEN=0.0.0.0:80", "SANDBOX_TOKEN=" TOKEN } },
	  "listen",
	  "0.0.0.0:80",
	  "SANDBOX_LISTEN" },
	{ "localhost is loopback",
	  { .env = { "SANDBOX_LISTEN=localhost:80" } },
	  "listen",
	  "localhost:80",
	  "SANDBOX_LISTEN" },
	{ "a size", { .env = { "ATLAS_SANDBOX_MEM=512m" } }, "memory", "512m", "ATLAS_SANDBOX_MEM" },
	{ "a part of a processor",
	  { .env = { "ATLAS_SANDBOX_CPUS=0.25" } },
	  "cpus",
	  "0.250",
	  "ATLAS_SANDBOX_CPUS" },
	{ "a life without end", { .env = { "SANDBOX_TTL=0" } }, "ttl", "0s", "SANDBOX_TTL" },
	{ "an admin token is not made up", { .env = { NULL } }, "admin_token", NULL, "default" },
	{ "a token in the file", { .file = "admin_token = " TOKEN "\n" }, "admin_token", TOKEN, "file" },
	{ "comments, blanks and Windows line ends",
	  { .file = "# x\r\n\r\n \t ttl=5 \r\n#" },
	  "ttl",
	  "5s",
	  "file" },
	{ "mounts",
	  { .env = { "SANDBOX_MOUNTS=a=/x/y:/home/sandbox/.npmrc:ro, b=/z:/etc/q:ro" } },
	  "mounts",
	  "a=/x/y:/home/sandbox/.npmrc:ro, b=/z:/etc/q:ro",
	  "SANDBOX_MOUNTS" },
	{ "a user with a project's folder",
	  { .env = { "ATLAS_PROJECT_DIR=/srv/p", "ATLAS_SANDBOX_UID=1000" } },
	  "uid",
	  "1000",
	  "ATLAS_SANDBOX_UID" },
	{ "no network", { .env = { NULL } }, "network", "none", "default" },
	{ "other variables are not ours",
	  { .env = { "MAX_EXECUTION_TIME=300", "BERTH_TOKEN=x" } },
	  "ttl",
	  "1h",
	  "default" },
};

static void taken_test(void **state)
{
	const struct taken_row *row = *state;
	struct settings s;
	enum settings_action action = SETTINGS_HELP;
	struct err e;
	if (start(&row->start, &s, &action, &e) < 0)
		fail_msg("%s", e.msg);
	assert_int_equal(action, SETTINGS_RUN);
	const struct setting *row_in_table = row_of(row->key);
	_cleanup_free_ char *value = setting_get(row_in_table, &s);
	if (row->value)
		assert_string_equal(value, row->value);
	else
		assert_null(value);
	assert_string_equal(s.sources[row_in_table - settings_table], row->source);
	settings_clear(&s);
}

/* ---- what is refused ---- */

struct refused_row {
	const char *name;
	struct start start;
	const char *field, *message; /* a part of it */
};

static const struct refused_row refused[] = {
	{ "an unknown SANDBOX_ variable",
	  { .env = { "SANDBOX_LISTN=x" } },
	  "SANDBOX_LISTN",
	  "is no setting" },
	{ "an unknown ATLAS_ variable", { .env = { "ATLAS_X=" } }, "ATLAS_X", "is no setting" },
	{ "a _FILE twin of what is no secret",
	  { .env = { "SANDBOX_TTL_FILE=/x" } },
	  "SANDBOX_TTL_FILE",
	  "is no setting" },
	{ "an unknown flag", { .args = { "--lisen", "x" } }, "", "--lisen is no flag" },
	{ "a word that is no flag", { .args = { "run" } }, "", "run is no flag" },
	{ "a short flag", { .args = { "-p" } }, "", "-p is no flag" },
	{ "a lone dash dash", { .args = { "--" } }, "", "-- is no flag" },
	{ "a flag without its value", { .args = { "--ttl" } }, "", "--ttl needs a value" },
	{ "an unknown key", { .file = "ttl = 1\nlisen = x\n" }, "", "line 2: lisen is no setting" },
	{ "a key twice", { .file = "ttl = 1\nttl = 1\n" }, "", "line 2: ttl stands there a second time" },
	{ "a line without an equals sign", { .file = "ttl 1" }, "", "line 1: not of the form" },
	{ "a value out of range", { .env = { "SANDBOX_PORT=65536" } }, "SANDBOX_PORT", "from 0 to 65535" },
	{ "the flag is named",
	  { .args = { "--ttl=x" } },
	  "SANDBOX_TTL",
	  "ttl (flag --ttl): must be a duration" },
	{ "the line of the file is named",
	  { .file = "\nttl = x" },
	  "SANDBOX_TTL",
	  "ttl (line 2 of /tmp/berth-settings-" },
	{ "a time above its range",
	  { .env = { "SANDBOX_TTL=367d" } },
	  "SANDBOX_TTL",
	  "must be from 0s to 8784h" },
	{ "a memory below its range",
	  { .env = { "ATLAS_SANDBOX_MEM=63m" } },
	  "ATLAS_SANDBOX_MEM",
	  "must be from 64m to 1024g" },
	{ "cpus that are no number",
	  { .env = { "ATLAS_SANDBOX_CPUS=two" } },
	  "ATLAS_SANDBOX_CPUS",
	  "must be a number" },
	{ "listen without a port",
	  { .env = { "SANDBOX_LISTEN=127.0.0.1" } },
	  "SANDBOX_LISTEN",
	  "must be ADDRESS:PORT" },
	{ "listen by a name",
	  { .env = { "SANDBOX_LISTEN=example.org:80" } },
	  "SANDBOX_LISTEN",
	  "must be ADDRESS:PORT" },
	{ "listen on IPv6 without brackets",
	  { .env = { "SANDBOX_LISTEN=::1:80" } },
	  "SANDBOX_LISTEN",
	  "must be ADDRESS:PORT" },
	{ "the host's network",
	  { .env = { "SANDBOX_NETWORKS=a, host" } },
	  "SANDBOX_NETWORKS",
	  "not \"host\"" },
	{ "the host's network for the default session",
	  { .env = { "SANDBOX_NETWORK=host" } },
	  "SANDBOX_NETWORK",
	  "not host" },
	{ "another container's network",
	  { .env = { "SANDBOX_NETWORKS=container:x" } },
	  "SANDBOX_NETWORKS",
	  "must be" },
	{ "a mount that may be written",
	  { .env = { "SANDBOX_MOUNTS=a=/x:/y:rw" } },
	  "SANDBOX_MOUNTS",
	  "NAME=/HOST:/PATH:ro" },
	{ "a mount over the root",
	  { .env = { "SANDBOX_MOUNTS=a=/x:/:ro" } },
	  "SANDBOX_MOUNTS",
	  "NAME=/HOST:/PATH:ro" },
	{ "a mount that steps upwards",
	  { .env = { "SANDBOX_MOUNTS=a=/x/..:/y:ro" } },
	  "SANDBOX_MOUNTS",
	  "NAME=/HOST:/PATH:ro" },
	{ "a passed variable that is none",
	  { .env = { "SANDBOX_PASS_ENV=A,B-C" } },
	  "SANDBOX_PASS_ENV",
	  "not \"B-C\"" },
	{ "the admin token as a passed variable",
	  { .env = { "SANDBOX_PASS_ENV=SANDBOX_ADMIN_TOKEN" } },
	  "SANDBOX_PASS_ENV",
	  "secrets" },
	{ "the default session's token as a passed variable",
	  { .env = { "SANDBOX_PASS_ENV=A,SANDBOX_TOKEN" } },
	  "SANDBOX_PASS_ENV",
	  "secrets" },
	{ "a token's file as a passed variable",
	  { .env = { "SANDBOX_PASS_ENV=SANDBOX_TOKEN_FILE" } },
	  "SANDBOX_PASS_ENV",
	  "secrets" },
	{ "a user without a project's folder",
	  { .env = { "ATLAS_SANDBOX_UID=1000" } },
	  "ATLAS_SANDBOX_UID",
	  "ATLAS_PROJECT_DIR" },
	{ "root as the user",
	  { .env = { "ATLAS_PROJECT_DIR=/srv", "ATLAS_SANDBOX_GID=0" } },
	  "ATLAS_SANDBOX_GID",
	  "number from 1" },
	{ "one token for both",
	  { .env = { "SANDBOX_TOKEN=" TOKEN, "SANDBOX_ADMIN_TOKEN=" TOKEN } },
	  "SANDBOX_TOKEN",
	  "must not be the admin token" },
	{ "beyond loopback without a token",
	  { .env = { "SANDBOX_LISTEN=0.0.0.0:80" } },
	  "SANDBOX_LISTEN",
	  "beyond loopback" },
	{ "beyond loopback on IPv6 without a token",
	  { .env = { "SANDBOX_LISTEN=[::]:80" } },
	  "SANDBOX_LISTEN",
	  "beyond loopback" },
	{ "IPv4 loopback in IPv6 is not taken for it",
	  { .env = { "SANDBOX_LISTEN=[::ffff:127.0.0.1]:80" } },
	  "SANDBOX_LISTEN",
	  "beyond loopback" },
	{ "a short token",
	  { .env = { "SANDBOX_ADMIN_TOKEN=0123456789abcde" } },
	  "SANDBOX_ADMIN_TOKEN",
	  "from 16 to 512" },
	{ "a token with a blank",
	  { .env = { "SANDBOX_ADMIN_TOKEN=0123456789 abcdef" } },
	  "SANDBOX_ADMIN_TOKEN",
	  "without blanks" },
	{ "a token by flag",
	  { .args = { "--admin-token=" TOKEN } },
	  "SANDBOX_ADMIN_TOKEN",
	  "use --admin-token-file" },
	{ "a token and its file",
	  { .env = { "SANDBOX_ADMIN_TOKEN=" TOKEN, "SANDBOX_ADMIN_TOKEN_FILE=/x" } },
	  "SANDBOX_ADMIN_TOKEN",
	  "both given" },
	{ "a token's file that is not there",
	  { .env = { "SANDBOX_ADMIN_TOKEN_FILE=/none" } },
	  "SANDBOX_ADMIN_TOKEN",
	  "cannot open /none" },
	{ "a token's file that is a device",
	  { .args = { "--admin-token-file", "/dev/null" } },
	  "SANDBOX_ADMIN_TOKEN",
	  "not a regular file" },
	{ "a configuration file that is not there",
	  { .args = { "--config", "/none" } },
	  "",
	  "cannot open /none" },
	{ "a relative data folder", { .env = { "SANDBOX_DATA=x" } }, "SANDBOX_DATA", "absolute path" },
	{ "a path that steps upwards",
	  { .env = { "SANDBOX_DATA=/a/../b" } },
	  "SANDBOX_DATA",
	  "absolute path" },
	{ "an engine by ssh",
	  { .env = { "DOCKER_HOST=ssh://x" } },
	  "SANDBOX_ENGINE",
	  "engine (DOCKER_HOST): must be unix" },
	{ "a log format that is none",
	  { .env = { "ATLAS_LOG_FORMAT=xml" } },
	  "ATLAS_LOG_FORMAT",
	  "one of pretty|json" },
	{ "a part of a choice",
	  { .env = { "ATLAS_LOG_COLOR=al" } },
	  "ATLAS_LOG_COLOR",
	  "one of auto|always|never" },
	{ "an origin with a path",
	  { .env = { "SANDBOX_ALLOWED_ORIGINS=https://a/b" } },
	  "SANDBOX_ALLOWED_ORIGINS",
	  "origins" },
	{ "a control character", { .env = { "SANDBOX_IMAGE=a\033b" } }, "SANDBOX_IMAGE", "control" },
	{ "bad UTF-8", { .env = { "SANDBOX_IMAGE=a\xff" } }, "SANDBOX_IMAGE", "UTF-8" },
	{ "a default timeout above the longest",
	  { .env = { "SANDBOX_MAX_TIMEOUT=60" } },
	  "SANDBOX_DEFAULT_TIMEOUT",
	  "must not be above" },
};

static void refused_test(void **state)
{
	const struct refused_row *row = *state;
	struct settings s = { .pids = 1 };
	enum settings_action action = SETTINGS_RUN;
	struct err e = { 0 };
	assert_int_equal(start(&row->start, &s, &action, &e), -ERR_INVALID);
	if (!strstr(e.msg, row->message) || strcmp(e.field, row->field) != 0)
		fail_msg("field \"%s\": %s", e.field, e.msg);
	assert_null(strstr(e.msg, TOKEN)); /* no message shows a secret */
	assert_null(s.listen);
}

/* ---- secrets in files ---- */

struct secret_row {
	const char *name, *text;
	mode_t mode;
	const char *message; /* NULL: it is taken */
};

static const struct secret_row secrets[] = {
	{ "a secret of its owner alone", TOKEN "\n", 0600, NULL },
	{ "a secret without a newline", TOKEN, 0400, NULL },
	{ "a secret that a group may read", TOKEN "\r\n", 0640, NULL },
	{ "a secret that others may read", TOKEN "\n", 0604, "has mode 0604: chmod 600 it" },
	{ "a secret that everyone may read", TOKEN "\n", 0644, "chmod 600" },
	{ "a secret that a group may write", TOKEN "\n", 0620, "chmod 600" },
	{ "an empty secret", "\n", 0600, "is empty" },
	{ "a short secret", "short\n", 0600, "from 16 to 512" },
};

static void secret_test(void **state)
{
	const struct secret_row *row = *state;
	char path[] = "/tmp/berth-secret-XXXXXX", variable[96], *argv[] = { (char *)"berthd" };
	struct settings s;
	enum settings_action action;
	struct err e;
	close(mkstemp(path));
	write_file(path, row->text, row->mode);
	clearenv();
	snprintf(variable, sizeof(variable), "SANDBOX_ADMIN_TOKEN_FILE=%s", path);
	set_variable(variable);
	int rc = settings_load(1, argv, &s, &action, &e);
	unlink(path);
	clearenv();
	if (row->message) {
		assert_int_equal(rc, -ERR_INVALID);
		assert_non_null(strstr(e.msg, row->message));
		return;
	}
	assert_int_equal(rc, 0);
	assert_string_equal(s.admin_token, TOKEN);
	settings_clear(&s);
}

static void open_file_with_a_secret(void **state)
{
	(void)state;
	char path[] = "/tmp/berth-settings-XXXXXX", *argv[] = { (char *)"berthd", (char *)"--config", path };
	struct settings s;
	enum settings_action action;
	struct err e;
	close(mkstemp(path));
	clearenv();
	write_file(path, "ttl = 5\n", 0644);
	assert_int_equal(settings_load(3, argv, &s, &action, &e), 0);
	settings_clear(&s);
	write_file(path, "admin_token = " TOKEN "\n", 0644);
	assert_int_equal(settings_load(3, argv, &s, &action, &e), -ERR_INVALID);
	assert_non_null(strstr(e.msg, "chmod 600"));
	unlink(path);
}

/* ---- the table and its texts ---- */

static void table_is_sound(void **state)
{
	(void)state;
	for (size_t i = 0; i < settings_count; i++) {
		const struct setting *a = &settings_table[i];
		assert_true(a->key && a->env[0] && a->help && strlen(a->key) < 32);
		assert_int_equal(strspn(a->key, "abcdefghijklmnopqrstuvwxyz_"), strlen(a->key));
		assert_true(!a->secret || a->kind == SETTING_TEXT);
		assert_true(a->kind == SETTING_TEXT || a->min < a->max);
		for (size_t k = i + 1; k < settings_count; k++) {
			assert_string_not_equal(a->key, settings_table[k].key);
			assert_string_not_equal(a->env[0], settings_table[k].env[0]);
			assert_true(a->offset != settings_table[k].offset);
		}
	}
	assert_non_null(settings_table[0].section);
}

/* A text made by fn; owned by the caller. */
static char *text_of(void (*fn)(FILE *out))
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);
	fn(out);
	fclose(out);
	return text;
}

static void help_names_every_flag(void **state)
{
	(void)state;
	_cleanup_free_ char *help = text_of(settings_help);
	for (size_t i = 0; i < settings_count; i++) {
		char flag[32];
		setting_flag(&settings_table[i], flag);
		assert_non_null(strstr(help, flag));
		assert_non_null(strstr(help, settings_table[i].env[0]));
	}
}

static void documentation_is_up_to_date(void **state)
{
	(void)state;
	_cleanup_free_ char *want = text_of(settings_markdown);
	_cleanup_fclose_ FILE *in = fopen("docs/CONFIGURATION.md", "r");
	assert_non_null(in);
	_cleanup_free_ char *got = calloc(1, 1 << 16);
	assert_true(fread(got, 1, (1 << 16) - 1, in) > 0);
	assert_string_equal(got, want); /* else: berthd --print-docs >docs/CONFIGURATION.md */
}

static void print_shows_no_secret(void **state)
{
	(void)state;
	static const struct start st = { .args = { "--print-config", "--ttl=7" },
					 .env = { "SANDBOX_ADMIN_TOKEN=" TOKEN } };
	struct settings s;
	enum settings_action action;
	struct err e;
	char *text = NULL;
	size_t len = 0;
	assert_int_equal(start(&st, &s, &action, &e), 0);
	assert_int_equal(action, SETTINGS_PRINT);
	FILE *out = open_memstream(&text, &len);
	settings_print(&s, out);
	fclose(out);
	settings_clear(&s);
	assert_null(strstr(text, TOKEN));
	assert_non_null(strstr(text, "(set)"));
	assert_non_null(strstr(text, "flag"));
	assert_non_null(strstr(text, "SANDBOX_ADMIN_TOKEN"));
	for (size_t i = 0; i < settings_count; i++)
		assert_non_null(strstr(text, settings_table[i].key));
	free(text);
}

struct action_row {
	const char *name, *flag;
	enum settings_action action;
};

static const struct action_row actions[] = {
	{ "--help answers whatever the environment says", "--help", SETTINGS_HELP },
	{ "--version answers whatever the environment says", "--version", SETTINGS_VERSION },
	{ "--print-docs answers whatever the environment says", "--print-docs", SETTINGS_DOCS },
};

static void action_test(void **state)
{
	const struct action_row *row = *state;
	struct start st = { .args = { row->flag }, .env = { "SANDBOX_NONSENSE=1" } };
	struct settings s;
	enum settings_action action = SETTINGS_RUN;
	struct err e;
	assert_int_equal(start(&st, &s, &action, &e), 0);
	assert_int_equal(action, row->action);
	settings_clear(&s);
}

static void passed_variables(void **state)
{
	(void)state;
	clearenv();
	setenv("KUBECONFIG", "/k", 1);
	setenv("SANDBOX_ADMIN_TOKEN", TOKEN, 1);
	setenv("SANDBOX_TOKEN_FILE", "/x", 1);
	assert_string_equal(settings_pass_env("KUBECONFIG"), "/k");
	assert_null(settings_pass_env("NOT_SET"));
	assert_null(settings_pass_env("SANDBOX_ADMIN_TOKEN"));
	assert_null(settings_pass_env("SANDBOX_TOKEN_FILE"));
	clearenv();
}

int main(void)
{
	struct rows r = { 0 };
	ROWS(&r, taken_test, taken);
	ROWS(&r, refused_test, refused);
	ROWS(&r, secret_test, secrets);
	rows_one(&r, "variables are passed on, Berth's secrets never", passed_variables);
	rows_one(&r, "a configuration file that others may read holds no secret", open_file_with_a_secret);
	rows_one(&r, "the table: keys, variables and places are its rows' own", table_is_sound);
	rows_one(&r, "the help names every flag and variable", help_names_every_flag);
	rows_one(&r, "docs/CONFIGURATION.md is what the table says", documentation_is_up_to_date);
	rows_one(&r, "--print-config shows every setting and no secret", print_shows_no_secret);
	ROWS(&r, action_test, actions);
	return rows_run(&r, "settings");
}
