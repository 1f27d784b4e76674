/* SPDX-License-Identifier: MIT */
#include "manager/tools.h"

#include <ctype.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "manager/builtin.h"
#include "manager/internal.h"

#define NAME_MAX_BYTES 64
#define VERSION_MAX 100
#define READ_MS 5000 /* the few workers open links, too: a sandbox that stands still must not hold one */

struct image {
	char *id;
	char *tools; /* JSON; NULL while it is being read */
};

struct tools {
	const char *standard;
	pthread_mutex_t lock; /* all below */
	struct image images[TOOLS_IMAGES_MAX];
	size_t next;       /* where the next one goes, over the oldest */
	char *standard_id; /* of the standard image, as the last session had it; NULL: none yet */
};

struct tools *tools_new(const char *standard)
{
	struct tools *t = xcalloc(1, sizeof(*t));
	t->standard = standard;
	pthread_mutex_init(&t->lock, NULL);
	return t;
}

void tools_free(struct tools *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < TOOLS_IMAGES_MAX; i++) {
		free(t->images[i].id);
		free(t->images[i].tools);
	}
	free(t->standard_id);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

/* ---- the list ---- */

static bool is_name(const char *text, size_t len)
{
	if (!len || len > NAME_MAX_BYTES)
		return false;
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)text[i]) && !strchr("._+-", text[i]))
			return false;
	return true;
}

/* "NAME VERSION" */
static void parse_line(json_t *tools, const char *line, size_t len)
{
	const char *blank = memchr(line, ' ', len);
	size_t name_len = blank ? (size_t)(blank - line) : 0;
	if (!is_name(line, name_len) || len - name_len < 2 || len - name_len - 1 > VERSION_MAX)
		return;
	for (size_t i = name_len + 1; i < len; i++)
		if (!isprint((unsigned char)line[i]))
			return;
	_cleanup_free_ char *name = xstrndup(line, name_len);
	json_object_set_new(tools, name, json_stringn(blank + 1, len - name_len - 1));
}

json_t *tools_parse(const char *text, size_t len)
{
	json_t *tools = json_object();
	while (len && json_object_size(tools) < TOOLS_MAX) {
		const char *end = memchr(text, '\n', len);
		size_t line = end ? (size_t)(end - text) : len;
		parse_line(tools, text, line);
		line += end != NULL;
		text += line;
		len -= line;
	}
	return tools;
}

/* ---- what is known ---- */

static struct image *find_locked(struct tools *t, const char *id)
{
	for (size_t i = 0; i < TOOLS_IMAGES_MAX; i++)
		if (t->images[i].id && strcmp(t->images[i].id, id) == 0)
			return &t->images[i];
	return NULL;
}

json_t *tools_get(struct tools *t, const char *image_id)
{
	pthread_mutex_lock(&t->lock);
	const char *id = image_id ? image_id : t->standard_id;
	const struct image *image = id ? find_locked(t, id) : NULL;
	_cleanup_free_ char *text = image && image->tools ? xstrdup(image->tools) : NULL;
	pthread_mutex_unlock(&t->lock);
	json_t *tools = text ? json_loads(text, 0, NULL) : NULL;
	return tools ? tools : json_object();
}

/* True: this caller is to read it. */
static bool claim(struct tools *t, const char *id, bool standard)
{
	pthread_mutex_lock(&t->lock);
	if (standard) {
		free(t->standard_id);
		t->standard_id = xstrdup(id);
	}
	bool mine = !find_locked(t, id);
	if (mine) {
		struct image *oldest = &t->images[t->next++ % TOOLS_IMAGES_MAX];
		free(oldest->id);
		free(oldest->tools);
		*oldest = (struct image){ .id = xstrdup(id) };
	}
	pthread_mutex_unlock(&t->lock);
	return mine;
}

/* tools NULL: it could not be read, and the next session of this image tries again. */
static void settle(struct tools *t, const char *id, const json_t *tools)
{
	pthread_mutex_lock(&t->lock);
	struct image *image = find_locked(t, id);
	if (image && tools) {
		free(image->tools);
		image->tools = json_text(tools);
	} else if (image) {
		free(image->id);
		image->id = NULL;
	}
	pthread_mutex_unlock(&t->lock);
}

/* ---- reading ---- */

/* Has the agent read the file: the image may have no program for it. One that is not there is an empty list.
 */
static int read_list(struct session *s, struct buf *ret, struct err *e)
{
	char max[24];
	snprintf(max, sizeof(max), "%d", TOOLS_LIST_MAX);
	const char *const args[] = { TOOLS_LIST, "0", max, NULL };
	const struct builtin_ask ask = {
		.name = "read", .args = args, .raw = true, .client_fd = -1, .patience_ms = READ_MS
	};
	_cleanup_(builtin_free_cleanup_) struct builtin_job *b = NULL;
	struct builtin_piece piece;
	int r = builtin_start(s, &ask, &b, e);
	while (r >= 0 && (r = builtin_next(b, &piece, e)) >= 0 && r != BUILTIN_END)
		if (r == BUILTIN_BYTES && buf_add(ret, piece.bytes, piece.len, e) < 0)
			r = -(int)e->code;
	return MIN(r, 0);
}

static void work_read(void *arg)
{
	_cleanup_(session_unref_cleanup_) struct session *s = arg;
	_cleanup_buf_ struct buf text = BUF_INIT(2 * TOOLS_LIST_MAX);
	_cleanup_json_ json_t *tools = NULL;
	struct err e;
	pthread_mutex_lock(&s->lock);
	_cleanup_free_ char *id = xstrdup(s->row.image_id);
	pthread_mutex_unlock(&s->lock);
	if (!atomic_load(&s->manager->quiet) && read_list(s, &text, &e) == 0)
		tools = tools_parse(text.data ? text.data : "", text.len);
	settle(s->manager->tools, id, tools);
}

void tools_learn(struct session *s)
{
	struct manager *m = s->manager;
	pthread_mutex_lock(&s->lock);
	_cleanup_free_ char *id = s->row.image_id ? xstrdup(s->row.image_id) : NULL;
	bool standard = strcmp(s->row.image, m->settings->image) == 0;
	pthread_mutex_unlock(&s->lock);
	if (!id || !claim(m->tools, id, standard))
		return;
	if (!workers_add(m->workers, work_read, session_ref(s))) {
		settle(m->tools, id, NULL);
		session_unref(s);
	}
}
