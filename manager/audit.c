/* SPDX-License-Identifier: MIT */
/* Audit rows, and the requests that were refused. */
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "manager/internal.h"

#define REFUSED_PER_S 100 /* rows of refused requests */

struct audit_row audit_of(const struct caller *who, const char *action, const char *session,
			  const char *subject, const char *outcome, const char *detail)
{
	return (struct audit_row){
		.at_ms = clock_wall_ms(),
		.actor = who ? who->actor : "manager",
		.address = who ? who->address : NULL,
		.action = action,
		.session = session,
		.subject = subject,
		.outcome = outcome,
		.detail = detail,
	};
}

void manager_note_refused(struct manager *m, const struct caller *who, const char *session,
			  const char *subject, const struct err *why)
{
	struct audit_row row = audit_of(who, "refused", session, subject, err_name(why->code), why->msg);
	pthread_mutex_lock(&m->lock);
	int64_t second = row.at_ms / 1000;
	m->refused_count = second == m->refused_second ? m->refused_count + 1 : 1;
	m->refused_second = second;
	/* A client in a loop must not fill the disk: then nobody could run anything. */
	bool listed = m->refused_count <= REFUSED_PER_S;
	m->refused_unlisted += !listed;
	pthread_mutex_unlock(&m->lock);
	if (listed)
		store_audit_later(m->store, &row);
}

void manager_tell_unlisted(struct manager *m)
{
	char detail[80];
	pthread_mutex_lock(&m->lock);
	int64_t count = m->refused_unlisted;
	m->refused_unlisted = 0;
	pthread_mutex_unlock(&m->lock);
	if (!count)
		return;
	snprintf(detail, sizeof(detail), "refused requests not listed: %lld", (long long)count);
	struct audit_row row = audit_of(NULL, "refused", NULL, NULL, NULL, detail);
	store_audit_later(m->store, &row);
	LOG(LOG_WARN, detail, F("listed_per_second", REFUSED_PER_S));
}

/* True when this address was not audited within the last second; the oldest entry makes room for a new one.
 */
static bool is_due(struct manager *m, const char *address)
{
	int64_t now = clock_mono_ms();
	size_t at = 0;
	for (size_t i = 0; i < ARRAY_LEN(m->strangers); i++) {
		if (strcmp(m->strangers[i].address, address) == 0) {
			at = i;
			break;
		}
		if (m->strangers[i].audited_ms < m->strangers[at].audited_ms)
			at = i;
	}
	bool same = strcmp(m->strangers[at].address, address) == 0;
	/* An address that pushes another out may be audited no sooner than that one could have been. */
	if (m->strangers[at].audited_ms && now - m->strangers[at].audited_ms < 1000)
		return false;
	if (!same)
		snprintf(m->strangers[at].address, sizeof(m->strangers[at].address), "%s", address);
	m->strangers[at].audited_ms = now;
	return true;
}

void manager_note_unauthorized(struct manager *m, const char *address)
{
	pthread_mutex_lock(&m->lock);
	bool due = is_due(m, address ? address : "");
	pthread_mutex_unlock(&m->lock);
	if (!due)
		return;
	struct audit_row row = audit_of(&(struct caller){ "nobody", address }, "unauthorized", NULL, NULL,
					"unauthorized", NULL);
	store_audit_later(m->store, &row);
	LOG(LOG_WARN, "unauthorized", F("address", address));
}
