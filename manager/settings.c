/* SPDX-License-Identifier: MIT */
#include "manager/settings.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "manager/exec_env.h"
#include "manager/settings_file.h"
#include "manager/settings_table.h"

#define SECRET_MAX 4096
#define CONFIG_ENV "SANDBOX_CONFIG"
#define LOCAL_PORT 8080LL

/* One place a value may come from, with what it gives for each row of the table. */
enum source { FROM_FILE, FROM_ENV, FROM_FLAG, SOURCES };

struct given {
	char *text, *file;  /* the value, or the name of the file with it */
	char where[96];     /* for messages */
	const char *source; /* for settings_print() */
};

struct load {
	struct given given[SOURCES][SETTINGS_MAX];
	char *config;
	enum settings_action action;
};

static void load_clear(struct load *l)
{
	for (size_t source = 0; source < SOURCES; source++)
		for (size_t i = 0; i < SETTINGS_MAX; i++) {
			free(l->given[source][i].text);
			free(l->given[source][i].file);
		}
	free(l->config);
}

void settings_clear(struct settings *s)
{
	for (size_t i = 0; i < settings_count; i++)
		setting_clear(&settings_table[i], s);
	free(s->token_file);
	*s = (struct settings){ 0 };
}

/* ---- files ---- */

/* Engines put the secrets of a container into this folder, readable for all in it. */
static bool is_engine_secret(const char *path)
{
	return strncmp(path, "/run/secrets/", 13) == 0 && !strstr(path, "/..");
}

/* A group may read: systemd's credentials and a service's own group are given that way. */
static int check_file(const char *path, int fd, bool secret, struct err *e)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return err_sys(e, ERR_INVALID, errno, "cannot look at %s", path);
	if (!S_ISREG(st.st_mode))
		return err_set(e, ERR_INVALID, "%s is not a regular file", path);
	if (secret && (st.st_mode & (S_IWGRP | S_IRWXO)) && !is_engine_secret(path))
		return err_set(e, ERR_INVALID, "%s holds a secret and has mode %04o: chmod 600 it", path,
			       st.st_mode & 07777);
	return 0;
}

/* *ret_fd stays open for a later check of its mode. */
static int read_file(const char *path, size_t max, int *ret_fd, char **ret, size_t *ret_len, struct err *e)
{
	/* O_NONBLOCK: a FIFO must not hold up the start. */
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	_cleanup_buf_ struct buf text = BUF_INIT(max);
	char block[4096];
	ssize_t n;
	if (fd < 0)
		return err_sys(e, ERR_INVALID, errno, "cannot open %s", path);
	if (check_file(path, fd, false, e) < 0)
		return -(int)e->code;
	while ((n = read(fd, block, sizeof(block))) > 0)
		if (buf_add(&text, block, (size_t)n, e) < 0)
			return err_set(e, ERR_INVALID, "%s has more than %zu bytes", path, max);
	if (n < 0)
		return err_sys(e, ERR_INVALID, errno, "cannot read %s", path);
	*ret_len = text.len;
	*ret = buf_take(&text);
	*ret_fd = STEAL_FD(fd);
	return 0;
}

/* The text of a secret's file without the newline at its end. */
static int read_secret(const char *path, char **ret, struct err *e)
{
	_cleanup_close_ int fd = -1;
	_cleanup_free_ char *text = NULL;
	size_t len = 0;
	if (read_file(path, SECRET_MAX, &fd, &text, &len, e) < 0 || check_file(path, fd, true, e) < 0)
		return -(int)e->code;
	if (strlen(text) != len)
		return err_set(e, ERR_INVALID, "%s contains a NUL", path);
	text[strcspn(text, "\r\n")] = 0;
	if (!*text)
		return err_set(e, ERR_INVALID, "%s is empty", path);
	*ret = STEAL_PTR(text);
	return 0;
}

/* ---- taking what is given ---- */

/* An empty value is as good as none. */
static void give(struct given *g, bool file, const char *text, const char *source, const char *where)
{
	if (!*text)
		return;
	char **slot = file ? &g->file : &g->text;
	free(*slot);
	*slot = xstrdup(text);
	g->source = source;
	snprintf(g->where, sizeof(g->where), "%s", where);
}

/* The row of a key or flag of this length, and whether it is the file's twin of a secret; NULL when there is
 * none. */
