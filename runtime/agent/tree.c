/* SPDX-License-Identifier: MIT */
#include "runtime/agent/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/agent/fd.h"
#include "runtime/agent/text.h"

#define DIR_BYTES 4096
/* words of /proc/PID/stat after the name: state is 0, ppid 1, start time 19 (proc(5) counts from 3) */
#define WORD_PPID 1
#define WORD_START 19

int tree_init(struct tree *t)
{
	t->self = getpid();
	t->proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return t->proc_fd < 0 ? -1 : 0;
}

static bool read_process(const struct tree *t, pid_t pid, struct tree_process *ret)
{
	char path[32], text[512];
	uint64_t ppid, start;

	snprintf(path, sizeof(path), "%d/stat", pid);
	if (fd_read_text(t->proc_fd, path, text, sizeof(text)) <= 0)
		return false;
	/* the name stands in parentheses and may hold any of them */
	const char *rest = strrchr(text, ')');
	if (!rest || rest[1] != ' ')
		return false;
	rest += 2;
	const char *ppid_at = text_word(rest, WORD_PPID), *start_at = text_word(rest, WORD_START);
	if (!ppid_at || !start_at || !text_number(&ppid_at, 10, &ppid) || !text_number(&start_at, 10, &start))
		return false;
	*ret = (struct tree_process){ pid, (int32_t)ppid, (uint32_t)start, *rest, TREE_UNKNOWN };
	return true;
}

static void take_entry(struct tree *t, const char *name)
{
	uint64_t pid;

	/* /proc lists ascending (proc_pid_readdir()); a picture out of order could not be searched */
	if (!text_number(&name, 10, &pid) || *name || t->count == TREE_MAX)
		return;
	if (t->count > 0 && (int32_t)pid <= t->all[t->count - 1].pid)
		return;
	if (read_process(t, (pid_t)pid, &t->all[t->count]))
		t->count++;
}

/* getdents64(2) itself, since opendir(3) allocates. */
static void take_all(struct tree *t)
{
	_Alignas(struct dirent64) char bytes[DIR_BYTES];
	long n;

	t->count = 0;
	t->torn = false;
	(void)lseek(t->proc_fd, 0, SEEK_SET);
	while ((n = syscall(SYS_getdents64, t->proc_fd, bytes, sizeof(bytes))) > 0)
		for (long at = 0; at < n;) {
			const struct dirent64 *entry = (const void *)(bytes + at);
			take_entry(t, entry->d_name);
			at += entry->d_reclen;
		}
}

static struct tree_process *find(struct tree *t, pid_t pid)
{
	size_t low = 0, high = t->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (t->all[middle].pid < pid)
			low = middle + 1;
		else
			high = middle;
	}
	return low < t->count && t->all[low].pid == pid ? &t->all[low] : NULL;
}

/* What can be said of a process without a look at its ancestors. */
static uint8_t plain_owner(const struct tree *t, const struct tree_process *p, const pid_t *supervisors,
			   size_t count)
{
	if (p->owner != TREE_UNKNOWN)
		return p->owner;
	uint8_t owner = TREE_UNKNOWN;
	for (size_t i = 0; i < count; i++) {
		if (supervisors[i] == 0)
			continue;
		if (supervisors[i] == p->pid)
			return TREE_NOBODY;
		if (supervisors[i] == p->ppid)
			owner = (uint8_t)i;
	}
	if (owner != TREE_UNKNOWN)
		return owner;
	if (p->ppid == t->self)
		return TREE_STRAY;
	return p->ppid == 0 || p->pid == t->self ? TREE_NOBODY : TREE_UNKNOWN;
}

/* Climbs until an owner is known, then writes it down all the way, so that each process is climbed once. */
static void work_out(struct tree *t, struct tree_process *from, const pid_t *supervisors, size_t count)
{
	struct tree_process *top = from;
	uint8_t owner;

	for (size_t depth = 0; (owner = plain_owner(t, top, supervisors, count)) == TREE_UNKNOWN; depth++) {
		struct tree_process *parent = depth < t->count ? find(t, top->ppid) : NULL;
		if (!parent) { /* it ended meanwhile: a later picture shows where its children went */
			t->torn = true;
			owner = TREE_NOBODY;
			break;
		}
		top = parent;
	}
	for (struct tree_process *p = from; p != top; p = find(t, p->ppid))
		p->owner = owner;
	top->owner = owner;
}

void tree_scan(struct tree *t, const pid_t *supervisors, size_t count)
{
	take_all(t);
	for (size_t i = 0; i < t->count; i++)
		work_out(t, &t->all[i], supervisors, count);
}

bool tree_is_dead(const struct tree_process *p)
{
	return p->state == 'Z' || p->state == 'X' || p->state == 'x';
}

unsigned tree_count(const struct tree *t, unsigned owner)
{
	unsigned count = 0;

	for (size_t i = 0; i < t->count; i++)
		count += t->all[i].owner == owner && !tree_is_dead(&t->all[i]);
	return count;
}

/*
 * Between the picture and the signal a pid may have been given to a neighbour: a pidfd holds the
 * process still while its start time is compared. Without pidfds (before Linux 5.3) or descriptors
 * the comparison alone must do.
 */
void tree_signal(const struct tree *t, const struct tree_process *p, int sig)
{
	_cleanup_close_ int fd = (int)syscall(SYS_pidfd_open, p->pid, 0);
	struct tree_process now;

	if (fd < 0 && errno == ESRCH)
		return;
	if (!read_process(t, p->pid, &now) || now.start != p->start)
		return;
	if (fd >= 0)
		(void)syscall(SYS_pidfd_send_signal, fd, sig, NULL, 0);
	else
		(void)kill(p->pid, sig);
}

pid_t tree_parent(const struct tree *t, pid_t pid)
{
	struct tree_process p;
	return read_process(t, pid, &p) ? p.ppid : -1;
}
