/* SPDX-License-Identifier: MIT */
/*
 * engine.h - what Berth needs of a container engine, over the Docker API of Docker and Podman
 * (docs.docker.com/reference/api/engine) and, to create a container on Podman, its native API.
 *
 * Any thread. Every call has a deadline and a bounded reply. A call that finds the engine
 * away connects and negotiates again; only GET and DELETE are repeated. Errors a caller may
 * tell apart: ERR_UNAVAILABLE (cannot be reached), ERR_TIMEOUT (no reply in time; what was asked
 * may still happen, as when ERR_UNAVAILABLE comes in the middle of a call), ERR_NOT_FOUND, ERR_CONFLICT,
 * ERR_ENGINE (everything else it said), ERR_INVALID (an argument that is never sent). The process must ignore
 * SIGPIPE: TLS writes raise it.
 */
#ifndef BERTH_ENGINE_H
#define BERTH_ENGINE_H

#include <stdatomic.h>

#include "base/err.h"
#include "runtime/stream.h"

struct engine;

enum engine_kind { ENGINE_DOCKER, ENGINE_PODMAN };

struct engine_options {
	const char *address; /* unix:///path or tcp://host:port; NULL: DOCKER_HOST's value is passed by the
				caller, else the usual sockets are tried in order */
	const char *runtime_dir; /* value of XDG_RUNTIME_DIR, where rootless engines listen; NULL: none */
	const char *tls_dir;     /* ca.pem, cert.pem, key.pem for tcp://; NULL: none */
	int create_parallel;     /* creates and starts under way at once; 0: 4 */
	int call_timeout_ms;     /* of an ordinary call; 0: 30000 */
};

#define ENGINE_ID_SIZE 65 /* a container's full id with its NUL */
#define ENGINE_NAME_SIZE 128

struct engine_info {
	enum engine_kind kind;
	char address[160]; /* the one that was taken */
	char id[200];      /* of this engine with its data; another one has none of its containers */
	char version[40], api[16], kernel[80], runtime[40], storage[40];
	int cgroup; /* 1 or 2 */
	bool rootless;
	bool live_restore;  /* containers survive a restart of the engine; always so on Podman */
	bool userns;        /* the engine maps users */
	int warnings_count; /* known weaknesses of this release: texts by engine_warning() */
};

/*
 * Finds and connects. ERR_UNAVAILABLE names every address that was tried and what to do;
 * ERR_UNSUPPORTED when the engine is too old (Docker API below 1.40) or too new.
 */
int engine_connect(const struct engine_options *options, struct engine **ret, struct err *e) NODISCARD;
void engine_free(struct engine *g);
DEFINE_CLEANUP(struct engine *, engine_free)

void engine_get_info(struct engine *g, struct engine_info *ret);
/* i from 0; NULL past the end. A constant such as "runc before 1.2.8 is open to CVE-2025-31133 ...". */
const char *engine_warning(struct engine *g, int i);
/* One cheap round trip. */
int engine_ping(struct engine *g, int timeout_ms, struct err *e) NODISCARD;
/* Does the engine offer this runtime by name ("runc", "runsc")? Asks the engine. */
int engine_has_runtime(struct engine *g, const char *name, bool *ret, struct err *e) NODISCARD;

/* ---- images ---- */

struct engine_image {
	char id[80]; /* "sha256:..." */
	char **env;  /* "K=V", NULL-terminated, owned by the struct */
	int64_t size_bytes;
	bool has_healthcheck;
	char **volumes; /* paths of its VOLUME lines, NULL-terminated: each wants a mount, or a create on
			   Docker is refused */
};
void engine_image_clear(struct engine_image *image);

/* ERR_NOT_FOUND when the engine does not have it; nothing is pulled. */
int engine_image_inspect(struct engine *g, const char *ref, struct engine_image *ret,
			 struct err *e) NODISCARD;
/* Imports a tar of a root file system and tags it (by id, since Podman ignores `repo`). changes: Dockerfile
 * lines, NULL-terminated, may be NULL. */
int engine_image_import(struct engine *g, const void *tar, size_t len, const char *ref,
			const char *const *changes, struct err *e) NODISCARD;
int engine_image_remove(struct engine *g, const char *ref, struct err *e) NODISCARD; /* absent is success */

/* ---- volumes ---- */

struct engine_label {
	const char *key, *value;
};

struct engine_volume_spec {
	const char *name;
	int64_t tmpfs_bytes;  /* 0: a plain volume of the local driver; else a tmpfs of this size */
	int64_t tmpfs_inodes; /* with tmpfs_bytes */
	unsigned uid, gid;    /* owner of a tmpfs's root, mode 0700 */
	bool noexec;
	const struct engine_label *labels;
	size_t label_count;
};
int engine_volume_create(struct engine *g, const struct engine_volume_spec *spec, struct err *e) NODISCARD;
/* Absent is success; ERR_CONFLICT while a container has it. */
int engine_volume_remove(struct engine *g, const char *name, struct err *e) NODISCARD;

/* ---- networks ---- */

struct engine_network {
	char driver[40];
	bool internal;   /* the engine lets nothing of it out of the machine */
	bool link_local; /* a subnet of its own covers link-local addresses, or those of a cloud's metadata */
};
/* ERR_NOT_FOUND: the engine has none of this very name. */
int engine_network_inspect(struct engine *g, const char *name, struct engine_network *ret,
			   struct err *e) NODISCARD;
