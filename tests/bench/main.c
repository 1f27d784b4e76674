/* SPDX-License-Identifier: MIT */
/*
 * The measuring client of `make bench`; bench.py drives it and says what the figures mean.
 *
 *   client [OPTION...] rounds N WORK[/EVERY]...       one after the other, the works in turn
 *   client [OPTION...] burst N LANES WORK...          LANES at once, the works in turn, N times
 *
 * Works in turn, since a machine's moods last longer than one round: both sides of a ratio see the same.
 */
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <string.h>

#include "base/clock.h"
#include "tests/bench/bench.h"

#define WORKS_MAX 8

void die(const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	fputs("bench: ", stderr);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	va_end(ap);
	_exit(1);
}

void print_series(const char *name, const char *suffix, const int64_t *us, size_t count)
{
	printf("%s%s", name, suffix);
	for (size_t i = 0; i < count; i++)
		printf(" %lld", (long long)us[i]);
	putchar('\n');
}

/* ---- one after the other ---- */

struct turn {
	const struct work *work;
	size_t every; /* its turn comes in each so many rounds */
	int64_t *us;
	size_t count;
};

static void parse_turn(struct turn *t, const char *text, size_t rounds)
{
	const char *slash = strchr(text, '/');
	_cleanup_free_ char *name = slash ? xstrndup(text, (size_t)(slash - text)) : xstrdup(text);
	*t = (struct turn){ .work = work_find(name), .every = slash ? strtoul(slash + 1, NULL, 10) : 1 };
	if (!t->work || !t->every)
		die("%s: no such work", text);
	t->us = xcalloc(rounds, sizeof(*t->us));
}

static void do_turn(struct turn *t, struct lane *l, bool counts)
{
	int64_t start = clock_mono_us();
	t->work->run(l);
	int64_t took = clock_mono_us() - start;
	if (t->work->after)
		t->work->after(l);
	if (counts)
		t->us[t->count++] = took;
}

static void run_rounds(const struct setup *s, size_t rounds, char **names)
{
	struct turn turns[WORKS_MAX];
	struct lane lane;
	size_t count = 0;
	for (; *names && count < WORKS_MAX; names++)
		parse_turn(&turns[count++], *names, rounds);
	lane_init(&lane, s, 0);
	for (size_t i = 0; i < count; i++)
		do_turn(&turns[i], &lane, false);
	for (size_t round = 0; round < rounds; round++)
		for (size_t i = 0; i < count; i++)
			if (round % turns[i].every == 0)
				do_turn(&turns[i], &lane, true);
	lane_clear(&lane);
	for (size_t i = 0; i < count; i++) {
		print_series(turns[i].work->name, "", turns[i].us, turns[i].count);
		free(turns[i].us);
	}
}

static void run_burst(const struct setup *s, int rounds, size_t lanes, char **names)
{
	const struct work *works[WORKS_MAX];
	size_t count = 0;
	for (; *names && count < WORKS_MAX; names++)
		if (!(works[count++] = work_find(*names)))
			die("%s: no such work", *names);
	if (!lanes || lanes > 4096)
		die("from 1 to 4096 lanes");
	burst(s, works, count, rounds, lanes);
}

/* ---- the command line ---- */

static const struct option long_options[] = {
	{ "berth", required_argument, NULL, 'b' },     { "token", required_argument, NULL, 't' },
	{ "session", required_argument, NULL, 's' },   { "engine", required_argument, NULL, 'e' },
	{ "container", required_argument, NULL, 'c' }, { "image", required_argument, NULL, 'i' },
	{ "dir", required_argument, NULL, 'd' },       { "command", required_argument, NULL, 'x' },
	{ "process", required_argument, NULL, 'p' },   { "bytes", required_argument, NULL, 'n' },
	{ "cli", required_argument, NULL, 'l' },       { 0 },
};

static void add_session(struct setup *s, const char *id)
{
	if (s->session_count == ARRAY_LEN(s->sessions))
		die("too many sessions");
	s->sessions[s->session_count++] = id;
}

/* Words without quotes; the memory stays. */
static char **split(char *text)
{
	char **words = xcalloc(strlen(text) + 2, sizeof(*words)), *rest = NULL;
	size_t count = 0;
	for (char *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
		words[count++] = word;
	return words;
}

static void take_option(struct setup *s, int letter, char *value)
{
	const struct {
		int letter;
		const char **slot;
	} texts[] = { { 'b', &s->berth }, { 't', &s->token }, { 'e', &s->engine },  { 'c', &s->container },
		      { 'i', &s->image }, { 'd', &s->dir },   { 'x', &s->command }, { 'p', &s->process } };
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		if (texts[i].letter == letter)
			*texts[i].slot = value;
	if (letter == 's')
		add_session(s, value);
	else if (letter == 'n')
		s->bytes = strtoull(value, NULL, 10);
	else if (letter == 'l')
		s->cli = split(value);
	else if (letter == '?')
		die("usage: client [OPTION...] rounds N WORK... | burst N LANES WORK...");
}

int main(int argc, char **argv)
{
	struct setup s = { .command = "[\"bash\",\"-c\",\":\"]" };
	int letter;
	while ((letter = getopt_long(argc, argv, "", long_options, NULL)) != -1)
		take_option(&s, letter, optarg);
	char **args = argv + optind;
	int left = argc - optind;
	if (left >= 3 && !strcmp(args[0], "rounds"))
		run_rounds(&s, strtoul(args[1], NULL, 10), args + 2);
	else if (left >= 4 && !strcmp(args[0], "burst"))
		run_burst(&s, (int)strtol(args[1], NULL, 10), strtoul(args[2], NULL, 10), args + 3);
	else
		die("either rounds or burst");
	return fflush(stdout) ? 1 : 0;
}
