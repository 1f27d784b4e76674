/* SPDX-License-Identifier: MIT */
/*
 * protocol.h - the frames between manager and agent. Pure: no I/O, no allocation, libc only;
 * linked into both.
 *
 * One byte stream carries all jobs of a sandbox. A frame is 8 bytes of header and at most
 * PROTO_PAYLOAD_MAX bytes of payload, all integers big-endian:
 *
 *     0      1     2         4          8
 *     | type | aux | length  | job id   | payload ...
 *
 * The payload of DATA is raw bytes. Every other payload is a list of fields, each
 * tag (2 bytes), length (4 bytes), value; integers are 8 bytes. Unknown tags are skipped, so a
 * newer peer may add some. A START may span frames (aux PROTO_MORE): its field list is the
 * concatenation of the payloads, PROTO_SPEC_MAX bytes in all.
 *
 * Handshake: the manager sends HELLO (version, generation); PID 1 answers HELLO with its facts
 * and closes every link of a lower generation. A HELLO whose generation is not above the
 * current one is answered by ERROR and a close. Then jobs:
 *
 *     START -> (agent forks the supervisor, it stands before execve) ; GO -> execve
 *     STARTED <- pid              EXIT <- start_failed instead when it could not start
 *     DATA/EOF both ways, WINDOW both ways, SIGNAL/CANCEL ->, GAP <-
 *     EXIT <- once all output of attached streams was sent; FORGET -> frees the agent's record
 *
 * An ended job is kept by the agent until FORGET, so that a manager which was away finds it by
 * LIST and reads it by ATTACH. A lost link changes nothing for a job but that nobody reads it.
 *
 * A job with PROTO_KEEP_RING is not sent as DATA unless somebody attaches: its EXIT comes without its
 * output, and any number of readers ask for pieces by READ. A CHUNK has OFFSET (of its first byte, above
 * the one asked for when that has left the ring), TOTAL (bytes written so far), STATE and CHUNK (the
 * bytes, maybe none); STATE is missing when there is no such job. With WAIT the answer comes when there is
 * a byte at the offset, or the job has ended; or at once, empty, when too many are waiting
 * (PROTO_READS_MAX). The bytes of a CHUNK count against the link's credit.
 *
 * Credit: each side may send DATA for one job and stream while it holds credit for it
 * (PROTO_JOB_WINDOW at START or ATTACH, more by WINDOW) and for the whole link
 * (PROTO_LINK_WINDOW at HELLO, more by WINDOW with job 0). The receiver gives link credit back
 * when it has stored the bytes, job credit when they were consumed. Bytes without credit are a
 * broken peer: the link is closed.
 */
#ifndef BERTH_PROTOCOL_H
#define BERTH_PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PROTO_MAGIC 0x4265727468ull /* "Berth" */
#define PROTO_VERSION 1
#define PROTO_HEADER 8
#define PROTO_PAYLOAD_MAX 32768
#define PROTO_SPEC_MAX (1 << 20)
#define PROTO_JOB_WINDOW (128 * 1024)
#define PROTO_LINK_WINDOW (256 * 1024)
#define PROTO_JOBS_MAX 64    /* jobs of one sandbox, ended ones that were not forgotten included */
#define PROTO_TAG_MAX 40     /* bytes of a job's tag (the manager's exec id) */
#define PROTO_DETAIL_MAX 240 /* bytes of a human text in a frame */
#define PROTO_READS_MAX 64   /* READs of one link that are not answered yet */
#define PROTO_CHUNK_MAX (PROTO_PAYLOAD_MAX - 256) /* bytes of output in a CHUNK */
#define PROTO_LIST_END 0                          /* job id of the LIST frame that closes a list */
#define PROTO_BEAT_S 10    /* each side sends at least one frame so often (PING when idle) */
#define PROTO_BEATS_LOST 3 /* so many silent beats, counted in ticks of at most 1 s, end the link */

