/* SPDX-License-Identifier: MIT */
#include "manager/store/store_audit.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"

/* Whole, or the row is not kept: a line that is cut is none. */
static int write_all(const char *text, size_t len)
{
	while (len > 0) {
		ssize_t n = write(STDOUT_FILENO, text, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		text += n;
		len -= (size_t)n;
	}
	return 0;
}

int store_audit_print(const struct audit_row *row, struct err *e)
{
	const struct {
		const char *key, *value;
	} texts[] = {
		{ "actor", row->actor },     { "address", row->address }, { "action", row->action },
		{ "session", row->session }, { "exec", row->exec },       { "subject", row->subject },
		{ "outcome", row->outcome }, { "detail", row->detail },
	};
	char at[CLOCK_TEXT_SIZE];
	clock_format(row->at_ms, at);
	_cleanup_json_ json_t *fields = json_pack("{s:s}", "at", at);
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		if (texts[i].value)
			json_object_set_new(fields, texts[i].key,
					    json_string_lossy(texts[i].value, strlen(texts[i].value)));
	_cleanup_json_ json_t *all = json_pack("{s:O}", "audit", fields);
	_cleanup_free_ char *json = json_text(all);
	_cleanup_free_ char *line = xasprintf("%s\n", json);
	int r = write_all(line, strlen(line));
	return r < 0 ? err_sys(e, ERR_STORE, -r, "cannot write the audit row to stdout") : 0;
}
