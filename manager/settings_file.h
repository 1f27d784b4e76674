/* SPDX-License-Identifier: MIT */
/*
 * settings_file.h - the text of a configuration file: lines of `key = value`, empty ones, and ones that begin
 * with #. Blanks around key and value do not count; a value has no quotes and goes to the end of its line.
 * Pure.
 */
#ifndef BERTH_SETTINGS_FILE_H
#define BERTH_SETTINGS_FILE_H

#include "base/err.h"

#define SETTINGS_FILE_MAX (64 << 10)

/* Borrowed texts; line counts from 1. Returns 0, or an error that ends the reading. */
typedef int (*settings_file_fn)(void *ctx, const char *key, const char *value, int line, struct err *e);

/*
 * ERR_INVALID with the line in its message: too long, not UTF-8, a NUL or control character, no "=", a key
 * that is not [a-z0-9_], a key twice, more than 256 keys. A value may be empty.
 */
int settings_file_parse(const char *text, size_t len, settings_file_fn each, void *ctx,
			struct err *e) NODISCARD;

#endif
