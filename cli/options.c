/* SPDX-License-Identifier: MIT */
#include "cli/options.h"

#include <string.h>

#include "base/parse.h"
#include "cli/suggest.h"

#define AT(field) offsetof(struct options, field)
#define DAYS(n) ((int64_t)(n)*86400)
#define MIB ((int64_t)1 << 20)

/* clang-format off */
static const struct option_row rows[] = {
	{ "image", 0, "IMAGE", "container image (default: the server's)", OPTION_TEXT, AT(image), 0, 0, OPTIONS_CREATE },
	{ "name", 0, "NAME", "the name of the session, or of the process", OPTION_TEXT, AT(name), 0, 0, OPTIONS_CREATE | OPTIONS_LIST | OPTIONS_START },
	{ "label", 'l', "K=V", "a label; may be repeated", OPTION_TEXTS, AT(labels), 0, 0, OPTIONS_CREATE | OPTIONS_LIST },
	{ "memory", 'm', "SIZE", "memory, such as 512m or 4g", OPTION_MB, AT(memory_mb), 1, 1 << 20, OPTIONS_CREATE },
	{ "cpus", 0, "N", "processors, such as 0.5 or 2", OPTION_MILLI, AT(cpu_milli), 1, 1024000, OPTIONS_CREATE },
	{ "pids", 0, "N", "processes and threads at once", OPTION_COUNT, AT(pids), 1, 1 << 22, OPTIONS_CREATE },
	{ "network", 0, "NAME", "an engine network that the administrator listed (default: none)", OPTION_TEXT, AT(network), 0, 0, OPTIONS_CREATE },
	{ "workspace", 0, "KIND[:NAME]", "volume (default) or tmpfs; named:NAME, host:NAME where the server has them", OPTION_TEXT, AT(workspace), 0, 0, OPTIONS_CREATE },
	{ "workspace-size", 0, "SIZE", "size of the workspace", OPTION_MB, AT(workspace_mb), 1, 1 << 30, OPTIONS_CREATE },
	{ "isolation", 0, "NAME", "runc, gvisor or a runtime of the engine", OPTION_TEXT, AT(isolation), 0, 0, OPTIONS_CREATE },
	{ "ttl", 0, "TIME", "the session ends after this, such as 30m", OPTION_DURATION, AT(ttl_s), 0, DAYS(3650), OPTIONS_CREATE },
	{ "idle", 0, "TIME", "the session ends when unused for so long", OPTION_DURATION, AT(idle_s), 0, DAYS(3650), OPTIONS_CREATE },
	{ "session", 's', "SESSION", "run in this session instead of a new one", OPTION_TEXT, AT(session), 0, 0, OPTIONS_RUN },
	{ "rm", 0, NULL, "remove the session afterwards", OPTION_FLAG, AT(rm), 0, 0, OPTIONS_RUN },
	{ "shell", 'c', "TEXT", "run TEXT in the sandbox's shell instead of CMD", OPTION_TEXT, AT(shell), 0, 0, OPTIONS_EXEC | OPTIONS_START },
	{ "env", 'e', "K[=V]", "environment variable; K alone takes its value from here; may be repeated", OPTION_TEXTS, AT(env), 0, 0, OPTIONS_CREATE | OPTIONS_EXEC | OPTIONS_START },
	{ "cwd", 'w', "DIR", "folder to start in (default: the workspace)", OPTION_TEXT, AT(cwd), 0, 0, OPTIONS_EXEC | OPTIONS_START },
	{ "timeout", 't', "TIME", "end the command after this, such as 90 or 5m", OPTION_DURATION, AT(timeout_s), 1, DAYS(365), OPTIONS_EXEC },
	{ "no-stdin", 'n', NULL, "do not pass a piped stdin", OPTION_FLAG, AT(no_stdin), 0, 0, OPTIONS_EXEC },
	{ "state", 0, "STATE", "only sessions in this state", OPTION_TEXT, AT(state), 0, 0, OPTIONS_LIST },
	{ "limit", 0, "N", "at most so many", OPTION_COUNT, AT(limit), 1, 100000, OPTIONS_LIST | OPTIONS_FILES },
	{ "quiet", 'q', NULL, "ids or paths only; no progress", OPTION_FLAG, AT(quiet), 0, 0, OPTIONS_LIST | OPTIONS_FILES | OPTIONS_COPY | OPTIONS_ARCHIVE },
	{ "follow", 'f', NULL, "go on until the process ends", OPTION_FLAG, AT(follow), 0, 0, OPTIONS_LOGS },
	{ "grace", 0, "TIME", "between SIGTERM and SIGKILL (default: 5 s)", OPTION_DURATION, AT(grace_s), 0, 60, OPTIONS_STOP },
	{ "recursive", 'r', NULL, "what is in folders, too, but for .git and node_modules", OPTION_FLAG, AT(recursive), 0, 0, OPTIONS_FILES },
	{ "output", 'o', "FILE", "write it there (default: stdout)", OPTION_TEXT, AT(output), 0, 0, OPTIONS_ARCHIVE },
	{ "format", 0, "FORMAT", "tar.gz (default), tar.zst or tar", OPTION_TEXT, AT(format), 0, 0, OPTIONS_ARCHIVE },
	{ "all", 0, NULL, "remove every session", OPTION_FLAG, AT(all), 0, 0, OPTIONS_REMOVE },
	{ "yes", 'y', NULL, "do not ask", OPTION_FLAG, AT(yes), 0, 0, OPTIONS_REMOVE },
	{ "json", 0, NULL, "print JSON", OPTION_FLAG, AT(json), 0, 0, OPTIONS_COMMON },
	{ "address", 0, "URL", "the server (BERTH_ADDRESS; default http://127.0.0.1:8080)", OPTION_TEXT, AT(address), 0, 0, OPTIONS_COMMON },
	{ "token", 0, "TOKEN", "its token (better: BERTH_TOKEN or the config file)", OPTION_TEXT, AT(token), 0, 0, OPTIONS_COMMON },
	{ "help", 'h', NULL, "show this", OPTION_FLAG, AT(help), 0, 0, OPTIONS_COMMON },
};
/* clang-format on */