static const struct setting *find_row(const char *name, size_t len, bool flag, bool *ret_file)
{
	for (size_t i = 0; i < settings_count; i++) {
		const struct setting *row = &settings_table[i];
		char own[48];
		if (flag)
			setting_flag(row, own);
		else
			snprintf(own, sizeof(own), "%s", row->key);
		size_t n = strlen(own);
		if (n == len && memcmp(own, name, n) == 0) {
			*ret_file = false;
			return row;
		}
		if (row->secret && len == n + 5 && memcmp(own, name, n) == 0 &&
		    memcmp(name + n, flag ? "-file" : "_file", 5) == 0) {
			*ret_file = true;
			return row;
		}
	}
	return NULL;
}

/* ---- flags ---- */

struct special {
	const char *flag;
	enum settings_action action;
};

static const struct special specials[] = {
	{ "help", SETTINGS_HELP },
	{ "version", SETTINGS_VERSION },
	{ "print-config", SETTINGS_PRINT },
	{ "print-docs", SETTINGS_DOCS },
};

static bool is_special(struct load *l, const char *flag)
{
	for (size_t i = 0; i < ARRAY_LEN(specials); i++)
		if (strcmp(specials[i].flag, flag) == 0) {
			l->action = specials[i].action;
			return true;
		}
	return false;
}

static int give_flag(struct load *l, const char *flag, size_t len, const char *value, struct err *e)
{
	bool file = false;
	if (len == 6 && memcmp(flag, "config", 6) == 0) {
		free(l->config);
		l->config = xstrdup(value);
		return 0;
	}
	const struct setting *row = find_row(flag, len, true, &file);
	if (row->secret && !file) /* not named by its value: that may be the secret */
		return err_field(e, setting_name(row),
				 "--%.*s would show the secret to everyone on this machine: use --%.*s-file",
				 (int)len, flag, (int)len, flag);
	char where[96];
	snprintf(where, sizeof(where), "flag --%.*s", (int)len, flag);
	give(&l->given[FROM_FLAG][row - settings_table], file, value, "flag", where);
	return 0;
}

/* --flag VALUE or --flag=VALUE; *at stands on the flag, and on its last word afterwards. */
static int read_flag(struct load *l, int argc, char **argv, int *at, struct err *e)
{
	const char *flag = argv[*at] + 2;
	size_t len = strcspn(flag, "=");
	bool file = false, config = len == 6 && memcmp(flag, "config", 6) == 0;
	if (strncmp(argv[*at], "--", 2) != 0 || !len)
		return err_field(e, "", "%.100s is no flag: berthd --help lists them", argv[*at]);
	if (!config && !find_row(flag, len, true, &file))
		return err_field(e, "", "--%.*s is no flag: berthd --help lists them", (int)MIN(len, 80),
				 flag);
	if (flag[len] == '=')
		return give_flag(l, flag, len, flag + len + 1, e);
	if (*at + 1 >= argc)
		return err_field(e, "", "--%s needs a value", flag);
	return give_flag(l, flag, len, argv[++*at], e);
}

static int read_flags(struct load *l, int argc, char **argv, struct err *e)
{
	for (int i = 1; i < argc; i++) {
		if (strncmp(argv[i], "--", 2) == 0 && is_special(l, argv[i] + 2))
			continue;
		if (read_flag(l, argc, argv, &i, e) < 0)
			return -(int)e->code;
	}
	return 0;
}

/* ---- environment ---- */

static const char *variable(const char *name)
{
	return getenv(name); /* NOLINT(concurrency-mt-unsafe): nothing here changes the environment */
}

static bool is_known_variable(const char *name)
{
	for (size_t i = 0; i < settings_count; i++)
		for (size_t k = 0; k < ARRAY_LEN(settings_table[i].env); k++)
			if (settings_table[i].env[k] && strcmp(settings_table[i].env[k], name) == 0)
				return true;
	return setting_is_secret_env(name) || strcmp(name, CONFIG_ENV) == 0;
}

static int refuse_unknown_variables(struct err *e)
{
	for (char **v = environ; v && *v; v++) { /* NULL: an empty one (clearenv(3)) */
		_cleanup_free_ char *name = xstrndup(*v, strcspn(*v, "="));
		bool ours = strncmp(name, "SANDBOX_", 8) == 0 || strncmp(name, "ATLAS_", 6) == 0;
		if (ours && !is_known_variable(name))
			return err_field(e, name,
					 "%.80s in the environment is no setting: berthd --help lists them",
					 name);
	}
	return 0;
}

