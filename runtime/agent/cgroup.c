/* SPDX-License-Identifier: MIT */
#include "runtime/agent/cgroup.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/agent/fd.h"
#include "runtime/agent/text.h"

#define ROOT "/sys/fs/cgroup"
/* v1 writes "no limit" as LONG_MAX rounded down to a page */
#define UNLIMITED_FROM (1ull << 60)

/* The sandbox's own folder: the root of its view, or below it when the engine shares the host's cgroup
 * namespace. */
static void v2_folder(char *path, size_t size)
{
	char text[512];

	snprintf(path, size, "%s", ROOT);
	if (fd_read_text(AT_FDCWD, "/proc/self/cgroup", text, sizeof(text)) < 0)
		return;
	const char *own = text_value(text, "0::");
	if (own && own[0] == '/' && own[1] != '\n')
		snprintf(path, size, "%s%.*s", ROOT, (int)strcspn(own, "\n"), own);
}

static bool read_file(const char *folder, const char *name, char *text, size_t size)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return fd_read_text(AT_FDCWD, path, text, size) > 0;
}

/* The number in a file; `otherwise` when there is none, "max" and "-1" included. */
static uint64_t read_number(const char *folder, const char *name, uint64_t otherwise)
{
	char text[64];
	const char *at = text;
	uint64_t value;

	if (!read_file(folder, name, text, sizeof(text)) || !text_number(&at, 10, &value))
		return otherwise;
	return value;
}

static uint64_t milli(uint64_t quota_us, uint64_t period_us)
{
	return period_us > 0 && quota_us < UINT64_MAX / 1000 ? quota_us * 1000 / period_us : 0;
}

static void read_v2(struct cgroup_limits *l)
{
	char folder[PATH_MAX / 2], text[64];

	v2_folder(folder, sizeof(folder));
	l->pids_max = read_number(folder, "pids.max", 0);
	l->memory_max = read_number(folder, "memory.max", 0);
	l->swap_max = CGROUP_UNKNOWN;
	if (read_file(folder, "memory.swap.max", text, sizeof(text)))
		l->swap_max = read_number(folder, "memory.swap.max", INT64_MAX);
	if (!read_file(folder, "cpu.max", text, sizeof(text)))
		return;
	const char *quota = text, *period = text_word(text, 1);
	uint64_t quota_us, period_us;
	if (period && text_number(&quota, 10, &quota_us) && text_number(&period, 10, &period_us))
		l->cpu_milli = milli(quota_us, period_us);
}

static void read_v1(struct cgroup_limits *l)
{
	l->pids_max = read_number(ROOT "/pids", "pids.max", 0);
	uint64_t memory = read_number(ROOT "/memory", "memory.limit_in_bytes", 0);
	l->memory_max = memory < UNLIMITED_FROM ? memory : 0;
	/* missing when the kernel does not account for swap */
	uint64_t both = read_number(ROOT "/memory", "memory.memsw.limit_in_bytes", CGROUP_UNKNOWN);
	if (both == CGROUP_UNKNOWN)
		l->swap_max = CGROUP_UNKNOWN;
	else if (both >= UNLIMITED_FROM)
		l->swap_max = INT64_MAX;
	else
		l->swap_max = both > memory ? both - memory : 0;
	l->cpu_milli = milli(read_number(ROOT "/cpu", "cpu.cfs_quota_us", 0),
			     read_number(ROOT "/cpu", "cpu.cfs_period_us", 0));
}

void cgroup_read(struct cgroup_limits *ret)
{
	*ret = (struct cgroup_limits){ .version = access(ROOT "/cgroup.controllers", F_OK) == 0 ? 2 : 1 };
	if (ret->version == 2)
		read_v2(ret);
	else
		read_v1(ret);
}

int cgroup_open_oom(void)
{
	char folder[PATH_MAX / 2], path[PATH_MAX];

	v2_folder(folder, sizeof(folder));
	snprintf(path, sizeof(path), "%s/memory.events", folder);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd >= 0 ? fd : open(ROOT "/memory/memory.oom_control", O_RDONLY | O_CLOEXEC);
}

uint64_t cgroup_oom_kills(int fd)
{
	char text[512];
	uint64_t kills;
	ssize_t n = fd < 0 ? -1 : pread(fd, text, sizeof(text) - 1, 0);

	if (n <= 0)
		return 0;
	text[n] = '\0';
	const char *at = text_value(text, "oom_kill ");
	return at && text_number(&at, 10, &kills) ? kills : 0;
}
