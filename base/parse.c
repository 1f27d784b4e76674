/* SPDX-License-Identifier: MIT */
#include "base/parse.h"

#include <ctype.h>
#include <string.h>

/* Reads digits from *at; false when there is none or the value passes int64. */
static bool digits(const char **at, int64_t *ret)
{
	const char *p = *at;
	int64_t v = 0;
	if (!isdigit((unsigned char)*p))
		return false;
	for (; isdigit((unsigned char)*p); p++)
		if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, *p - '0', &v))
			return false;
	*at = p;
	*ret = v;
	return true;
}

int parse_int(const char *text, int64_t min, int64_t max, int64_t *ret, struct err *e)
{
	const char *p = text + (*text == '-');
	int64_t v = 0;
	bool ok = digits(&p, &v) && !*p;
	v = *text == '-' ? -v : v;
	if (!ok || v < min || v > max)
		return err_set(e, ERR_INVALID, "must be a whole number from %lld to %lld", (long long)min,
			       (long long)max);
	*ret = v;
	return 0;
}

/* The factor of a one-letter unit in a table, 0 when it is not there. */
static int64_t factor_of(char unit, const char *units, const int64_t *factors)
{
	const char *at = unit ? strchr(units, tolower((unsigned char)unit)) : NULL;
	return at ? factors[at - units] : 0;
}

int parse_bytes(const char *text, int64_t *ret, struct err *e)
{
	static const int64_t factors[] = { 1, 1 << 10, 1 << 20, 1 << 30 };
	const char *p = text;
	int64_t v = 0, factor = 1;
	bool ok = digits(&p, &v);
	if (ok && *p) {
		factor = factor_of(*p, "bkmg", factors);
		bool plain = tolower((unsigned char)*p) == 'b';
		p++;
		if (!plain && tolower((unsigned char)*p) == 'b')
			p++;
	}
	if (!ok || *p || !factor || __builtin_mul_overflow(v, factor, &v))
		return err_set(e, ERR_INVALID, "must be a size such as 512m or 4g");
	*ret = v;
	return 0;
}

int parse_milli(const char *text, int64_t min, int64_t max, int64_t *ret, struct err *e)
{
	const char *p = text;
	int64_t whole = 0, part = 0, v = 0;
	bool ok = digits(&p, &whole) && !__builtin_mul_overflow(whole, 1000, &v);
	if (ok && *p == '.') {
		p++;
		int64_t scale = 100;
		ok = isdigit((unsigned char)*p);
		for (; isdigit((unsigned char)*p) && scale; p++, scale /= 10)
			part += (*p - '0') * scale;
	}
	if (!ok || *p || __builtin_add_overflow(v, part, &v))
		return err_set(e, ERR_INVALID, "must be a number such as 2 or 1.5");
	if (v < min || v > max)
		return err_set(e, ERR_INVALID, "must be from %lld.%03lld to %lld.%03lld",
			       (long long)min / 1000, (long long)min % 1000, (long long)max / 1000,
			       (long long)max % 1000);
	*ret = v;
	return 0;
}

int parse_duration_s(const char *text, int64_t *ret, struct err *e)
{
	static const int64_t factors[] = { 1, 60, 3600, 86400 };
	const char *p = text;
	int64_t v = 0, factor = 1;
	bool ok = digits(&p, &v);
	if (ok && *p)
		factor = factor_of(*p++, "smhd", factors);
	if (!ok || *p || !factor || __builtin_mul_overflow(v, factor, &v))
		return err_set(e, ERR_INVALID, "must be a duration such as 90s, 15m or 2h");
	*ret = v;
	return 0;
}

const char *parse_list_next(const char **cursor, size_t *ret_len)
{
	const char *p = *cursor;
	while (*p == ',' || isspace((unsigned char)*p))
		p++;
	if (!*p)
		return NULL;
	const char *end = p + strcspn(p, ",");
	*cursor = end;
	while (end > p && isspace((unsigned char)end[-1]))
		end--;
	*ret_len = (size_t)(end - p);
	return p;
}
