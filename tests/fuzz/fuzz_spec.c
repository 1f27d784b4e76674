/* SPDX-License-Identifier: MIT */
/*
 * Job specs: a fault always has a text; what decodes has counts, sums and texts that agree with a walk over
 * the list, lies within the input, and decodes to the same with an unknown field behind it.
 */
#include <string.h>

#include "runtime/protocol/protocol.h"
#include "tests/fuzz/fuzz.h"

static void check_lists(const uint8_t *data, size_t size, const struct proto_spec *spec)
{
	struct proto_cursor c = { data, size };
	struct proto_field f;
	unsigned args = 0, vars = 0;
	size_t arg_bytes = 0, var_bytes = 0;
	int rc;

	while ((rc = proto_next(&c, &f)) > 0) {
		bool arg = f.tag == PROTO_F_ARG, var = f.tag == PROTO_F_ENV;
		args += arg;
		vars += var;
		arg_bytes += arg ? f.len + 1 : 0;
		var_bytes += var ? f.len + 1 : 0;
		MUST((!arg && !var) || !memchr(f.value, 0, f.len));
	}
	MUST(rc == 0);
	MUST(args == spec->arg_count && vars == spec->env_count);
	MUST(arg_bytes == spec->arg_bytes && var_bytes == spec->env_bytes);
}

static void check_text(const uint8_t *data, size_t size, struct proto_text text)
{
	if (!text.at)
		return;
	MUST((const uint8_t *)text.at >= data && (const uint8_t *)text.at + text.len <= data + size);
	MUST(!memchr(text.at, 0, text.len));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t UNKNOWN[] = { 0x7f, 0xff, 0, 0, 0, 1, 0 };
	struct proto_spec spec, again;
	const char *why = NULL;

	memset(&spec, 0, sizeof(spec));
	memset(&again, 0, sizeof(again));
	if (proto_spec_decode(data, size, &spec, &why) < 0) {
		MUST(why && *why);
		return 0;
	}
	MUST(!why);
	MUST(spec.builtin.at ? !spec.script.at : (spec.arg_count > 0) != (spec.script.at != NULL));
	MUST(!spec.script.at || spec.shell.at);
	MUST(spec.head_bytes <= PROTO_KEEP_MAX && spec.tail_bytes <= PROTO_KEEP_MAX);
	check_lists(data, size, &spec);
	check_text(data, size, spec.tag);
	check_text(data, size, spec.script);
	check_text(data, size, spec.shell);
	check_text(data, size, spec.cwd);

	if (size + sizeof(UNKNOWN) > PROTO_SPEC_MAX)
		return 0;
	_cleanup_free_ uint8_t *longer = xcalloc(size + sizeof(UNKNOWN), 1);
	memcpy(longer, data, size);
	memcpy(longer + size, UNKNOWN, sizeof(UNKNOWN));
	MUST(proto_spec_decode(longer, size + sizeof(UNKNOWN), &again, &why) == 0);
	MUST(again.arg_count == spec.arg_count && again.flags == spec.flags && again.cwd.len == spec.cwd.len);
	return 0;
}
