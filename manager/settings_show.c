/* SPDX-License-Identifier: MIT */
/* The table of settings as text: --help, docs/CONFIGURATION.md, --print-config. */
#include <string.h>

#include "base/utf8.h"
#include "manager/settings_table.h"

static const char usage[] =
	"Usage: berthd [FLAG VALUE]...\n"
	"Gives AI agents and CI jobs one hardened container per session, over HTTP.\n\n"
	"  --config FILE       lines of `key = value`, each key a flag with underscores (or SANDBOX_CONFIG)\n"
	"  --print-config      the settings in force and where each came from\n"
	"  --version\n"
	"  --help\n\n"
	"A flag wins over its variable, that over the file, that over the default.\n";

static const char preface[] =
	"<!-- Made from the table in manager/settings_table.c by `berthd --print-docs`; do not edit. -->\n"
	"# Configuration\n\n"
	"Each setting of `berthd` can be given by a flag, an environment variable, or a line of the file "
	"that `--config` or\n"
	"`SANDBOX_CONFIG` names, and has a default. The flag wins over the variable, that over the file, "
	"that over the default. An\n"
	"empty value is none. `berthd --print-config` shows what is in force and where it came from. Unknown "
	"flags, unknown keys, and\n"
	"unknown variables that begin with `SANDBOX_` or `ATLAS_` stop the start.\n\n"
	"The file has lines of `key = value`; lines that begin with `#` are comments. A value has no quotes "
	"and goes to the end of\n"
	"its line:\n\n"
	"```\n"
	"listen = 127.0.0.1:8080\n"
	"admin_token_file = /etc/berth/admin-token\n"
	"```\n\n"
	"Sizes are bytes or carry `k`, `m`, `g` (powers of 1024); times are seconds or carry `s`, `m`, `h`, "
	"`d`.\n\n"
	"A secret is given by its variable, by the file, or by the name of a file that holds it "
	"(`NAME_FILE`, `--name-file`,\n"
	"`name_file`), never by a flag, which everyone on the machine can read. A file that holds a secret "
	"must be a regular file\n"
	"that nobody but its owner may write and that others may not read (`chmod 600`; 640 is fine), unless "
	"it lies in\n"
	"`/run/secrets/`, where container engines put theirs.\n";

static bool is_number(const struct setting *row)
{
	return row->kind != SETTING_TEXT;
}

/* "from 1 to 64", or "" for texts; owned by the caller. */
static char *range_of(const struct setting *row)
{
	if (!is_number(row))
		return xstrdup("");
	struct settings s = { 0 };
	int64_t *slot = (int64_t *)(void *)((char *)&s + row->offset);
	*slot = row->min;
	_cleanup_free_ char *min = setting_get(row, &s);
	*slot = row->max;
	_cleanup_free_ char *max = setting_get(row, &s);
	return xasprintf("from %s to %s", min, max);
}

void settings_help(FILE *out)
{
	fputs(usage, out);
	for (size_t i = 0; i < settings_count; i++) {
		const struct setting *row = &settings_table[i];
		_cleanup_free_ char *range = range_of(row);
		char flag[32];
		setting_flag(row, flag);
		if (row->section)
			fprintf(out, "\n%s\n", row->section);
		fprintf(out, "  --%s%s  (%s%s)\n      %s", flag, row->secret ? "-file" : "",
			setting_name(row), row->secret ? "_FILE" : "", row->help);
		if (*range)
			fprintf(out, "; %s", range);
		fprintf(out, "%s%s%s\n", row->fallback ? " [" : "", row->fallback ? row->fallback : "",
			row->fallback ? "]" : "");
	}
}

/* A cell's text: "|" would end the cell. */
static void put_cell(FILE *out, const char *text)
{
	for (; *text; text++)
		fprintf(out, *text == '|' ? "\\|" : "%c", *text);
}

static void put_row(FILE *out, const struct setting *row)
{
	_cleanup_free_ char *range = range_of(row);
	char flag[32];
	setting_flag(row, flag);
	fprintf(out, "| `%s`", setting_name(row));
	for (size_t k = 1; k < ARRAY_LEN(row->env) && row->env[k]; k++)
		fprintf(out, ", else `%s`", row->env[k]);
	if (row->secret)
		fprintf(out, ", `%s_FILE`", setting_name(row));
	fprintf(out, " | `--%s%s` | `%s`", flag, row->secret ? "-file" : "", row->key);
	if (row->secret)
		fprintf(out, ", `%s_file`", row->key);
	fputs(" | ", out);
	if (row->fallback)
		fprintf(out, "`%s`", row->fallback);
	fputs(" | ", out);
	put_cell(out, row->help);
	fprintf(out, "%s%s |\n", *range ? "; " : "", range);
}

void settings_markdown(FILE *out)
{
	fputs(preface, out);
	for (size_t i = 0; i < settings_count; i++) {
		const struct setting *row = &settings_table[i];
		if (row->section)
			fprintf(out,
				"\n## %s\n\n| variable | flag | key | default | what it is |\n| --- | --- | "
				"--- | --- | --- |\n",
				row->section);
		put_row(out, row);
	}
}

void settings_print(const struct settings *s, FILE *out)
{
	for (size_t i = 0; i < settings_count; i++) {
		const struct setting *row = &settings_table[i];
		_cleanup_free_ char *value = setting_get(row, s);
		_cleanup_free_ char *shown = value ? utf8_escape(value, strlen(value), 1024) : NULL;
		bool unset =
			!value || (is_number(row) && !row->fallback && strcmp(s->sources[i], "default") == 0);
		fprintf(out, "%-16s %-36s %s\n", row->key,
			unset         ? "-"
			: row->secret ? "(set)"
				      : shown,
			s->sources[i]);
	}
}