_Static_assert(ARRAY_LEN(rows) <= 64, "options.seen has a bit for each row");

const struct option_row *options_rows(size_t *ret_count)
{
	*ret_count = ARRAY_LEN(rows);
	return rows;
}

static bool is_number(enum option_kind kind)
{
	return kind >= OPTION_COUNT;
}

static void init(struct options *o)
{
	*o = (struct options){ 0 };
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (is_number(rows[i].kind))
			*(int64_t *)(void *)((char *)o + rows[i].offset) = -1;
}

static int texts_add(struct texts *list, const char *text, struct err *e)
{
	if (list->count == TEXTS_MAX)
		return err_set(e, ERR_TOO_LARGE, "more than %d are given", TEXTS_MAX);
	list->at[list->count++] = text;
	return 0;
}

/* The unit that each kind of number is read in; -1: the reader checks the range itself. */
static int read_number(const struct option_row *row, const char *text, int64_t *ret, struct err *e)
{
	int64_t v = 0;
	int rc = 0;
	if (row->kind == OPTION_COUNT)
		return parse_int(text, row->min, row->max, ret, e);
	if (row->kind == OPTION_MILLI)
		return parse_milli(text, row->min, row->max, ret, e);
	rc = row->kind == OPTION_MB ? parse_bytes(text, &v, e) : parse_duration_s(text, &v, e);
	if (rc)
		return rc;
	if (row->kind == OPTION_MB) {
		if (v % MIB)
			return err_set(e, ERR_INVALID, "must be whole MiB, such as 512m");
		v /= MIB;
	}
	if (v < row->min || v > row->max)
		return err_set(e, ERR_INVALID, "must be from %lld to %lld %s", (long long)row->min,
			       (long long)row->max, row->kind == OPTION_MB ? "MiB" : "seconds");
	*ret = v;
	return 0;
}

