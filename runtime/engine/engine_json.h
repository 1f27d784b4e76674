/* SPDX-License-Identifier: MIT */
/* engine_json.h - what engines answer, decoded. Pure; every reply is taken for hostile. */
#ifndef BERTH_ENGINE_JSON_H
#define BERTH_ENGINE_JSON_H

#include "base/json.h"
#include "runtime/engine/engine.h"

/* Member `key` as text; "" when it is absent or no text. Borrowed from the object, which may be NULL. */
const char *engine_json_text(const json_t *object, const char *key);
/* The same into a buffer, cut to its size. */
void engine_json_copy(const json_t *object, const char *key, char *out, size_t size);
/* The value at "Config.Healthcheck.Test"; NULL when a step is missing. Borrowed. */
const json_t *engine_json_at(const json_t *object, const char *path);

/* Parses a whole reply: ERR_ENGINE where json_text_parse says ERR_INVALID. */
int engine_json_parse(const char *text, size_t len, json_t **ret, struct err *e) NODISCARD;

/*
 * The error in a refused reply (status 400 and up): the code by the cause that Podman names, else
 * by the status; the engine's own words as message, made one safe line.
 */
int engine_json_error(long status, const char *body, size_t len, struct err *e);
/* Is it a 400 that asks for another API version? */
bool engine_json_wants_version(long status, const char *body, size_t len);

/* An id of 64 hex digits at `key`; ERR_ENGINE otherwise. */
int engine_json_id(const json_t *object, const char *key, char ret[ENGINE_ID_SIZE], struct err *e) NODISCARD;

int engine_json_state(const json_t *inspect, struct engine_container_state *ret, struct err *e) NODISCARD;
int engine_json_image(const json_t *inspect, struct engine_image *ret, struct err *e) NODISCARD;
/* Docker's list, or libpod's. */
int engine_json_containers(const json_t *list, const char *detail_key, struct engine_item **ret,
			   size_t *ret_count, struct err *e) NODISCARD;
int engine_json_volumes(const json_t *reply, const char *detail_key, struct engine_item **ret,
			size_t *ret_count, struct err *e) NODISCARD;

/* The inspection of a network: ERR_NOT_FOUND when it is of another name. */
int engine_json_network(const json_t *inspect, const char *name, struct engine_network *ret,
			struct err *e) NODISCARD;

/* The image id in an import's progress lines; ERR_ENGINE with the engine's words when it failed. */
int engine_json_import(const char *lines, size_t len, char ret_id[80], struct err *e) NODISCARD;

#define ENGINE_ACTION_SIZE 32
/* One line of the event stream, the action as Docker spells it. False: none that concerns a container. */
bool engine_json_event(const char *line, size_t len, char ret_id[ENGINE_ID_SIZE],
		       char ret_action[ENGINE_ACTION_SIZE]);

#endif
