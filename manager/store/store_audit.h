/* SPDX-License-Identifier: MIT */
/* store_audit.h - audit rows of a store in memory: lines on stdout. The writer's thread. */
#ifndef BERTH_STORE_AUDIT_H
#define BERTH_STORE_AUDIT_H

#include "manager/store/store.h"

/* Writes {"audit": {...}} as one line. ERR_STORE when stdout does not take it. */
int store_audit_print(const struct audit_row *row, struct err *e) NODISCARD;

#endif
