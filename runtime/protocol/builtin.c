/* SPDX-License-Identifier: MIT */
#include "runtime/protocol/builtin.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "runtime/protocol/bytes.h"
#include "runtime/protocol/record.h"

/* A bool is read and written through an int, since that is what a rule knows. */
struct done_record {
	struct builtin_done done;
	unsigned truncated;
};

#define ENTRY(tag, kind, member, max)                                              \
	{                                                                          \
		tag, kind, offsetof(struct builtin_entry, member), 0, max, #member \
	}
#define DONE(tag, kind, member, max)                                             \
	{                                                                        \
		tag, kind, offsetof(struct done_record, member), 0, max, #member \
	}

/* clang-format off */
static const struct record_rule ENTRIES[] = {
	ENTRY(PROTO_F_PATH,     RECORD_TEXT, path,     PATH_MAX),
	ENTRY(PROTO_F_TYPE,     RECORD_INT,  type,     BUILTIN_TYPE_COUNT_ - 1),
	ENTRY(PROTO_F_MODE,     RECORD_INT,  mode,     07777),
	ENTRY(PROTO_F_SIZE,     RECORD_U64,  size,     INT64_MAX),
	ENTRY(PROTO_F_MTIME_NS, RECORD_U64,  mtime_ns, UINT64_MAX), /* before 1970 they are negative */
	ENTRY(PROTO_F_CTIME_NS, RECORD_U64,  ctime_ns, UINT64_MAX),
	ENTRY(PROTO_F_INODE,    RECORD_U64,  inode,    UINT64_MAX),
	ENTRY(PROTO_F_PID,      RECORD_INT,  pid,      INT32_MAX),
	ENTRY(PROTO_F_TARGET,   RECORD_TEXT, target,   PATH_MAX),
	ENTRY(PROTO_F_ERRNO,    RECORD_INT,  sys,      4095),
	ENTRY(PROTO_F_DETAIL,   RECORD_TEXT, detail,   PROTO_DETAIL_MAX),
};

static const struct record_rule DONES[] = {
	DONE(PROTO_F_ENTRIES,   RECORD_U64,  done.entries, INT64_MAX),
	DONE(PROTO_F_BYTES,     RECORD_U64,  done.bytes,   INT64_MAX),
	DONE(PROTO_F_REFUSED,   RECORD_U64,  done.refused, INT64_MAX),
	DONE(PROTO_F_TRUNCATED, RECORD_INT,  truncated,    1),
	DONE(PROTO_F_ERRNO,     RECORD_INT,  done.sys,     4095),
	DONE(PROTO_F_DETAIL,    RECORD_TEXT, done.detail,  PROTO_DETAIL_MAX),
};

static const char *const TYPES[BUILTIN_TYPE_COUNT_] = {
	[BUILTIN_NONE]    = "",
	[BUILTIN_FILE]    = "file",
	[BUILTIN_DIR]     = "dir",
	[BUILTIN_SYMLINK] = "symlink",
	[BUILTIN_FIFO]    = "fifo",
	[BUILTIN_SOCKET]  = "socket",
	[BUILTIN_CHAR]    = "char",
	[BUILTIN_BLOCK]   = "block",
};
/* clang-format on */
#define ENTRY_COUNT (sizeof(ENTRIES) / sizeof(ENTRIES[0]))
#define DONE_COUNT (sizeof(DONES) / sizeof(DONES[0]))

const char *builtin_type_name(unsigned type)
{
	return type < BUILTIN_TYPE_COUNT_ ? TYPES[type] : NULL;
}

static int decode(const uint8_t *value, size_t len, const struct record_rule *rules, size_t count,
		  void *record)
{
	struct proto_cursor c = { value, len };
	struct proto_field f;
	const char *why;
	uint64_t seen = 0;
	int rc;

	while ((rc = proto_next(&c, &f)) > 0)
		if (record_take(rules, count, &f, record, &seen, &why) < 0)
			return -1;
	return rc;
}

/* A field whose value is a list; the writer is as before when it does not fit, but for its `failed`. */
static void encode(struct proto_writer *w, uint16_t tag, const struct record_rule *rules, size_t count,
		   const void *record)
{
	size_t begin = w->used;

	proto_put(w, tag, NULL, 0);
	record_put(rules, count, record, w);
	if (w->failed)
		w->used = begin;
	else
		bytes_put_u32(w->out + begin + 2, (uint32_t)(w->used - begin - PROTO_FIELD_HEADER));
}

int builtin_entry_decode(const uint8_t *value, size_t len, struct builtin_entry *ret)
{
	struct builtin_entry entry = { 0 };

	if (decode(value, len, ENTRIES, ENTRY_COUNT, &entry) < 0)
		return -1;
	*ret = entry;
	return 0;
}

void builtin_entry_encode(struct proto_writer *w, const struct builtin_entry *entry)
{
	encode(w, PROTO_F_ENTRY, ENTRIES, ENTRY_COUNT, entry);
}

int builtin_done_decode(const uint8_t *value, size_t len, struct builtin_done *ret)
{
	struct done_record r = { 0 };

	if (decode(value, len, DONES, DONE_COUNT, &r) < 0)
		return -1;
	r.done.truncated = r.truncated;
	*ret = r.done;
	return 0;
}

void builtin_done_encode(struct proto_writer *w, const struct builtin_done *done)
{
	struct done_record r = { *done, done->truncated };

	encode(w, PROTO_F_DONE, DONES, DONE_COUNT, &r);
}

void builtin_tag(const struct builtin_entry *entry, char ret[BUILTIN_TAG_SIZE])
{
	snprintf(ret, BUILTIN_TAG_SIZE, "%llx-%llx-%llx-%llx", (unsigned long long)entry->inode,
		 (unsigned long long)entry->size, (unsigned long long)entry->mtime_ns,
		 (unsigned long long)entry->ctime_ns);
}
