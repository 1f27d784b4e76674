/* SPDX-License-Identifier: MIT */
/* store_help.h - what the tests of the store share: a store in a folder of its own, rows, and a look into the
 * file. */
#ifndef BERTH_TESTS_STORE_HELP_H
#define BERTH_TESTS_STORE_HELP_H

#include <sqlite3.h>

#include "manager/store/store.h"
#include "tests/unit/rows.h"

/* A literal for a row, whose texts are not const since it usually owns them. */
#define T(text) ((char *)(text))

struct place {
	char dir[64];
	struct store *st;
};

/* A fresh folder and its store; store_place_end closes and removes them. */
void store_place(struct place *p);
void store_place_end(struct place *p);
/* Closes and opens again: what is seen afterwards is what was durable. */
void store_place_again(struct place *p);

/* Fails the test with the message. */
void must(int rc, const struct err *e);

/* Borrowed texts: never cleared. created_ms counts up with n, the id is "s_<n>". */
struct session_row store_session_of(int n, const char *state, char id[32]);
struct exec_row store_exec_of(const char *session, const char *id);
void store_add_session(struct store *st, int n, const char *state);

/* Everything queued before has been tried when it returns. */
void store_flush(struct store *st);

/* The first column of the first row of a query over the file, by a connection of its own; -1: no row. */
int64_t store_peek(const struct place *p, const char *sql);
/* Runs a statement over the file of a store that is closed. */
void store_poke(const struct place *p, const char *sql);

#endif
