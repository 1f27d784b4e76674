/* SPDX-License-Identifier: MIT */
#include "runtime/engine/engine_json.h"

#include <ctype.h>
#include <string.h>
#include <time.h>

#include "base/utf8.h"

const char *engine_json_text(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));
	return text ? text : "";
}

void engine_json_copy(const json_t *object, const char *key, char *out, size_t size)
{
	snprintf(out, size, "%s", engine_json_text(object, key));
}

const json_t *engine_json_at(const json_t *object, const char *path)
{
	while (object && *path) {
		size_t len = strcspn(path, ".");
		char key[64];
		snprintf(key, sizeof(key), "%.*s", (int)len, path);
		object = json_object_get(object, key);
		path += len + (path[len] == '.');
	}
	return object;
}

int engine_json_parse(const char *text, size_t len, json_t **ret, struct err *e)
{
	struct err why;
	if (json_text_parse(text, len, ret, &why))
		return err_set(e, ERR_ENGINE, "the engine's reply is not understood: %s", why.msg);
	return 0;
}

/* ---- errors ---- */

/* Podman answers 500 to nearly everything, but names the cause in a constant (libpod/define/errors.go). */
static const struct {
	const char *cause;
	enum err_code code;
} causes[] = {
	{ "no such container", ERR_NOT_FOUND },       { "no such image", ERR_NOT_FOUND },
	{ "image not known", ERR_NOT_FOUND },         { "no such volume", ERR_NOT_FOUND },
	{ "no such exec session", ERR_NOT_FOUND },    { "that name is already in use", ERR_CONFLICT },
	{ "container already exists", ERR_CONFLICT }, { "container state improper", ERR_CONFLICT },
	{ "volume is being used", ERR_CONFLICT },     { "container is being removed", ERR_CONFLICT },
};

static const struct {
	long status;
	enum err_code code;
} statuses[] = {
	{ 404, ERR_NOT_FOUND },
	{ 409, ERR_CONFLICT },
};

static enum err_code code_of(long status, const char *cause)
{
	for (size_t i = 0; i < ARRAY_LEN(causes); i++)
		if (!strcmp(cause, causes[i].cause))
			return causes[i].code;
	for (size_t i = 0; i < ARRAY_LEN(statuses); i++)
		if (status == statuses[i].status)
			return statuses[i].code;
	return ERR_ENGINE;
}

int engine_json_error(long status, const char *body, size_t len, struct err *e)
{
	/* Old Dockers and proxies answer plain text (and HTML): then the body itself is the message. */
	_cleanup_json_ json_t *reply = NULL;
	struct err ignored;
	if (!len || json_text_parse(body, len, &reply, &ignored))
		reply = NULL;
	const char *message = engine_json_text(reply, "message");
	if (*message)
		len = strlen(message);
	else
		message = body ? body : "";
	while (len && isspace((unsigned char)message[len - 1]))
		len--;
	_cleanup_free_ char *line = utf8_escape(message, len, 240);
	return err_set(e, code_of(status, engine_json_text(reply, "cause")), "%s",
		       *line ? line : "no reason given");
}

bool engine_json_wants_version(long status, const char *body, size_t len)
{
	static const char *const words[] = { "client version", "API version" };
	if (status != 400 || !len || !memmem(body, len, " is too ", 8))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (memmem(body, len, words[i], strlen(words[i])))
			return true;
	return false;
}

/* ---- containers ---- */

static bool is_id(const char *text)
{
	return strlen(text) == ENGINE_ID_SIZE - 1 && strspn(text, "0123456789abcdef") == ENGINE_ID_SIZE - 1;
}

int engine_json_id(const json_t *object, const char *key, char ret[ENGINE_ID_SIZE], struct err *e)
{
	const char *id = engine_json_text(object, key);
	if (!is_id(id))
		return err_set(e, ERR_ENGINE, "the engine's reply has no id");
	memcpy(ret, id, ENGINE_ID_SIZE);
	return 0;
}

/* Docker's words, then Podman's own (libpod/define/containerstate.go). */
static const struct {
	const char *word;
	enum engine_state state;
} states[] = {
	{ "created", ENGINE_CREATED },    { "running", ENGINE_RUNNING },    { "paused", ENGINE_PAUSED },
	{ "restarting", ENGINE_RUNNING }, { "exited", ENGINE_EXITED },      { "dead", ENGINE_EXITED },
	{ "removing", ENGINE_REMOVING },  { "configured", ENGINE_CREATED }, { "initialized", ENGINE_CREATED },
	{ "stopped", ENGINE_EXITED },     { "stopping", ENGINE_RUNNING },
};

