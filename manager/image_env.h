/* SPDX-License-Identifier: MIT */
/* image_env.h - the environment that an image brings, by the engine's id of it; asked once. Any thread. */
#ifndef BERTH_IMAGE_ENV_H
#define BERTH_IMAGE_ENV_H

#include "runtime/engine/engine.h"

struct image_cache;
struct image_cache *image_cache_new(void) NODISCARD;
void image_cache_free(struct image_cache *c);

/* "K=V" texts, NULL-terminated, borrowed for the life of the cache. */
int image_env_get(struct image_cache *c, struct engine *g, const char *image_id, const char *const **ret,
		  struct err *e) NODISCARD;
/* What an inspect has just told. */
void image_env_put(struct image_cache *c, const struct engine_image *image);

#endif
