/* SPDX-License-Identifier: MIT */
#include "cli/suggest.h"

#include <string.h>

#define WORD_MAX 32
#define FAR 1000

/* Letters to insert, delete, replace or swap with their neighbour (optimal string alignment). */
static int distance(const char *a, const char *b)
{
	int d[WORD_MAX + 1][WORD_MAX + 1];
	size_t la = strlen(a), lb = strlen(b);
	if (la > WORD_MAX || lb > WORD_MAX)
		return FAR;
	for (size_t i = 0; i <= la; i++) {
		for (size_t j = 0; j <= lb; j++) {
			if (!i || !j) {
				d[i][j] = (int)(i + j);
				continue;
			}
			int replace = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
			d[i][j] = MIN(replace, MIN(d[i - 1][j], d[i][j - 1]) + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				d[i][j] = MIN(d[i][j], d[i - 2][j - 2] + 1);
		}
	}
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
	int limit = MIN(3, MAX(1, (int)(strlen(s->word) / 2)));
	return s->distance <= limit ? s->best : NULL;
}
