/* SPDX-License-Identifier: MIT */
/* The rules of single settings. */
#include <arpa/inet.h>
#include <ctype.h>
#include <string.h>

#include "base/parse.h"
#include "manager/exec_env.h"
#include "manager/settings_table.h"

#define TOKEN_MIN 16
#define ITEM_MAX 4096

/* ---- addresses ---- */

/* The host of "HOST:PORT" without brackets; false when it is none. */
static bool split_listen(const char *text, char host[64], int *ret_family)
{
	struct err e;
	int64_t port = 0;
	const char *colon = strrchr(text, ':');
	size_t len = colon ? (size_t)(colon - text) : 0;
	if (!len || len >= 64 || parse_int(colon + 1, 0, 65535, &port, &e) < 0)
		return false;
	bool six = text[0] == '[' && text[len - 1] == ']';
	snprintf(host, 64, "%.*s", (int)(six ? len - 2 : len), text + six);
	*ret_family = six ? AF_INET6 : AF_INET;
	return true;
}

int setting_check_listen(const char *text, struct err *e)
{
	char host[64];
	int family = 0;
	uint8_t address[16];
	if (split_listen(text, host, &family) &&
	    (inet_pton(family, host, address) == 1 || (family == AF_INET && strcmp(host, "localhost") == 0)))
		return 0;
	return err_set(e, ERR_INVALID, "must be ADDRESS:PORT such as 127.0.0.1:8080 or [::1]:8080");
}

bool setting_listen_is_local(const char *listen)
{
	static const uint8_t loopback6[16] = { [15] = 1 };
	char host[64];
	int family = 0;
	uint8_t address[16];
	if (!split_listen(listen, host, &family))
		return false;
	if (strcmp(host, "localhost") == 0)
		return true;
	if (inet_pton(family, host, address) != 1)
		return false;
	return family == AF_INET ? address[0] == 127 : memcmp(address, loopback6, sizeof(loopback6)) == 0;
}

int setting_check_engine(const char *text, struct err *e)
{
	if (strncmp(text, "unix:///", 8) == 0 && text[8])
		return 0;
	if (strncmp(text, "tcp://", 6) == 0 && text[6] && !strpbrk(text, " @?#"))
		return 0;
	return err_set(e, ERR_INVALID, "must be unix:///PATH or tcp://HOST:PORT");
}

/* ---- texts ---- */

/* 1 to max characters: letters, digits and those of `more`, the first a letter or digit. */
static bool is_name(const char *text, size_t len, size_t max, const char *more)
{
	if (!len || len > max || !isalnum((unsigned char)text[0]))
		return false;
	for (size_t i = 0; i < len; i++)
		if (!text[i] || (!isalnum((unsigned char)text[i]) && !strchr(more, text[i])))
			return false;
	return true;
}

static bool is_path(const char *text)
{
	/* No step upwards, so that a path means what it says. */
	return text[0] == '/' && !strstr(text, "/../") &&
	       !(strlen(text) >= 3 && strcmp(text + strlen(text) - 3, "/..") == 0);
}

int setting_check_path(const char *text, struct err *e)
{
	return is_path(text) ? 0 : err_set(e, ERR_INVALID, "must be an absolute path without ..");
}

int setting_check_instance(const char *text, struct err *e)
{
	if (is_name(text, strlen(text), 23, "_.-"))
		return 0;
	return err_set(
		e, ERR_INVALID,
		"must be 1 to 23 letters, digits, dots, dashes or underscores, the first a letter or digit");
}

/* It travels in a header: visible ASCII only. */
int setting_check_token(const char *text, struct err *e)
{
	size_t len = strlen(text);
	for (const char *p = text; *p; p++)
		if (!isgraph((unsigned char)*p))
			return err_set(e, ERR_INVALID, "must be of visible ASCII characters without blanks");
	if (len < TOKEN_MIN || len > 512)
		return err_set(e, ERR_INVALID, "must have from %d to 512 characters", TOKEN_MIN);
	return 0;
}

int setting_check_image(const char *text, struct err *e)
{
	return strchr(text, ' ') ? err_set(e, ERR_INVALID, "must be the name of an image") : 0;
}

