/* SPDX-License-Identifier: MIT */
/* id.h - random names and secrets, and the hash they are stored by. Any thread. */
#ifndef BERTH_ID_H
#define BERTH_ID_H

#include "base/base.h"

#define ID_SIZE 24 /* an id with its NUL: prefix "s_" and 20 characters of lower-case base32 (100 bits) */
#define ID_TOKEN_SIZE 64 /* a token with its NUL: prefix such as "bst_" and 256 random bits */
#define ID_HASH_SIZE 65  /* SHA-256 in hex with its NUL */

/* Aborts when the system has no randomness. prefix: at most 3 characters, such as "s_". */
void id_new(const char *prefix, char ret[ID_SIZE]);
void id_token(const char *prefix, char ret[ID_TOKEN_SIZE]);

/* prefix and 20 characters [a-z2-7] follow it: pure, for path segments. */
bool id_is(const char *prefix, const char *text);

void id_hash(const void *data, size_t len, char ret[ID_HASH_SIZE]);

/* Equal? Takes the same time for every pair: both are hashed first. NULL equals nothing. */
bool id_secret_equal(const char *a, const char *b);

#endif
