/* SPDX-License-Identifier: MIT */
/* inside.c - what the engine tests run in a container: one static program, a word for each thing it does. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Waits for the end. */
static int stay(char **argv)
{
	(void)argv;
	for (;;)
		pause();
}

/* Repeats its stdin. */
static int echo(char **argv)
{
	char piece[65536];
	ssize_t n;
	(void)argv;
	while ((n = read(0, piece, sizeof(piece))) > 0)
		for (ssize_t at = 0; at < n;) {
			ssize_t w = write(1, piece + at, (size_t)(n - at));
			if (w <= 0)
				return 1;
			at += w;
		}
	return n < 0;
}

/* Writes so many bytes: each is the low byte of its offset divided by 251. */
static int flood(char **argv)
{
	static char piece[65536];
	for (long long left = strtoll(argv[0], NULL, 10), at = 0; left > 0;) {
		size_t n = left < (long long)sizeof(piece) ? (size_t)left : sizeof(piece);
		for (size_t i = 0; i < n && at < 1 << 20; i++)
			piece[i] = (char)((at + (long long)i) % 251);
		ssize_t w = write(1, piece, n);
		if (w <= 0)
			return 1;
		left -= w;
		at += w;
	}
	return 0;
}

/* Something on both. */
static int both(char **argv)
{
	(void)argv;
	fputs("out", stdout);
	fflush(stdout);
	fputs("trouble in here\n", stderr);
	return 3;
}

/* Says what it is, one line each. */
static int facts(char **argv)
{
	static const char *const files[] = { "/proc/self/status", "/proc/self/limits", "/proc/self/mounts",
					     "/proc/sys/kernel/shm_rmid_forced",
					     "/proc/sys/kernel/hostname" };
	char piece[4096];
	(void)argv;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		int fd = open(files[i], O_RDONLY | O_CLOEXEC);
		ssize_t n;
		dprintf(1, "== %s\n", files[i]);
		while ((n = read(fd, piece, sizeof(piece))) > 0)
			if (write(1, piece, (size_t)n) != n)
				return 1;
		close(fd);
	}
	return 0;
}

/* Makes a file in each of the folders that are named; prints the errno of each. */
static int touch(char **argv)
{
	for (; *argv; argv++) {
		char path[256];
		snprintf(path, sizeof(path), "%s/try", *argv);
		int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
		dprintf(1, "%s=%d\n", *argv, fd < 0 ? errno : 0);
		if (fd >= 0)
			close(fd);
	}
	return 0;
}

static const struct {
	const char *word;
	int (*act)(char **argv);
} words[] = {
	{ "stay", stay }, { "echo", echo },   { "flood", flood },
	{ "both", both }, { "facts", facts }, { "touch", touch },
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcmp(argv[1], words[i].word))
			return words[i].act(argv + 2);
	return 64;
}
