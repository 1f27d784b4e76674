/* SPDX-License-Identifier: MIT */
#include "runtime/agent/text.h"

#include <stddef.h>
#include <string.h>

static unsigned digit(char c)
{
	if (c >= '0' && c <= '9')
		return (unsigned)(c - '0');
	if (c >= 'A' && c <= 'F')
		return (unsigned)(c - 'A') + 10;
	return c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10 : UINT8_MAX;
}

bool text_number(const char **at, unsigned base, uint64_t *ret)
{
	const char *p = *at;
	uint64_t value = 0;

	for (; digit(*p) < base; p++)
		if (__builtin_mul_overflow(value, base, &value) ||
		    __builtin_add_overflow(value, digit(*p), &value))
			return false;
	if (p == *at)
		return false;
	*at = p;
	*ret = value;
	return true;
}

const char *text_value(const char *text, const char *key)
{
	size_t len = strlen(key);

	while (text && strncmp(text, key, len) != 0) {
		text = strchr(text, '\n');
		text = text ? text + 1 : NULL;
	}
	return text ? text + len + strspn(text + len, " \t") : NULL;
}

const char *text_word(const char *text, int n)
{
	for (; n > 0; n--) {
		text += strcspn(text, " \n");
		text += strspn(text, " ");
		if (*text == '\0' || *text == '\n')
			return NULL;
	}
	return text;
}
