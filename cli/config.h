/* SPDX-License-Identifier: MIT */
/*
 * config.h - where the server is and what it is told: flags, then the environment, then the config file. The
 * only part of `berth` that reads environment variables.
 */
#ifndef BERTH_CLI_CONFIG_H
#define BERTH_CLI_CONFIG_H

#include "base/err.h"

#define CONFIG_ADDRESS "http://127.0.0.1:8080"

struct config {
	char *address; /* http(s)://host[:port][/prefix] without a slash at the end */
	char *token;   /* NULL: none is known */
	char *path;    /* of the config file, whether it exists or not; NULL: no home folder is known */
};

/*
 * The flags may be NULL. The file is $XDG_CONFIG_HOME/berth/config, else ~/.config/berth/config: lines
 * "address = URL" and "token = TEXT", # begins a comment. ERR_FORBIDDEN when others may read it or it is not
 * the caller's; ERR_INVALID names the line or says what is wrong with the address.
 */
int config_load(const char *address_flag, const char *token_flag, struct config *ret,
		struct err *e) NODISCARD;
void config_clear(struct config *c);

/* Reads the file's text into *c, where it does not yet have a value. `name` is for messages. Pure. */
int config_parse(const char *text, const char *name, struct config *c, struct err *e) NODISCARD;
/* Completes "host:port" to a URL and checks it; owned by the caller. Pure. */
int config_address(const char *text, char **ret, struct err *e) NODISCARD;

/* The caller's own environment variable, borrowed; NULL when unset. For `--env NAME` and NO_COLOR. */
const char *config_env(const char *name);

#endif
