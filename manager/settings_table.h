/* SPDX-License-Identifier: MIT */
/* settings_table.h - the one table of settings and what its rows may be. Pure; inside manager/settings*.c
 * only. */
#ifndef BERTH_SETTINGS_TABLE_H
#define BERTH_SETTINGS_TABLE_H

#include "manager/settings.h"

enum setting_kind {
	SETTING_TEXT, /* char * */
	SETTING_INT,  /* the others: int64_t */
	SETTING_MB,   /* written as bytes: 512m, 4g */
	SETTING_BYTES,
	SETTING_MILLI,   /* written as 2 or 1.5 */
	SETTING_SECONDS, /* written as 90, 90s, 15m, 2h, 1d */
};

/* The rule of a text, or of each item of a list: ERR_INVALID with "must be ...". */
typedef int (*setting_check_fn)(const char *text, struct err *e);

struct setting {
	const char *key; /* of the file; the flag is the same with dashes */
	const char *env[2];
	enum setting_kind kind;
	size_t offset;
	int64_t min, max;     /* in the unit of the struct */
	const char *fallback; /* the default as one would write it; NULL: none */
	setting_check_fn check;
	bool secret;
	const char *section; /* of the documentation: of this row and those after it; NULL: as before */
	const char *help;
};

extern const struct setting settings_table[];
extern const size_t settings_count;

/* The name errors use: the first variable. */
static inline const char *setting_name(const struct setting *row)
{
	return row->env[0];
}

/* A flag is a key with dashes for underscores. */
bool setting_is_flag(const struct setting *row, const char *flag, size_t len);
void setting_flag(const struct setting *row, char ret[32]);

/* Reads a text as the row says and stores it; what was there is freed. ERR_INVALID: "must be ...". */
int setting_set(const struct setting *row, struct settings *s, const char *text, struct err *e) NODISCARD;
/* The value as one would write it, owned by the caller; NULL: none. A secret's is its text. */
char *setting_get(const struct setting *row, const struct settings *s) NODISCARD;
void setting_clear(const struct setting *row, struct settings *s);

/* settings_check.c */
int setting_check_listen(const char *text, struct err *e);
int setting_check_path(const char *text, struct err *e);
int setting_check_engine(const char *text, struct err *e);
int setting_check_instance(const char *text, struct err *e);
int setting_check_token(const char *text, struct err *e);
int setting_check_hosts(const char *text, struct err *e);
int setting_check_origins(const char *text, struct err *e);
int setting_check_image(const char *text, struct err *e);
int setting_check_network(const char *text, struct err *e);
int setting_check_networks(const char *text, struct err *e);
int setting_check_mounts(const char *text, struct err *e);
int setting_check_pass_env(const char *text, struct err *e);
int setting_check_shell(const char *text, struct err *e);
int setting_check_runtime(const char *text, struct err *e);
int setting_check_log_format(const char *text, struct err *e);
int setting_check_log_color(const char *text, struct err *e);
int setting_check_log_level(const char *text, struct err *e);

/* Is a valid listen address one that only this machine reaches? */
bool setting_listen_is_local(const char *listen);
/* Is this the variable of a secret, or of the file with it? */
bool setting_is_secret_env(const char *name);

#endif
