/* SPDX-License-Identifier: MIT */
#include "runtime/agent/folders.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "runtime/agent/beneath.h"
#include "runtime/agent/fd.h"

#define NOTES_BYTES (128ul << 20)

struct note {
	struct timespec mtime;
	unsigned mode;
};

static void *reserve(size_t bytes)
{
	void *at =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return at == MAP_FAILED ? NULL : at;
}

int folders_init(struct folders *f)
{
	f->used = f->count = 0;
	f->notes = reserve(NOTES_BYTES);
	f->index = reserve(FOLDERS_MAX * sizeof(*f->index));
	return f->notes && f->index ? 0 : -1;
}

int folders_note(struct folders *f, const char *path, unsigned mode, const struct timespec *mtime)
{
	struct note note = { *mtime, mode };
	size_t len = strlen(path) + 1;

	if (f->count == FOLDERS_MAX || NOTES_BYTES - f->used < sizeof(note) + len) {
		errno = ENOMEM;
		return -1;
	}
	f->index[f->count++] = (uint32_t)f->used;
	memcpy(f->notes + f->used, &note, sizeof(note));
	memcpy(f->notes + f->used + sizeof(note), path, len);
	f->used += sizeof(note) + len;
	return 0;
}

static const char *path_of(const struct folders *f, uint32_t at)
{
	return (const char *)f->notes + at + sizeof(struct note);
}

/* A folder comes before its parent, whose path is the beginning of its own; of equal ones the later first. */
static int order(const void *a, const void *b, void *ctx)
{
	uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
	int by_path = strcmp(path_of(ctx, right), path_of(ctx, left));

	return by_path != 0 ? by_path : left < right ? 1 : -1;
}

static void apply(const struct folders *f, uint32_t at, int root, struct findings *findings)
{
	struct note note;
	const char *path = path_of(f, at);

	memcpy(&note, f->notes + at, sizeof(note));
	const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, note.mtime };
	_cleanup_close_ int fd = beneath_open(root, path, O_RDONLY | O_DIRECTORY);
	if (fd < 0 || fchmod(fd, note.mode) < 0 || futimens(fd, times) < 0) {
		findings_refuse(findings, path, errno, "its mode or time could not be set");
		findings->done.entries--;
	}
}

void folders_apply(struct folders *f, int root, struct findings *findings)
{
	if (f->count > 1)
		qsort_r(f->index, f->count, sizeof(*f->index), order, f);
	for (size_t i = 0; i < f->count; i++)
		if (i == 0 || strcmp(path_of(f, f->index[i]), path_of(f, f->index[i - 1])) != 0)
			apply(f, f->index[i], root, findings);
}
