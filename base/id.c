/* SPDX-License-Identifier: MIT */
#include "base/id.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <string.h>
#include <sys/random.h>

#define ID_CHARS 20
#define TOKEN_BYTES 32
#define TOKEN_CHARS 52 /* 256 bits in groups of five */

/* RFC 4648 base32 in lower case: no character needs escaping in a path, a label or a shell. */
static const char alphabet[] = "abcdefghijklmnopqrstuvwxyz234567";

static void random_bytes(uint8_t *bytes, size_t len)
{
	/* Up to 256 bytes come whole once the pool is ready; before that a signal may interrupt
	 * (getrandom(2)). */
	ssize_t n;
	do
		n = getrandom(bytes, len, 0);
	while (n < 0 && errno == EINTR);
	if (n != (ssize_t)len)
		abort();
}

static void base32(const uint8_t *bytes, size_t len, char *out, size_t chars)
{
	for (size_t i = 0; i < chars; i++) {
		size_t bit = i * 5, at = bit / 8;
		unsigned pair = (unsigned)bytes[at] << 8 | (at + 1 < len ? bytes[at + 1] : 0u);
		out[i] = alphabet[(pair >> (11 - bit % 8)) & 31];
	}
	out[chars] = 0;
}

static void random_name(const char *prefix, size_t chars, char *out, size_t size)
{
	uint8_t bytes[TOKEN_BYTES];
	size_t prefix_len = strlen(prefix);
	if (prefix_len + chars >= size)
		abort();
	random_bytes(bytes, sizeof(bytes));
	memcpy(out, prefix, prefix_len);
	base32(bytes, sizeof(bytes), out + prefix_len, chars);
	OPENSSL_cleanse(bytes, sizeof(bytes));
}

void id_new(const char *prefix, char ret[ID_SIZE])
{
	random_name(prefix, ID_CHARS, ret, ID_SIZE);
}

void id_token(const char *prefix, char ret[ID_TOKEN_SIZE])
{
	random_name(prefix, TOKEN_CHARS, ret, ID_TOKEN_SIZE);
}

bool id_is(const char *prefix, const char *text)
{
	size_t len = strlen(prefix);
	if (strncmp(text, prefix, len) != 0)
		return false;
	text += len;
	return strlen(text) == ID_CHARS && strspn(text, alphabet) == ID_CHARS;
}

static void sha256(const void *data, size_t len, uint8_t ret[32])
{
	/* Fails only when libcrypto has no SHA-256 or no memory: nothing here could go on without it. */
	if (!EVP_Digest(data, len, ret, NULL, EVP_sha256(), NULL))
		abort();
}

void id_hash(const void *data, size_t len, char ret[ID_HASH_SIZE])
{
	static const char hex[] = "0123456789abcdef";
	uint8_t digest[32];
	sha256(data, len, digest);
	for (size_t i = 0; i < sizeof(digest); i++) {
		ret[2 * i] = hex[digest[i] >> 4];
		ret[2 * i + 1] = hex[digest[i] & 15];
	}
	ret[2 * sizeof(digest)] = 0;
}

bool id_secret_equal(const char *a, const char *b)
{
	if (!a || !b)
		return false;
	uint8_t da[32], db[32];
	sha256(a, strlen(a), da);
	sha256(b, strlen(b), db);
	return CRYPTO_memcmp(da, db, sizeof(da)) == 0;
}
