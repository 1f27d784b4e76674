/* SPDX-License-Identifier: MIT */
/*
 * tools.h - which tools an image has, in which versions: a list that the image was built with
 * (TOOLS_LIST), read once from the first session of each image, and kept in memory. No tool is run for it.
 *
 * Any thread; tools.lock is a leaf.
 */
#ifndef BERTH_TOOLS_H
#define BERTH_TOOLS_H

#include <jansson.h>

#include "base/err.h"

struct tools;
struct session;

#define TOOLS_LIST "/usr/share/berth/versions" /* lines of NAME VERSION */
#define TOOLS_LIST_MAX 65536                   /* bytes of it that are read */
#define TOOLS_MAX 512
#define TOOLS_IMAGES_MAX 64 /* that are remembered; then the oldest is forgotten */

/* standard: the image of a session that names none, borrowed. */
struct tools *tools_new(const char *standard) NODISCARD;
void tools_free(struct tools *t);

/* Has a worker read the list of a ready session's image, unless that is known. Does not wait. */
void tools_learn(struct session *s);

/* {name: version} of an image by its id, of the standard image with NULL; {} until known. A new reference. */
json_t *tools_get(struct tools *t, const char *image_id) NODISCARD;

/* The list as an object: what is no such line is left out. Pure; the image is taken for hostile. */
json_t *tools_parse(const char *text, size_t len) NODISCARD;

#endif
