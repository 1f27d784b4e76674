/* SPDX-License-Identifier: MIT */
#include "api/http_etag.h"

#include <string.h>

struct tag {
	const char *text;
	size_t len;
	bool weak;
};

static const char *skip_blanks(const char *at)
{
	return at + strspn(at, " \t");
}

/* 1: a tag; 0: the end; -1: neither. Moves *at behind the tag and the comma that follows it. */
static int next_tag(const char **at, struct tag *ret)
{
	const char *p = skip_blanks(*at);
	bool weak = p[0] == 'W' && p[1] == '/';

	if (!*p)
		return 0;
	p += weak ? 2 : 0;
	if (*p++ != '"')
		return -1;
	size_t len = strcspn(p, "\"");
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)p[i] <= ' ' || p[i] == 0x7f)
			return -1;
	if (p[len] != '"')
		return -1;
	*ret = (struct tag){ p, len, weak };
	p = skip_blanks(p + len + 1);
	if (*p && *p++ != ',')
		return -1;
	*at = p;
	return 1;
}

static bool is_any(const char *header)
{
	const char *p = skip_blanks(header);

	return *p == '*' && !*skip_blanks(p + 1);
}

static int not_a_list(const char *field, struct err *e)
{
	return err_field(e, field, "must be * or a list of entity tags in double quotes");
}

int http_etag_match(const char *field, const char *header, const char *tag, bool weak, bool *ret,
		    struct err *e)
{
	struct tag t;
	bool found = is_any(header);
	int more, count = 0;

	for (const char *at = header; !is_any(header) && (more = next_tag(&at, &t)) != 0; count++) {
		if (more < 0)
			return not_a_list(field, e);
		found = found || ((weak || !t.weak) && t.len == strlen(tag) && !memcmp(t.text, tag, t.len));
	}
	if (!count && !is_any(header))
		return not_a_list(field, e);
	*ret = found;
	return 0;
}

static int want_tag(const char *header, char ret[HTTP_ETAG_WANT_SIZE], struct err *e)
{
	struct tag t, other;
	const char *at = header;

	if (next_tag(&at, &t) != 1)
		return not_a_list("If-Match", e);
	if (next_tag(&at, &other))
		return err_field(e, "If-Match", "takes one entity tag here, or *");
	bool is_word = t.len == 3 && (!memcmp(t.text, "old", 3) || !memcmp(t.text, "new", 3));
	/* No file has a tag that is empty, longer, or one of the words. */
	if (t.weak || !t.len || t.len >= HTTP_ETAG_WANT_SIZE || is_word)
		return err_set(e, ERR_PRECONDITION, "the file is not of the version in If-Match");
	memcpy(ret, t.text, t.len);
	ret[t.len] = '\0';
	return 0;
}

int http_etag_want(const char *if_match, const char *if_none_match, char ret[HTTP_ETAG_WANT_SIZE],
		   struct err *e)
{
	if (if_match && if_none_match)
		return err_field(e, "If-Match", "does not go together with If-None-Match");
	if (if_none_match && !is_any(if_none_match))
		return err_field(e, "If-None-Match", "must be * here");
	if (if_match && !is_any(if_match))
		return want_tag(if_match, ret, e);
	(void)snprintf(ret, HTTP_ETAG_WANT_SIZE, "%s", if_match ? "old" : if_none_match ? "new" : "");
	return 0;
}
