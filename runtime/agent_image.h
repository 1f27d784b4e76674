/* SPDX-License-Identifier: MIT */
/* agent_image.h - the agent's binary inside berthd (runtime/agent_image.S). */
#ifndef BERTH_AGENT_IMAGE_H
#define BERTH_AGENT_IMAGE_H

#include <stddef.h>
#include <stdint.h>

#define AGENT_BUILD_SIZE 20 /* a SHA-1 build id */

/* The ELF file and its length. */
const uint8_t *agent_image(size_t *ret_len);

/* The linker's build id in it, which a running agent tells in its hello. */
void agent_image_build(uint8_t ret[AGENT_BUILD_SIZE]);

/*
 * A tar with the binary (root, mode 0111) as /.berth/berth-agent and an empty /workspace
 * (10001:10001, 0700): the root of the image that delivers it. Owned by the caller.
 */
uint8_t *agent_image_tar(size_t *ret_len);

#endif
