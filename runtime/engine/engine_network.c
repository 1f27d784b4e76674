/* SPDX-License-Identifier: MIT */
/* What a network of the engine's lets its containers reach. */
#include <arpa/inet.h>
#include <string.h>

#include "base/parse.h"
#include "runtime/engine/engine_json.h"
#include "runtime/engine/engine_priv.h"

struct range {
	int family;
	uint8_t bytes[16];
	int64_t bits;
};

/* Link-local (RFC 3927, RFC 4291), and where clouds have their metadata beyond it. */
static const char *const special[] = {
	"169.254.0.0/16",     "fe80::/10",      "fd00:ec2::254/128", "fd20:ce::254/128",
	"100.100.100.200/32", "192.0.0.192/32", "168.63.129.16/32",
};

static bool read_range(const char *text, struct range *ret)
{
	char address[64];
	const char *slash = strchr(text, '/');
	size_t len = slash ? (size_t)(slash - text) : sizeof(address);
	struct err e;
	if (len >= sizeof(address))
		return false;
	snprintf(address, sizeof(address), "%.*s", (int)len, text);
	*ret = (struct range){ .family = strchr(address, ':') ? AF_INET6 : AF_INET };
	return inet_pton(ret->family, address, ret->bytes) == 1 &&
	       parse_int(slash + 1, 0, ret->family == AF_INET6 ? 128 : 32, &ret->bits, &e) == 0;
}

static bool overlap(const struct range *a, const struct range *b)
{
	int64_t bits = MIN(a->bits, b->bits);
	if (a->family != b->family || memcmp(a->bytes, b->bytes, (size_t)bits / 8))
		return false;
	unsigned mask = 0xff00u >> (bits % 8);
	return !((a->bytes[bits / 8 % 16] ^ b->bytes[bits / 8 % 16]) & mask & 0xff) || bits % 8 == 0;
}

/* A subnet that cannot be read may be any. */
static bool is_special(const char *subnet)
{
	struct range own, other;
	if (!read_range(subnet, &own))
		return true;
	for (size_t i = 0; i < ARRAY_LEN(special); i++)
		if (read_range(special[i], &other) && overlap(&own, &other))
			return true;
	return false;
}

int engine_json_network(const json_t *inspect, const char *name, struct engine_network *ret, struct err *e)
{
	/* Engines take a part of an id for a name, too. */
	if (strcmp(engine_json_text(inspect, "Name"), name))
		return err_set(e, ERR_NOT_FOUND, "the engine has no network %.80s", name);
	const json_t *subnets = engine_json_at(inspect, "IPAM.Config");
	size_t i;
	json_t *item;
	*ret = (struct engine_network){ .internal = json_is_true(json_object_get(inspect, "Internal")) };
	engine_json_copy(inspect, "Driver", ret->driver, sizeof(ret->driver));
	json_array_foreach (subnets, i, item)
		ret->link_local |= is_special(engine_json_text(item, "Subnet"));
	return 0;
}

/* Other drivers put a container into the network of the machine, whatever they call it. */
bool engine_network_is_closed(const struct engine_network *n)
{
	return n->internal && !n->link_local &&
	       (!strcmp(n->driver, "bridge") || !strcmp(n->driver, "overlay"));
}

int engine_network_inspect(struct engine *g, const char *name, struct engine_network *ret, struct err *e)
{
	_cleanup_json_ json_t *inspect = NULL;
	int r = engine_check_name("network", name, e);
	_cleanup_free_ char *path = r ? NULL : xasprintf("/networks/%s", name);
	r = r ? r : engine_get(g, path, &inspect, e);
	return r ? r : engine_json_network(inspect, name, ret, e);
}
