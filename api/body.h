/* SPDX-License-Identifier: MIT */
/* body.h - checks that several kinds of request bodies share. Pure. */
#ifndef BERTH_BODY_H
#define BERTH_BODY_H

#include <jansson.h>

#include "base/err.h"

/* Names of variables: not empty, no '=', at most 256 bytes; values at most 64 KiB. NULL is fine. */
int body_check_env(const json_t *env, const char *field, struct err *e) NODISCARD;

/* Labels: keys of 1..63 of [A-Za-z0-9._/-], values of at most 256 bytes. NULL is fine. */
int body_check_labels(const json_t *labels, const char *field, struct err *e) NODISCARD;

/* 1..63 of [A-Za-z0-9._-], starting with a letter or digit. NULL is fine. */
int body_check_name(const char *name, const char *field, struct err *e) NODISCARD;

#endif
