/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "cli/cmd.h"
#include "cli/options.h"
#include "tests/unit/rows.h"

#define WORDS_MAX 8
#define EVERY_GROUP ~0u

/* ---- one option, one value ---- */

static const struct number_row {
	const char *name, *words[WORDS_MAX];
	size_t offset;
	int64_t want;
} numbers[] = {
	{ "a size is read in MiB", { "--memory", "512m" }, offsetof(struct options, memory_mb), 512 },
	{ "a value may follow an equals sign", { "--memory=4g" }, offsetof(struct options, memory_mb), 4096 },
	{ "a value may stick to a letter", { "-m2g" }, offsetof(struct options, memory_mb), 2048 },
	{ "a value may follow a letter", { "-m", "2g" }, offsetof(struct options, memory_mb), 2048 },
	{ "the last of several counts", { "-m1g", "-m2g" }, offsetof(struct options, memory_mb), 2048 },
	{ "processors are read in thousandths",
	  { "--cpus", "0.5" },
	  offsetof(struct options, cpu_milli),
	  500 },
	{ "a count is read as it is", { "--pids", "64" }, offsetof(struct options, pids), 64 },
	{ "a duration is read in seconds", { "--ttl", "2h" }, offsetof(struct options, ttl_s), 7200 },
	{ "0 is a duration where it means none", { "--idle", "0" }, offsetof(struct options, idle_s), 0 },
	{ "what is absent is -1", { NULL }, offsetof(struct options, timeout_s), -1 },
};

static void number_test(void **state)
{
	const struct number_row *row = *state;
	struct options o;
	struct err e = { 0 };
	assert_int_equal(options_parse(EVERY_GROUP, -1, (char *const *)row->words, &o, &e), 0);
	assert_int_equal(*(int64_t *)(void *)((char *)&o + row->offset), row->want);
}

/* ---- refusals ---- */

static const struct refusal_row {
	const char *name, *words[WORDS_MAX];
	unsigned groups;
	const char *want; /* is in the message */
} refusals[] = {
	{ "an unknown option", { "--frobnicate" }, EVERY_GROUP, "unknown option --frobnicate" },
	{ "an unknown letter", { "-Z" }, EVERY_GROUP, "unknown option -Z" },
	{ "a mistyped option is told the right one",
	  { "--memroy", "1g" },
	  EVERY_GROUP,
	  "did you mean --memory?" },
	{ "an option of another command", { "--memory", "1g" }, OPTIONS_COMMON, "unknown option --memory" },
	{ "a letter of another command", { "-m", "1g" }, OPTIONS_COMMON, "unknown option -m" },
	{ "an option without its value", { "--memory" }, EVERY_GROUP, "--memory SIZE" },
	{ "a flag with a value", { "--json=1" }, EVERY_GROUP, "--json takes no value" },
	{ "a size that is none", { "--memory", "x" }, EVERY_GROUP, "--memory: must be a size" },
	{ "a size that is no whole MiB", { "--memory", "1000" }, EVERY_GROUP, "whole MiB" },
	{ "no memory", { "--memory", "0" }, EVERY_GROUP, "from 1 to" },
	{ "more memory than there can be", { "--memory", "9999999g" }, EVERY_GROUP, "from 1 to" },
	{ "no processor", { "--cpus", "0" }, EVERY_GROUP, "--cpus: must be" },
	{ "a negative count", { "--pids", "-1" }, EVERY_GROUP, "--pids: must be" },
	{ "no timeout at all", { "--timeout", "0" }, EVERY_GROUP, "--timeout: must be" },
	{ "a duration that is none", { "--ttl", "soon" }, EVERY_GROUP, "--ttl: must be" },
};

static void refusal_test(void **state)
{
	const struct refusal_row *row = *state;
	struct options o;
	struct err e = { 0 };
	assert_int_equal(options_parse(row->groups, -1, (char *const *)row->words, &o, &e), -ERR_INVALID);
	assert_non_null(strstr(e.msg, row->want));
}

/* ---- what is operand, what is command ---- */

static const struct split_row {
	const char *name, *words[WORDS_MAX];
	int before;
	size_t operands;
	const char *command; /* its first word; NULL: none */
	bool json;
} splits[] = {
	{ "dashes begin the command", { "--json", "--", "ls", "-l" }, 0, 0, "ls", true },
	{ "the first operand begins the command", { "ls", "--json" }, 0, 0, "ls", false },
	{ "the second one, after a session", { "s", "--json", "ls", "-h" }, 1, 1, "ls", true },
	{ "dashes after a session", { "s", "--", "--json" }, 1, 1, "--json", false },
	{ "dashes within a command are its own", { "--", "a", "--", "b" }, 0, 0, "a", false },
	{ "dashes with nothing behind are no command", { "--" }, 0, 0, NULL, false },
	{ "without a command dashes end the options", { "a", "--", "--json" }, -1, 2, NULL, false },
	{ "options may stand between operands", { "a", "--json", "b" }, -1, 2, NULL, true },
	{ "one dash is an operand", { "-" }, -1, 1, NULL, false },
	{ "nothing is nothing", { NULL }, -1, 0, NULL, false },
};

