/* SPDX-License-Identifier: MIT */
#include "api/body.h"

#include <string.h>

#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

int body_check_env(const json_t *env, const char *field, struct err *e)
{
	const char *name;
	json_t *value;

	json_object_foreach ((json_t *)(uintptr_t)env, name, value) {
		if (!*name || strchr(name, '=') || strlen(name) > 256)
			return err_field(e, field,
					 "has a name that is empty, has a '=' or more than 256 bytes");
		if (json_string_length(value) > 64 * 1024)
			return err_field(e, field, "has a value of more than 64 KiB");
	}
	return 0;
}

int body_check_labels(const json_t *labels, const char *field, struct err *e)
{
	const char *key;
	json_t *value;

	json_object_foreach ((json_t *)(uintptr_t)labels, key, value) {
		size_t len = strlen(key);

		if (!len || len > 63 || strspn(key, LETTERS "._/-") != len)
			return err_field(e, field,
					 "has a key that is not 1 to 63 of letters, digits and . _ / -");
		if (json_string_length(value) > 256)
			return err_field(e, field, "has a value of more than 256 bytes");
	}
	return 0;
}

int body_check_name(const char *name, const char *field, struct err *e)
{
	size_t len = name ? strlen(name) : 1;

	if (!len || len > 63 || (name && (strspn(name, LETTERS "._-") != len || strspn(name, LETTERS) == 0)))
		return err_field(
			e, field,
			"must be 1 to 63 of letters, digits and . _ - and start with a letter or digit");
	return 0;
}
