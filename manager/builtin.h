/* SPDX-License-Identifier: MIT */
/*
 * builtin.h - a job that the agent does itself, run in a session from its start to its end by one thread:
 * what it says, record by record, and what it is given. What the built-ins are: runtime/protocol/builtin.h.
 *
 * Any thread starts one; that thread alone uses it. While it exists the session counts as used. It has no
 * row: the loss of its link is its end.
 */
#ifndef BERTH_MANAGER_BUILTIN_H
#define BERTH_MANAGER_BUILTIN_H

#include "base/err.h"
#include "runtime/channel.h"
#include "runtime/protocol/builtin.h"

struct session;
struct builtin_job;

/* Of one session; more wait in line. A transfer is as slow as its client: what is short has places of its
 * own. */
#define BUILTIN_TRANSFERS 5
#define BUILTIN_SHORT 3
#define BUILTIN_SIDE_BY_SIDE (BUILTIN_TRANSFERS + BUILTIN_SHORT)
#define BUILTIN_LINE_MS 30000  /* as long as this */
#define BUILTIN_STALL_MS 60000 /* one that neither takes nor gives a byte for so long is cancelled */
#define BUILTIN_LONG_STALL_MS                                                         \
	600000 /* likewise where it works in silence: a tree that is deleted, a flush \
		*/
#define BUILTIN_TAG_PREFIX "f_"

struct builtin_ask {
	const char *name;
	const char *const *args; /* NULL-terminated */
	bool has_stdin;
	bool raw;        /* bytes follow the first record of stdout */
	bool split;      /* it writes records to stderr, too */
	bool slow;       /* works in silence */
	int client_fd;   /* whose hang-up ends it; -1: nobody's */
	int patience_ms; /* for a place, the link and each word of it; 0: as above */
};

/*
 * Starts it once a place is free. ERR_LIMIT: none became free in time; that the agent has none is what
 * builtin_next() says. ERR_TOO_LARGE: arguments over PROTO_SPEC_MAX; ERR_CONFLICT: the client has gone, or
 * the session is paused; ERR_GONE, ERR_SANDBOX, ERR_UNAVAILABLE, ERR_STOPPING.
 */
int builtin_start(struct session *s, const struct builtin_ask *ask, struct builtin_job **ret,
		  struct err *e) NODISCARD;
/* Takes NULL. One that has not ended is cancelled, and its end awaited for a moment. */
void builtin_free(struct builtin_job *b);
DEFINE_CLEANUP(struct builtin_job *, builtin_free)

enum builtin_what {
	BUILTIN_ENTRY, /* entry */
	BUILTIN_DONE,  /* done */
	BUILTIN_BYTES, /* bytes, len (above 0) */
	BUILTIN_END,   /* it has ended well, and said all; again and again */
};
struct builtin_piece {
	bool aside; /* from stderr */
	struct builtin_entry entry;
	struct builtin_done done;
	const char *bytes; /* as the texts of the others: borrowed until the next call */
	size_t len;
};
/*
 * Waits for the next thing that it says: an enum builtin_what, or a negative code, which is final.
 * ERR_SANDBOX: it was killed, its link was lost (retry_after_s is set), or it says what it must not;
 * ERR_TIMEOUT: it stalls; ERR_CONFLICT: the client has gone; ERR_GONE: the session has ended; ERR_STOPPING.
 */
int builtin_next(struct builtin_job *b, struct builtin_piece *ret, struct err *e) NODISCARD;

/*
 * Gives it bytes of stdin, as fast as it takes them. Errors as above, but for ERR_CONFLICT: it takes no more,
 * and builtin_next() tells why.
 */
int builtin_write(struct builtin_job *b, const void *bytes, size_t len, struct err *e) NODISCARD;
/* That was all of its stdin. Whether the client is there does not matter any more. */
void builtin_close(struct builtin_job *b);

/* ---- for the manager's own ---- */

void builtin_session_init(struct session *s);
/* Does a thread of this berthd run the job of this tag over this link? */
bool builtin_is_live(struct session *s, const struct channel *c, const char *tag);

#endif
