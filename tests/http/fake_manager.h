/* SPDX-License-Identifier: MIT */
/* fake_manager.h - what the files of the fake manager share. */
#ifndef BERTH_TESTS_FAKE_MANAGER_H
#define BERTH_TESTS_FAKE_MANAGER_H

#include <pthread.h>

#include "base/buf.h"
#include "base/id.h"
#include "manager/manager.h"

#define SESSIONS_MAX 64
#define EXECS_MAX 1024
#define OUTPUT_MAX (4 << 20)

struct session {
	char id[ID_SIZE], token[ID_TOKEN_SIZE], name[64];
	char *labels;
	bool gone;
	int64_t ttl_s, idle_s, created_ms;
};

struct exec {
	struct session *session;
	char id[ID_SIZE];
	char *command, *key, *request_hash;
	bool base64, stream;
	pthread_t starter;
	pid_t pid;
	int out_fd;
	struct buf output, piece;
	bool ended;
	int status;
	const char *reason;
	int64_t started_ms, ended_ms, deadline_ms;
};

struct manager {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct session sessions[SESSIONS_MAX];
	struct exec *execs[EXECS_MAX]; /* never freed */
	size_t session_count, exec_count;
	int64_t refused;
	bool quiet;
};
extern struct manager the;

#endif
