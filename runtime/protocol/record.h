/* SPDX-License-Identifier: MIT */
/*
 * record.h - a struct filled from a field list by a table: which tag goes where, within which
 * bounds, and whether it must be there. Used by the decoders of this folder only.
 */
#ifndef BERTH_PROTOCOL_RECORD_H
#define BERTH_PROTOCOL_RECORD_H

#include "runtime/protocol/protocol.h"

enum record_kind {
	RECORD_INT, /* int, unsigned or an enum */
	RECORD_U32,
	RECORD_U64,
	RECORD_TEXT, /* struct proto_text; no NUL inside */
};

struct record_rule {
	uint16_t tag;
	enum record_kind kind;
	size_t offset;     /* of the member */
	uint64_t min, max; /* of the integer, or of the text's length */
	const char *fault; /* what a broken one is called */
};

/*
 * Takes one field. 1 when a rule took it, 0 when none knows its tag, -1 when it is broken or came
 * before; then *ret_why is the rule's fault. *seen has one bit for each rule.
 */
int record_take(const struct record_rule *rules, size_t count, const struct proto_field *f, void *record,
		uint64_t *seen, const char **ret_why);

/* Puts each member that is not 0, or not NULL: the inverse of taking. */
void record_put(const struct record_rule *rules, size_t count, const void *record, struct proto_writer *w);

/* Was there a field for the rule with this tag? */
bool record_has(const struct record_rule *rules, size_t count, uint64_t seen, uint16_t tag);

#endif
