/* SPDX-License-Identifier: MIT */
/* text.h - numbers in the small texts of /proc and /sys. */
#ifndef BERTH_AGENT_TEXT_H
#define BERTH_AGENT_TEXT_H

#include <stdbool.h>
#include <stdint.h>

/* Reads digits of a base up to 16 at *at and moves it behind them. False when there are none or too many. */
bool text_number(const char **at, unsigned base, uint64_t *ret);

/* The text after the line beginning `key`, blanks skipped; NULL when there is none. */
const char *text_value(const char *text, const char *key);

/* The n-th blank-separated word, from 0; NULL when there are fewer. */
const char *text_word(const char *text, int n);

#endif
