/* SPDX-License-Identifier: MIT */
/*
 * findings.h - what pack and unpack have to say when they are done: entries and a DONE.
 *
 * They are held in memory until then: whoever sends an archive reads nothing before its end, and who takes
 * one reads nothing else, so that neither may be made to wait for a report.
 */
#ifndef BERTH_AGENT_FINDINGS_H
#define BERTH_AGENT_FINDINGS_H

#include "runtime/agent/report.h"

struct findings {
	int fd;                   /* a memfd */
	unsigned reported;        /* entries, at most BUILTIN_REPORT_MAX */
	struct builtin_done done; /* counted by the owner, but for `refused` */
	char detail[PROTO_DETAIL_MAX];
	struct report report;
};

/* 0 or -1 with errno. */
int findings_init(struct findings *f);

/* An entry that was refused or left out, and why. */
void findings_refuse(struct findings *f, const char *path, int sys, const char *why);

/* What ended it early, unless something has already: an errno, and two texts of which one may be NULL. */
void findings_end(struct findings *f, int sys, const char *what, const char *why);

/* Writes it all. 0 or -1. */
int findings_tell(struct findings *f, int fd);

#endif