/*
 * Can nothing beyond the network be reached from it, as far as its description tells? Then neither can
 * link-local addresses, through which clouds hand out credentials. Pure.
 */
bool engine_network_is_closed(const struct engine_network *n);

/* ---- containers ---- */

struct engine_mount {
	const char *source; /* a volume's name, or a host path when it begins with '/' */
	const char *target;
	bool read_only;
	bool copy_up; /* false: NoCopy. Only the helper that fills a volume wants true */
};

/* The hardening is not here: each container gets it (docs/SECURITY.md), there is no field to forget. */
struct engine_container_spec {
	const char *name;
	const char *image;             /* the id or fully qualified name */
	const char *const *entrypoint; /* argv, NULL-terminated */
	const char *workdir;
	unsigned uid, gid;
	int64_t memory_bytes;
	int64_t cpu_milli;
	int64_t pids;
	int64_t nofile;
	const char *network; /* "none" or a network's name; "host" and "container:" are refused */
	const char *runtime; /* NULL: the engine's default */
	const struct engine_mount *mounts;
	size_t mount_count;
	const struct engine_label *labels;
	size_t label_count;
};

/*
 * Creates and reads back: every field above and every hardening field is compared with what the
 * engine stored; a difference removes the container again and is ERR_ENGINE naming the field.
 * ERR_NOT_FOUND: the image is missing. ERR_CONFLICT: the name is taken.
 */
int engine_container_create(struct engine *g, const struct engine_container_spec *spec,
			    char ret_id[ENGINE_ID_SIZE], struct err *e) NODISCARD;
/* ERR_NOT_FOUND when the container is gone; ERR_ENGINE with the engine's text otherwise ("no such file" when
 * the entry point is missing). Started already is success. */
int engine_container_start(struct engine *g, const char *id, struct err *e) NODISCARD;
int engine_container_kill(struct engine *g, const char *id,
			  struct err *e) NODISCARD; /* not running is success */
int engine_container_pause(struct engine *g, const char *id, bool pause,
			   struct err *e) NODISCARD; /* already so is success */
/* After the engine may have restarted beside this running container: without it, its volumes could not be
 * removed later. */
int engine_container_recount(struct engine *g, const char *id, struct err *e) NODISCARD;
/*
 * Kills and removes, anonymous volumes too; absent is success. Waits until the engine no longer
 * lists it; ERR_TIMEOUT when that takes longer than timeout_ms.
 */
int engine_container_remove(struct engine *g, const char *id, int timeout_ms, struct err *e) NODISCARD;

/* ENGINE_REMOVING also stands for a removal that was broken off: remove it again. */
enum engine_state { ENGINE_CREATED, ENGINE_RUNNING, ENGINE_PAUSED, ENGINE_EXITED, ENGINE_REMOVING };
struct engine_container_state {
	enum engine_state state;
	int exit_code;   /* of ENGINE_EXITED */
	bool oom_killed; /* a hint only: Podman says false after a true one */
	bool restarted;  /* of ENGINE_RUNNING: it has ended before */
};
int engine_container_inspect(struct engine *g, const char *id, struct engine_container_state *ret,
			     struct err *e) NODISCARD;

/* Everything that carries the label key=value. */
struct engine_item {
	char id[ENGINE_ID_SIZE];        /* containers; "" for volumes */
	char name[ENGINE_NAME_SIZE];    /* without a leading '/' */
	char sandbox[ENGINE_NAME_SIZE]; /* value of the label `detail_key`, "" if absent */
	enum engine_state state;        /* containers */
	int64_t created_s;              /* containers: wall time, 0 if unknown */
};
int engine_container_list(struct engine *g, const char *label_key, const char *label_value,
			  const char *detail_key, struct engine_item **ret_items, size_t *ret_count,
			  struct err *e) NODISCARD; /* free() the array */
int engine_volume_list(struct engine *g, const char *label_key, const char *label_value,
		       const char *detail_key, struct engine_item **ret_items, size_t *ret_count,
		       struct err *e) NODISCARD;

/* ---- exec ---- */

/*
 * Starts argv in the container as uid:gid and hands its stdin and stdout over as a stream (the
 * engine's framing is taken off; stderr and engine errors become the complaint). That the
 * process runs is not known yet: the first bytes prove it.
 */
int engine_exec_open(struct engine *g, const char *id, const char *const *argv, unsigned uid, unsigned gid,
		     struct stream **ret, struct err *e) NODISCARD;

/* ---- events ---- */

/*
 * Blocks while the engine's event stream lives and calls on_event for each container event of
 * this label with the container's id and action ("die", "start", "destroy", "oom", "pause", ...), names as
 * Docker spells them, arguments cut off. Returns when the stream breaks or *stop becomes true (looked at once
 * a second at least). Events are lossy: they may only wake somebody up.
 */
typedef void (*engine_event_fn)(void *ctx, const char *id, const char *action);
int engine_events(struct engine *g, const char *label_key, const char *label_value, const atomic_bool *stop,
		  engine_event_fn on_event, void *ctx, struct err *e) NODISCARD;

#endif
