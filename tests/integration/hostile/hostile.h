/* SPDX-License-Identifier: MIT */
/*
 * hostile.h - what an attacker inside a sandbox would run. One static program; the first argument
 * names the attack, each prints what it got as words a test can compare. It is delivered into the
 * sandbox by the tests and has no part in Berth.
 */
#ifndef HOSTILE_H
#define HOSTILE_H

#include <stdbool.h>
#include <stddef.h>

/* An attack; argv[0] is its name. The result is the exit status. */
typedef int attack_fn(int argc, char **argv);

attack_fn calls_run;      /* NAME...: forbidden system calls, "NAME ERRNO" for each */
attack_fn calls_foreign;  /* i386 | x32: a system call of another architecture */
attack_fn calls_ids;      /* PROGRAM...: the ids and capabilities that each has right after execve */
attack_fn net_reach;      /* ADDRESS...: "ADDRESS icmp|tcp|udp ERRNO" */
attack_fn net_loopback;   /* a connection to itself over 127.0.0.1 */
attack_fn walk_writable;  /* every path that can be written or created in, one a line */
attack_fn spy_on;         /* PID: what of it can be read, changed, or traced, one word a line */
attack_fn spy_race;       /* COMM ARGUMENT COUNT: seizes so many such processes; "seen N seized N" */
attack_fn spy_starts;     /* COUNT PROGRAM: starts it so often */
attack_fn signal_all;     /* PID: every signal by kill, tgkill, sigqueue, and with a forged sender */
attack_fn signal_oppress; /* PID: lower its limits and its priority; "WHAT ERRNO" */
attack_fn agent_connect;  /* says hello with the highest generation; what came back */
attack_fn agent_bind;     /* takes the name of the socket */
attack_fn agent_flood;    /* PROCESSES SECONDS: connects without end */
attack_fn bomb_fork;      /* forks without end */
attack_fn bomb_daemons;   /* the same with setsid and a parent that ends */
attack_fn bomb_memory;    /* MEGABYTES [PROCESSES [OOM_SCORE_ADJ]]: touches so much in each */
attack_fn bomb_shm;       /* MEGABYTES [hold]: of SysV shared memory, attached by nobody or all of it */
attack_fn bomb_ipc;       /* SysV message queues and semaphores, without end */
attack_fn bomb_bytes;     /* DIR...: one file until it is full; "DIR ERRNO" */
attack_fn bomb_files;     /* COUNT LENGTH DIR...: empty files, their names so long; "DIR ERRNO COUNT" */
attack_fn bomb_fds;       /* PROCESSES: each opens until no more go, then waits */
attack_fn bomb_zombies;   /* dead children, waited for by nobody, until no more go */

/* "EPERM", or "ok" for 0. */
const char *word_of(int sys);

/* The number in a text of digits. */
long number_of(const char *text);

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

#endif
