/* SPDX-License-Identifier: MIT */
#include "cli/suggest.h"

#include <string.h>

#define WORD_MAX 32
#define FAR 1000

static int lesser(int a, int b)
{
	return a < b ? a : b;
}

/* Row i of the table: d[i][j] is what turns the first i letters of a into the first j of b. */
static void fill_row(int d[WORD_MAX + 1][WORD_MAX + 1], const char *a, const char *b, size_t i, size_t lb)
{
	d[i][0] = (int)i;
	for (size_t j = 1; j <= lb; j++) {
		int replace = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
		bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
		d[i][j] = lesser(replace, lesser(d[i - 1][j], d[i][j - 1]) + 1);
		if (swapped)
			d[i][j] = lesser(d[i][j], d[i - 2][j - 2] + 1);
	}
}

/* Letters to insert, delete, replace or swap with their neighbour (optimal string alignment). */
static int distance(const char *a, const char *b)
{
	int d[WORD_MAX + 1][WORD_MAX + 1];
	size_t la = strlen(a), lb = strlen(b);
	if (la > WORD_MAX || lb > WORD_MAX)
		return FAR;
	for (size_t j = 0; j <= lb; j++)
		d[0][j] = (int)j;
	for (size_t i = 1; i <= la; i++)
		fill_row(d, a, b, i, lb);
	return d[la][lb];
}

struct suggest suggest_for(const char *word)
{
	return (struct suggest){ .word = word, .distance = FAR };
}

void suggest_offer(struct suggest *s, const char *known)
{
	size_t len = strlen(s->word);
	bool begins = len > 1 && !strncmp(s->word, known, len);
	int d = begins ? 1 : distance(s->word, known);
	if (d >= s->distance)
		return;
	s->distance = d;
	s->best = known;
}

const char *suggest_best(const struct suggest *s)
{
	int half = (int)(strlen(s->word) / 2);
	int limit = lesser(3, half);
	return s->distance <= limit ? s->best : NULL;
}