/* who may send it: M manager, A agent */
enum proto_type {
	PROTO_HELLO = 1, /* MA job 0 */
	PROTO_START,     /* M  fields of struct proto_spec; aux: PROTO_MORE */
	PROTO_GO,        /* M  the start row is durable: execve */
	PROTO_STARTED,   /* A  PROTO_F_PID; sent when execve has succeeded */
	PROTO_DATA,      /* MA aux: stream; raw bytes, at least one */
	PROTO_WINDOW,    /* MA aux: stream; PROTO_F_BYTES of credit more; job 0 is the whole link */
	PROTO_EOF,       /* MA aux: stream; nothing follows on it */
	PROTO_GAP,       /* A  aux: stream; PROTO_F_BYTES of output at this place were dropped */
	PROTO_SIGNAL,    /* M  PROTO_F_SIGNAL to the job's process group */
	PROTO_CANCEL,    /* M  PROTO_F_GRACE_MS: TERM and CONT, then the whole tree is killed */
	PROTO_ATTACH, /* M  aux: stream; PROTO_F_BYTES: send its output from this offset; resets the stream's
			 credit. Stream 0: this link writes the job's stdin from now on */
	PROTO_LIST,   /* M  empty. A one frame for each job, then one with job PROTO_LIST_END */
	PROTO_EXIT,   /* A  fields of struct proto_exit */
	PROTO_FORGET, /* M  the end is known, or nobody wants to know; ignored for a job that runs and was not
			 cancelled */
	PROTO_ERROR,  /* A  job 0; PROTO_F_DETAIL; the link closes after it */
	PROTO_PING,   /* MA job 0; PROTO_F_COOKIE */
	PROTO_PONG,   /* MA job 0; the PING's cookie */
	PROTO_READ,  /* M  PROTO_F_COOKIE, PROTO_F_OFFSET, PROTO_F_WAIT of 0 or 1: a piece of the job's stdout
		      */
	PROTO_CHUNK, /* A  the answer: the READ's PROTO_F_COOKIE, then as described above */
	PROTO_TYPE_COUNT_
};

enum proto_stream { PROTO_STDIN = 0, PROTO_STDOUT = 1, PROTO_STDERR = 2 };

#define PROTO_MORE 1 /* aux of START: further pieces of the spec follow */

struct proto_frame {
	uint8_t type, aux;
	uint16_t length; /* bytes of payload */
	uint32_t job;
	const uint8_t *payload; /* borrowed from the input */
};

/*
 * Reads one frame from the front of data. Returns the bytes it takes, 0 when more are needed,
 * -1 when it can never become a frame (unknown type, length over the limit, aux or job id that
 * its type does not have). The length is judged as soon as the header is there.
 */
ssize_t proto_parse(const uint8_t *data, size_t len, struct proto_frame *ret);

/* Writes the header of a frame whose payload has `length` bytes. */
void proto_header(uint8_t out[PROTO_HEADER], enum proto_type type, uint8_t aux, uint32_t job,
		  uint16_t length);

/* ---- fields ---- */

enum proto_tag {
	PROTO_F_MAGIC = 1,
	PROTO_F_VERSION,
	PROTO_F_GENERATION, /* of the link; greater wins */
	PROTO_F_AGENT,      /* text: the agent's release */
	PROTO_F_BUILD,      /* bytes: the linker's build id of the running agent */
	PROTO_F_PID,
	PROTO_F_BYTES,
	PROTO_F_SIGNAL,
	PROTO_F_GRACE_MS,
	PROTO_F_COOKIE,
	PROTO_F_DETAIL, /* text for people */
	PROTO_F_OFFSET,
	PROTO_F_TOTAL,
	PROTO_F_WAIT,
	PROTO_F_CHUNK, /* bytes */

	/* facts of a hello */
	PROTO_F_UID = 32,
	PROTO_F_GID,
	PROTO_F_CAP_EFF,
	PROTO_F_CAP_PRM,
	PROTO_F_CAP_BND,
	PROTO_F_CAP_AMB,
	PROTO_F_CAP_INH,
	PROTO_F_NO_NEW_PRIVS,
	PROTO_F_SECCOMP,         /* mode of /proc/self/status: 2 is filter */
	PROTO_F_SECCOMP_FILTERS, /* how many; 0 where the kernel does not say */
	PROTO_F_ROOT_RO,         /* 1: the root is mounted read-only */
	PROTO_F_CGROUP,          /* 1 or 2 */
	PROTO_F_PIDS_MAX,        /* 0 means unlimited, here and below */
	PROTO_F_MEMORY_MAX,      /* bytes */
	PROTO_F_SWAP_MAX,        /* bytes of swap on top of memory; UINT64_MAX means unknown */
	PROTO_F_CPU_MILLI,       /* thousandths of a cpu */
	PROTO_F_SHM_RMID_FORCED,
	PROTO_F_MOUNT,     /* repeated: a nested field list, one for each mount the agent can write to */
	PROTO_F_INTERFACE, /* repeated, text: network interfaces, lo included */
	PROTO_F_START_NS, /* when this agent started, since the kernel did: no other run of it has the same */

