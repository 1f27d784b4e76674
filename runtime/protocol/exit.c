/* SPDX-License-Identifier: MIT */
/* The end of a job on the wire. */
#include "runtime/protocol/protocol.h"

#include "runtime/protocol/record.h"

#define RULE(tag, kind, member, max)                                            \
	{                                                                       \
		tag, kind, offsetof(struct proto_exit, member), 0, max, #member \
	}

/* clang-format off */
static const struct record_rule RULES[] = {
	RULE(PROTO_F_REASON,        RECORD_INT,  reason,        PROTO_REASON_COUNT_ - 1),
	RULE(PROTO_F_CODE,          RECORD_INT,  code,          255),
	RULE(PROTO_F_SIGNAL,        RECORD_INT,  signal,        64),
	RULE(PROTO_F_ERRNO,         RECORD_INT,  sys,           4095),
	RULE(PROTO_F_WALL_US,       RECORD_U64,  wall_us,       INT64_MAX),
	RULE(PROTO_F_USER_US,       RECORD_U64,  user_us,       INT64_MAX),
	RULE(PROTO_F_SYS_US,        RECORD_U64,  sys_us,        INT64_MAX),
	RULE(PROTO_F_PEAK_BYTES,    RECORD_U64,  peak_bytes,    INT64_MAX),
	RULE(PROTO_F_STDOUT_BYTES,  RECORD_U64,  stdout_bytes,  INT64_MAX),
	RULE(PROTO_F_STDERR_BYTES,  RECORD_U64,  stderr_bytes,  INT64_MAX),
	RULE(PROTO_F_DROPPED_BYTES, RECORD_U64,  dropped_bytes, INT64_MAX),
	RULE(PROTO_F_LINGERING,     RECORD_INT,  lingering,     INT32_MAX),
	RULE(PROTO_F_SURVIVORS,     RECORD_INT,  survivors,     INT32_MAX),
	RULE(PROTO_F_DETAIL,        RECORD_TEXT, detail,        PROTO_DETAIL_MAX),
};
/* clang-format on */
#define RULE_COUNT (sizeof(RULES) / sizeof(RULES[0]))

static const char *const REASONS[PROTO_REASON_COUNT_] = {
	[PROTO_EXITED] = "exited",
	[PROTO_SIGNALLED] = "signalled",
	[PROTO_TIMEOUT] = "timeout",
	[PROTO_OUTPUT_LIMIT] = "output_limit",
	[PROTO_OOM] = "oom",
	[PROTO_CANCELLED] = "cancelled",
	[PROTO_SANDBOX_LOST] = "sandbox_lost",
	[PROTO_START_FAILED] = "start_failed",
};

const char *proto_reason_name(unsigned reason)
{
	return reason < PROTO_REASON_COUNT_ ? REASONS[reason] : NULL;
}

int proto_exit_decode(const struct proto_frame *frame, struct proto_exit *ret)
{
	struct proto_cursor c = { frame->payload, frame->length };
	struct proto_exit x = { 0 };
	struct proto_field f;
	const char *why;
	uint64_t seen = 0;
	int rc;

	while ((rc = proto_next(&c, &f)) > 0)
		if (record_take(RULES, RULE_COUNT, &f, &x, &seen, &why) < 0)
			return -1;
	if (rc < 0 || !record_has(RULES, RULE_COUNT, seen, PROTO_F_REASON))
		return -1;
	/* an exit code is never invented: it is there exactly when the job ended by itself */
	if ((x.reason == PROTO_EXITED) != record_has(RULES, RULE_COUNT, seen, PROTO_F_CODE))
		return -1;
	if (x.reason == PROTO_SANDBOX_LOST)
		return -1;
	*ret = x;
	return 0;
}

void proto_exit_encode(struct proto_writer *w, const struct proto_exit *exit)
{
	proto_put_u64(w, PROTO_F_REASON, exit->reason);
	if (exit->reason == PROTO_EXITED)
		proto_put_u64(w, PROTO_F_CODE, (uint64_t)exit->code);
	proto_put_u64(w, PROTO_F_SIGNAL, (uint64_t)exit->signal);
	proto_put_u64(w, PROTO_F_ERRNO, (uint64_t)exit->sys);
	proto_put_u64(w, PROTO_F_WALL_US, exit->wall_us);
	proto_put_u64(w, PROTO_F_USER_US, exit->user_us);
	proto_put_u64(w, PROTO_F_SYS_US, exit->sys_us);
	proto_put_u64(w, PROTO_F_PEAK_BYTES, exit->peak_bytes);
	proto_put_u64(w, PROTO_F_STDOUT_BYTES, exit->stdout_bytes);
	proto_put_u64(w, PROTO_F_STDERR_BYTES, exit->stderr_bytes);
	proto_put_u64(w, PROTO_F_DROPPED_BYTES, exit->dropped_bytes);
	proto_put_u64(w, PROTO_F_LINGERING, exit->lingering);
	proto_put_u64(w, PROTO_F_SURVIVORS, exit->survivors);
	if (exit->detail.at)
		proto_put(w, PROTO_F_DETAIL, exit->detail.at, exit->detail.len);
}
