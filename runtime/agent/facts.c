/* SPDX-License-Identifier: MIT */
#include "runtime/agent/facts.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "runtime/agent/cgroup.h"
#include "runtime/agent/fd.h"
#include "runtime/agent/text.h"

#define INTERFACES_MAX 16

/* What /proc/self/status says (proc(5)). */
static const struct {
	const char *key;
	uint16_t tag;
	unsigned base;
} STATUS[] = {
	/* clang-format off */
	{ "CapEff:",          PROTO_F_CAP_EFF,         16 },
	{ "CapPrm:",          PROTO_F_CAP_PRM,         16 },
	{ "CapBnd:",          PROTO_F_CAP_BND,         16 },
	{ "CapAmb:",          PROTO_F_CAP_AMB,         16 },
	{ "CapInh:",          PROTO_F_CAP_INH,         16 },
	{ "NoNewPrivs:",      PROTO_F_NO_NEW_PRIVS,    10 },
	{ "Seccomp:",         PROTO_F_SECCOMP,         10 },
	{ "Seccomp_filters:", PROTO_F_SECCOMP_FILTERS, 10 },
	/* clang-format on */
};

static void put_status(struct proto_writer *w)
{
	char text[4096];

	if (fd_read_text(AT_FDCWD, "/proc/self/status", text, sizeof(text)) < 0)
		return;
	for (size_t i = 0; i < sizeof(STATUS) / sizeof(STATUS[0]); i++) {
		const char *at = text_value(text, STATUS[i].key);
		uint64_t value;
		if (at && text_number(&at, STATUS[i].base, &value))
			proto_put_u64(w, STATUS[i].tag, value);
		else if (STATUS[i].tag == PROTO_F_SECCOMP_FILTERS)
			proto_put_u64(w, STATUS[i].tag, 0); /* Linux says it since 5.9 */
	}
}

static void put_cgroup(struct proto_writer *w)
{
	struct cgroup_limits limits;

	cgroup_read(&limits);
	proto_put_u64(w, PROTO_F_CGROUP, (uint64_t)limits.version);
	proto_put_u64(w, PROTO_F_PIDS_MAX, limits.pids_max);
	proto_put_u64(w, PROTO_F_MEMORY_MAX, limits.memory_max);
	proto_put_u64(w, PROTO_F_SWAP_MAX, limits.swap_max);
	proto_put_u64(w, PROTO_F_CPU_MILLI, limits.cpu_milli);
}

static void put_kernel(struct proto_writer *w)
{
	struct statvfs root;
	char text[16];

	proto_put_u64(w, PROTO_F_ROOT_RO, statvfs("/", &root) == 0 && (root.f_flag & ST_RDONLY));
	bool forced = fd_read_text(AT_FDCWD, "/proc/sys/kernel/shm_rmid_forced", text, sizeof(text)) > 0 &&
		      text[0] == '1';
	proto_put_u64(w, PROTO_F_SHM_RMID_FORCED, forced);
}

/* /proc/net/dev has two lines of headings, then "  name: counters" for each interface. */
static void put_interfaces(struct proto_writer *w)
{
	char text[4096];

	if (fd_read_text(AT_FDCWD, "/proc/net/dev", text, sizeof(text)) < 0)
		return;
	const char *line = text;
	for (int i = -2; line && i < INTERFACES_MAX; i++) {
		const char *end = strchr(line, '\n'), *colon = strchr(line, ':');
		const char *name = line + strspn(line, " ");
		if (i >= 0 && colon && end && colon < end)
			proto_put(w, PROTO_F_INTERFACE, name, (size_t)(colon - name));
		line = end ? end + 1 : NULL;
	}
}

/* The linker's build id: a note of the running program (elf(5)). */
static void put_build(struct proto_writer *w, const uint8_t *note, size_t left)
{
	while (left >= sizeof(ElfW(Nhdr))) {
		ElfW(Nhdr) head;
		memcpy(&head, note, sizeof(head));
		size_t name = (head.n_namesz + 3u) & ~3u,
		       size = sizeof(head) + name + ((head.n_descsz + 3u) & ~3u);
		if (size > left)
			return;
		if (head.n_type == NT_GNU_BUILD_ID) {
			proto_put(w, PROTO_F_BUILD, note + sizeof(head) + name, head.n_descsz);
			return;
		}
		note += size;
		left -= size;
	}
}

static int find_build(struct dl_phdr_info *info, size_t size, void *ctx)
{
	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		if (segment->p_type == PT_NOTE)
			put_build(ctx, (const uint8_t *)(uintptr_t)(info->dlpi_addr + segment->p_vaddr),
				  segment->p_memsz);
	}
	return 1; /* a static program is the only object */
}

static void put_start(struct proto_writer *w)
{
	struct timespec t = { 0 };

	(void)clock_gettime(CLOCK_BOOTTIME, &t);
	proto_put_u64(w, PROTO_F_START_NS, (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec);
}

void facts_gather(struct proto_writer *w)
{
	proto_put_text(w, PROTO_F_AGENT, BERTH_VERSION);
	dl_iterate_phdr(find_build, w);
	put_start(w);
	proto_put_u64(w, PROTO_F_UID, geteuid());
	proto_put_u64(w, PROTO_F_GID, getegid());
	put_status(w);
	put_kernel(w);
	put_cgroup(w);
	put_interfaces(w);
	facts_put_mounts(w);
}
