/* SPDX-License-Identifier: MIT */
/*
 * What a built-in says, as the manager reads it: however it is cut, the same records come out, up to the same
 * fault; and what a record names lies in what was read.
 */
#include <string.h>

#include "manager/builtin_reader.h"
#include "tests/fuzz/fuzz.h"

#define MIX 1099511628211u

struct seen {
	uint64_t sum;
	size_t records;
	bool broken, between;
};

static uint64_t mix(uint64_t sum, const void *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		sum = (sum ^ ((const uint8_t *)bytes)[i]) * MIX;
	return sum;
}

static void take(struct seen *s, const struct builtin_record *r)
{
	s->records++;
	s->sum = mix(s->sum, &r->is_done, sizeof(r->is_done));
	if (r->is_done) {
		s->sum = mix(s->sum, &r->done.entries, sizeof(r->done.entries));
		return;
	}
	MUST(r->entry.path.len <= BUILTIN_ENTRY_MAX && r->entry.type < BUILTIN_TYPE_COUNT_);
	s->sum = mix(s->sum, r->entry.path.at ? r->entry.path.at : "", r->entry.path.len);
	s->sum = mix(s->sum, &r->entry.size, sizeof(r->entry.size));
}

static struct seen read_by(const uint8_t *data, size_t size, size_t piece)
{
	struct builtin_reader reader = BUILTIN_READER_INIT;
	struct builtin_record record;
	struct seen s = { 0 };
	struct err e;
	int r = 0;

	for (size_t at = 0; at < size && r >= 0; at += piece) {
		const char *p = (const char *)data + at;
		size_t left = MIN(piece, size - at);
		while ((r = builtin_reader_take(&reader, &p, &left, &record, &e)) == 1)
			take(&s, &record);
		MUST(r < 0 ? e.code == ERR_SANDBOX : left == 0);
	}
	s.broken = r < 0;
	s.between = s.broken || builtin_reader_is_between(&reader);
	builtin_reader_clear(&reader);
	return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct seen whole = read_by(data, size, size + 1), bytes = read_by(data, size, 1),
		    odd = read_by(data, size, 7);

	MUST(whole.sum == bytes.sum && whole.sum == odd.sum);
	MUST(whole.records == bytes.records && whole.records == odd.records);
	MUST(whole.broken == bytes.broken && whole.between == bytes.between && whole.between == odd.between);
	return 0;
}
