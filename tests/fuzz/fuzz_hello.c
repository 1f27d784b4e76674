/* SPDX-License-Identifier: MIT */
/* A hello of any bytes: refused with a reason or within its bounds, every text ended; the same bytes give the
 * same answer. */
#include <string.h>

#include "runtime/hello.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct hello a, b;
	struct err e = { 0 };
	const struct proto_frame f = { .type = PROTO_HELLO,
				       .length = (uint16_t)MIN(size, (size_t)PROTO_PAYLOAD_MAX),
				       .payload = data };
	int r = hello_decode(&f, &a, &e);
	MUST(r == 0 || (r == -ERR_SANDBOX && e.msg[0]));
	if (r)
		return 0;
	MUST(a.mount_count <= HELLO_MOUNTS_MAX && a.interface_count <= HELLO_INTERFACES_MAX);
	MUST(memchr(a.agent, 0, sizeof(a.agent)));
	for (size_t i = 0; i < a.mount_count; i++)
		MUST(a.mounts[i].path[0] && memchr(a.mounts[i].path, 0, sizeof(a.mounts[i].path)) &&
		     memchr(a.mounts[i].fstype, 0, sizeof(a.mounts[i].fstype)));
	for (size_t i = 0; i < a.interface_count; i++)
		MUST(memchr(a.interfaces[i], 0, sizeof(a.interfaces[i])));
	MUST(hello_decode(&f, &b, &e) == 0 && a.mount_count == b.mount_count && a.uid == b.uid);
	return 0;
}