static void read_environment(struct load *l)
{
	for (size_t i = 0; i < settings_count; i++) {
		const struct setting *row = &settings_table[i];
		struct given *g = &l->given[FROM_ENV][i];
		for (size_t k = 0; k < ARRAY_LEN(row->env) && !g->text; k++) {
			const char *value = row->env[k] ? variable(row->env[k]) : NULL;
			if (value)
				give(g, false, value, row->env[k], row->env[k]);
		}
		_cleanup_free_ char *twin = xasprintf("%s_FILE", setting_name(row));
		const char *path = row->secret ? variable(twin) : NULL;
		if (path)
			give(g, true, path, setting_name(row), twin);
	}
	const char *config = variable(CONFIG_ENV);
	if (!l->config && config && *config)
		l->config = xstrdup(config);
}

/* ---- the file ---- */

struct file_context {
	struct load *load;
	bool secret; /* it holds one */
};

static int take_line(void *ctx, const char *key, const char *value, int line, struct err *e)
{
	struct file_context *f = ctx;
	bool file = false;
	const struct setting *row = find_row(key, strlen(key), false, &file);
	if (!row)
		return err_set(e, ERR_INVALID, "line %d: %.64s is no setting", line, key);
	char where[96];
	snprintf(where, sizeof(where), "line %d of %.70s", line, f->load->config);
	give(&f->load->given[FROM_FILE][row - settings_table], file, value, "file", where);
	f->secret |= row->secret && !file;
	return 0;
}

static int read_config(struct load *l, struct err *e)
{
	_cleanup_close_ int fd = -1;
	_cleanup_free_ char *text = NULL;
	size_t len = 0;
	struct file_context f = { .load = l };
	if (!l->config)
		return 0;
	if (read_file(l->config, SETTINGS_FILE_MAX, &fd, &text, &len, e) < 0)
		return -(int)e->code;
	if (settings_file_parse(text, len, take_line, &f, e) < 0)
		return err_wrap(e, "%.100s", l->config);
	return f.secret ? check_file(l->config, fd, true, e) : 0;
}

/* ---- what is in force ---- */

/* Puts the setting before the message. */
static int blame(const struct setting *row, const char *where, struct err *e)
{
	snprintf(e->field, sizeof(e->field), "%s", setting_name(row));
	return *where && strcmp(where, setting_name(row)) != 0 ? err_wrap(e, "%s (%s)", row->key, where)
							       : err_wrap(e, "%s", setting_name(row));
}

static int settle(const struct setting *row, const struct given *g, struct settings *s, struct err *e)
{
	_cleanup_free_ char *secret = NULL;
	if (g->text && g->file) {
		err_set(e, ERR_INVALID, "the value and a file with it are both given");
		return blame(row, g->where, e);
	}
	if ((g->file && read_secret(g->file, &secret, e) < 0) ||
	    setting_set(row, s, secret ? secret : g->text, e) < 0)
		return blame(row, g->where, e);
	s->sources[row - settings_table] = g->source;
	return 0;
}

static int settle_all(const struct load *l, struct settings *s, struct err *e)
{
	for (size_t i = 0; i < settings_count; i++) {
		const struct setting *row = &settings_table[i];
		int source = SOURCES - 1;
		while (source >= 0 && !l->given[source][i].source)
			source--;
		s->sources[i] = "default";
		if (source >= 0 ? settle(row, &l->given[source][i], s, e) < 0
				: row->fallback && setting_set(row, s, row->fallback, e) < 0)
			return -(int)e->code;
	}
	return 0;
}

/* ---- rules between settings ---- */

static const char *source_of(const struct settings *s, const char *key)
{
	bool file = false;
	return s->sources[find_row(key, strlen(key), false, &file) - settings_table];
}

static void port_to_listen(struct settings *s)
{
	bool file = false, given = strcmp(source_of(s, "port"), "default") != 0;
	const struct setting *listen = find_row("listen", 6, false, &file);
	if (strcmp(source_of(s, "listen"), "default") != 0 || (!given && !settings_is_local(s)))
		return;
	free(s->listen);
	s->listen = xasprintf("%s:%lld", settings_is_local(s) ? "0.0.0.0" : "127.0.0.1",
			      given ? (long long)s->port : LOCAL_PORT);
	s->sources[listen - settings_table] = source_of(s, given ? "port" : "runtime");
}

