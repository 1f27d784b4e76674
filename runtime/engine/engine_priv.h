/* SPDX-License-Identifier: MIT */
/*
 * engine_priv.h - what the files of this folder share: the connection's state and one call over it.
 *
 * No lock is held over a call. `lock` guards facts and the pool of idle handles only.
 */
#ifndef BERTH_ENGINE_PRIV_H
#define BERTH_ENGINE_PRIV_H

#include <curl/curl.h>
#include <pthread.h>
#include <semaphore.h>

#include "base/buf.h"
#include "base/json.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/engine_address.h"
#include "runtime/engine/engine_facts.h"
#include "runtime/engine/engine_spec.h"

#define ENGINE_POOL_MAX 16          /* idle handles that are kept, each with its open connection */
#define ENGINE_REPLY_MAX (4u << 20) /* bytes of an ordinary reply */
#define ENGINE_LIST_MAX (64u << 20) /* of a list of everything */
#define ENGINE_CONNECT_MS 5000

struct engine {
	struct engine_address address; /* constant after engine_connect, as are the next lines */
	char *ca, *cert, *key;         /* files for TLS; NULL: none */
	int call_timeout_ms;
	struct engine_spec_limits limits; /* of the engine's own process */
	sem_t creating;                   /* creates and starts under way */
	atomic_bool stale;                /* the engine was away: its facts are asked for again */
	pthread_mutex_t lock;
	struct engine_facts facts;   /* lock */
	CURL *idle[ENGINE_POOL_MAX]; /* lock */
	size_t idle_count;           /* lock */
};

enum engine_verb { ENGINE_GET, ENGINE_HEAD, ENGINE_POST, ENGINE_DELETE };
enum engine_api { ENGINE_API, ENGINE_API_NATIVE, ENGINE_API_BARE }; /* which prefix the path gets */

struct engine_request {
	enum engine_verb verb;
	enum engine_api api;
	const char *path; /* with its query, escaped already */
	const void *body; /* of a POST; NULL: none */
	size_t body_len;
	const char *type;    /* of the body; NULL: application/json */
	int64_t deadline_ms; /* monotonic; 0: the engine's own timeout from now */
	size_t reply_max;    /* 0: ENGINE_REPLY_MAX */
};

struct engine_reply {
	long status;
	struct buf body;
};
static inline void engine_reply_clear(struct engine_reply *r)
{
	buf_clear(&r->body);
}
#define _cleanup_reply_ _cleanup_(engine_reply_clear)

/* One call. Statuses of 400 and up are errors by engine_json_error(), with *ret untouched. */
int engine_call(struct engine *g, const struct engine_request *rq, struct engine_reply *ret,
		struct err *e) NODISCARD;
/* The same, its reply parsed; ret_json may be NULL when nobody reads it. */
int engine_call_json(struct engine *g, const struct engine_request *rq, json_t **ret_json,
		     struct err *e) NODISCARD;
/* A POST with a JSON body (or none) whose reply is parsed. */
int engine_post(struct engine *g, const char *path, const json_t *body, json_t **ret_json,
		struct err *e) NODISCARD;
int engine_get(struct engine *g, const char *path, json_t **ret_json, struct err *e) NODISCARD;

/* Asks for version and info, and stores them as the facts. */
int engine_negotiate(struct engine *g, int64_t deadline_ms, struct err *e) NODISCARD;

void engine_get_facts(struct engine *g, struct engine_facts *ret);

/* A handle that has what every connection to this engine needs; the caller adds the request. */
void engine_handle_setup(struct engine *g, CURL *h);
/* Fills *e from a transport failure and marks the engine as to be negotiated with again. */
int engine_transport_error(struct engine *g, CURL *h, CURLcode code, struct err *e);
/* The same for a connected engine that says nothing: ERR_TIMEOUT. */
int engine_silence_error(struct engine *g, struct err *e);

/* ERR_INVALID unless it is a name or id of the engine's alphabet: what may stand in a path as it is. */
int engine_check_name(const char *what, const char *name, struct err *e) NODISCARD;
/* "?key=value" or "&key=value", escaped, added to a path. */
int engine_path_query(struct buf *path, const char *key, const char *value, struct err *e) NODISCARD;
/* {"label":["key=value"]}, with {"type":["container"]} for events. Owned by the caller. */
char *engine_label_filter(const char *key, const char *value, bool events) NODISCARD;

/* ERR_TIMEOUT when no turn comes in time. */
int engine_turn_take(struct engine *g, int64_t deadline_ms, struct err *e) NODISCARD;
void engine_turn_give(struct engine *g);

#endif
