/* SPDX-License-Identifier: MIT */
#include "manager/exec_env.h"

#include <string.h>

#include "base/base.h"
#include "manager/manager.h"
#include "runtime/sandbox.h"

#define VARIABLES_MAX 1024

/* Names that carry Berth's own secrets somewhere: nobody sets them for a command. */
static const char *const forbidden[] = { "SANDBOX_TOKEN", "SANDBOX_ADMIN_TOKEN", "ATLAS_SANDBOX_TOKEN",
					 "BERTH_TOKEN" };

static const char standard[] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
static const char *const fixed[] = { ("HOME=" SANDBOX_HOME), "USER=sandbox", "LANG=C.UTF-8" };

static bool is_forbidden(const char *name, size_t len)
{
	static const char twin[] = "_FILE";
	size_t twin_len = sizeof(twin) - 1;
	if (len > twin_len && memcmp(name + len - twin_len, twin, twin_len) == 0)
		len -= twin_len;
	for (size_t i = 0; i < ARRAY_LEN(forbidden); i++)
		if (strlen(forbidden[i]) == len && memcmp(forbidden[i], name, len) == 0)
			return true;
	return false;
}

bool exec_env_is_secret(const char *name)
{
	return is_forbidden(name, strlen(name));
}

static int check_one(const char *name, const char *value, struct err *e)
{
	char field[64];
	snprintf(field, sizeof(field), "env.%.48s", name);
	if (!*name || strchr(name, '='))
		return err_field(e, field, "a variable's name must be non-empty and have no '='");
	if (is_forbidden(name, strlen(name)))
		return err_field(e, field, "cannot be set for a command");
	if (strlen(name) + strlen(value) + 2 > 128 * 1024)
		return err_field(e, field, "must be shorter than 128 KiB");
	return 0;
}

int exec_env_check(const json_t *env, struct err *e)
{
	const char *name;
	json_t *value;
	int r = 0;
	if (json_object_size(env) > EXEC_ENV_MAX)
		return err_field(e, "env", "must have at most %d variables", EXEC_ENV_MAX);
	/* jansson's iteration wants a mutable object; nothing is changed. */
	json_object_foreach ((json_t *)(uintptr_t)env, name, value) {
		if (r == 0 && !json_is_string(value))
			r = err_field(e, "env", "must be an object of strings");
		if (r == 0)
			r = check_one(name, json_string_value(value), e);
	}
	return r;
}

struct env_list {
	char **items;
	size_t count;
	bool full; /* a variable did not fit */
};

static void put(struct env_list *l, const char *item, size_t name_len)
{
	for (size_t i = 0; i < l->count; i++) {
		if (strncmp(l->items[i], item, name_len + 1) == 0) { /* with its '=' */
			free(l->items[i]);
			l->items[i] = xstrdup(item);
			return;
		}
	}
	l->full = l->full || l->count == VARIABLES_MAX;
	if (!l->full)
		l->items[l->count++] = xstrdup(item);
}

/* "K=V"; anything else is no variable. */
static void put_text(struct env_list *l, const char *text)
{
	const char *equals = strchr(text, '=');
	if (equals && equals > text && !is_forbidden(text, (size_t)(equals - text)))
		put(l, text, (size_t)(equals - text));
}

static void put_array(struct env_list *l, const json_t *array)
{
	size_t i;
	json_t *item;
	json_array_foreach (array, i, item)
		put_text(l, json_string_value(item));
}

static void put_object(struct env_list *l, const json_t *object)
{
	const char *name;
	json_t *value;
	json_object_foreach ((json_t *)(uintptr_t)object, name, value) {
		_cleanup_free_ char *item = xasprintf("%s=%s", name, json_string_value(value));
		put(l, item, strlen(name));
	}
}

int exec_env_make(const struct exec_env_sources *from, char ***ret, struct err *e)
{
	int r = exec_env_check(from->request, e);
	if (r < 0)
		return r;
	struct env_list l = { .items = xcalloc(VARIABLES_MAX + 1, sizeof(*l.items)) };
	put_text(&l, standard);
	put_array(&l, from->image);
	for (size_t i = 0; i < ARRAY_LEN(fixed); i++)
		put_text(&l, fixed[i]);
	for (char *const *p = from->passed; p && *p; p++)
		put_text(&l, *p);
	put_object(&l, from->session);
	put_object(&l, from->request);
	if (l.full) {
		exec_env_free(l.items);
		return err_field(e, "env", "makes more than %d variables with the image's and the session's",
				 VARIABLES_MAX);
	}
	*ret = l.items;
	return 0;
}

void exec_env_free(char **env)
{
	for (char **p = env; p && *p; p++)
		free(*p);
	free(env);
}
