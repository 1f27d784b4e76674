/* SPDX-License-Identifier: MIT */
/*
 * delivery.h - brings the agent's binary into the engine: an image that holds only the agent, and a
 * volume that the engine fills from it, so that any image can be a sandbox unmodified.
 */
#ifndef BERTH_DELIVERY_H
#define BERTH_DELIVERY_H

#include "runtime/sandbox.h"

#define DELIVERY_BINARY "/.berth/berth-agent"

/* The image with only the agent and an empty /workspace; also the one that fills workspaces. */
void delivery_image_ref(char ret[ENGINE_NAME_SIZE]);

/*
 * Makes sure that image and volume are there. current: the volume recorded before, NULL if none. It is kept
 * when it is of this build and `again` is false; otherwise a new one is made, filled by running the agent
 * once from it, and proved by the build id in that agent's hello. kit->agent_volume is ignored.
 */
int delivery_ensure(const struct sandbox_kit *kit, const char *current, bool again,
		    char ret_volume[ENGINE_NAME_SIZE], struct err *e) NODISCARD;

/* Is the kit's volume gone? An engine then makes an empty one, without our labels, for the next container
 * that names it. */
bool delivery_is_lost(const struct sandbox_kit *kit);

/* Removes volumes of other builds that no container has any more. */
void delivery_clean(const struct sandbox_kit *kit, const char *current);

#endif
