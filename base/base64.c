/* SPDX-License-Identifier: MIT */
#include "base/base64.h"

#include <assert.h>
#include <limits.h>
#include <openssl/evp.h>
#include <string.h>

#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

char *base64_encode(const void *bytes, size_t len)
{
	assert(len <= INT_MAX / 2);
	char *text = xcalloc((len + 2) / 3 * 4 + 1, 1);
	EVP_EncodeBlock((unsigned char *)text, bytes, (int)len);
	return text;
}

/* OpenSSL's decoder skips blanks and takes padding anywhere: the text is judged before. */
static bool is_strict(const char *text, size_t len, size_t *ret_padding)
{
	size_t used = 0;
	while (used < len && text[used] && strchr(LETTERS, text[used]))
		used++;
	*ret_padding = len - used;
	if (len % 4 || len > INT_MAX || *ret_padding > 2)
		return false;
	while (used < len && text[used] == '=')
		used++;
	return used == len;
}

int base64_decode(const char *text, size_t len, char **ret, size_t *ret_len, struct err *e)
{
	size_t padding = 0;
	_cleanup_free_ char *bytes = xcalloc(len / 4 * 3 + 1, 1);
	if (!is_strict(text, len, &padding) ||
	    (len && EVP_DecodeBlock((unsigned char *)bytes, (const unsigned char *)text, (int)len) < 0))
		return err_set(e, ERR_INVALID, "is not base64");
	/* EVP_DecodeBlock(3) counts the padding as bytes. */
	*ret_len = len / 4 * 3 - padding;
	bytes[*ret_len] = 0;
	*ret = STEAL_PTR(bytes);
	return 0;
}
