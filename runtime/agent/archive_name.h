/* SPDX-License-Identifier: MIT */
/*
 * archive_name.h - may an archive write this name, and this link? Pure.
 *
 * A name that is accepted has neither a beginning outside nor a ".." in it. A link that is accepted goes up
 * first and then down, and never above the folder: so long as only such links stand below it, and nothing is
 * written through one, none of them leaves it, also not by way of another (a link's own folder is where its
 * name says, since no link is among that name's parents).
 */
#ifndef BERTH_AGENT_ARCHIVE_NAME_H
#define BERTH_AGENT_ARCHIVE_NAME_H

#include <limits.h>

/*
 * 0 and in `ret` the name without empty components, "." and the last "/"; "" is the folder itself. Else
 * EINVAL or ENAMETOOLONG, with *ret_why (a constant).
 */
int archive_name_judge(const char *name, char ret[PATH_MAX], const char **ret_why);

/* 0, EINVAL or ENAMETOOLONG with *ret_why: may `name`, which archive_name_judge() has given, be a link to
 * `target`? */
int archive_target_judge(const char *name, const char *target, const char **ret_why);

#endif
