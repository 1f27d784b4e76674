/* SPDX-License-Identifier: MIT */
#include "runtime/engine/engine_address.h"

#include <ctype.h>
#include <string.h>

#include "base/parse.h"

static const char example[] = "unix:///run/docker.sock or tcp://host:2376";

static int parse_unix(const char *path, struct engine_address *a, struct err *e)
{
	if (path[0] != '/' || strlen(path) >= sizeof(a->path))
		return err_field(e, "engine",
				 "a unix address is unix:// and an absolute path below %zu bytes",
				 sizeof(a->path));
	snprintf(a->path, sizeof(a->path), "%s", path);
	snprintf(a->host, sizeof(a->host), "localhost");
	snprintf(a->base, sizeof(a->base), "http://localhost");
	a->tls = false;
	return 0;
}

/* Only what a host name or a literal address has: nothing that could add a path, a user or a header. */
static bool host_is_plain(const char *host, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)host[i]) && !strchr(".-_[]:", host[i]))
			return false;
	return len > 0;
}

static int parse_tcp(const char *rest, struct engine_address *a, struct err *e)
{
	const char *colon = strrchr(rest, ':');
	int64_t port = 0;
	if (!colon || strlen(rest) >= sizeof(a->host) || !host_is_plain(rest, (size_t)(colon - rest)) ||
	    parse_int(colon + 1, 1, 65535, &port, e))
		return err_field(e, "engine", "a tcp address is tcp://host:port");
	snprintf(a->host, sizeof(a->host), "%s", rest);
	snprintf(a->base, sizeof(a->base), "%s://%s", a->tls ? "https" : "http", rest);
	return 0;
}

int engine_address_parse(const char *text, bool tls, struct engine_address *ret, struct err *e)
{
	struct engine_address a = { .tls = tls };
	int r;
	if (strlen(text) >= sizeof(a.text))
		return err_field(e, "engine", "the address is too long");
	snprintf(a.text, sizeof(a.text), "%s", text);
	if (!strncmp(text, "unix://", 7))
		r = parse_unix(text + 7, &a, e);
	else if (!strncmp(text, "tcp://", 6))
		r = parse_tcp(text + 6, &a, e);
	else
		r = err_field(e, "engine", "must be an address such as %s", example);
	if (!r)
		*ret = a;
	return r;
}

bool engine_address_usual(size_t i, const char *runtime_dir, char *text, size_t size)
{
	static const struct {
		bool rootless;
		const char *path;
	} places[] = {
		{ false, "/run/docker.sock" },
		{ false, "/var/run/docker.sock" },
		{ false, "/run/podman/podman.sock" },
		{ true, "/podman/podman.sock" },
		{ true, "/docker.sock" },
	};
	size_t count = runtime_dir && runtime_dir[0] == '/' ? ARRAY_LEN(places) : 3;
	if (i >= count)
		return false;
	snprintf(text, size, "unix://%s%s", places[i].rootless ? runtime_dir : "", places[i].path);
	return true;
}
