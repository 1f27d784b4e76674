/* SPDX-License-Identifier: MIT */
/*
 * internal.h - what the files of the manager share. Nobody outside this folder includes it.
 *
 * Lock order (docs/ARCHITECTURE.md has all of it): manager.connecting or manager.delivering -> manager.lock;
 * session.moving -> session.lock -> the channels'; exec.lock -> the channels'. manager.lock takes no other.
 * Held over a wait are three only: a session's `moving`, for the store, which puts the moves of one session
 * in order; and `connecting` and `delivering`, for the engine.
 */
#ifndef BERTH_MANAGER_INTERNAL_H
#define BERTH_MANAGER_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include "base/id.h"
#include "base/utf8.h"
#include "manager/capture.h"
#include "manager/exec_env.h"
#include "manager/line.h"
#include "manager/process.h"
#include "manager/session_state.h"
#include "manager/workers.h"
#include "runtime/sandbox.h"

#define MANAGER_CREATE_TIMEOUT_MS 60000
#define MANAGER_DELETE_TIMEOUT_MS 30000
#define MANAGER_STORE_TIMEOUT_MS 10000
#define MANAGER_CONNECT_TIMEOUT_MS 15000
#define MANAGER_GONE_KEPT_MS (24ll * 3600 * 1000)
#define MANAGER_EXEC_KEPT_MS (15ll * 60 * 1000)
#define MANAGER_CANCEL_GRACE_MS 5000

struct session {
	struct manager *manager;
	atomic_uint refs;
	/* fixed for life */
	char *id, *sandbox, *token_hash;
	bool is_default;

	pthread_mutex_t moving; /* one move at a time */

	pthread_mutex_t lock; /* all below */
	pthread_cond_t changed;
	struct session_row
		row; /* as it is in the store, but for link_generation and idle_ms that may be ahead */
	enum session_state state;
	bool unsaved;            /* the store has an older state: it refused the last move */
	bool no_shell;           /* the image has no shell */
	struct channel *channel; /* a reference; NULL before the first link and after a loss */
	bool connecting;
	bool resume_wanted; /* an exec came to the collector without a job: it missed the link that was opened
			     */
	int64_t connect_not_before_ms; /* monotonic: backoff after failures */
	int connect_failures;
	int64_t linked_ms;               /* monotonic: when the last link was opened */
	int young_links;                 /* links in a row that were lost soon after */
	char *doom_actor, *doom_address; /* who wants it; NULL: the manager */
	char *doom, *doom_detail;        /* reason with which the janitor shall end it */
	bool connect_queued;             /* a worker will open a link, or is at it */
	bool being_ended;                /* a worker is at it */
	int64_t end_not_before_ms;       /* monotonic: backoff after failures */
	int end_failures;
	TAILQ_HEAD(, exec) execs; /* those that run or whose end is not durable yet, and the processes that
				     are kept, in the order of their start; references */
	struct line slots;        /* of commands that run */
	int ending;               /* commands that have ended, and their end is not stored yet */
	int processes;            /* that run */
	int process_jobs;         /* those, and the ended ones that are kept: places in the agent's table */
	int readers;              /* of processes' output */
	struct line transfers;    /* of built-in jobs that carry bytes from or to a client */
	struct line desks;        /* of the others */
	TAILQ_HEAD(, builtin_job) builtins;
};

/* What differs between the kinds, but for what they do. */
struct exec_kind_info {
	const char *prefix;      /* of ids */
	const char *start, *end; /* actions of audit rows */
	const char *event;       /* of the line in the log */
};
extern const struct exec_kind_info exec_kinds[];

/*
 * A running command is read by one owner: the thread that started it, as long as its client is there; the
 * collector afterwards and after a restart, and from its start on for a process, whose output nobody but its
 * readers takes. Only the owner touches the fields below "the owner's"; `job` it changes under the lock, so
 * that writers of a process's stdin can borrow it.
 */
enum exec_owner { EXEC_OF_STARTER, EXEC_OF_COLLECTOR };

/* Who writes to the stdin of a process: one at a time, in the order in which they came. Under exec.lock. */
struct process_stdin {
	TAILQ_HEAD(, process_writer) writers;
	int writers_count;
	bool open;         /* as far as known: the agent's LIST tells more */
	unsigned attached; /* how often the job was attached again: what was under way is lost then, */
	uint64_t taken;    /* and this is how much the agent had by then */
};

struct exec {
	struct session *session; /* a reference */
	atomic_uint refs;
	TAILQ_ENTRY(exec) entry; /* in session->execs; under session->lock, as the next two */
	atomic_bool listed;      /* written under session->lock */
	bool has_slot;           /* counts in session->running, or session->processes */
	bool ending;             /* it did, and counts in session->ending until its end is stored */
	bool kept;               /* a process: counts in session->process_jobs; under session->lock */
	/* fixed for life */
	enum exec_kind kind;
	char *id, *command, *name, *key, *request_hash, *actor, *address;
	bool base64, stream, split;
	int64_t started_ms, timeout_ms;
	pthread_t starter;

