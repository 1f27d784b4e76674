/* SPDX-License-Identifier: MIT */
/*
 * builtin_reader.h - the records that a built-in writes (runtime/protocol/builtin.h), out of pieces cut
 * anywhere. Pure. What it reads comes from a sandbox and is not believed.
 */
#ifndef BERTH_BUILTIN_READER_H
#define BERTH_BUILTIN_READER_H

#include "base/buf.h"
#include "runtime/protocol/builtin.h"

struct builtin_reader {
	struct buf held; /* the record that is not whole yet, or the one that was handed out last */
	bool whole;      /* it is */
	bool done;       /* the last record was there */
};
#define BUILTIN_READER_INIT \
	((struct builtin_reader){ .held = BUF_INIT(BUILTIN_ENTRY_MAX + PROTO_FIELD_HEADER) })

struct builtin_record {
	bool is_done;
	struct builtin_entry entry;
	struct builtin_done done; /* of is_done */
};

/*
 * Takes bytes from the front of *bytes until a record is whole. 1: *ret, whose texts are borrowed until the
 * next call; 0: all bytes were taken, and more are needed; ERR_SANDBOX: it is no record, it is too long, or
 * it comes after the last one.
 */
int builtin_reader_take(struct builtin_reader *r, const char **bytes, size_t *len, struct builtin_record *ret,
			struct err *e) NODISCARD;
/* False when a record was begun that is not whole: no end of the output may stand here. */
bool builtin_reader_is_between(const struct builtin_reader *r);
void builtin_reader_clear(struct builtin_reader *r);

#endif
