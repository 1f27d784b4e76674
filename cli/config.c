/* SPDX-License-Identifier: MIT */
#include "cli/config.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"

#define FILE_MAX ((size_t)64 << 10)

const char *config_env(const char *name)
{
	return getenv(name); /* NOLINT(concurrency-mt-unsafe): nothing here changes the environment */
}

/* An empty variable counts as unset, as for XDG_CONFIG_HOME in the XDG base directory specification. */
static const char *env_or_null(const char *name)
{
	const char *v = config_env(name);
	return v && *v ? v : NULL;
}

void config_clear(struct config *c)
{
	free(c->address);
	if (c->token)
		explicit_bzero(c->token, strlen(c->token));
	free(c->token);
	free(c->path);
	*c = (struct config){ 0 };
}

static char *config_path(void)
{
	const char *xdg = env_or_null("XDG_CONFIG_HOME"), *home = env_or_null("HOME");
	if (xdg && *xdg == '/')
		return xasprintf("%s/berth/config", xdg);
	return home ? xasprintf("%s/.config/berth/config", home) : NULL;
}

static char *trimmed(const char *at, size_t len)
{
	while (len && strchr(" \t\r", at[len - 1]))
		len--;
	while (len && strchr(" \t", *at)) {
		at++;
		len--;
	}
	return xstrndup(at, len);
}

/* The place of a key's value; NULL for an unknown key. */
static char **slot_of(struct config *c, const char *key)
{
	const struct {
		const char *key;
		char **slot;
	} keys[] = { { "address", &c->address }, { "token", &c->token } };
	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if (!strcmp(keys[i].key, key))
			return keys[i].slot;
	return NULL;
}

static int parse_line(const char *line, size_t len, struct config *c, struct err *e)
{
	_cleanup_free_ char *text = trimmed(line, len);
	if (!*text || *text == '#')
		return 0;
	const char *equals = strchr(text, '=');
	if (!equals)
		return err_set(e, ERR_INVALID, "must be \"address = URL\" or \"token = TEXT\"");
	_cleanup_free_ char *key = trimmed(text, (size_t)(equals - text));
	_cleanup_free_ char *value = trimmed(equals + 1, strlen(equals + 1));
	char **slot = slot_of(c, key);
	if (!slot)
		return err_set(e, ERR_INVALID, "unknown key \"%s\": there are address and token", key);
	if (!*value)
		return err_set(e, ERR_INVALID, "%s has no value", key);
	if (!*slot)
		*slot = STEAL_PTR(value);
	return 0;
}

int config_parse(const char *text, const char *name, struct config *c, struct err *e)
{
	for (int number = 1; *text; number++) {
		size_t len = strcspn(text, "\n");
		if (parse_line(text, len, c, e))
			return err_wrap(e, "%s:%d", name, number);
		text += len + (text[len] == '\n');
	}
	return 0;
}

/* A token in a file that others can read is no secret any more. */
static int check_private(int fd, const char *path, struct err *e)
{
	struct stat st;
	if (fstat(fd, &st))
		return err_sys(e, ERR_FORBIDDEN, errno, "%s", path);
	if (!S_ISREG(st.st_mode))
		return err_set(e, ERR_FORBIDDEN, "%s is not a regular file", path);
	if (st.st_uid != geteuid())
		return err_set(e, ERR_FORBIDDEN, "%s belongs to another user: it is not read", path);
	if (st.st_mode & 077)
		return err_set(e, ERR_FORBIDDEN, "%s may be read by others: chmod 600 %s", path, path);
	return 0;
}

static int load_file(const char *path, struct config *c, struct err *e)
{
	/* Non-blocking: a FIFO in its place must not hang the open. */
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		return 0;
	if (fd < 0)
		return err_sys(e, ERR_FORBIDDEN, errno, "cannot read %s", path);
	int rc = check_private(fd, path, e);
	if (rc)
		return rc;
	_cleanup_buf_ struct buf text = BUF_INIT(FILE_MAX);
	char piece[4096];
	ssize_t n = 0;
	while ((n = read(fd, piece, sizeof(piece))) > 0)
		if (buf_add(&text, piece, (size_t)n, e))
			return err_set(e, ERR_INVALID, "%s is larger than %zu KiB", path, FILE_MAX >> 10);
	if (n < 0)
		return err_sys(e, ERR_FORBIDDEN, errno, "cannot read %s", path);
	return config_parse(text.data ? text.data : "", path, c, e);
}

int config_address(const char *text, char **ret, struct err *e)
{
	bool has_scheme = strstr(text, "://") != NULL;
	_cleanup_free_ char *url = has_scheme ? xstrdup(text) : xasprintf("http://%s", text);
	if (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0)
		return err_set(e, ERR_INVALID, "the address must begin with http:// or https://, but is %s",
			       text);
	const char *host = strstr(url, "://") + 3;
	if (!*host || *host == '/' || *host == ':' || strpbrk(host, "?#@ \t\r\n"))
		return err_set(e, ERR_INVALID, "the address must be http(s)://host[:port], but is %s", text);
	for (size_t len = strlen(url); url[len - 1] == '/'; len--)
		url[len - 1] = 0;
	*ret = STEAL_PTR(url);
	return 0;
}

/* A header is made of it: a line break would add one of its own. */
static int check_token(const char *token, struct err *e)
{
	for (; *token; token++)
		if (*token <= ' ' || *token > '~')
			return err_set(e, ERR_INVALID,
				       "the token has blanks or characters that are not ASCII");
	return 0;
}

static char *first_of(const char *flag, const char *variable)
{
	const char *v = flag ? flag : env_or_null(variable);
	return v ? xstrdup(v) : NULL;
}

int config_load(const char *address_flag, const char *token_flag, struct config *ret, struct err *e)
{
	_cleanup_(config_clear) struct config c = { .address = first_of(address_flag, "BERTH_ADDRESS"),
						    .token = first_of(token_flag, "BERTH_TOKEN"),
						    .path = config_path() };
	int rc = 0;
	/* The file is not looked at when nothing of it would count: then its mode is no reason to refuse. */
	if (c.path && (!c.address || !c.token))
		rc = load_file(c.path, &c, e);
	_cleanup_free_ char *address = rc || !c.address ? xstrdup(CONFIG_ADDRESS) : STEAL_PTR(c.address);
	if (!rc)
		rc = config_address(address, &c.address, e);
	if (!rc && c.token)
		rc = check_token(c.token, e);
	if (rc)
		return rc;
	*ret = c;
	c = (struct config){ 0 };
	return 0;
}
