/* SPDX-License-Identifier: MIT */
/*
 * Entries in byte order of their paths, without holding all of them: of each folder the smallest names are
 * kept, one more than can be told still. A folder stands for itself by its name, and for what is in it by its
 * name with a slash, since "a.b" comes before "a/b": so the order of the names of each folder is that of the
 * paths.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/agent/dirs.h"
#include "runtime/agent/entry.h"
#include "runtime/agent/files.h"
#include "runtime/agent/report.h"
#include "runtime/agent/text.h"

/* Names held in all folders that are open, before those are dropped that can never be told. */
#define HELD_MAX (4 * (size_t)BUILTIN_LIST_MAX)

struct item {
	char *text; /* with a slash at its end: what is in the folder */
	bool folder;
};

struct folder {
	struct item *items; /* while it is read a heap whose first is the greatest, then sorted */
	size_t count, room, at;
	bool cut;        /* there were greater ones */
	size_t path_len; /* of the listing's path, up to the slash */
};

struct listing {
	struct dirs dirs;
	struct folder *folders; /* one for each level of dirs */
	size_t folder_room, held;
	bool recursive;
	uint64_t max;
	struct report out;
	struct builtin_done done;
	char path[PATH_MAX + 1];
};

static struct folder *last_folder(struct listing *l)
{
	return &l->folders[l->dirs.count - 1];
}

static bool is_inside(const struct item *item)
{
	return item->text[strlen(item->text) - 1] == '/';
}

/* ---- the names of one folder ---- */

static int compare(const void *a, const void *b)
{
	return strcmp(((const struct item *)a)->text, ((const struct item *)b)->text);
}

static void swap(struct item *a, struct item *b)
{
	struct item kept = *a;

	*a = *b;
	*b = kept;
}

static void sift_up(struct item *heap, size_t i)
{
	for (; i > 0 && compare(&heap[i], &heap[(i - 1) / 2]) > 0; i = (i - 1) / 2)
		swap(&heap[i], &heap[(i - 1) / 2]);
}

static void sift_down(struct item *heap, size_t count)
{
	for (size_t i = 0, child; (child = 2 * i + 1) < count; i = child) {
		if (child + 1 < count && compare(&heap[child + 1], &heap[child]) > 0)
			child++;
		if (compare(&heap[child], &heap[i]) <= 0)
			return;
		swap(&heap[child], &heap[i]);
	}
}

static int make_room(struct folder *f)
{
	if (f->count < f->room)
		return 0;
	size_t room = f->room ? f->room * 2 : 16;
	struct item *items = reallocarray(f->items, room, sizeof(*items));
	if (!items)
		return -1;
	f->items = items;
	f->room = room;
	return 0;
}

/* The name and an end, "" or a slash; NULL without memory. */
static char *copy_name(const char *name, const char *end)
{
	size_t len = strlen(name), more = strlen(end) + 1;
	char *copy = realloc(NULL, len + more);

	if (copy) {
		memcpy(copy, name, len);
		memcpy(copy + len, end, more);
	}
	return copy;
}

static int add(struct folder *f, const char *name, const char *end, bool folder)
{
	char *text = copy_name(name, end);

	if (!text || make_room(f) < 0) {
		free(text);
		return -1;
	}
	f->items[f->count++] = (struct item){ text, folder };
	return 0;
}

/* Keeps the name, or the `limit` smallest of what there is and it. */
static int keep(struct folder *f, const char *name, bool folder, size_t limit)
{
	if (f->count == limit) {
		f->cut = true;
		if (strcmp(name, f->items[0].text) >= 0)
			return 0;
		free(f->items[0].text);
		f->items[0] = f->items[--f->count];
		sift_down(f->items, f->count);
	}
	if (add(f, name, "", folder) < 0)
		return -1;
	sift_up(f->items, f->count - 1);
	return 0;
}

static bool is_skipped(const struct listing *l, const char *name)
{
	return l->recursive && (strcmp(name, ".git") == 0 || strcmp(name, "node_modules") == 0);
}

static int read_names(struct listing *l, struct folder *f)
{
	const struct dirent64 *e;
	size_t limit = (size_t)(l->max - l->done.entries) + 1;

	while ((e = dirs_next(&l->dirs))) {
		bool folder = dirs_is_folder(&l->dirs, e);
		if (folder && is_skipped(l, e->d_name))
			continue;
		if (f->path_len + strlen(e->d_name) >= PATH_MAX)
			l->done.refused++; /* nobody could name it */
		else if (keep(f, e->d_name, folder, limit) < 0)
			return -1;
	}
	return errno ? -1 : 0;
}

/* ---- the folders that are open ---- */

/* Drops what comes after as many names as can be told still, from the deepest level up: that is the order. */
static void drop_useless(struct listing *l)
{
	uint64_t left = l->max - l->done.entries + 1;

	l->held = 0;
	for (size_t level = l->dirs.count; level-- > 0;) {
		struct folder *f = &l->folders[level];
		size_t i = f->at;
		for (; i < f->count && left > 0; i++)
			left -= !is_inside(&f->items[i]);
		f->cut |= i < f->count;
		while (f->count > i)
			free(f->items[--f->count].text);
		l->held += f->count - f->at;
	}
}

