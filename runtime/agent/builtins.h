/* SPDX-License-Identifier: MIT */
/*
 * builtins.h - the jobs that the agent does itself (runtime/protocol/builtin.h): by name.
 *
 * They run in the child of a job's supervisor, in the place of a command: stdin, stdout and stderr are the
 * job's, the folder is the spec's, the uid and the limits are the sandbox's, umask is 022. They may allocate
 * and wait: PID 1 does neither for them.
 */
#ifndef BERTH_AGENT_BUILTINS_H
#define BERTH_AGENT_BUILTINS_H

struct builtin;

/* The one of that name that takes so many arguments. NULL with errno ENOSYS or EINVAL. */
const struct builtin *builtins_find(const char *name, int argc);

/* Runs it; argv holds the arguments only, ended by NULL. The exit code of its process. */
int builtins_run(const struct builtin *b, int argc, char **argv);

#endif