	/* inside PROTO_F_MOUNT */
	PROTO_F_PATH = 64,
	PROTO_F_FSTYPE,
	PROTO_F_SIZE,   /* bytes, by statfs */
	PROTO_F_INODES, /* by statfs */
	PROTO_F_FLAGS,  /* PROTO_MOUNT_* */
	PROTO_F_WRITE,  /* errno of a test write as the agent's uid, 0 when it worked */

	/* job spec */
	PROTO_F_TAG = 96,   /* text: the manager's name of the job, told back by LIST */
	PROTO_F_ARG,        /* repeated, bytes; either these or PROTO_F_SCRIPT */
	PROTO_F_SCRIPT,     /* bytes: run by the shell */
	PROTO_F_SHELL,      /* text: name or path of the shell for a script */
	PROTO_F_ENV,        /* repeated, bytes "K=V": the whole environment */
	PROTO_F_CWD,        /* bytes */
	PROTO_F_TIMEOUT_MS, /* 0 means none */
	PROTO_F_KEEP,       /* enum proto_keep */
	PROTO_F_HEAD,       /* bytes of output kept from the start, per stream */
	PROTO_F_TAIL,       /* bytes of output kept at the end, per stream */
	PROTO_F_JOB_FLAGS,  /* PROTO_JOB_* */
	PROTO_F_BUILTIN, /* text: what the agent does itself, with the arguments (builtin.h); no script then
			  */

	/* end of a job */
	PROTO_F_REASON = 128, /* enum proto_reason */
	PROTO_F_CODE,         /* exit code; there only when the reason is exited */
	PROTO_F_ERRNO,        /* of start_failed */
	PROTO_F_WALL_US,
	PROTO_F_USER_US, /* of all reaped descendants, as is SYS_US */
	PROTO_F_SYS_US,
	PROTO_F_PEAK_BYTES, /* resident peak of the largest reaped descendant */
	PROTO_F_STDOUT_BYTES,
	PROTO_F_STDERR_BYTES,
	PROTO_F_DROPPED_BYTES, /* of both streams */
	PROTO_F_LINGERING,     /* descendants that still run */
	PROTO_F_SURVIVORS, /* processes that a kill could not end in 5 s: the sandbox is not to be trusted */

	/* LIST */
	PROTO_F_STATE = 160, /* enum proto_state */
	PROTO_F_AGE_MS,      /* since START */
	PROTO_F_STDIN_BYTES, /* of stdin taken so far; a manager that attaches goes on from here */
	PROTO_F_STDIN_OPEN,  /* 1: it takes more; 0: it was closed by either side, or there is none */

	/* output of a built-in (builtin.h) */
	PROTO_F_ENTRY = 192, /* a nested field list */
	PROTO_F_DONE,        /* likewise */
	PROTO_F_TYPE,        /* enum builtin_type */
	PROTO_F_MODE,
	PROTO_F_MTIME_NS,
	PROTO_F_CTIME_NS,
	PROTO_F_INODE,
	PROTO_F_TARGET,
	PROTO_F_ENTRIES,
	PROTO_F_REFUSED,
	PROTO_F_TRUNCATED,
};

#define PROTO_MOUNT_NOSUID 1u
#define PROTO_MOUNT_NODEV 2u
#define PROTO_MOUNT_NOEXEC 4u

/* What happens to output that nobody has read yet; head and tail are always kept for ATTACH. */
enum proto_keep {
	PROTO_KEEP_BLOCK, /* a reader that stalls stalls the job; without a reader as RING */
	PROTO_KEEP_ENDS,  /* never stalls: head at once, tail when the job ended, a GAP between */
	PROTO_KEEP_RING,  /* never stalls: the last TAIL bytes, read by READ; a GAP where an attached reader
			     fell behind */
};

#define PROTO_JOB_STDIN 1u /* has a stdin; otherwise it is /dev/null */
#define PROTO_JOB_SPLIT 2u /* stderr is a stream of its own; otherwise it goes into stdout's pipe */

enum proto_state { PROTO_JOB_STARTING, PROTO_JOB_RUNNING, PROTO_JOB_ENDED };