/* In the one container there is neither an administrator nor anything that an engine would let in. */
static int check_local(const struct settings *s, struct err *e)
{
	const struct {
		const char *name;
		bool given;
	} senseless[] = {
		{ "SANDBOX_ADMIN_TOKEN", s->admin_token != NULL },
		{ "SANDBOX_MOUNTS", s->mounts != NULL },
		{ "SANDBOX_NETWORKS", s->networks != NULL },
		{ "ATLAS_PROJECT_DIR", s->project_dir != NULL },
	};
	if (!settings_is_local(s))
		return 0;
	if (!s->token)
		return err_field(e, "SANDBOX_TOKEN", "SANDBOX_RUNTIME=local needs SANDBOX_TOKEN");
	for (size_t i = 0; i < ARRAY_LEN(senseless); i++)
		if (senseless[i].given)
			return err_field(e, senseless[i].name, "means nothing with SANDBOX_RUNTIME=local: %s",
					 "the container is as its engine made it");
	return 0;
}

static int check_together(const struct settings *s, struct err *e)
{
	if (!setting_listen_is_local(s->listen) && !s->admin_token && !s->token)
		return err_field(e, "SANDBOX_LISTEN",
				 "%s is beyond loopback, which needs a token: set SANDBOX_ADMIN_TOKEN or "
				 "SANDBOX_TOKEN, or their _FILE twins",
				 s->listen);
	if (s->token && s->admin_token && strcmp(s->token, s->admin_token) == 0)
		return err_field(e, "SANDBOX_TOKEN", "must not be the admin token");
	if (!s->project_dir && (s->uid || s->gid))
		return err_field(e, s->uid ? "ATLAS_SANDBOX_UID" : "ATLAS_SANDBOX_GID",
				 "is for a folder of the host as the workspace: set ATLAS_PROJECT_DIR, too");
	if (s->default_timeout_s > s->max_timeout_s)
		return err_field(e, "SANDBOX_DEFAULT_TIMEOUT",
				 "SANDBOX_DEFAULT_TIMEOUT must not be above SANDBOX_MAX_TIMEOUT");
	return 0;
}

/* Which file has the token of the default session? */
static void note_token_file(const struct load *l, struct settings *s)
{
	bool file = false;
	size_t i = (size_t)(find_row("token", 5, false, &file) - settings_table);
	int source = SOURCES - 1;
	while (source >= 0 && !l->given[source][i].source)
		source--;
	if (source < 0)
		return;
	const char *path = l->given[source][i].file;
	if (!path && source == FROM_FILE)
		path = l->config;
	s->token_file = path ? xstrdup(path) : NULL;
}

static int load_all(struct load *l, int argc, char **argv, struct settings *s, struct err *e)
{
	if (read_flags(l, argc, argv, e) < 0)
		return -(int)e->code;
	if (l->action != SETTINGS_RUN && l->action != SETTINGS_PRINT)
		return 0;
	if (refuse_unknown_variables(e) < 0)
		return -(int)e->code;
	read_environment(l);
	if (read_config(l, e) < 0 || settle_all(l, s, e) < 0)
		return -(int)e->code;
	note_token_file(l, s);
	port_to_listen(s);
	return check_local(s, e) < 0 ? -(int)e->code : check_together(s, e);
}

void settings_scrub_environment(void)
{
	for (char **v = environ; v && *v; v++) {
		char *value = *v + strcspn(*v, "=");
		_cleanup_free_ char *name = xstrndup(*v, (size_t)(value - *v));
		if (*value && exec_env_is_secret(name))
			explicit_bzero(value + 1, strlen(value + 1));
	}
}

const char *settings_pass_env(const char *name)
{
	return exec_env_is_secret(name) ? NULL : variable(name);
}

int settings_load(int argc, char **argv, struct settings *ret, enum settings_action *ret_action,
		  struct err *e)
{
	struct load *l = xcalloc(1, sizeof(*l));
	struct settings s = { 0 };
	int rc = load_all(l, argc, argv, &s, e);
	if (rc < 0) {
		settings_clear(&s);
		*ret = s;
	} else {
		*ret = s;
		*ret_action = l->action;
	}
	load_clear(l);
	free(l);
	return rc;
}
