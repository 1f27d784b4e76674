/* SPDX-License-Identifier: MIT */
#include "manager/image_env.h"

#include <pthread.h>
#include <string.h>

/* An id names its content for ever, so an entry never grows old; images are few. */
struct image_entry {
	struct image_entry *next;
	char id[80];
	char **env;
};

struct image_cache {
	pthread_mutex_t lock;
	struct image_entry *entries;
};

struct image_cache *image_cache_new(void)
{
	struct image_cache *c = xcalloc(1, sizeof(*c));
	pthread_mutex_init(&c->lock, NULL);
	return c;
}

static void entry_free(struct image_entry *entry)
{
	for (char **p = entry->env; *p; p++)
		free(*p);
	free(entry->env);
	free(entry);
}

void image_cache_free(struct image_cache *c)
{
	if (!c)
		return;
	while (c->entries) {
		struct image_entry *entry = c->entries;
		c->entries = entry->next;
		entry_free(entry);
	}
	pthread_mutex_destroy(&c->lock);
	free(c);
}

static const struct image_entry *find_locked(const struct image_cache *c, const char *id)
{
	const struct image_entry *entry = c->entries;
	while (entry && strcmp(entry->id, id) != 0)
		entry = entry->next;
	return entry;
}

void image_env_put(struct image_cache *c, const struct engine_image *image)
{
	size_t n = 0;
	while (image->env && image->env[n])
		n++;
	pthread_mutex_lock(&c->lock);
	if (!find_locked(c, image->id)) {
		struct image_entry *entry = xcalloc(1, sizeof(*entry));
		snprintf(entry->id, sizeof(entry->id), "%s", image->id);
		entry->env = xcalloc(n + 1, sizeof(*entry->env));
		for (size_t i = 0; i < n; i++)
			entry->env[i] = xstrdup(image->env[i]);
		entry->next = c->entries;
		c->entries = entry;
	}
	pthread_mutex_unlock(&c->lock);
}

int image_env_get(struct image_cache *c, struct engine *g, const char *image_id, const char *const **ret,
		  struct err *e)
{
	pthread_mutex_lock(&c->lock);
	const struct image_entry *entry = find_locked(c, image_id);
	pthread_mutex_unlock(&c->lock);
	if (!entry) {
		struct engine_image image = { 0 };
		int r = engine_image_inspect(g, image_id, &image, e);
		if (r < 0)
			return r;
		snprintf(image.id, sizeof(image.id), "%s", image_id);
		image_env_put(c, &image);
		engine_image_clear(&image);
		pthread_mutex_lock(&c->lock);
		entry = find_locked(c, image_id);
		pthread_mutex_unlock(&c->lock);
	}
	*ret = (const char *const *)entry->env;
	return 0;
}