enum proto_reason {
	PROTO_EXITED,
	PROTO_SIGNALLED,
	PROTO_TIMEOUT,
	PROTO_OUTPUT_LIMIT, /* reserved: output is capped, and its job goes on */
	PROTO_OOM,
	PROTO_CANCELLED,
	PROTO_SANDBOX_LOST, /* set by the manager only */
	PROTO_START_FAILED,
	PROTO_REASON_COUNT_
};

/* "exited", "signalled", ...; NULL for a number that is none. */
const char *proto_reason_name(unsigned reason);
/* The detail of a start_failed: there are PROTO_JOBS_MAX jobs already. */
#define PROTO_TOO_MANY_JOBS "too_many_jobs"

#define PROTO_FIELD_HEADER 6 /* bytes before a field's value */

struct proto_field {
	uint16_t tag;
	uint32_t len;
	const uint8_t *value; /* borrowed */
};

/* A walk over a field list: `struct proto_cursor c = { payload, length };` */
struct proto_cursor {
	const uint8_t *at;
	size_t left;
};

/* 1 and *ret, 0 at the end, -1 when the list is broken. */
int proto_next(struct proto_cursor *c, struct proto_field *ret);

/* The integer in a field; -1 unless it has 8 bytes. */
int proto_u64(const struct proto_field *f, uint64_t *ret);

/* Finds the first field with this tag and reads it as integer; -1 when absent or broken. */
int proto_find_u64(const struct proto_frame *frame, uint16_t tag, uint64_t *ret);

/* A field list being written into the caller's memory. */
struct proto_writer {
	uint8_t *out;
	size_t size, used;
	bool failed; /* something did not fit; then nothing more is added */
};

void proto_put(struct proto_writer *w, uint16_t tag, const void *value, size_t len);
void proto_put_u64(struct proto_writer *w, uint16_t tag, uint64_t value);
void proto_put_text(struct proto_writer *w, uint16_t tag, const char *text);

/* ---- decoded payloads; pointers are borrowed from the payload and NOT NUL-terminated ---- */

struct proto_text {
	const char *at; /* NULL when absent */
	size_t len;
};

struct proto_exit {
	enum proto_reason reason;
	int code;   /* valid only with PROTO_EXITED, 0..255 */
	int signal; /* the signal that ended it, 0 if none */
	int sys;    /* errno of start_failed, 0 if none */
	uint64_t wall_us, user_us, sys_us, peak_bytes;
	uint64_t stdout_bytes, stderr_bytes, dropped_bytes;
	unsigned lingering, survivors;
	struct proto_text detail;
};

/* 0, or -1 when a field is missing, out of its range or broken. The writer form is its inverse. */
int proto_exit_decode(const struct proto_frame *frame, struct proto_exit *ret);
void proto_exit_encode(struct proto_writer *w, const struct proto_exit *exit);

/* A piece of a job's output. */
struct proto_chunk {
	uint64_t cookie;
	bool known; /* there is such a job; the rest is 0 otherwise */
	enum proto_state state;
	uint64_t offset, total;
	const uint8_t *bytes;
	size_t len;
};

/*
 * 0, or -1 when a field is missing, out of its range or broken, or the bytes do not lie within the total.
 * The writer form is its inverse.
 */
int proto_chunk_decode(const struct proto_frame *frame, struct proto_chunk *ret);
void proto_chunk_encode(struct proto_writer *w, const struct proto_chunk *chunk);

/* A job spec. Lists (arguments, environment) stay in the payload: walk them by tag. */
struct proto_spec {
	struct proto_text tag, script, shell, cwd, builtin;
	uint64_t timeout_ms;
	enum proto_keep keep;
	uint32_t head_bytes, tail_bytes; /* each at most PROTO_KEEP_MAX */
	unsigned flags;                  /* PROTO_JOB_* */
	unsigned arg_count, env_count;
	size_t arg_bytes, env_bytes; /* sums, a NUL for each counted in */
};
#define PROTO_KEEP_MAX (64u << 20)

/*
 * Checks a whole spec (the concatenated pieces): lengths, ranges, no NUL inside a text, either
 * arguments or a script. 0, or -1 with *ret_why naming the fault (a constant).
 */
int proto_spec_decode(const uint8_t *data, size_t len, struct proto_spec *ret, const char **ret_why);

#endif
