/* SPDX-License-Identifier: MIT */
#include "runtime/agent/ports.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/agent/dirs.h"
#include "runtime/agent/fd.h"
#include "runtime/agent/report.h"
#include "runtime/agent/text.h"
#include "runtime/agent/tree.h"

#define FOUND_MAX 65536
/* words of a line of /proc/net/tcp (proc(5)) */
#define WORD_LOCAL 1
#define WORD_STATE 3
#define WORD_INODE 9
#define STATE_LISTEN 0x0a

struct pair {
	uint64_t key; /* a socket's inode, or a leader's pid */
	unsigned port;
};

struct pairs {
	struct pair *all;
	size_t count, room;
};

/* What does not fit into memory or the maximum is left out: others are still told. */
static void add(struct pairs *p, uint64_t key, unsigned port)
{
	if (p->count == p->room) {
		size_t room = p->room ? p->room * 2 : 64;
		struct pair *all = room > FOUND_MAX ? NULL : reallocarray(p->all, room, sizeof(*all));
		if (!all)
			return;
		p->all = all;
		p->room = room;
	}
	p->all[p->count++] = (struct pair){ key, port };
}

static int compare(const void *a, const void *b)
{
	const struct pair *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return (x->port > y->port) - (x->port < y->port);
}

static void sort(struct pairs *p)
{
	if (p->count > 0)
		qsort(p->all, p->count, sizeof(*p->all), compare);
}

/* The port that the socket with this inode listens on; 0 when there is none. */
static unsigned port_of(const struct pairs *sockets, uint64_t inode)
{
	size_t low = 0, high = sockets->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (sockets->all[middle].key < inode)
			low = middle + 1;
		else
			high = middle;
	}
	return low < sockets->count && sockets->all[low].key == inode ? sockets->all[low].port : 0;
}

static void take_line(struct pairs *sockets, const char *line)
{
	uint64_t port, state, inode;

	line += strspn(line, " ");
	const char *local = text_word(line, WORD_LOCAL), *at = text_word(line, WORD_STATE);
	const char *colon = local ? strchr(local, ':') : NULL, *last = text_word(line, WORD_INODE);
	if (!colon || !at || !last)
		return;
	colon++;
	if (text_number(&colon, 16, &port) && text_number(&at, 16, &state) &&
	    text_number(&last, 10, &inode) && state == STATE_LISTEN)
		add(sockets, inode, (unsigned)port);
}

static void take_listeners(struct pairs *sockets, const char *path)
{
	FILE *f = fopen(path, "re");
	char line[512]; /* longer than any of proc's */

	if (!f)
		return; /* no IPv6 */
	while (fgets(line, sizeof(line), f))
		take_line(sockets, line);
	(void)fclose(f);
}

/* The listening sockets among a process's descriptors; one that ends meanwhile has none. */
static void look_at(struct pairs *found, const struct pairs *sockets, pid_t leader, pid_t pid)
{
	_cleanup_dirs_ struct dirs d = { .count = 0 };
	const struct dirent64 *e;
	char text[64];
	uint64_t inode;

	snprintf(text, sizeof(text), "/proc/%d/fd", pid);
	int fd = open(text, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || dirs_begin(&d, fd) < 0)
		return;
	while ((e = dirs_next(&d))) {
		ssize_t n = readlinkat(fd, e->d_name, text, sizeof(text) - 1);
		text[n > 0 ? n : 0] = '\0';
		const char *at = strncmp(text, "socket:[", 8) == 0 ? text + 8 : NULL;
		unsigned port = at && text_number(&at, 10, &inode) ? port_of(sockets, inode) : 0;
		if (port)
			add(found, (uint64_t)leader, port);
	}
}

static int tell(const struct pairs *found)
{
	struct report out;

	report_init(&out, STDOUT_FILENO);
	for (size_t i = 0; i < found->count; i++) {
		if (i > 0 && compare(&found->all[i], &found->all[i - 1]) == 0)
			continue;
		struct builtin_entry entry = { .pid = (unsigned)found->all[i].key,
					       .size = found->all[i].port };
		if (report_entry(&out, &entry) < 0)
			return 1;
	}
	return report_flush(&out) < 0;
}

/* A job is all that descends from its leader's parent, the supervisor. 0 when the leader is not there. */
static pid_t supervisor_of(const struct tree *t, const char *text, pid_t *ret_leader)
{
	uint64_t pid;

	if (!text_number(&text, 10, &pid) || *text || pid > INT32_MAX)
		return 0;
	*ret_leader = (pid_t)pid;
	pid_t parent = tree_parent(t, (pid_t)pid);
	return parent > 1 ? parent : 0;
}

int ports_run(int argc, char **argv)
{
	pid_t leaders[PROTO_JOBS_MAX] = { 0 }, supervisors[PROTO_JOBS_MAX] = { 0 };
	struct pairs sockets = { .count = 0 }, found = { .count = 0 };
	struct tree *t = realloc(NULL, sizeof(*t));

	if (!t || tree_init(t) < 0)
		return 1;
	for (int i = 0; i < argc; i++)
		supervisors[i] = supervisor_of(t, argv[i], &leaders[i]);
	tree_scan(t, supervisors, (size_t)argc);
	take_listeners(&sockets, "/proc/net/tcp");
	take_listeners(&sockets, "/proc/net/tcp6");
	sort(&sockets);
	for (size_t i = 0; i < t->count && sockets.count > 0; i++)
		if (t->all[i].owner < argc)
			look_at(&found, &sockets, leaders[t->all[i].owner], t->all[i].pid);
	sort(&found);
	return tell(&found);
}