	/* the owner's */
	struct job *job; /* NULL: not attached */
	char *stdin_data;
	size_t stdin_len, stdin_at, stdin_held; /* held: counts in manager->stdin_bytes */
	struct capture capture;
	bool started;     /* the agent said so over a link that was lost since */
	uint64_t seen[3]; /* bytes of each stream read or lost: where to attach again */
	struct utf8_stream utf8[3];
	struct buf text; /* what the last exec_next() handed out */
	struct job_output output;

	pthread_mutex_t lock; /* all below */
	pthread_cond_t changed;
	enum exec_owner owner;
	uint32_t job_number; /* the agent's; 0 before it was sent, and of a process whose record is lost */
	uint64_t agent;      /* channel_get_agent() of the link it was sent over; 0: an earlier berthd's */
	struct channel *known_on;   /* a reference: the link over which the number was learned */
	int pid;                    /* of a process; 0: not known (yet) */
	struct process_stdin input; /* of a process */
	int cancel_grace_ms;        /* -1: not cancelled; told again after an attach */
	struct channel *resume;     /* a link over which the collector shall attach again; a reference */
	struct channel_job_info resume_info;
	const char *lost_reason; /* the collector shall end it with this reason; a constant */
	char *lost_detail;
	json_t *reply; /* once it ended */
	char *reason;
	int64_t ended_ms;
	bool saving;             /* its end is on the way to the disk */
	TAILQ_ENTRY(exec) ready; /* on the collector's queue, under its lock */
	bool is_ready;
};

struct collector;
struct janitor;
struct session_default;
struct grants;
struct tools;

/* What a health check has found; for a second nobody asks again. */
struct probe {
	int64_t at_ms; /* monotonic */
	bool ok;
	char why[320];
};

struct driver;
struct local;

struct manager {
	const struct settings *settings;
	const struct driver *driver;
	struct local *local; /* of driver_local alone */
	struct store *store;
	struct channels *channels;
	struct workers *workers; /* open links */
	struct workers *enders;  /* end sessions */
	struct collector *collector;
	struct janitor *janitor;
	struct grants *grants;
	struct tools *tools;              /* of images */
	struct session_default *standing; /* the default session, made or not */
	char instance[ID_SIZE];
	atomic_bool quiet; /* berthd stops */

	pthread_mutex_t lock;                   /* all below */
	struct engine *engine;                  /* NULL until it was reached once; then for good */
	struct err connect_why;                 /* of the last connect that failed */
	char agent_volume[ENGINE_NAME_SIZE];    /* "" until delivered */
	struct probe engine_probe, store_probe; /* what /health has found */
	void *by_id, *by_token;                 /* tsearch trees of struct session: those that live */
	size_t session_count;
	int64_t refused_second, refused_count; /* requests refused in that second */
	int64_t refused_unlisted;              /* that have no row and were not told yet */
	/* ring of the last addresses that came without a token, each audited once a second */
	struct {
		char address[64];
		int64_t audited_ms;
	} strangers[16];

	pthread_mutex_t connecting; /* one connect at a time; as `delivering` */
	int64_t connect_retry_ms;   /* monotonic; as the next under `connecting` */
	struct err connect_err;     /* of the last connect, when it failed */

	pthread_mutex_t delivering; /* one delivery at a time; held over calls of engine and store */
	int64_t deliver_retry_ms;   /* monotonic; as the next under `delivering` */
	struct err deliver_err;     /* of the last delivery, when it failed */

	atomic_int_least64_t execs_running, processes_running, stdin_bytes;
};

/* ---- manager.c ---- */

/* A flood of /health must not become a flood at the engine or the disk. False: `ret` is fresh enough. */
/* One more thing that does not work, or is weak: its part and why. */
void health_degrade(struct manager_health *h, const char *part, const char *why);
bool probe_is_stale(struct manager *m, struct probe *p, struct probe *ret);
void probe_remember(struct manager *m, struct probe *p, struct probe *found, int r, const struct err *e);

/* ---- engine_slot.c ---- */

/* Fills the kit, all but agent_volume, which is "" before the first delivery: enough to link, to end, to
 * look. */
