/* SPDX-License-Identifier: MIT */
/* Takes all there is of something. */
#include "hostile.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB (1024l * 1024)
#define PIECE_MB 4
#define SEMAPHORES 32000 /* in one set: the kernel's usual limit */

/* ---- processes ---- */

int bomb_fork(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	for (;;)
		(void)fork();
}

int bomb_daemons(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	for (;;) {
		pid_t pid = fork();
		if (pid > 0)
			_exit(0);
		(void)setsid();
		(void)fork();
	}
}

/* What others give back is taken, too. */
int bomb_zombies(int argc, char **argv)
{
	bool told = false;

	(void)argc;
	(void)argv;
	for (long count = 0;;) {
		pid_t pid = fork();
		if (pid == 0)
			_exit(0);
		if (pid > 0) {
			count++;
			continue;
		}
		if (!told)
			printf("%ld zombies, then %s\n", count, word_of(errno));
		told = true;
		(void)poll(NULL, 0, 10);
	}
}

/* ---- memory ---- */

static void set_oom_score(const char *value)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	if (fd >= 0 && write(fd, value, strlen(value)) > 0)
		close(fd);
}

static void eat(long megabytes)
{
	for (long i = 0; i < megabytes; i++) {
		void *at = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (at != MAP_FAILED)
			memset(at, 1, MIB);
	}
}

int bomb_memory(int argc, char **argv)
{
	long processes = argc > 2 ? number_of(argv[2]) : 1;

	if (argc < 2)
		return 64;
	if (argc > 3)
		set_oom_score(argv[3]);
	for (long i = 1; i < processes; i++)
		if (fork() == 0)
			break;
	eat(number_of(argv[1]));
	puts("eaten");
	if (processes > 1)
		pause();
	return 0;
}

int bomb_shm(int argc, char **argv)
{
	long megabytes = argc > 1 ? number_of(argv[1]) : 0;
	bool hold = argc > 2;

	for (long done = 0; done < megabytes; done += PIECE_MB) {
		int id = shmget(IPC_PRIVATE, PIECE_MB * MIB, IPC_CREAT | 0600);
		void *at = id < 0 ? (void *)-1 : shmat(id, NULL, 0);
		if (at == (void *)-1) {
			puts(word_of(errno));
			return 0;
		}
		memset(at, 1, PIECE_MB * MIB);
		if (!hold)
			(void)shmdt(at);
	}
	puts("filled");
	return 0;
}

static int fill_queue(void)
{
	static struct {
		long type;
		char text[8192];
	} message = { .type = 1 };
	int id = msgget(IPC_PRIVATE, IPC_CREAT | 0600);

	while (id >= 0 && msgsnd(id, &message, sizeof(message.text), IPC_NOWAIT) == 0)
		;
	return id < 0 ? errno : 0;
}

int bomb_ipc(int argc, char **argv)
{
	long queues = 0, sets = 0;
	int sys;

	(void)argc;
	(void)argv;
	while ((sys = fill_queue()) == 0)
		queues++;
	printf("%ld queues, then %s\n", queues, word_of(sys));
	while (semget(IPC_PRIVATE, SEMAPHORES, IPC_CREAT | 0600) >= 0)
		sets++;
	printf("%ld sets, then %s\n", sets, word_of(errno));
	return 0;
}

/* ---- files ---- */

static int fill_with_bytes(const char *dir)
{
	static char block[1 << 18];
	char path[256];
	int sys = 0;

	snprintf(path, sizeof(path), "%s/hostile-bytes", dir);
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return errno;
	memset(block, 1, sizeof(block));
	for (size_t size = sizeof(block); size > 0 && !(sys && sys != ENOSPC);)
		if (write(fd, block, size) < 0) {
			sys = errno;
			size /= 2;
		}
	close(fd);
	return sys;
}

int bomb_bytes(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		printf("%s %s\n", argv[i], word_of(fill_with_bytes(argv[i])));
	return 0;
}

static int fill_with_files(const char *dir, long max, int length, long *ret_count)
{
	char name[NAME_MAX + 1];
	int at = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

	for (*ret_count = 0; *ret_count < max; ++*ret_count) {
		snprintf(name, sizeof(name), "%0*ld", length, *ret_count);
		int fd = openat(at, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (fd < 0)
			return errno;
		close(fd);
	}
	close(at);
	return 0;
}

int bomb_files(int argc, char **argv)
{
	long count;

	if (argc < 4)
		return 64;
	for (int i = 3; i < argc; i++) {
		int sys = fill_with_files(argv[i], number_of(argv[1]), (int)number_of(argv[2]), &count);
		printf("%s %s %ld\n", argv[i], word_of(sys), count);
	}
	return 0;
}

/* ---- descriptors ---- */

static void open_all(void)
{
	while (open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0)
		;
	puts(word_of(errno));
	pause();
}

int bomb_fds(int argc, char **argv)
{
	long processes = argc > 1 ? number_of(argv[1]) : 1;

	for (long i = 1; i < processes; i++)
		if (fork() == 0)
			break;
	open_all();
	return 0;
}
