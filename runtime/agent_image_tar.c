/* SPDX-License-Identifier: MIT */
#include "runtime/agent_image.h"

#include <assert.h>
#include <elf.h>
#include <string.h>

#include "base/base.h"

extern const uint8_t agent_image_start[], agent_image_end[];

const uint8_t *agent_image(size_t *ret_len)
{
	/* As numbers: to the compiler the two are different objects. */
	*ret_len = (size_t)((uintptr_t)agent_image_end - (uintptr_t)agent_image_start);
	return agent_image_start;
}

/* ---- build id: a note of type NT_GNU_BUILD_ID and name "GNU" in a PT_NOTE segment (elf(5)) ---- */

static size_t align4(size_t n)
{
	return (n + 3) & ~(size_t)3;
}

/* Looks through the notes of one segment. */
static bool find_in_notes(const uint8_t *notes, size_t len, uint8_t ret[AGENT_BUILD_SIZE])
{
	while (len >= sizeof(Elf64_Nhdr)) {
		Elf64_Nhdr n;
		memcpy(&n, notes, sizeof(n));
		size_t name = sizeof(n), desc = name + align4(n.n_namesz), end = desc + align4(n.n_descsz);
		if (end > len)
			return false;
		if (n.n_type == NT_GNU_BUILD_ID && n.n_namesz == 4 && !memcmp(notes + name, "GNU", 4) &&
		    n.n_descsz == AGENT_BUILD_SIZE) {
			memcpy(ret, notes + desc, AGENT_BUILD_SIZE);
			return true;
		}
		notes += end;
		len -= end;
	}
	return false;
}

static bool find_in_segment(const uint8_t *file, size_t len, const Elf64_Phdr *p,
			    uint8_t ret[AGENT_BUILD_SIZE])
{
	bool inside = p->p_offset <= len && p->p_filesz <= len - p->p_offset;
	return p->p_type == PT_NOTE && inside && find_in_notes(file + p->p_offset, p->p_filesz, ret);
}

void agent_image_build(uint8_t ret[AGENT_BUILD_SIZE])
{
	size_t len = 0;
	const uint8_t *file = agent_image(&len);
	bool found = false;
	Elf64_Ehdr h = { 0 };
	memcpy(&h, file, MIN(len, sizeof(h)));
	for (size_t i = 0; !found && i < h.e_phnum && h.e_phoff + (i + 1) * sizeof(Elf64_Phdr) <= len; i++) {
		Elf64_Phdr p;
		memcpy(&p, file + h.e_phoff + i * sizeof(p), sizeof(p));
		found = find_in_segment(file, len, &p, ret);
	}
	/* What is embedded was linked by our own Makefile: without the note the build is broken. */
	assert(found);
}

/* ---- tar: POSIX.1-1988 ustar headers (pax(1), "ustar Interchange Format") ---- */

#define TAR_BLOCK 512

struct tar_header {
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type, link[100];
	char magic[6], version[2], user[32], group[32], major[8], minor[8], prefix[155], pad[12];
};
static_assert(sizeof(struct tar_header) == TAR_BLOCK, "a tar header is one block");

struct tar_entry {
	const char *name;
	char type; /* '0' file, '5' directory */
	unsigned mode, owner;
};

static void put_header(uint8_t *out, const struct tar_entry *entry, size_t size)
{
	struct tar_header h = { .type = entry->type, .version = { '0', '0' } };
	unsigned sum = 0;
	snprintf(h.name, sizeof(h.name), "%s", entry->name);
	snprintf(h.mode, sizeof(h.mode), "%07o", entry->mode & 07777u);
	snprintf(h.uid, sizeof(h.uid), "%07o", entry->owner & 07777777u);
	snprintf(h.gid, sizeof(h.gid), "%07o", entry->owner & 07777777u);
	snprintf(h.size, sizeof(h.size), "%011llo", (unsigned long long)size & 077777777777ull);
	/* Time zero, so that equal binaries make equal images. */
	snprintf(h.mtime, sizeof(h.mtime), "%011o", 0u);
	memcpy(h.magic, "ustar", sizeof(h.magic));
	/* The checksum is taken with its own field full of blanks. */
	memset(h.checksum, ' ', sizeof(h.checksum));
	memcpy(out, &h, TAR_BLOCK);
	for (size_t i = 0; i < TAR_BLOCK; i++)
		sum += out[i];
	snprintf(h.checksum, sizeof(h.checksum) - 1, "%06o", sum & 0777777u);
	memcpy(out, &h, TAR_BLOCK);
}

uint8_t *agent_image_tar(size_t *ret_len)
{
	static const struct tar_entry berth = { ".berth/", '5', 0755, 0 },
				      agent = { ".berth/berth-agent", '0', 0111, 0 },
				      workspace = { "workspace/", '5', 0700, 10001 };
	size_t size = 0;
	const uint8_t *file = agent_image(&size);
	size_t padded = (size + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK;
	size_t total = 3 * TAR_BLOCK + padded + 2 * TAR_BLOCK; /* two empty blocks end an archive */
	uint8_t *tar = xcalloc(total, 1);
	put_header(tar, &berth, 0);
	put_header(tar + TAR_BLOCK, &agent, size);
	memcpy(tar + 2 * TAR_BLOCK, file, size);
	put_header(tar + 2 * TAR_BLOCK + padded, &workspace, 0);
	*ret_len = total;
	return tar;
}
