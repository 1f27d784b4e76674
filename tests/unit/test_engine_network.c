/* SPDX-License-Identifier: MIT */
/* Which networks let nothing out, by what an engine tells of them. */
#include <string.h>

#include "runtime/engine/engine_json.h"
#include "tests/unit/rows.h"

static const struct network_row {
	const char *name, *driver, *internal, *config; /* of the subnets, JSON with ' for " */
	bool closed;
} networks[] = {
	{ "an internal bridge", "bridge", "true", "[{'Subnet': '172.20.0.0/16'}]", true },
	{ "an internal overlay", "overlay", "true", "[{'Subnet': '10.0.1.0/24'}]", true },
	{ "an internal bridge of both families", "bridge", "true",
	  "[{'Subnet': '172.20.0.0/16'}, {'Subnet': 'fd00:1::/64'}]", true },
	{ "an internal bridge that tells no subnet", "bridge", "true", "null", true },
	{ "a bridge that leads out", "bridge", "false", "[{'Subnet': '172.20.0.0/16'}]", false },
	{ "a bridge that does not say", "bridge", "null", "[{'Subnet': '172.20.0.0/16'}]", false },
	{ "a bridge that says it in a text", "bridge", "'true'", "[]", false },
	{ "macvlan, whatever it says", "macvlan", "true", "[{'Subnet': '10.0.0.0/8'}]", false },
	{ "the host", "host", "true", "[]", false },
	{ "a subnet in link-local", "bridge", "true", "[{'Subnet': '169.254.10.0/24'}]", false },
	{ "a subnet around link-local", "bridge", "true", "[{'Subnet': '169.0.0.0/8'}]", false },
	{ "a subnet of everything", "bridge", "true", "[{'Subnet': '0.0.0.0/0'}]", false },
	{ "a subnet beside link-local", "bridge", "true", "[{'Subnet': '169.253.0.0/16'}]", true },
	{ "link-local of IPv6", "bridge", "true", "[{'Subnet': 'fe80::/64'}]", false },
	{ "the end of link-local of IPv6", "bridge", "true", "[{'Subnet': 'febf::/16'}]", false },
	{ "beside link-local of IPv6", "bridge", "true", "[{'Subnet': 'fec0::/16'}]", true },
	{ "a cloud's metadata of IPv6", "bridge", "true", "[{'Subnet': 'fd00:ec2::/64'}]", false },
	{ "another cloud's metadata", "bridge", "true", "[{'Subnet': '100.64.0.0/10'}]", false },
	{ "a subnet that cannot be read", "bridge", "true", "[{'Subnet': 'x/8'}]", false },
	{ "a subnet without its length", "bridge", "true", "[{'Subnet': '10.0.0.0'}]", false },
	{ "a second subnet in link-local", "bridge", "true",
	  "[{'Subnet': '10.0.0.0/8'}, {'Subnet': '169.254.0.0/16'}]", false },
};

static json_t *inspection(const struct network_row *row)
{
	_cleanup_free_ char *text =
		xasprintf("{'Name': 'n', 'Driver': '%s', 'Internal': %s, 'IPAM': {'Config': %s}}",
			  row->driver, row->internal, row->config);
	for (char *p = text; *p; p++)
		*p = *p == '\'' ? '"' : *p;
	json_t *v = json_loads(text, 0, NULL);
	assert_non_null(v);
	return v;
}

static void network_test(void **state)
{
	const struct network_row *row = *state;
	_cleanup_json_ json_t *v = inspection(row);
	struct engine_network n;
	struct err e;
	assert_int_equal(engine_json_network(v, "n", &n, &e), 0);
	assert_int_equal(engine_network_is_closed(&n), row->closed);
}

static void part_of_an_id(void **state)
{
	(void)state;
	_cleanup_json_ json_t *v = inspection(&networks[0]);
	struct engine_network n;
	struct err e;
	assert_int_equal(engine_json_network(v, "4f2a", &n, &e), -ERR_NOT_FOUND);
}

int main(void)
{
	struct rows r = { 0 };
	ROWS(&r, network_test, networks);
	rows_one(&r, "a network by a part of its id is none", part_of_an_id);
	return rows_run(&r, "engine_network");
}
