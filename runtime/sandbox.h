/* SPDX-License-Identifier: MIT */
/*
 * sandbox.h - a running container with an agent in it: create, verify, link, destroy.
 *
 * Any thread; calls wait for the engine. A sandbox is handed out only after its own hello was
 * compared with what was asked: what the engine said counts for nothing.
 */
#ifndef BERTH_SANDBOX_H
#define BERTH_SANDBOX_H

#include "runtime/channel.h"
#include "runtime/engine/engine.h"

#define SANDBOX_UID 10001 /* of jobs; SANDBOX_BRIDGE_UID of the bridge, which no job can become */
#define SANDBOX_BRIDGE_UID 10002
#define SANDBOX_WORKSPACE "/workspace"
#define SANDBOX_HOME "/home/sandbox"
#define SANDBOX_LABEL_INSTANCE "org.berth.instance"
#define SANDBOX_LABEL_ID "org.berth.sandbox"
#define SANDBOX_LABEL_ROLE                                                               \
	"org.berth.role" /* session, agent (the volume), workspace (a named one), helper \
			  */

/* What sandboxes are made with. Pointers are borrowed. */
struct sandbox_kit {
	struct engine *engine;
	struct channels *channels;
	const char *instance;                /* value of SANDBOX_LABEL_INSTANCE */
	char agent_volume[ENGINE_NAME_SIZE]; /* by delivery_ensure() */
};

/* NAMED: a volume that outlives its sandboxes. HOST: a folder of the host's. */
enum workspace_kind { WORKSPACE_VOLUME, WORKSPACE_TMPFS, WORKSPACE_NAMED, WORKSPACE_HOST };

/* A file or folder of the host, read-only in the sandbox. */
struct sandbox_mount {
	const char *host, *path;
};
#define SANDBOX_MOUNTS_MAX 16

struct sandbox_spec {
	const char *id;    /* value of SANDBOX_LABEL_ID, and part of the names */
	const char *image; /* the engine's id of it */
	int64_t memory_bytes, cpu_milli, pids;
	const char *network; /* "none" or a network's name */
	const char *runtime; /* NULL: the engine's default */
	enum workspace_kind workspace;
	int64_t workspace_bytes;    /* of a tmpfs */
	const char *workspace_name; /* of a named one */
	const char *workspace_host; /* of one on the host */
	unsigned uid, gid;          /* of its user; 0: SANDBOX_UID. Others with a host's folder only */
	const struct sandbox_mount *mounts;
	size_t mount_count;
	const char *const *image_volumes; /* paths of the image's VOLUME lines, NULL-terminated; NULL: none */
};

/* ---- the writable places: pure ---- */

struct sandbox_place {
	const char *path;           /* borrowed from the spec or a constant */
	char suffix[12];            /* of its volume's name */
	int64_t size_bytes, inodes; /* 0: a plain volume, bounded by the disk only */
};
#define SANDBOX_PLACES_MAX 16
struct sandbox_places {
	size_t count;
	struct sandbox_place at[SANDBOX_PLACES_MAX];
};

/*
 * Divides the memory: the sum of sizes and of inodes (SANDBOX_INODE_BYTES each) and the SANDBOX_RESERVE_BYTES
 * for the agent and one engine exec stay below spec->memory_bytes. Each VOLUME of the image becomes a small
 * tmpfs, since engines make anonymous volumes without a bound of it. ERR_INVALID with the field
 * limits.memory_mb, workspace.size_mb or image.
 */
#define SANDBOX_INODE_BYTES 1280
#define SANDBOX_RESERVE_BYTES (32ll << 20)
int sandbox_divide(const struct sandbox_spec *spec, struct sandbox_places *ret, struct err *e) NODISCARD;

static inline unsigned sandbox_uid(const struct sandbox_spec *spec)
{
	return spec->uid ? spec->uid : SANDBOX_UID;
}
static inline unsigned sandbox_gid(const struct sandbox_spec *spec)
{
	return spec->gid ? spec->gid : SANDBOX_UID;
}

/* Compares a hello with what was asked. ERR_SANDBOX names the first difference. Pure. */
int sandbox_verify(const struct sandbox_spec *spec, const struct hello *h, struct err *e) NODISCARD;

/* ---- named workspaces ---- */

/*
 * Removes the volume of a named workspace and all that is in it. Absent is success; ERR_CONFLICT while a
 * sandbox has it.
 */
int sandbox_workspace_remove(const struct sandbox_kit *kit, const char *name, struct err *e) NODISCARD;

/* ---- the container ---- */

struct sandbox {
	char container[ENGINE_ID_SIZE];
	struct channel *channel; /* a reference of the caller's */
	struct hello hello;
};

/*
 * Makes volumes and container, starts it, opens its link with generation 1 and verifies it. Nothing is left
 * behind on failure, as far as the engine answers.
 * Tell apart: ERR_NOT_FOUND (image), ERR_SANDBOX (no agent or not as asked), the engine's.
 */
int sandbox_create(const struct sandbox_kit *kit, const struct sandbox_spec *spec, int timeout_ms,
		   struct sandbox *ret, struct err *e) NODISCARD;

/*
 * Opens a new link to a sandbox that runs. generation must be above every earlier one. ERR_NOT_FOUND: the
 * container is gone or does not run; ERR_CONFLICT: it is paused; ERR_SANDBOX, ERR_TIMEOUT, ERR_UNAVAILABLE:
 * try again later.
 */
int sandbox_connect(const struct sandbox_kit *kit, const char *container, uint64_t generation, int timeout_ms,
		    struct channel **ret, struct hello *ret_hello, struct err *e) NODISCARD;

/*
 * Removes the container (container may be NULL: it is looked for by label) and all volumes of a sandbox, but
 * no named workspace. What is absent is success. ERR_TIMEOUT when the engine needs longer: call again.
 */
int sandbox_destroy(const struct sandbox_kit *kit, const char *id, const char *container, int timeout_ms,
		    struct err *e) NODISCARD;

#endif