static bool state_of(const char *word, enum engine_state *ret)
{
	for (size_t i = 0; i < ARRAY_LEN(states); i++)
		if (!strcmp(word, states[i].word)) {
			*ret = states[i].state;
			return true;
		}
	return false;
}

int engine_json_state(const json_t *inspect, struct engine_container_state *ret, struct err *e)
{
	const json_t *s = json_object_get(inspect, "State");
	struct engine_container_state state = { 0 };
	if (!state_of(engine_json_text(s, "Status"), &state.state))
		return err_set(e, ERR_ENGINE, "the engine's reply has no state that is known");
	/* Podman says 0 and Docker the last run's code while a container runs. */
	if (state.state == ENGINE_EXITED)
		state.exit_code = (int)json_integer_value(json_object_get(s, "ExitCode"));
	state.oom_killed = json_is_true(json_object_get(s, "OOMKilled"));
	/* The end of the last run stays while the next one goes; before the first end it is Go's time 0. */
	const char *finished = engine_json_text(s, "FinishedAt");
	state.restarted = state.state == ENGINE_RUNNING && *finished && strncmp(finished, "0001-", 5) != 0;
	*ret = state;
	return 0;
}

/* Docker's seconds, or Podman's "2026-11-30T11:47:50.920629905+01:00"; 0 when it is neither. */
static int64_t created_of(const json_t *value)
{
	struct tm tm = { 0 };
	const char *text = json_string_value(value);
	const char *rest = text ? strptime(text, "%Y-%m-%dT%H:%M:%S", &tm) : NULL;
	if (!rest)
		return json_integer_value(value);
	if (*rest == '.')
		rest += 1 + strspn(rest + 1, "0123456789");
	struct tm zone = { 0 };
	if (*rest != 'Z' && !strptime(rest, "%z", &zone))
		return 0;
	return timegm(&tm) - zone.tm_gmtoff;
}

/* A list in which not every item is understood is refused: reconcile acts on what is missing from it. */
static int container_item(const json_t *item, const char *detail_key, struct engine_item *ret, struct err *e)
{
	const char *name = json_string_value(json_array_get(json_object_get(item, "Names"), 0));
	int r = engine_json_id(item, "Id", ret->id, e);
	if (r)
		return r;
	if (!state_of(engine_json_text(item, "State"), &ret->state))
		return err_set(e, ERR_ENGINE, "a container of the list has no state that is known");
	snprintf(ret->name, sizeof(ret->name), "%s", name ? name + (*name == '/') : "");
	engine_json_copy(json_object_get(item, "Labels"), detail_key, ret->sandbox, sizeof(ret->sandbox));
	ret->created_s = created_of(json_object_get(item, "Created"));
	return 0;
}

static int volume_item(const json_t *item, const char *detail_key, struct engine_item *ret, struct err *e)
{
	engine_json_copy(item, "Name", ret->name, sizeof(ret->name));
	engine_json_copy(json_object_get(item, "Labels"), detail_key, ret->sandbox, sizeof(ret->sandbox));
	return *ret->name ? 0 : err_set(e, ERR_ENGINE, "a volume of the list has no name");
}

static int items(const json_t *list, const char *detail_key,
		 int (*decode)(const json_t *, const char *, struct engine_item *, struct err *),
		 struct engine_item **ret, size_t *ret_count, struct err *e)
{
	size_t count = json_array_size(list), i;
	json_t *item;
	_cleanup_free_ struct engine_item *all = xcalloc(count, sizeof(*all));
	json_array_foreach (list, i, item) {
		int r = decode(item, detail_key, &all[i], e);
		if (r)
			return r;
	}
	*ret = STEAL_PTR(all);
	*ret_count = count;
	return 0;
}

int engine_json_containers(const json_t *list, const char *detail_key, struct engine_item **ret,
			   size_t *ret_count, struct err *e)
{
	if (!json_is_array(list))
		return err_set(e, ERR_ENGINE, "the engine's list of containers is no list");
	return items(list, detail_key, container_item, ret, ret_count, e);
}

int engine_json_volumes(const json_t *reply, const char *detail_key, struct engine_item **ret,
			size_t *ret_count, struct err *e)
{
	const json_t *list = json_object_get(reply, "Volumes"); /* null on Docker when there is none */
	if (!json_is_object(reply) || (list && !json_is_array(list) && !json_is_null(list)))
		return err_set(e, ERR_ENGINE, "the engine's list of volumes is no list");
	return items(list, detail_key, volume_item, ret, ret_count, e);
}

