/* SPDX-License-Identifier: MIT */
/* suggest.h - the known word nearest to one that was mistyped. Pure. */
#ifndef BERTH_CLI_SUGGEST_H
#define BERTH_CLI_SUGGEST_H

#include "base/base.h"

struct suggest {
	const char *word, *best;
	int distance; /* of best */
};

/* Everything is borrowed. */
struct suggest suggest_for(const char *word);
void suggest_offer(struct suggest *s, const char *known);
/* The nearest one offered; NULL when none is near: half of the word, at most 3 letters, may differ. */
const char *suggest_best(const struct suggest *s);

#endif