static int set(struct options *o, const struct option_row *row, const char *value, struct err *e)
{
	void *at = (char *)o + row->offset;
	int rc = 0;
	if (row->kind == OPTION_FLAG)
		*(bool *)at = true;
	else if (row->kind == OPTION_TEXT)
		*(const char **)at = value;
	else if (row->kind == OPTION_TEXTS)
		rc = texts_add(at, value, e);
	else
		rc = read_number(row, value, at, e);
	if (rc)
		return err_wrap(e, "--%s", row->name);
	o->seen |= 1ull << (row - rows);
	return 0;
}

/* The row of "--name" or "--name=value" (ret_value), or of "-n" or "-nvalue". */
static const struct option_row *find(unsigned groups, const char *word, const char **ret_value)
{
	bool is_long = word[1] == '-';
	const char *name = word + 1 + is_long;
	size_t len = is_long ? strcspn(name, "=") : 1;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct option_row *row = &rows[i];
		bool same = is_long ? strlen(row->name) == len && !memcmp(row->name, name, len)
				    : row->letter == *name;
		if (!same || !(row->groups & groups))
			continue;
		*ret_value = is_long ? (name[len] ? name + len + 1 : NULL) : (name[1] ? name + 1 : NULL);
		return row;
	}
	return NULL;
}

static int unknown(unsigned groups, const char *word, struct err *e)
{
	struct suggest s = suggest_for(word + (word[1] == '-' ? 2 : 1));
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (rows[i].groups & groups)
			suggest_offer(&s, rows[i].name);
	const char *near = word[1] == '-' ? suggest_best(&s) : NULL;
	if (near)
		return err_set(e, ERR_INVALID, "unknown option %s; did you mean --%s?", word, near);
	return err_set(e, ERR_INVALID, "unknown option %s", word);
}

/* One option; *words moves to the last word it took. */
static int parse_option(unsigned groups, char *const **words, struct options *o, struct err *e)
{
	const char *value = NULL;
	const struct option_row *row = find(groups, **words, &value);
	if (!row)
		return unknown(groups, **words, e);
	if (row->kind == OPTION_FLAG && value)
		return err_set(e, ERR_INVALID, "--%s takes no value", row->name);
	if (row->kind != OPTION_FLAG && !value) {
		value = (*words)[1];
		if (!value)
			return err_set(e, ERR_INVALID, "--%s needs a value: --%s %s", row->name, row->name,
				       row->value);
		(*words)++;
	}
	return set(o, row, value, e);
}

int options_parse(unsigned groups, int operands_before_command, char *const *words, struct options *ret,
		  struct err *e)
{
	init(ret);
	bool options_ended = false;
	for (; *words; words++) {
		const char *word = *words;
		int rc = 0;
		if (!options_ended && !strcmp(word, "--")) {
			options_ended = true;
			if (operands_before_command < 0)
				continue;
			ret->command = words[1] ? words + 1 : NULL;
			return 0;
		}
		if (!options_ended && word[0] == '-' && word[1]) {
			rc = parse_option(groups, &words, ret, e);
		} else if (operands_before_command >= 0 &&
			   ret->operands.count == (size_t)operands_before_command) {
			ret->command = words;
			return 0;
		} else {
			rc = texts_add(&ret->operands, word, e);
		}
		if (rc)
			return rc;
	}
	return 0;
}

const char *options_seen(const struct options *o, unsigned groups, unsigned not_groups)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if ((o->seen >> i & 1) && (rows[i].groups & groups) && !(rows[i].groups & not_groups))
			return rows[i].name;
	return NULL;
}
