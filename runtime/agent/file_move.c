/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/agent/cancel.h"
#include "runtime/agent/copying.h"
#include "runtime/agent/entry.h"
#include "runtime/agent/files.h"
#include "runtime/agent/place.h"
#include "runtime/agent/removal.h"
#include "runtime/agent/report.h"
#include "runtime/agent/temp.h"

#define WHERE_MAX (PROTO_DETAIL_MAX - 100) /* bytes shown of a name; the reason has a place, too */

struct moving {
	struct place from, to;
	struct stat from_st, to_st;
	bool replaces; /* there is something at `to` */
	bool cancelled;
	struct removal_kept kept;
	char detail[PROTO_DETAIL_MAX + 1];
};

static int refuse(struct moving *m, int sys, const char *why)
{
	snprintf(m->detail, sizeof(m->detail), "%s", why);
	errno = sys;
	return -1;
}

static int find(struct moving *m, const char *from, const char *to)
{
	if (place_find_name(&m->from, from) < 0 ||
	    fstatat(m->from.dir, *m->from.rest ? m->from.rest : ".", &m->from_st, AT_SYMLINK_NOFOLLOW) < 0)
		return -1;
	if (place_find_name(&m->to, to) < 0)
		return -1;
	m->replaces = fstatat(m->to.dir, *m->to.rest ? m->to.rest : ".", &m->to_st, AT_SYMLINK_NOFOLLOW) == 0;
	if (removal_is_kept(&m->kept, &m->from_st) || (m->replaces && removal_is_kept(&m->kept, &m->to_st)))
		return refuse(m, EPERM, "it is never moved or replaced");
	if (!place_has_name(&m->from) || !place_has_name(&m->to))
		return refuse(m, EINVAL, "a path does not end with a name");
	if (to[strlen(to) - 1] == '/' && !S_ISDIR(m->from_st.st_mode)) {
		errno = ENOTDIR;
		return -1;
	}
	return 0;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/*
 * rename(2) does nothing when both names are links of one file. That is right for one name, however it is
 * written; of two the old one goes, as with mv.
 */
static int move_to_itself(const struct moving *m)
{
	struct stat from, to;

	if (fstat(m->from.dir, &from) < 0 || fstat(m->to.dir, &to) < 0)
		return -1;
	if (is_same(&from, &to) && strcmp(m->from.rest, m->to.rest) == 0)
		return 0;
	return unlinkat(m->from.dir, m->from.rest, 0);
}

/* What would be refused at the end, after all was copied. */
static int judge_copy(const struct moving *m)
{
	bool folder = S_ISDIR(m->from_st.st_mode);

	if (faccessat(m->from.dir, ".", W_OK | X_OK, 0) < 0)
		return -1;
	if (m->replaces && folder != S_ISDIR(m->to_st.st_mode)) {
		errno = folder ? ENOTDIR : EISDIR;
		return -1;
	}
	return 0;
}

/* Copies to a temporary name beside the new one. */
static int copy(struct moving *m, const char *temp)
{
	struct copying c = { .cancel = cancel_open() };

	if (copying_run(&c, m->from.dir, m->from.rest, m->to.dir, temp) == 0)
		return 0;
	m->cancelled = c.cancelled;
	int sys = errno;
	if (c.where[0])
		snprintf(m->detail, sizeof(m->detail), "could not copy %.*s: %s", WHERE_MAX, c.where,
			 c.why ? c.why : strerrordesc_np(sys));
	else if (c.why)
		snprintf(m->detail, sizeof(m->detail), "%s", c.why);
	errno = sys;
	return -1;
}

static int move_across(struct moving *m)
{
	struct removal gone = { .recursive = true }, original = { .recursive = true, .kept = &m->kept };
	char temp[TEMP_NAME];

	if (judge_copy(m) < 0)
		return -1;
	temp_name(temp);
	if (copy(m, temp) < 0 || renameat(m->to.dir, temp, m->to.dir, m->to.rest) < 0) {
		int sys = errno;
		(void)removal_run(&gone, m->to.dir, temp);
		errno = sys;
		return -1;
	}
	if (removal_run(&original, m->from.dir, m->from.rest) == 0)
		return 0;
	return refuse(m, errno, "it was copied, but the original could not be deleted");
}

static int move(struct moving *m, char **argv)
{
	removal_keep_places(&m->kept);
	if (find(m, argv[0], argv[1]) < 0)
		return -1;
	if (m->replaces && is_same(&m->from_st, &m->to_st) && !S_ISDIR(m->from_st.st_mode))
		return move_to_itself(m);
	if (renameat(m->from.dir, m->from.rest, m->to.dir, m->to.rest) == 0)
		return 0;
	return errno == EXDEV ? move_across(m) : -1;
}

int file_move_run(int argc, char **argv)
{
	struct moving m = { .from.dir = -1, .to.dir = -1 };
	struct report out;
	struct builtin_entry entry;
	char target[PATH_MAX];

	(void)argc;
	report_init(&out, STDOUT_FILENO);
	if (move(&m, argv) < 0) {
		if (m.cancelled)
			return CANCEL_EXIT;
		(void)report_failure(&out, argv[1], errno, m.detail[0] ? m.detail : NULL);
	} else {
		(void)entry_look(&entry, argv[1], m.to.dir, m.to.rest, target);
		(void)report_entry(&out, &entry);
	}
	return report_flush(&out) < 0;
}