/* ---- images ---- */

static char **texts_of(const json_t *array)
{
	char **out = xcalloc(json_array_size(array) + 1, sizeof(*out));
	size_t i, n = 0;
	json_t *item;
	json_array_foreach (array, i, item)
		if (json_is_string(item))
			out[n++] = xstrdup(json_string_value(item));
	return out;
}

/* Not const: jansson's iterators take no const object. */
static char **keys_of(json_t *object)
{
	char **out = xcalloc(json_object_size(object) + 1, sizeof(*out));
	size_t n = 0;
	const char *key;
	json_t *value;
	json_object_foreach (object, key, value)
		out[n++] = xstrdup(key);
	return out;
}

/* Podman's own calls leave "sha256:" away. */
static bool image_id(const char *text, char ret[80])
{
	const char *hex = !strncmp(text, "sha256:", 7) ? text + 7 : text;
	if (!is_id(hex))
		return false;
	snprintf(ret, 80, "sha256:%s", hex);
	return true;
}

int engine_json_image(const json_t *inspect, struct engine_image *ret, struct err *e)
{
	struct engine_image image = { 0 };
	const json_t *test = engine_json_at(inspect, "Config.Healthcheck.Test");
	if (!image_id(engine_json_text(inspect, "Id"), image.id))
		return err_set(e, ERR_ENGINE, "the engine's reply has no image id");
	image.size_bytes = json_integer_value(json_object_get(inspect, "Size"));
	image.env = texts_of(engine_json_at(inspect, "Config.Env"));
	image.volumes = keys_of(json_object_get(json_object_get(inspect, "Config"), "Volumes"));
	const char *first = json_string_value(json_array_get(test, 0));
	image.has_healthcheck = first && strcmp(first, "NONE");
	*ret = image;
	return 0;
}

/* One line of an import's progress: 1 and the id, 0 for nothing, or an error. */
static int import_line(const char *line, size_t len, char ret_id[80], struct err *e)
{
	_cleanup_json_ json_t *o = NULL;
	struct err ignored;
	if (json_text_parse(line, len, &o, &ignored))
		return 0;
	const char *error = engine_json_text(o, "error");
	if (*error) {
		_cleanup_free_ char *words = utf8_escape(error, strlen(error), 240);
		return err_set(e, ERR_ENGINE, "%s", words);
	}
	return image_id(engine_json_text(o, "status"), ret_id) || image_id(engine_json_text(o, "id"), ret_id);
}

int engine_json_import(const char *lines, size_t len, char ret_id[80], struct err *e)
{
	char id[80] = "";
	for (const char *at = lines, *end = lines + len; at < end;) {
		const char *nl = memchr(at, '\n', (size_t)(end - at));
		size_t n = (size_t)((nl ? nl : end) - at);
		int r = import_line(at, n, id, e);
		if (r < 0)
			return r;
		at += n + 1;
	}
	if (!*id)
		return err_set(e, ERR_ENGINE, "the engine does not say what it has imported");
	memcpy(ret_id, id, sizeof(id));
	return 0;
}

/* ---- events ---- */

/* Podman's words that Docker spells otherwise. */
static const struct {
	const char *podman, *docker;
} actions[] = {
	{ "died", "die" },
	{ "remove", "destroy" },
	{ "exec_died", "exec_die" },
};

bool engine_json_event(const char *line, size_t len, char ret_id[ENGINE_ID_SIZE],
		       char ret_action[ENGINE_ACTION_SIZE])
{
	_cleanup_json_ json_t *o = NULL;
	struct err ignored;
	if (!len || json_text_parse(line, len, &o, &ignored) ||
	    strcmp(engine_json_text(o, "Type"), "container"))
		return false;
	const char *action = engine_json_text(o, "Action"),
		   *id = engine_json_text(json_object_get(o, "Actor"), "ID");
	if (!*action || !is_id(id))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(actions); i++)
		if (!strcmp(action, actions[i].podman))
			action = actions[i].docker;
	/* "exec_start: sh -c ..." carries the command line of others (moby): only the word is passed on. */
	snprintf(ret_action, ENGINE_ACTION_SIZE, "%.*s",
		 (int)MIN(strcspn(action, ":"), ENGINE_ACTION_SIZE - 1), action);
	memcpy(ret_id, id, ENGINE_ID_SIZE);
	return true;
}