int manager_engine_kit(struct manager *m, struct sandbox_kit *ret, struct err *e) NODISCARD;
/* The whole kit, to create: delivers the agent when that was not done yet. */
int manager_kit(struct manager *m, struct sandbox_kit *ret, struct err *e) NODISCARD;
/* The engine if it was reached already, else NULL and why not. Never waits. */
struct engine *manager_known_engine(struct manager *m, struct err *ret_why);
/* Only the engine, without a delivery. */
int manager_engine(struct manager *m, struct engine **ret, struct err *e) NODISCARD;
/* Delivers once more: the volume that was recorded has not worked. */
int manager_redeliver(struct manager *m, struct sandbox_kit *kit, struct err *e) NODISCARD;

/* ---- session.c: the table of those that live ---- */

/* A session of a row; *row moves in. The caller owns one reference; it is not in the table yet. */
struct session *session_new(struct manager *m, struct session_row *row) NODISCARD;
struct session *session_ref(struct session *s) NODISCARD;
/* Enters it. False when the table is full. */
bool sessions_enter(struct manager *m, struct session *s, size_t max);
void sessions_leave(struct manager *m, struct session *s);
/* References to all that live, to be unreffed and freed by the caller. */
struct session **sessions_all(struct manager *m, size_t *ret_count) NODISCARD;
/* The one with this id, in any state but gone; NULL when there is none. A reference. */
struct session *sessions_peek(struct manager *m, const char *id) NODISCARD;
bool sessions_has_sandbox(struct manager *m, const char *sandbox_id);

/*
 * Moves its state by the table, as one durable row with its audit row. reason and detail (may be NULL) are
 * recorded. ERR_CONFLICT: not allowed in this state. When the store refuses (ERR_STORE), a move towards the
 * end is made in memory all the same and `unsaved` is set: a full disk must not keep a session alive.
 */
int session_move(struct session *s, enum session_event ev, const char *reason, const char *detail,
		 const struct audit_row *audit, struct err *e) NODISCARD;
/* Makes it the row of a session that has ended, whatever the store got to know of it. */
void session_row_end(struct session_row *row);
enum session_state session_get_state(struct session *s);
/* A copy with texts of its own. */
void session_row_copy(const struct session_row *from, struct session_row *to);
void session_copy_row(struct session *s, struct session_row *ret); /* cleared by the caller */
/* It is used now: the idle deadline moves. */
void session_touch(struct session *s);

/* ---- session_create.c ---- */

/* Finds out whether `command` can be run in it. */
void session_probe_shell(struct session *s, struct channel *c);

/* ---- session_link.c ---- */

/*
 * An open link, opened now if need be. A reference. timeout_ms bounds the wait for somebody else's attempt
 * and for the backoff; an attempt of one's own takes MANAGER_CONNECT_TIMEOUT_MS at most. ERR_GONE,
 * ERR_CONFLICT (paused), ERR_UNAVAILABLE, ERR_SANDBOX, ERR_TIMEOUT. */
int session_channel(struct session *s, int timeout_ms, struct channel **ret, struct err *e) NODISCARD;
/* The link as it is, a reference; NULL when there is none. Never waits. */
struct channel *session_open_channel(struct session *s) NODISCARD;

/* ---- session_end.c ---- */

/* Marks it to be ended; the first reason counts. who NULL: the manager. Any thread, any lock but the
 * session's own. */
void session_doom(struct session *s, const char *reason, const char *detail);
void session_doom_locked(struct session *s, const char *reason, const char *detail, const struct caller *who);
/* Gives a session that is to end to a worker, unless one is at it or it is too early to try again. */
void session_end_if_due(struct session *s);
/* Waits until nothing of it is left, until a monotonic deadline; false: something still is, or berthd stops.
 */
bool session_wait_gone(struct session *s, int64_t deadline_ms);

/* ---- exec.c: life, replies, the list ---- */

struct exec *exec_new(struct session *s, const char *id) NODISCARD; /* one reference; not listed */
struct exec *exec_ref(struct exec *x) NODISCARD;
/* Gives a reference of the manager's own back. exec_unref() is its client's, and may be a hang-up. Takes
 * NULL. */
void exec_put(struct exec *x);
DEFINE_CLEANUP(struct exec *, exec_put)
void exec_list_add(struct exec *x);
/* Off the list again; the second: it was never started. */
void exec_unlist(struct exec *x);
void exec_unlist_unstarted(struct exec *x);
/* The one on the list with this id, a reference; NULL. */
struct exec *exec_find_listed(struct session *s, const char *id) NODISCARD;
/* As exec_find(), of any kind; one that is not on the list is made from its row. */
int exec_lookup(struct session *s, const char *id, struct exec **ret, struct err *e) NODISCARD;
/* NULL in JSON for 0. */
json_t *exec_time_json(int64_t wall_ms) NODISCARD;
bool exec_has_ended(struct exec *x);
/* References to all listed ones. */
struct exec **execs_all(struct session *s, size_t *ret_count) NODISCARD;
/* The owner ends it: reply, slot, audit row and line. end NULL: the agent did not say; then reason tells. */
void exec_finish(struct exec *x, const struct job_end *end, const char *reason, const char *detail);
/* Stores the ends that the store has refused before. */
void execs_save_again(struct session *s);