/* Reads the level that dirs has just begun. 0, or -1 when there is no memory. */
static int open_folder(struct listing *l, size_t path_len)
{
	if (l->dirs.count > l->folder_room) {
		size_t room = l->folder_room ? l->folder_room * 2 : 16;
		struct folder *folders = reallocarray(l->folders, room, sizeof(*folders));
		if (!folders)
			return -1;
		l->folders = folders;
		l->folder_room = room;
	}
	struct folder *f = last_folder(l);
	*f = (struct folder){ .path_len = path_len };
	if (read_names(l, f) < 0) {
		if (errno == ENOMEM)
			return -1;
		l->done.refused++; /* what was read of it is told */
	}
	size_t names = f->count;
	for (size_t i = 0; l->recursive && i < names; i++)
		if (f->items[i].folder && add(f, f->items[i].text, "/", false) < 0)
			return -1;
	if (f->count > 0)
		qsort(f->items, f->count, sizeof(*f->items), compare);
	l->held += f->count;
	if (l->held > HELD_MAX)
		drop_useless(l);
	return 0;
}

static void close_folder(struct folder *f)
{
	while (f->at < f->count)
		free(f->items[f->at++].text);
	free(f->items);
}

/* Up again. -1 when the way up is lost. */
static int leave(struct listing *l)
{
	close_folder(last_folder(l));
	return dirs_leave(&l->dirs);
}

/* Down into a folder, whose text ends with a slash. One that cannot be read is counted. */
static int enter(struct listing *l, char *text)
{
	size_t len = strlen(text), path_len = last_folder(l)->path_len;

	memcpy(l->path + path_len, text, len);
	text[len - 1] = '\0';
	if (dirs_enter(&l->dirs, text) == 0)
		return open_folder(l, path_len + len);
	if (errno == ENOMEM)
		return -1;
	l->done.refused += errno != ENOENT;
	return 0;
}

/* ---- telling ---- */

/* False when there are more than was asked for. */
static bool tell(struct listing *l, const char *name)
{
	struct builtin_entry entry;
	char target[PATH_MAX];
	size_t len = last_folder(l)->path_len;

	memcpy(l->path + len, name, strlen(name) + 1);
	if (entry_look(&entry, l->path, dirs_last(&l->dirs)->fd, name, target) == ENOENT)
		return true;
	if (l->done.entries == l->max)
		return false;
	l->done.entries++;
	l->done.bytes += entry.type == BUILTIN_FILE ? entry.size : 0;
	(void)report_entry(&l->out, &entry);
	return true;
}

/* One step; false at the end. */
static bool step(struct listing *l)
{
	struct folder *f = last_folder(l);

	if (f->at == f->count) {
		l->done.truncated |= f->cut;
		if (!f->cut && leave(l) < 0)
			l->done.sys = errno;
		return !f->cut && !l->done.sys && l->dirs.count > 0;
	}
	char *text = f->items[f->at++].text;
	bool inside = text[strlen(text) - 1] == '/';
	l->held--;
	if (inside && enter(l, text) < 0)
		l->done.sys = errno;
	else if (!inside)
		l->done.truncated = !tell(l, text);
	free(text);
	return !l->done.truncated && !l->done.sys && !l->out.failed;
}

static int parse(struct listing *l, char **argv)
{
	const char *max = argv[2];

	l->recursive = strcmp(argv[1], "1") == 0;
	if (text_number(&max, 10, &l->max) && !*max && l->max > 0 && l->max <= BUILTIN_LIST_MAX)
		return 0;
	errno = EINVAL;
	return -1;
}

/* What is no folder is told alone. */
static int tell_alone(struct listing *l, const char *path)
{
	struct builtin_entry entry;
	char target[PATH_MAX];
	int sys = errno;

	if (entry_look(&entry, path, AT_FDCWD, path, target) != 0)
		return -1;
	if (entry.type == BUILTIN_DIR || (entry.type == BUILTIN_SYMLINK && sys != ENOTDIR && sys != ENOENT)) {
		errno = sys;
		return -1;
	}
	l->done.entries = 1;
	return report_entry(&l->out, &entry);
}

static int list(struct listing *l, char **argv)
{
	if (parse(l, argv) < 0)
		return -1;
	int fd = open(argv[0], O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return tell_alone(l, argv[0]);
	size_t len = strlen(argv[0]);
	memcpy(l->path, argv[0], len);
	if (l->path[len - 1] != '/')
		l->path[len++] = '/';
	if (dirs_begin(&l->dirs, fd) < 0 || open_folder(l, len) < 0)
		return -1;
	while (step(l))
		;
	return 0;
}

int file_list_run(int argc, char **argv)
{
	struct listing l = { .recursive = false };

	(void)argc;
	report_init(&l.out, STDOUT_FILENO);
	if (list(&l, argv) < 0)
		l.done.sys = errno;
	(void)report_done(&l.out, &l.done);
	return report_flush(&l.out) < 0; /* the process ends: what it holds goes with it */
}
