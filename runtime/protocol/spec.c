/* SPDX-License-Identifier: MIT */
/* A job spec on the wire. */
#include "runtime/protocol/protocol.h"

#include <limits.h>
#include <string.h>

#include "runtime/protocol/record.h"

#define RULE(tag, kind, member, min, max, fault)                                \
	{                                                                       \
		tag, kind, offsetof(struct proto_spec, member), min, max, fault \
	}

/* clang-format off */
static const struct record_rule RULES[] = {
	RULE(PROTO_F_TAG,        RECORD_TEXT, tag,        0, PROTO_TAG_MAX,   "tag is too long, repeated or holds a NUL"),
	RULE(PROTO_F_SCRIPT,     RECORD_TEXT, script,     0, PROTO_SPEC_MAX,  "script is repeated or holds a NUL"),
	RULE(PROTO_F_SHELL,      RECORD_TEXT, shell,      1, PATH_MAX - 1,    "shell is empty, too long, repeated or holds a NUL"),
	RULE(PROTO_F_BUILTIN,    RECORD_TEXT, builtin,    1, PROTO_TAG_MAX,   "built-in is empty, too long, repeated or holds a NUL"),
	RULE(PROTO_F_CWD,        RECORD_TEXT, cwd,        1, PATH_MAX - 1,    "cwd is empty, too long, repeated or holds a NUL"),
	RULE(PROTO_F_TIMEOUT_MS, RECORD_U64,  timeout_ms, 0, INT64_MAX / 2,   "timeout is out of range or repeated"),
	RULE(PROTO_F_KEEP,       RECORD_INT,  keep,       0, PROTO_KEEP_RING, "keep is none of block, ends, ring"),
	RULE(PROTO_F_HEAD,       RECORD_U32,  head_bytes, 0, PROTO_KEEP_MAX,  "head is out of range or repeated"),
	RULE(PROTO_F_TAIL,       RECORD_U32,  tail_bytes, 0, PROTO_KEEP_MAX,  "tail is out of range or repeated"),
	RULE(PROTO_F_JOB_FLAGS,  RECORD_INT,  flags,      0, PROTO_JOB_STDIN | PROTO_JOB_SPLIT, "flags are unknown or repeated"),
};
/* clang-format on */
#define RULE_COUNT (sizeof(RULES) / sizeof(RULES[0]))

static int fail(const char **ret_why, const char *why)
{
	*ret_why = why;
	return -1;
}

static int take_argument(struct proto_spec *spec, const struct proto_field *f, const char **ret_why)
{
	if (memchr(f->value, 0, f->len))
		return fail(ret_why, "an argument holds a NUL");
	if (spec->arg_count == 0 && f->len == 0)
		return fail(ret_why, "the command's name is empty");
	spec->arg_count++;
	spec->arg_bytes += f->len + 1;
	return 0;
}

static int take_variable(struct proto_spec *spec, const struct proto_field *f, const char **ret_why)
{
	if (memchr(f->value, 0, f->len))
		return fail(ret_why, "an environment variable holds a NUL");
	if (f->len == 0 || f->value[0] == '=' || !memchr(f->value, '=', f->len))
		return fail(ret_why, "an environment variable is not NAME=VALUE");
	spec->env_count++;
	spec->env_bytes += f->len + 1;
	return 0;
}

static int take_field(struct proto_spec *spec, const struct proto_field *f, uint64_t *seen,
		      const char **ret_why)
{
	switch (f->tag) {
	case PROTO_F_ARG:
		return take_argument(spec, f, ret_why);
	case PROTO_F_ENV:
		return take_variable(spec, f, ret_why);
	default:
		return record_take(RULES, RULE_COUNT, f, spec, seen, ret_why);
	}
}

static int check_whole(const struct proto_spec *spec, const char **ret_why)
{
	if (spec->builtin.at)
		return spec->script.at ? fail(ret_why, "the spec has both a built-in and a script") : 0;
	if ((spec->arg_count > 0) == (spec->script.at != NULL))
		return fail(ret_why, "the spec needs either arguments or a script");
	if (spec->script.at && !spec->shell.at)
		return fail(ret_why, "a script needs a shell");
	return 0;
}

int proto_spec_decode(const uint8_t *data, size_t len, struct proto_spec *ret, const char **ret_why)
{
	struct proto_cursor c = { data, len };
	struct proto_spec spec = { 0 };
	struct proto_field f;
	uint64_t seen = 0;
	int rc;

	if (len > PROTO_SPEC_MAX)
		return fail(ret_why, "the spec is too long");
	while ((rc = proto_next(&c, &f)) > 0)
		if (take_field(&spec, &f, &seen, ret_why) < 0)
			return -1;
	if (rc < 0)
		return fail(ret_why, "the spec is cut off");
	if (check_whole(&spec, ret_why) < 0)
		return -1;
	*ret = spec;
	return 0;
}