static void split_test(void **state)
{
	const struct split_row *row = *state;
	struct options o;
	struct err e = { 0 };
	assert_int_equal(options_parse(EVERY_GROUP, row->before, (char *const *)row->words, &o, &e), 0);
	assert_int_equal(o.operands.count, row->operands);
	assert_int_equal(o.json, row->json);
	assert_int_equal(o.command != NULL, row->command != NULL);
	if (row->command && o.command)
		assert_string_equal(o.command[0], row->command);
}

static void seen_test(void **state)
{
	(void)state;
	const char *words[] = { "-e", "A=1", "--memory", "1g", NULL };
	struct options o;
	struct err e = { 0 };
	assert_int_equal(options_parse(EVERY_GROUP, -1, (char *const *)words, &o, &e), 0);
	assert_string_equal(options_seen(&o, OPTIONS_CREATE, OPTIONS_EXEC), "memory");
	assert_string_equal(options_seen(&o, OPTIONS_EXEC, 0), "env");
	assert_null(options_seen(&o, OPTIONS_LIST, OPTIONS_CREATE));
}

static void bound_test(void **state)
{
	(void)state;
	static const char *words[TEXTS_MAX + 2];
	for (size_t i = 0; i <= TEXTS_MAX; i++)
		words[i] = "x";
	struct options o;
	struct err e = { 0 };
	assert_int_equal(options_parse(EVERY_GROUP, -1, (char *const *)words, &o, &e), -ERR_TOO_LARGE);
}

/* ---- the tables themselves ---- */

static void rows_are_unique_test(void **state)
{
	(void)state;
	size_t count = 0;
	const struct option_row *rows = options_rows(&count);
	for (size_t i = 0; i < count; i++) {
		assert_true(rows[i].groups != 0 && *rows[i].help);
		assert_int_equal(rows[i].value == NULL, rows[i].kind == OPTION_FLAG);
		for (size_t j = 0; j < i; j++) {
			assert_string_not_equal(rows[i].name, rows[j].name);
			assert_true(!rows[i].letter || rows[i].letter != rows[j].letter);
		}
	}
}

static void commands_are_whole_test(void **state)
{
	(void)state;
	size_t count = 0;
	const struct command *all = commands_all(&count);
	for (size_t i = 0; i < count; i++) {
		const struct command *c = &all[i];
		assert_non_null(c->run);
		assert_true(*c->help && c->usage[0] == ' ');
		assert_int_equal(strncmp(c->example, "berth ", 6) != 0 && !strstr(c->example, "| berth "), 0);
		assert_true(c->groups & OPTIONS_COMMON);
		assert_true(c->operands_min <= c->operands_max);
		assert_ptr_equal(commands_find(c->name), c);
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(c->name, all[j].name);
	}
}

static const struct near_row {
	const char *name, *word, *want;
} nears[] = {
	{ "a letter is missing", "crate", "create" },
	{ "letters are swapped", "ehlp", "help" },
	{ "a letter is too much", "exxec", "exec" },
	{ "a beginning", "vers", "version" },
	{ "nothing is near", "frobnicate", NULL },
	{ "a hidden command is not offered", "complet", NULL },
	{ "a very long word", "rrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrun", NULL },
};

static void near_test(void **state)
{
	const struct near_row *row = *state;
	const char *near = commands_nearest(row->word);
	assert_int_equal(near != NULL, row->want != NULL);
	if (near)
		assert_string_equal(near, row->want);
}

int main(void)
{
	struct rows r = { 0 };
	ROWS(&r, number_test, numbers);
	ROWS(&r, refusal_test, refusals);
	ROWS(&r, split_test, splits);
	ROWS(&r, near_test, nears);
	rows_one(&r, "which options were given is known by group", seen_test);
	rows_one(&r, "the number of words is bounded", bound_test);
	rows_one(&r, "options: names and letters are unique, flags have no value", rows_are_unique_test);
	rows_one(&r, "commands: each has a function, a help and an example", commands_are_whole_test);
	return rows_run(&r, "cli options");
}
