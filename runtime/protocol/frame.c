/* SPDX-License-Identifier: MIT */
/* Frame headers: one table says what each type may carry, so that nothing else has to be checked twice. */
#include "runtime/protocol/protocol.h"

#include "runtime/protocol/bytes.h"

enum job_rule { JOB_NONE, JOB_SOME, JOB_ANY };

struct frame_rule {
	uint8_t aux_min, aux_max;
	enum job_rule job;
	uint16_t length_min;
};

/* clang-format off */
static const struct frame_rule RULES[PROTO_TYPE_COUNT_] = {
	/* type               aux from, to                    job       payload at least */
	[PROTO_HELLO]     = { 0, 0,                           JOB_NONE, 0 },
	[PROTO_START]     = { 0, PROTO_MORE,                  JOB_SOME, 0 },
	[PROTO_GO]        = { 0, 0,                           JOB_SOME, 0 },
	[PROTO_STARTED]   = { 0, 0,                           JOB_SOME, 0 },
	[PROTO_DATA]      = { PROTO_STDIN, PROTO_STDERR,      JOB_SOME, 1 },
	[PROTO_WINDOW]    = { PROTO_STDIN, PROTO_STDERR,      JOB_ANY,  0 },
	[PROTO_EOF]       = { PROTO_STDIN, PROTO_STDERR,      JOB_SOME, 0 },
	[PROTO_GAP]       = { PROTO_STDOUT, PROTO_STDERR,     JOB_SOME, 0 },
	[PROTO_SIGNAL]    = { 0, 0,                           JOB_SOME, 0 },
	[PROTO_CANCEL]    = { 0, 0,                           JOB_SOME, 0 },
	[PROTO_ATTACH]    = { PROTO_STDIN, PROTO_STDERR,      JOB_SOME, 0 },
	[PROTO_LIST]      = { 0, 0,                           JOB_ANY,  0 },
	[PROTO_EXIT]      = { 0, 0,                           JOB_SOME, 0 },
	[PROTO_FORGET]    = { 0, 0,                           JOB_SOME, 0 },
	[PROTO_ERROR]     = { 0, 0,                           JOB_NONE, 0 },
	[PROTO_PING]      = { 0, 0,                           JOB_NONE, 0 },
	[PROTO_PONG]      = { 0, 0,                           JOB_NONE, 0 },
	[PROTO_READ]      = { 0, 0,                           JOB_SOME, 0 },
	[PROTO_CHUNK]     = { 0, 0,                           JOB_SOME, 0 },
};
/* clang-format on */

static bool frame_is_valid(const struct proto_frame *f)
{
	if (f->type == 0 || f->type >= PROTO_TYPE_COUNT_ || f->length > PROTO_PAYLOAD_MAX)
		return false;
	const struct frame_rule *rule = &RULES[f->type];
	if (f->aux < rule->aux_min || f->aux > rule->aux_max || f->length < rule->length_min)
		return false;
	if (f->type == PROTO_WINDOW && f->job == 0 && f->aux != 0)
		return false; /* the whole link has no streams */
	return rule->job == JOB_ANY || (rule->job == JOB_SOME) == (f->job != 0);
}

ssize_t proto_parse(const uint8_t *data, size_t len, struct proto_frame *ret)
{
	if (len < PROTO_HEADER)
		return 0;
	struct proto_frame f = {
		.type = data[0],
		.aux = data[1],
		.length = bytes_get_u16(data + 2),
		.job = bytes_get_u32(data + 4),
		.payload = data + PROTO_HEADER,
	};
	if (!frame_is_valid(&f))
		return -1;
	if (len - PROTO_HEADER < f.length)
		return 0;
	*ret = f;
	return PROTO_HEADER + (ssize_t)f.length;
}

void proto_header(uint8_t out[PROTO_HEADER], enum proto_type type, uint8_t aux, uint32_t job, uint16_t length)
{
	out[0] = (uint8_t)type;
	out[1] = aux;
	bytes_put_u16(out + 2, length);
	bytes_put_u32(out + 4, job);
}
