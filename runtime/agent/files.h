/* SPDX-License-Identifier: MIT */
/*
 * files.h - the built-ins on files, each in a file_NAME.c of its own. Arguments, output and exit codes are
 * those of runtime/protocol/builtin.h.
 */
#ifndef BERTH_AGENT_FILES_H
#define BERTH_AGENT_FILES_H

int file_delete_run(int argc, char **argv);
int file_list_run(int argc, char **argv);
int file_mkdir_run(int argc, char **argv);
int file_move_run(int argc, char **argv);
int file_read_run(int argc, char **argv);
int file_stat_run(int argc, char **argv);
int file_write_run(int argc, char **argv);

#endif
