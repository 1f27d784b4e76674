/* SPDX-License-Identifier: MIT */
#include "api/http_range.h"

#include <string.h>
#include <strings.h>

#include "base/parse.h"

/* Digits only, at least one; moves *at behind them. What is above int64 is as good as its greatest value. */
static bool take_number(const char **at, uint64_t *ret)
{
	size_t len = strspn(*at, "0123456789");
	uint64_t n = 0;

	for (size_t i = 0; i < len; i++)
		n = n > INT64_MAX / 10 - 1 ? INT64_MAX : n * 10 + (uint64_t)((*at)[i] - '0');
	*at += len;
	*ret = n;
	return len > 0;
}

bool http_range_parse(const char *header, struct http_range *ret)
{
	struct http_range r = { .last = UINT64_MAX };
	const char *at = header;

	if (!at || strncasecmp(at, "bytes=", 6))
		return false;
	at += 6;
	at += strspn(at, " \t");
	bool has_first = take_number(&at, &r.first);
	if (*at++ != '-')
		return false;
	bool has_last = take_number(&at, &r.last);
	at += strspn(at, " \t");
	if (*at || (!has_first && !has_last) || (has_first && has_last && r.last < r.first))
		return false;
	if (!has_last)
		r.last = UINT64_MAX;
	r.is_suffix = !has_first;
	*ret = r;
	return true;
}

bool http_range_apply(const struct http_range *range, uint64_t size, uint64_t *ret_first, uint64_t *ret_len)
{
	uint64_t len = MIN(range->last, size);

	if (range->is_suffix ? !len : range->first >= size)
		return false;
	*ret_first = range->is_suffix ? size - len : range->first;
	*ret_len = range->is_suffix ? len : MIN(range->last, size - 1) - range->first + 1;
	return true;
}
