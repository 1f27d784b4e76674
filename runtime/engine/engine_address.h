/* SPDX-License-Identifier: MIT */
/* engine_address.h - where an engine listens: reading an address, and the usual places. Pure. */
#ifndef BERTH_ENGINE_ADDRESS_H
#define BERTH_ENGINE_ADDRESS_H

#include "base/err.h"

struct engine_address {
	char text[160]; /* as given */
	char path[108]; /* of a unix socket; "" for tcp. The size of sun_path */
	char base[144]; /* what URLs begin with: "http://localhost", "https://host:port" */
	char host[128]; /* value of the Host header */
	bool tls;
};

/* ERR_INVALID (field "engine") with a message that says what an address looks like. */
int engine_address_parse(const char *text, bool tls, struct engine_address *ret, struct err *e) NODISCARD;

/*
 * The i-th usual socket, "unix:///..." into text; false past the end. runtime_dir is the value of
 * XDG_RUNTIME_DIR or NULL, which leaves the rootless places out.
 */
bool engine_address_usual(size_t i, const char *runtime_dir, char *text, size_t size);

#endif
