/* SPDX-License-Identifier: MIT */
/* format.h - JSON of the API as aligned text for people. Values are escaped: none can forge a line or move a
 * cursor. */
#ifndef BERTH_CLI_FORMAT_H
#define BERTH_CLI_FORMAT_H

#include <jansson.h>
#include <stdio.h>

#include "base/base.h"

struct format_column {
	const char *title;
	const char *path; /* "name", or "limits.pids" */
};

/* The rows (an array of objects) under the titles; columns as wide as their longest value. */
void format_table(FILE *out, const struct format_column *columns, size_t count, const json_t *rows,
		  bool color);
/* One object, a line for each column: its title and its value. Those without a value are left out. */
void format_record(FILE *out, const struct format_column *columns, size_t count, const json_t *object,
		   bool color);
/* The whole value as JSON, indented on a terminal, and a newline. */
void format_json(FILE *out, const json_t *value);

/* One value as a text: "-" for null, "k=v k=v" for an object, "a,b" for an array. Owned by the caller. */
char *format_value(json_t *value) NODISCARD;

#endif
