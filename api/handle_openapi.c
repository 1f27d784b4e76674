/* SPDX-License-Identifier: MIT */
#include "api/handle_openapi.h"

#include <string.h>

#include "base/parse.h"

/* Does the list name this tag, or any? W/ makes no difference here (RFC 9110, 13.1.2). */
static bool names_tag(const char *list, const char *tag)
{
	size_t len;

	for (const char *item; list && (item = parse_list_next(&list, &len));) {
		if (len > 2 && !strncmp(item, "W/", 2))
			item += 2, len -= 2;
		if ((len == 1 && *item == '*') || (len == strlen(tag) && !strncmp(item, tag, len)))
			return true;
	}
	return false;
}

int handle_openapi_get(struct api *api, struct request *rq, struct response *rs, struct err *e)
{
	struct buf text = BUF_INIT(strlen(api->openapi));

	response_header(rs, "ETag", "%s", api->openapi_tag);
	if (names_tag(request_header(rq, "If-None-Match"), api->openapi_tag)) {
		rs->status = 304;
		return 0;
	}
	if (buf_add(&text, api->openapi, strlen(api->openapi), e))
		return -e->code;
	response_text(rs, 200, NULL, &text);
	return 0;
}