/* words: separated by '|'. */
static int check_choice(const char *text, const char *words, struct err *e)
{
	size_t len = strlen(text);
	for (const char *w = words; *w; w += strcspn(w, "|"), w += *w == '|')
		if (strcspn(w, "|") == len && strncmp(w, text, len) == 0)
			return 0;
	return err_set(e, ERR_INVALID, "must be one of %s", words);
}

int setting_check_shell(const char *text, struct err *e)
{
	return check_choice(text, "bash|sh", e);
}

int setting_check_log_format(const char *text, struct err *e)
{
	return check_choice(text, "pretty|json", e);
}

int setting_check_runtime(const char *text, struct err *e)
{
	return check_choice(text, "engine|local", e);
}

int setting_check_log_color(const char *text, struct err *e)
{
	return check_choice(text, "auto|always|never", e);
}

int setting_check_log_level(const char *text, struct err *e)
{
	return check_choice(text, "error|warn|info|debug", e);
}

/* ---- lists ---- */

/* Puts each item of a comma list to a rule. */
static int check_list(const char *text, bool (*rule)(const char *item), const char *what, struct err *e)
{
	const char *at = text, *item;
	size_t len = 0;
	while ((item = parse_list_next(&at, &len))) {
		_cleanup_free_ char *copy = xstrndup(item, MIN(len, ITEM_MAX));
		if (len > ITEM_MAX || !rule(copy))
			return err_set(e, ERR_INVALID, "must be %s: not \"%.80s\"", what, copy);
	}
	return 0;
}

static bool is_host(const char *item)
{
	return !strpbrk(item, " /@?#");
}

int setting_check_hosts(const char *text, struct err *e)
{
	return check_list(text, is_host, "a comma list of HOST or HOST:PORT", e);
}

static bool is_origin(const char *item)
{
	const char *host = strncmp(item, "http://", 7) == 0    ? item + 7
			   : strncmp(item, "https://", 8) == 0 ? item + 8
							       : "";
	return *host && is_host(host);
}

int setting_check_origins(const char *text, struct err *e)
{
	return check_list(text, is_origin, "a comma list of origins such as https://example.org", e);
}

/* The host's own network would undo the sandbox, and "container:" another's. */
static bool is_network(const char *item)
{
	return is_name(item, strlen(item), 63, "_.-") && strcmp(item, "host") != 0;
}

int setting_check_network(const char *text, struct err *e)
{
	return is_network(text)
		       ? 0
		       : err_set(e, ERR_INVALID, "must be none or a network of the engine, not host");
}

int setting_check_networks(const char *text, struct err *e)
{
	return check_list(text, is_network, "a comma list of the engine's networks, host not among them", e);
}

/* What follows "NAME="; NULL when that does not stand there. */
static const char *after_name(const char *item)
{
	const char *equals = strchr(item, '=');
	return equals && is_name(item, (size_t)(equals - item), 63, "_.-") ? equals + 1 : NULL;
}

static bool is_mount(const char *item)
{
	const char *host = after_name(item);
	const char *path = host ? strchr(host, ':') : NULL;
	const char *mode = path ? strchr(path + 1, ':') : NULL;
	if (!mode || strcmp(mode, ":ro") != 0)
		return false;
	_cleanup_free_ char *inside = xstrndup(path + 1, (size_t)(mode - path - 1));
	_cleanup_free_ char *outside = xstrndup(host, (size_t)(path - host));
	return is_path(inside) && is_path(outside) && inside[1];
}

int setting_check_mounts(const char *text, struct err *e)
{
	return check_list(text, is_mount, "a comma list of NAME=/HOST:/PATH:ro", e);
}

static bool is_variable(const char *item)
{
	if (!*item || isdigit((unsigned char)*item))
		return false;
	for (const char *p = item; *p; p++)
		if (!isalnum((unsigned char)*p) && *p != '_')
			return false;
	return !exec_env_is_secret(item);
}

int setting_check_pass_env(const char *text, struct err *e)
{
	return check_list(text, is_variable, "a comma list of variables, Berth's own secrets not among them",
			  e);
}

bool setting_is_secret_env(const char *name)
{
	for (size_t i = 0; i < settings_count; i++) {
		const char *own = settings_table[i].env[0];
		size_t len = strlen(own);
		if (settings_table[i].secret && strncmp(name, own, len) == 0 &&
		    (!name[len] || strcmp(name + len, "_FILE") == 0))
			return true;
	}
	return false;
}
