/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "base/clock.h"
#include "runtime/engine/engine_json.h"
#include "runtime/engine/engine_priv.h"

#define IMPORT_MS 600000 /* a tool image of a few GB on a slow disk */

static void free_texts(char **texts)
{
	for (size_t i = 0; texts && texts[i]; i++)
		free(texts[i]);
	free(texts);
}

void engine_image_clear(struct engine_image *image)
{
	free_texts(image->env);
	free_texts(image->volumes);
	*image = (struct engine_image){ 0 };
}

/* References stand in paths as they are: only characters that mean nothing there. */
static int check_ref(const char *ref, struct err *e)
{
	static const char alphabet[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-/:@";
	size_t len = ref ? strlen(ref) : 0;
	if (len < 1 || len > 255 || strspn(ref, alphabet) != len || strstr(ref, "..") || ref[0] == '/' ||
	    strstr(ref, "//"))
		return err_field(e, "image", "must be a name such as docker.io/library/debian:12");
	return 0;
}

int engine_image_inspect(struct engine *g, const char *ref, struct engine_image *ret, struct err *e)
{
	_cleanup_json_ json_t *inspect = NULL;
	int r = check_ref(ref, e);
	_cleanup_free_ char *path = r ? NULL : xasprintf("/images/%s/json", ref);
	r = r ? r : engine_get(g, path, &inspect, e);
	return r ? r : engine_json_image(inspect, ret, e);
}

/* A tag begins after the last ':' that no '/' follows. */
static int tag(struct engine *g, const char *id, const char *ref, struct err *e)
{
	const char *colon = strrchr(ref, ':');
	bool tagged = colon && !strchr(colon, '/');
	_cleanup_buf_ struct buf path = BUF_INIT(2048);
	_cleanup_free_ char *repo = xstrndup(ref, tagged ? (size_t)(colon - ref) : strlen(ref));
	int r = buf_addf(&path, e, "/images/%s/tag", id);
	r = r ? r : engine_path_query(&path, "repo", repo, e);
	r = r ? r : engine_path_query(&path, "tag", tagged ? colon + 1 : "latest", e);
	return r ? r : engine_post(g, path.data, NULL, NULL, e);
}

static int import(struct engine *g, const void *tar, size_t len, const char *const *changes, char ret_id[80],
		  struct err *e)
{
	_cleanup_buf_ struct buf path = BUF_INIT(16384);
	_cleanup_reply_ struct engine_reply reply = { 0 };
	int r = buf_addf(&path, e, "/images/create?fromSrc=-");
	for (size_t i = 0; !r && changes && changes[i]; i++)
		r = engine_path_query(&path, "changes", changes[i], e);
	const struct engine_request rq = { .verb = ENGINE_POST,
					   .path = path.data,
					   .body = tar,
					   .body_len = len,
					   .type = "application/x-tar",
					   .deadline_ms = clock_mono_ms() + IMPORT_MS };
	r = r ? r : engine_call(g, &rq, &reply, e);
	return r ? r : engine_json_import(reply.body.data ? reply.body.data : "", reply.body.len, ret_id, e);
}

int engine_image_import(struct engine *g, const void *tar, size_t len, const char *ref,
			const char *const *changes, struct err *e)
{
	char id[80];
	int r = check_ref(ref, e);
	r = r ? r : import(g, tar, len, changes, id, e);
	r = r ? r : tag(g, id, ref, e);
	return r ? err_wrap(e, "image %.100s", ref) : 0;
}

int engine_image_remove(struct engine *g, const char *ref, struct err *e)
{
	int r = check_ref(ref, e);
	_cleanup_free_ char *path = r ? NULL : xasprintf("/images/%s", ref);
	const struct engine_request rq = { .verb = ENGINE_DELETE, .path = path };
	r = r ? r : engine_call_json(g, &rq, NULL, e);
	return r == -ERR_NOT_FOUND ? 0 : r;
}
