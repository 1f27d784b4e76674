/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "runtime/engine/engine_json.h"
#include "runtime/engine/engine_priv.h"

static json_t *driver_options(const struct engine_volume_spec *spec)
{
	if (!spec->tmpfs_bytes)
		return json_object();
	_cleanup_free_ char *options = engine_spec_tmpfs(spec);
	return json_pack("{s:s, s:s, s:s}", "type", "tmpfs", "device", "tmpfs", "o", options);
}

/* Asking for a name that exists answers 201 with the old volume, whatever its options. */
static int is_as_asked(const json_t *reply, const struct engine_volume_spec *spec, struct err *e)
{
	_cleanup_free_ char *options = spec->tmpfs_bytes ? engine_spec_tmpfs(spec) : xstrdup("");
	if (strcmp(engine_json_text(reply, "Name"), spec->name))
		return err_set(e, ERR_ENGINE, "the engine made a volume of another name");
	if (strcmp(engine_json_text(json_object_get(reply, "Options"), "o"), options))
		return err_set(e, ERR_CONFLICT, "volume %s exists with other options", spec->name);
	return 0;
}

int engine_volume_create(struct engine *g, const struct engine_volume_spec *spec, struct err *e)
{
	_cleanup_json_ json_t *body = NULL, *reply = NULL;
	int r = engine_check_name("volume", spec->name, e);
	if (!r && spec->tmpfs_bytes && (spec->tmpfs_bytes < 0 || spec->tmpfs_inodes < 1))
		r = err_field(e, "volume", "a tmpfs needs a size and inodes");
	if (r)
		return r;
	body = json_pack("{s:s, s:s, s:o, s:o}", "Name", spec->name, "Driver", "local", "DriverOpts",
			 driver_options(spec), "Labels", engine_spec_labels(spec->labels, spec->label_count));
	r = engine_post(g, "/volumes/create", body, &reply, e);
	r = r ? r : is_as_asked(reply, spec, e);
	return r ? err_wrap(e, "volume %s", spec->name) : 0;
}

int engine_volume_remove(struct engine *g, const char *name, struct err *e)
{
	int r = engine_check_name("volume", name, e);
	_cleanup_free_ char *path = r ? NULL : xasprintf("/volumes/%s", name);
	const struct engine_request rq = { .verb = ENGINE_DELETE, .path = path };
	r = r ? r : engine_call_json(g, &rq, NULL, e);
	return r == -ERR_NOT_FOUND ? 0 : r;
}
