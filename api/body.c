/* SPDX-License-Identifier: MIT */
#include "api/body.h"

#include <assert.h>
#include <limits.h>
#include <openssl/evp.h>
#include <string.h>

#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

/* OpenSSL's decoder skips blanks and takes padding anywhere: judge the text before. */
static bool is_base64(const char *text, size_t len, size_t *ret_padding)
{
	size_t used = strspn(text, LETTERS "+/");

	*ret_padding = len - used;
	return len % 4 == 0 && len <= INT_MAX && *ret_padding <= 2 &&
	       strspn(text + used, "=") == *ret_padding;
}

int body_base64(const char *text, const char *field, char **ret, size_t *ret_len, struct err *e)
{
	size_t len = strlen(text), padding;
	_cleanup_free_ char *bytes = xcalloc(len / 4 * 3 + 1, 1);

	if (!is_base64(text, len, &padding) ||
	    (len && EVP_DecodeBlock((unsigned char *)bytes, (const unsigned char *)text, (int)len) < 0))
		return err_field(e, field, "is not base64");
	*ret_len = len / 4 * 3 - padding;
	bytes[*ret_len] = '\0';
	*ret = STEAL_PTR(bytes);
	return 0;
}

json_t *body_to_base64(const void *bytes, size_t len)
{
	_cleanup_free_ char *text = xcalloc((len + 2) / 3 * 4 + 1, 1);

	assert(len <= INT_MAX / 2);
	return json_stringn_nocheck(text, (size_t)EVP_EncodeBlock((unsigned char *)text, bytes, (int)len));
}

int body_check_env(const json_t *env, const char *field, struct err *e)
{
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)(uintptr_t)env, name, value)
	{
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

	json_object_foreach((json_t *)(uintptr_t)labels, key, value)
	{
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
