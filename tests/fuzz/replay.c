/* SPDX-License-Identifier: MIT */
/*
 * replay.c - feeds the files of folders to a fuzz target: `replay FOLDER...`.
 *
 * So any compiler and sanitizer can run a target over its corpus. A target that finds something
 * aborts; the file that it was given stands in the line before. An empty corpus is a failure.
 */
#include <fts.h>
#include <sys/stat.h>

#include "tests/fuzz/fuzz.h"

static void replay_file(const char *path, size_t size)
{
	_cleanup_fclose_ FILE *file = fopen(path, "rbe");
	/* Of exactly the size, so that a read past the end shows. */
	_cleanup_free_ uint8_t *data = xcalloc(size, 1);
	if (!file || fread(data, 1, size, file) != size) {
		perror(path);
		abort();
	}
	printf("%s\n", path);
	fflush(stdout);
	LLVMFuzzerTestOneInput(data, size);
}

int main(int argc, char **argv)
{
	int count = 0;
	FTS *walk = argc > 1 ? fts_open(argv + 1, FTS_PHYSICAL | FTS_NOCHDIR, NULL) : NULL;
	for (FTSENT *at; walk && (at = fts_read(walk));)
		if (at->fts_info == FTS_F) {
			replay_file(at->fts_accpath, (size_t)at->fts_statp->st_size);
			count++;
		}
	if (walk)
		fts_close(walk);
	printf("%d passed, %d failed\n", count, count == 0);
	return count == 0;
}
