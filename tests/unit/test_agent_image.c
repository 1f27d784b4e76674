/* SPDX-License-Identifier: MIT */
/* The agent inside berthd: its build id, and the tar that delivers it, read by rules of ustar's own. */
#include <string.h>

#include "base/base.h"
#include "runtime/agent_image.h"
#include "tests/unit/rows.h"

#define BLOCK 512

static uint8_t *tar;
static size_t tar_len;

static unsigned long octal(const uint8_t *field, size_t len)
{
	char text[16];
	snprintf(text, sizeof(text), "%.*s", (int)len, (const char *)field);
	return strtoul(text, NULL, 8);
}

/* The header of the i-th entry; NULL at the end mark. */
static const uint8_t *entry(size_t i)
{
	const uint8_t *at = tar;
	for (; i && *at; i--)
		at += BLOCK + (octal(at + 124, 12) + BLOCK - 1) / BLOCK * BLOCK;
	return *at ? at : NULL;
}

static const struct entry_row {
	const char *name, *path;
	size_t index;
	char type;
	unsigned long mode, owner;
} entries[] = {
	{ "tar: the folder of the binary is root's", ".berth/", 0, '5', 0755, 0 },
	{ "tar: the binary may be run by all and read by nobody", ".berth/berth-agent", 1, '0', 0111, 0 },
	{ "tar: the workspace is the sandbox user's alone", "workspace/", 2, '5', 0700, 10001 },
};

static void entry_test(void **state)
{
	const struct entry_row *row = *state;
	const uint8_t *h = entry(row->index);
	unsigned sum = 0;
	assert_non_null(h);
	assert_string_equal((const char *)h, row->path);
	assert_int_equal(h[156], row->type);
	assert_int_equal(octal(h + 100, 8), row->mode);
	assert_int_equal(octal(h + 108, 8), row->owner);
	assert_int_equal(octal(h + 116, 8), row->owner);
	assert_memory_equal(h + 257, "ustar\00000", 8);
	for (size_t i = 0; i < BLOCK; i++)
		sum += i >= 148 && i < 156 ? ' ' : h[i];
	assert_int_equal(octal(h + 148, 8), sum);
}

static void test_contents(void **state)
{
	size_t len = 0;
	const uint8_t *file = agent_image(&len), *h = entry(1);
	(void)state;
	assert_int_equal(octal(h + 124, 12), len);
	assert_memory_equal(h + BLOCK, file, len);
	assert_memory_equal(file,
			    "\x7f"
			    "ELF",
			    4);
}

static void test_end(void **state)
{
	static const uint8_t zero[2 * BLOCK];
	(void)state;
	assert_null(entry(3));
	assert_int_equal(tar_len % BLOCK, 0);
	assert_memory_equal(tar + tar_len - sizeof(zero), zero, sizeof(zero));
}

/* The note stands in the file as the linker wrote it: name "GNU", type 3, then the id. */
static void test_build(void **state)
{
	static const uint8_t head[] = { 4, 0, 0, 0, AGENT_BUILD_SIZE, 0, 0, 0, 3, 0, 0, 0, 'G', 'N', 'U', 0 };
	uint8_t build[AGENT_BUILD_SIZE] = { 0 };
	size_t len = 0;
	const uint8_t *file = agent_image(&len);
	(void)state;
	agent_image_build(build);
	const uint8_t *note = memmem(file, len, head, sizeof(head));
	assert_non_null(note);
	assert_memory_equal(build, note + sizeof(head), AGENT_BUILD_SIZE);
}

int main(void)
{
	struct rows r = { 0 };
	tar = agent_image_tar(&tar_len);
	ROWS(&r, entry_test, entries);
	rows_one(&r, "tar: the binary is whole", test_contents);
	rows_one(&r, "tar: two empty blocks end it", test_end);
	rows_one(&r, "the build id is the linker's", test_build);
	int failed = rows_run(&r, "agent_image");
	free(tar);
	return failed;
}
