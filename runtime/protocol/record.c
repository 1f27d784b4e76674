/* SPDX-License-Identifier: MIT */
#include "runtime/protocol/record.h"

#include <string.h>

static int take_text(const struct record_rule *rule, const struct proto_field *f, struct proto_text *ret)
{
	if (f->len < rule->min || f->len > rule->max || memchr(f->value, 0, f->len))
		return -1;
	*ret = (struct proto_text){ (const char *)f->value, f->len };
	return 1;
}

static int take_number(const struct record_rule *rule, const struct proto_field *f, uint8_t *member)
{
	uint64_t value;

	if (proto_u64(f, &value) < 0 || value < rule->min || value > rule->max)
		return -1;
	if (rule->kind == RECORD_U64) {
		memcpy(member, &value, sizeof(value));
	} else {
		/* an int, an unsigned, an enum and a uint32_t are all 4 bytes here; max keeps the value in
		 * range */
		uint32_t small = (uint32_t)value;
		memcpy(member, &small, sizeof(small));
	}
	return 1;
}

static int take(const struct record_rule *rule, const struct proto_field *f, void *record)
{
	uint8_t *member = (uint8_t *)record + rule->offset;

	if (rule->kind == RECORD_TEXT)
		return take_text(rule, f, (struct proto_text *)(void *)member);
	return take_number(rule, f, member);
}

int record_take(const struct record_rule *rules, size_t count, const struct proto_field *f, void *record,
		uint64_t *seen, const char **ret_why)
{
	for (size_t i = 0; i < count; i++) {
		if (rules[i].tag != f->tag)
			continue;
		if (*seen & 1ull << i || take(&rules[i], f, record) < 0) {
			*ret_why = rules[i].fault;
			return -1;
		}
		*seen |= 1ull << i;
		return 1;
	}
	return 0;
}

static void put(const struct record_rule *rule, const uint8_t *member, struct proto_writer *w)
{
	struct proto_text text;
	uint64_t value = 0;
	uint32_t small;

	if (rule->kind == RECORD_TEXT) {
		memcpy(&text, member, sizeof(text));
		if (text.at)
			proto_put(w, rule->tag, text.at, text.len);
		return;
	}
	if (rule->kind == RECORD_U64) {
		memcpy(&value, member, sizeof(value));
	} else {
		memcpy(&small, member, sizeof(small));
		value = small;
	}
	if (value != 0)
		proto_put_u64(w, rule->tag, value);
}

void record_put(const struct record_rule *rules, size_t count, const void *record, struct proto_writer *w)
{
	for (size_t i = 0; i < count; i++)
		put(&rules[i], (const uint8_t *)record + rules[i].offset, w);
}

bool record_has(const struct record_rule *rules, size_t count, uint64_t seen, uint16_t tag)
{
	for (size_t i = 0; i < count; i++)
		if (rules[i].tag == tag)
			return seen & 1ull << i;
	return false;
}
