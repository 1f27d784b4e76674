/* SPDX-License-Identifier: MIT */
/*
 * archives.h - the built-ins `pack` and `unpack` (runtime/protocol/builtin.h): a folder as a tar archive, and
 * back. Both take memory that does not grow with the files; what grows is the list of folders that wait,
 * which has a bound.
 */
#ifndef BERTH_AGENT_ARCHIVES_H
#define BERTH_AGENT_ARCHIVES_H

int pack_run(int argc, char **argv);
int unpack_run(int argc, char **argv);

#endif