/* ---- exec_slot.c ---- */

void exec_slots_init(struct session *s);
/* Waits for one of the session's slots, in order. ERR_LIMIT when the time is over, ERR_CONFLICT when the
 * client hung up. */
int exec_slot_take(struct session *s, int timeout_ms, int client_fd, struct err *e) NODISCARD;
void exec_slot_give(struct session *s); /* nothing was started with it */
/* The command has ended; its place in the agent's table is free only once its end is stored. */
void exec_slot_end(struct session *s);
void exec_slot_saved(struct session *s);
/* So many places more in the agent's table are taken by processes, or fewer. */
void exec_slot_processes(struct session *s, int jobs);
/* Has the agent's table a place for one more command or process? Called with the session's lock held. */
bool exec_table_has_room(const struct session *s);
/* Is this the detail of a job for which the agent had no place after all? */
bool exec_found_no_room(const char *detail);
/* ERR_LIMIT, and what can be done. */
int exec_no_room(struct err *e);

/* ---- process.c ---- */

/* The end of a process is stored: of those that are kept beyond PROCESS_ENDED_MAX the oldest is forgotten.
 * False: this one is not kept, and to be forgotten as a command is. */
bool process_saved(struct exec *x);
/* A place for one more, the oldest ended one is forgotten for it if need be; ERR_LIMIT when too many run. */
int process_slot_take(struct session *s, struct err *e) NODISCARD;
void process_slot_give(struct session *s); /* nothing was started with it */
void process_slot_end(struct session *s);  /* it has ended, and is kept */
/* Adds `ports` to each state of a list (process_ports.c). */
void process_ports_add(struct session *s, json_t *list);
/* The session has ended, and with it what was kept. */
void processes_leave(struct session *s);

/* ---- exec_pump.c: reading ---- */

#define EXEC_LIST_TIMEOUT_MS 5000

/* Sends what stdin there is credit for. */
void exec_push_stdin(struct exec *x);
/* Does it belong to its starter, and is that the calling thread? */
bool exec_is_mine(struct exec *x);
/* Gives one of its starter's to the collector for good. */
void exec_hand_over(struct exec *x);
/* Its number at the agent, as learned over this link. */
void exec_set_number(struct exec *x, struct channel *c, uint32_t number);
const struct channel_job_info *exec_find_tag(const struct channel_job_info *jobs, size_t count,
					     const char *tag);
/* The starter's client is gone: cancels it unless it has a key, and gives it to the collector. */
void exec_abandon(struct exec *x);
/* One look at an exec of the collector's, on its thread; never waits. */
void exec_collect(struct exec *x);
/* After a link opened: the collector's execs are attached again, what nobody knows is dropped. */
void execs_resume(struct session *s, struct channel *c);
/* The sandbox is gone: ends all that run. */
void execs_lost(struct session *s, const char *detail);
/* Makes execs of the rows without an end, at start. */
int execs_load(struct manager *m, struct err *e) NODISCARD;

/* ---- collector.c: the thread that reads the jobs whose starter is gone ---- */

int collector_new(struct collector **ret, struct err *e) NODISCARD;
/* Ends the thread; a wake after that does nothing. */
void collector_stop(struct collector *c);
void collector_free(struct collector *c);
/* The exec has something to read (also: was handed over). Takes a reference meanwhile. Any thread, no lock
 * needed. */
void collector_wake(struct collector *c, struct exec *x);
/* The form that job_set_notify() takes: ctx is the exec. */
void collector_notify(void *exec);

/* ---- janitor.c: the thread that keeps time and compares with the engine ---- */

int janitor_new(struct manager *m, struct janitor **ret, struct err *e) NODISCARD;
/* Ends the threads; a wake after that does nothing. */
void janitor_stop(struct janitor *j);
void janitor_free(struct janitor *j);
void janitor_wake(struct janitor *j, bool reconcile);

/* ---- reconcile.c ---- */

/* Compares the engine with the table both ways, and ends or removes what has no counterpart. */
int reconcile_engine(struct manager *m, struct err *e) NODISCARD;
/* The driver's part, and rows that say they live of sessions that do not. */
int manager_reconcile(struct manager *m, struct err *e) NODISCARD;

/* ---- audit.c ---- */

/* The row of an act, texts borrowed. */
/* A row with the number of refused requests that got none; the janitor's, once a second. */
void manager_tell_unlisted(struct manager *m);
struct audit_row audit_of(const struct caller *who, const char *action, const char *session,
			  const char *subject, const char *outcome, const char *detail);

#endif
