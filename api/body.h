/* SPDX-License-Identifier: MIT */
/* body.h - checks and readers that several kinds of request bodies share. Pure. */
#ifndef BERTH_BODY_H
#define BERTH_BODY_H

#include <jansson.h>

#include "base/buf.h"

/*
 * Decodes strict base64 (RFC 4648, 4: with padding, nothing else between); *ret is owned by the
 * caller, NUL-terminated after *ret_len bytes. ERR_INVALID names the field.
 */
int body_base64(const char *text, const char *field, char **ret, size_t *ret_len, struct err *e) NODISCARD;

/* The inverse: a JSON string, a new reference. */
json_t *body_to_base64(const void *bytes, size_t len) NODISCARD;

/* Names of variables: not empty, no '=', at most 256 bytes; values at most 64 KiB. NULL is fine. */
int body_check_env(const json_t *env, const char *field, struct err *e) NODISCARD;

/* Labels: keys of 1..63 of [A-Za-z0-9._/-], values of at most 256 bytes. NULL is fine. */
int body_check_labels(const json_t *labels, const char *field, struct err *e) NODISCARD;

/* 1..63 of [A-Za-z0-9._-], starting with a letter or digit. NULL is fine. */
int body_check_name(const char *name, const char *field, struct err *e) NODISCARD;

#endif
