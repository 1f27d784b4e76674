/* SPDX-License-Identifier: MIT */
/* The pure parts of runtime/engine: addresses, framing, heads, versions and warnings, replies. */
#include <string.h>

#include "base/json.h"
#include "runtime/engine/engine_address.h"
#include "runtime/engine/engine_demux.h"
#include "runtime/engine/engine_facts.h"
#include "runtime/engine/engine_hijack.h"
#include "runtime/engine/engine_json.h"
#include "tests/unit/rows.h"

/* JSON with ' for ". */
static json_t *json_of(const char *text)
{
	char copy[8192];
	snprintf(copy, sizeof(copy), "%s", text);
	for (char *p = copy; *p; p++)
		*p = *p == '\'' ? '"' : *p;
	json_t *v = json_loads(copy, JSON_DECODE_ANY, NULL);
	assert_non_null(v);
	return v;
}

/* ---- addresses ---- */

static const struct address_row {
	const char *name, *text;
	bool tls;
	const char *base, *path; /* NULL base: refused */
} addresses[] = {
	{ "address: a unix socket", "unix:///run/docker.sock", false, "http://localhost",
	  "/run/docker.sock" },
	{ "address: TLS is not for unix sockets", "unix:///run/docker.sock", true, "http://localhost",
	  "/run/docker.sock" },
	{ "address: tcp in the clear", "tcp://127.0.0.1:2375", false, "http://127.0.0.1:2375", "" },
	{ "address: tcp with TLS", "tcp://engine.example:2376", true, "https://engine.example:2376", "" },
	{ "address: a literal IPv6 address", "tcp://[::1]:2376", true, "https://[::1]:2376", "" },
	{ "address: a relative path is refused", "unix://run/docker.sock", false, NULL, NULL },
	{ "address: an empty path is refused", "unix://", false, NULL, NULL },
	{ "address: a path longer than a socket's is refused",
	  "unix:///"
	  "01234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567"
	  "89012345678",
	  false, NULL, NULL },
	{ "address: no port is refused", "tcp://engine", false, NULL, NULL },
	{ "address: port 0 is refused", "tcp://engine:0", false, NULL, NULL },
	{ "address: a port above 65535 is refused", "tcp://engine:65536", false, NULL, NULL },
	{ "address: a user in it is refused", "tcp://a@engine:1", false, NULL, NULL },
	{ "address: a path in it is refused", "tcp://engine:1/x", false, NULL, NULL },
	{ "address: a line break is refused", "tcp://a\r\nb:1", false, NULL, NULL },
	{ "address: http is refused", "http://engine:1", false, NULL, NULL },
	{ "address: a bare path is refused", "/run/docker.sock", false, NULL, NULL },
	{ "address: nothing is refused", "", false, NULL, NULL },
};

static void address_test(void **state)
{
	const struct address_row *row = *state;
	struct engine_address a = { 0 };
	struct err e = { 0 };
	int r = engine_address_parse(row->text, row->tls, &a, &e);
	assert_int_equal(r, row->base ? 0 : -ERR_INVALID);
	assert_string_equal(e.field, row->base ? "" : "engine");
	assert_string_equal(a.base, row->base ? row->base : "");
	assert_string_equal(a.path, row->path ? row->path : "");
	if (row->base)
		assert_string_equal(a.text, row->text);
}

static void usual_test(void **state)
{
	static const char *const want[] = { "unix:///run/docker.sock", "unix:///var/run/docker.sock",
					    "unix:///run/podman/podman.sock",
					    "unix:///run/user/7/podman/podman.sock",
					    "unix:///run/user/7/docker.sock" };
	char text[160];
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(want); i++) {
		assert_true(engine_address_usual(i, "/run/user/7", text, sizeof(text)));
		assert_string_equal(text, want[i]);
	}
	assert_false(engine_address_usual(5, "/run/user/7", text, sizeof(text)));
	assert_false(engine_address_usual(3, NULL, text, sizeof(text)));
	assert_false(engine_address_usual(3, "", text, sizeof(text)));
}

/* ---- framing ---- */

#define FRAME(stream, len) stream, 0, 0, 0, 0, 0, 0, len

static const struct demux_row {
	const char *name;
	uint8_t in[40];
	size_t len;
	const char *out, *errors; /* NULL out: refused */
} demuxes[] = {
	{ "demux: one frame", { FRAME(1, 2), 'o', 'k' }, 10, "ok", "" },
	{ "demux: stderr is told apart", { FRAME(2, 2), 'n', 'o', FRAME(1, 1), 'x' }, 19, "x", "no" },
	{ "demux: stdin's number is passed over", { FRAME(0, 1), 'x', FRAME(1, 1), 'y' }, 18, "y", "" },
	{ "demux: empty frames are legal", { FRAME(1, 0), FRAME(2, 0), FRAME(1, 1), 'x' }, 25, "x", "" },
	{ "demux: a frame may be cut anywhere", { FRAME(1, 9), 'c', 'u', 't' }, 11, "cut", "" },
	{ "demux: a header may be cut anywhere", { 1, 0, 0, 0, 0 }, 5, "", "" },
	{ "demux: an announced 4 GiB costs nothing", { 1, 0, 0, 0, 255, 255, 255, 255, 'x' }, 9, "x", "" },
	{ "demux: another stream is refused", { FRAME(3, 1), 'x' }, 9, NULL, NULL },
	{ "demux: text is refused at its first byte", { 'E' }, 1, NULL, NULL },
	{ "demux: padding that is not zero is refused", { 1, 0, 0, 7 }, 4, NULL, NULL },
};

static bool demux_in_pieces(const struct demux_row *row, size_t piece, char out[64], char errors[64])
{
	struct engine_demux d = { 0 };
	*out = *errors = 0;
	for (size_t at = 0; at < row->len;) {
		struct engine_demux_piece p;
		ssize_t n = engine_demux_next(&d, row->in + at, MIN(piece, row->len - at), &p);
		if (n < 0)
			return false;
		assert_in_range(n, 1, MIN(piece, row->len - at));
		at += (size_t)n;
		if (p.len && p.stream)
			strncat(p.stream == DEMUX_STDOUT ? out : errors, (const char *)p.at, p.len);
	}
	return true;
}

static void demux_test(void **state)
{
	const struct demux_row *row = *state;
	for (size_t piece = 1; piece <= row->len; piece++) {
		char out[64], errors[64];
		assert_int_equal(demux_in_pieces(row, piece, out, errors), row->out != NULL);
		if (!row->out)
			continue;
		assert_string_equal(out, row->out);
		assert_string_equal(errors, row->errors);
	}
}

/* ---- heads ---- */

static const struct head_row {
	const char *name, *text;
	size_t head;
	int status;
} heads[] = {
	{ "head: 101 and early bytes", "HTTP/1.1 101 UPGRADED\r\nA: b\r\n\r\nearly", 31, 101 },
	{ "head: 200", "HTTP/1.1 200 OK\r\n\r\n", 19, 200 },
	{ "head: HTTP/1.0 too", "HTTP/1.0 404 Not\r\n\r\n", 20, 404 },
	{ "head: not all there", "HTTP/1.1 200 OK\r\n\r", 0, 200 },
	{ "head: other text", "SSH-2.0-OpenSSH_9.2\r\n\r\n", 23, -1 },
	{ "head: a status of letters", "HTTP/1.1 abc OK\r\n\r\n", 19, -1 },
	{ "head: too short", "HTTP/1.1", 0, -1 },
	{ "head: nothing", "", 0, -1 },
};

static void head_test(void **state)
{
	const struct head_row *row = *state;
	assert_int_equal(engine_hijack_head(row->text, strlen(row->text)), row->head);
	assert_int_equal(engine_hijack_status(row->text, strlen(row->text)), row->status);
}

/* ---- versions ---- */

static const struct number_row {
	const char *name, *text;
	int64_t api, release;
} numbers[] = {
	{ "number: an API version", "1.41", 1041, 1041000 },
	{ "number: a release", "20.10.24+dfsg1", -1, 20010024 },
	{ "number: a release candidate", "1.4.0-rc.3", -1, 1004000 },
	{ "number: one part", "29", -1, 29000000 },
	{ "number: no number", "dev", -1, -1 },
	{ "number: nothing", "", -1, -1 },
	{ "number: one that is too large", "1.1000", -1, 1000000 },
};

static void number_test(void **state)
{
	const struct number_row *row = *state;
	assert_int_equal(engine_api_number(row->text), row->api);
	assert_int_equal(engine_release_number(row->text), row->release);
}

#define DOCKER(api, min) "{'Version': '20.10.24', 'ApiVersion': '" api "', 'MinAPIVersion': '" min "'}"
#define PODMAN(release, api, min)                        \
	"{'Version': '" release "', 'ApiVersion': '" api \
	"', 'Components': [{'Name': 'Podman Engine', 'Details': {'MinAPIVersion': '" min "'}}]}"

static const struct version_row {
	const char *name, *version;
	int result;
	enum engine_kind kind;
	const char *prefix, *native;
} versions[] = {
	{ "version: Debian 12's Docker", DOCKER("1.41", "1.12"), 0, ENGINE_DOCKER, "/v1.41", "" },
	{ "version: the oldest Docker", DOCKER("1.40", "1.12"), 0, ENGINE_DOCKER, "/v1.40", "" },
	{ "version: Docker 29 takes 1.44 and newer", DOCKER("1.52", "1.44"), 0, ENGINE_DOCKER, "/v1.51", "" },
	{ "version: a Docker that is too old", DOCKER("1.39", "1.12"), ERR_UNSUPPORTED, ENGINE_DOCKER, NULL,
	  NULL },
	{ "version: a Docker that is too new", DOCKER("1.70", "1.60"), ERR_UNSUPPORTED, ENGINE_DOCKER, NULL,
	  NULL },
	{ "version: Debian 12's Podman", PODMAN("4.3.1", "1.41", "4.0.0"), 0, ENGINE_PODMAN, "/v1.41",
	  "/v4.0.0/libpod" },
	{ "version: a Podman that has raised its minimum", PODMAN("6.1.0", "1.44", "5.0.0"), 0, ENGINE_PODMAN,
	  "/v1.44", "/v5.0.0/libpod" },
	{ "version: a minimum that is no number is not believed", PODMAN("5.4.2", "1.41", "5/../x"), 0,
	  ENGINE_PODMAN, "/v1.41", "/v4.0.0/libpod" },
	{ "version: a Podman that is too old", PODMAN("3.4.4", "1.40", "3.1.0"), ERR_UNSUPPORTED,
	  ENGINE_PODMAN, NULL, NULL },
	{ "version: something else", "{'hello': 'world'}", ERR_ENGINE, ENGINE_DOCKER, NULL, NULL },
	{ "version: a list", "[1, 2]", ERR_ENGINE, ENGINE_DOCKER, NULL, NULL },
	{ "version: a version that would add to a path", DOCKER("1.41/../x", "1.12"), ERR_ENGINE,
	  ENGINE_DOCKER, NULL, NULL },
};

static void version_test(void **state)
{
	const struct version_row *row = *state;
	struct engine_facts f = { 0 };
	struct err e = { 0 };
	_cleanup_json_ json_t *version = json_of(row->version);
	assert_int_equal(engine_facts_version(&f, version, &e), -row->result);
	if (row->result) {
		assert_int_equal(e.code, row->result);
		return;
	}
	assert_int_equal(f.info.kind, row->kind);
	assert_string_equal(f.prefix, row->prefix);
	assert_string_equal(f.native_prefix, row->native);
}

/* ---- warnings ---- */

#define SECURE "'SecurityOptions': ['name=seccomp,profile=default']"
#define RUNC(version) "{'ApiVersion': '1.41', 'Components': [{'Name': 'runc', 'Version': '" version "'}]}"
#define CRUN                                                                                             \
	"{'ApiVersion': '1.41', 'Version': '5.4.2', 'Components': [{'Name': 'Podman Engine'}, {'Name': " \
	"'OCI Runtime (crun)', 'Version': 'crun version 1.21\\ncommit: x'}]}"

static const struct warning_row {
	const char *name, *version, *info;
	int count;
	const char *words; /* of the first */
} warnings[] = {
	{ "warning: none of a new runc", RUNC("1.4.3"), "{" SECURE "}", 0, NULL },
	{ "warning: runc 1.1.5", RUNC("1.1.5+ds1"), "{" SECURE "}", 3, "CVE-2024-21626" },
	{ "warning: runc 1.2.8", RUNC("1.2.8"), "{" SECURE "}", 1, "CVE-2026-41579" },
	{ "warning: runc 1.3.2", RUNC("1.3.2"), "{" SECURE "}", 2, "before 1.3.3" },
	{ "warning: runc 1.0.0-rc6", RUNC("0.1.1"), "{" SECURE "}", 4, "CVE-2019-5736" },
	{ "warning: Podman's runc is found in its long text",
	  "{'ApiVersion': '1.41', 'Version': '4.3.1', 'Components': [{'Name': 'Podman Engine'}, {'Name': "
	  "'OCI Runtime (runc)', 'Version': 'runc version 1.1.5+ds1\\ncommit: x'}]}",
	  "{" SECURE "}", 3, "runc before 1.1.12" },
	{ "warning: crun is not runc", CRUN, "{" SECURE "}", 0, NULL },
	{ "warning: Podman cannot tell on cgroup v2", CRUN,
	  "{'CgroupVersion': '2', 'CpuCfsQuota': false, 'SwapLimit': false, " SECURE "}", 0, NULL },
	{ "warning: Podman can tell on cgroup v1", CRUN,
	  "{'CgroupVersion': '1', 'CpuCfsQuota': true, 'SwapLimit': false, " SECURE "}", 1, "swap" },
	{ "warning: Docker can tell on cgroup v2", RUNC("1.4.3"),
	  "{'CgroupVersion': '2', 'CpuCfsQuota': true, 'SwapLimit': false, " SECURE "}", 1, "swap" },
	{ "warning: no seccomp", RUNC("1.4.3"), "{}", 1, "seccomp" },
	{ "warning: no limit of memory", RUNC("1.4.3"), "{'MemoryLimit': false, " SECURE "}", 1, "memory" },
	{ "warning: rootless on cgroup v1", RUNC("1.4.3"), "{'Rootless': true, " SECURE "}", 1, "rootless" },
	{ "warning: rootless on cgroup v2 is fine", RUNC("1.4.3"),
	  "{'Rootless': true, 'CgroupVersion': '2', " SECURE "}", 0, NULL },
};

static void warning_test(void **state)
{
	const struct warning_row *row = *state;
	struct engine_facts f = { 0 };
	struct err e = { 0 };
	_cleanup_json_ json_t *version = json_of(row->version), *info = json_of(row->info);
	assert_int_equal(engine_facts_version(&f, version, &e), 0);
	assert_int_equal(engine_facts_info(&f, info, &e), 0);
	assert_int_equal(f.info.warnings_count, row->count);
	if (row->count)
		assert_non_null(strstr(f.warnings[0], row->words));
}

static void info_test(void **state)
{
	struct engine_facts f = { 0 };
	struct err e = { 0 };
	_cleanup_json_ json_t *version = json_of(RUNC("1.1.5"));
	_cleanup_json_ json_t *info =
		json_of("{'Driver': 'overlay2', 'CgroupVersion': '2', 'LiveRestoreEnabled': true,"
			" 'SecurityOptions': ['name=userns', 'name=seccomp,profile=builtin']}");
	(void)state;
	assert_int_equal(engine_facts_version(&f, version, &e), 0);
	assert_int_equal(engine_facts_info(&f, info, &e), 0);
	assert_string_equal(f.info.runtime, "runc 1.1.5");
	assert_string_equal(f.info.storage, "overlay2");
	assert_int_equal(f.info.cgroup, 2);
	assert_true(f.info.userns && f.info.live_restore && !f.info.rootless);
}

/* ---- errors ---- */

static const struct error_row {
	const char *name;
	long status;
	const char *body;
	enum err_code code;
	const char *message;
} errors[] = {
	{ "error: Docker's not found", 404, "{\"message\":\"No such container: x\"}", ERR_NOT_FOUND,
	  "No such container: x" },
	{ "error: Docker's conflict", 409, "{\"message\":\"in use\"}", ERR_CONFLICT, "in use" },
	{ "error: Docker's 500", 500, "{\"message\":\"boom\"}", ERR_ENGINE, "boom" },
	{ "error: Podman's name conflict is a 500", 500,
	  "{\"cause\":\"that name is already in use\",\"message\":\"creating: in use\",\"response\":500}",
	  ERR_CONFLICT, "creating: in use" },
	{ "error: Podman's missing image is a 500", 500, "{\"cause\":\"image not known\",\"message\":\"m\"}",
	  ERR_NOT_FOUND, "m" },
	{ "error: Podman's exec on a stopped container is a 500", 500,
	  "{\"cause\":\"container state improper\",\"message\":\"m\"}", ERR_CONFLICT, "m" },
	{ "error: a plain text", 400, "client is too old\n", ERR_ENGINE, "client is too old" },
	{ "error: an empty body", 500, "", ERR_ENGINE, "no reason given" },
	{ "error: control characters are shown escaped", 500, "{\"message\":\"a\\nb\\u001b[0m\"}", ERR_ENGINE,
	  "a\\nb\\x1b[0m" },
	{ "error: JSON without a message", 500, "{\"x\":1}", ERR_ENGINE, "{\"x\":1}" },
};

static void error_test(void **state)
{
	const struct error_row *row = *state;
	struct err e = { 0 };
	assert_int_equal(engine_json_error(row->status, row->body, strlen(row->body), &e), -(int)row->code);
	assert_int_equal(e.code, row->code);
	assert_string_equal(e.msg, row->message);
}

static const struct wants_row {
	const char *name;
	long status;
	const char *body;
	bool want;
} wants[] = {
	{ "wants another version: too new", 400,
	  "{\"message\":\"client version 1.44 is too new. Maximum supported API version is 1.41\"}", true },
	{ "wants another version: too old", 400,
	  "{\"message\":\"client version 1.41 is too old. Minimum supported API version is 1.44, please "
	  "upgrade\"}",
	  true },
	{ "wants no other version: another 400", 400, "{\"message\":\"the name is too long\"}", false },
	{ "wants no other version: another status", 500, "client version 1.44 is too new", false },
	{ "wants no other version: nothing", 400, "", false },
};

static void wants_test(void **state)
{
	const struct wants_row *row = *state;
	assert_int_equal(engine_json_wants_version(row->status, row->body, strlen(row->body)), row->want);
}

/* ---- states, lists, imports, events ---- */

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static const struct state_row {
	const char *name, *word;
	int state; /* -1: refused */
} states[] = {
	{ "state: created", "created", ENGINE_CREATED },
	{ "state: running", "running", ENGINE_RUNNING },
	{ "state: paused", "paused", ENGINE_PAUSED },
	{ "state: exited", "exited", ENGINE_EXITED },
	{ "state: dead", "dead", ENGINE_EXITED },
	{ "state: removing", "removing", ENGINE_REMOVING },
	{ "state: Podman's configured", "configured", ENGINE_CREATED },
	{ "state: Podman's stopped", "stopped", ENGINE_EXITED },
	{ "state: Podman's stopping still runs", "stopping", ENGINE_RUNNING },
	{ "state: an unknown word is refused", "flying", -1 },
	{ "state: none is refused", "", -1 },
};

static void state_test(void **state)
{
	const struct state_row *row = *state;
	struct engine_container_state s = { .state = ENGINE_REMOVING, .exit_code = -7 };
	struct err e;
	_cleanup_json_ json_t *inspect =
		json_pack("{s:{s:s, s:i, s:b}}", "State", "Status", row->word, "ExitCode", 3, "OOMKilled", 1);
	assert_int_equal(engine_json_state(inspect, &s, &e), row->state < 0 ? -ERR_ENGINE : 0);
	if (row->state < 0)
		assert_int_equal(s.exit_code, -7);
	else
		assert_true((int)s.state == row->state && s.oom_killed &&
			    s.exit_code == (row->state == ENGINE_EXITED ? 3 : 0));
}

static const struct list_row {
	const char *name, *text;
	int count; /* -1: refused */
} lists[] = {
	{ "list: empty", "[]", 0 },
	{ "list: one",
	  "[{'Id': '" ID "', 'Names': ['/x'], 'State': 'running', 'Created': 7, 'Labels': {'d': 'v'}}]", 1 },
	{ "list: one of libpod's",
	  "[{'Id': '" ID "', 'Names': ['x'], 'State': 'removing', 'Created': '1970-01-01T01:00:07.25+01:00', "
	  "'Labels': {'d': 'v'}}]",
	  1 },
	{ "list: one of libpod's in UTC",
	  "[{'Id': '" ID
	  "', 'Names': ['x'], 'State': 'created', 'Created': '1970-01-01T00:00:07Z', 'Labels': {'d': 'v'}}]",
	  1 },
	{ "list: an object is refused", "{}", -1 },
	{ "list: null is refused", "null", -1 },
	{ "list: an item without an id is refused", "[{'State': 'running'}]", -1 },
	{ "list: an item without a state is refused", "[{'Id': '" ID "'}]", -1 },
	{ "list: a number as item is refused", "[1]", -1 },
};

static void list_test(void **state)
{
	const struct list_row *row = *state;
	struct engine_item *items = NULL;
	size_t count = 99;
	struct err e;
	_cleanup_json_ json_t *list = json_of(row->text);
	assert_int_equal(engine_json_containers(list, "d", &items, &count, &e),
			 row->count < 0 ? -ERR_ENGINE : 0);
	assert_int_equal(count, row->count < 0 ? 99 : row->count);
	if (row->count == 1) {
		assert_string_equal(items[0].id, ID);
		assert_string_equal(items[0].name, "x");
		assert_string_equal(items[0].sandbox, "v");
		assert_int_equal(items[0].created_s, 7);
	}
	free(items);
}

static const struct list_row volumes[] = {
	{ "volumes: null is none", "{'Volumes': null}", 0 },
	{ "volumes: one", "{'Volumes': [{'Name': 'x', 'Labels': null}]}", 1 },
	{ "volumes: a list alone is refused", "[]", -1 },
	{ "volumes: one without a name is refused", "{'Volumes': [{}]}", -1 },
	{ "volumes: a text for the list is refused", "{'Volumes': 'x'}", -1 },
};

static void volume_test(void **state)
{
	const struct list_row *row = *state;
	struct engine_item *items = NULL;
	size_t count = 99;
	struct err e;
	_cleanup_json_ json_t *reply = json_of(row->text);
	assert_int_equal(engine_json_volumes(reply, "d", &items, &count, &e),
			 row->count < 0 ? -ERR_ENGINE : 0);
	assert_int_equal(count, row->count < 0 ? 99 : row->count);
	free(items);
}

static const struct import_row {
	const char *name, *text, *id; /* NULL: refused */
} imports[] = {
	{ "import: Docker's line", "{\"status\":\"sha256:" ID "\"}\r\n", "sha256:" ID },
	{ "import: the last line counts", "{\"status\":\"Importing\"}\n{\"status\":\"sha256:" ID "\"}",
	  "sha256:" ID },
	{ "import: Podman's id without its prefix", "{\"id\":\"" ID "\"}\n", "sha256:" ID },
	{ "import: an error in a line", "{\"status\":\"x\"}\n{\"error\":\"broken tar\"}\n", NULL },
	{ "import: nothing", "", NULL },
	{ "import: no id", "{\"status\":\"done\"}\n", NULL },
	{ "import: no JSON", "hello\n", NULL },
};

static void import_test(void **state)
{
	const struct import_row *row = *state;
	char id[80] = "untouched";
	struct err e = { 0 };
	assert_int_equal(engine_json_import(row->text, strlen(row->text), id, &e), row->id ? 0 : -ERR_ENGINE);
	assert_string_equal(id, row->id ? row->id : "untouched");
}

#define EVENT(type, action) "{\"Type\":\"" type "\",\"Action\":\"" action "\",\"Actor\":{\"ID\":\"" ID "\"}}"

static const struct event_row {
	const char *name, *line, *action; /* NULL: passed over */
} events[] = {
	{ "event: die", EVENT("container", "die"), "die" },
	{ "event: Podman's died is die", EVENT("container", "died"), "die" },
	{ "event: Podman's remove is destroy", EVENT("container", "remove"), "destroy" },
	{ "event: a command line is cut off", EVENT("container", "exec_start: /bin/sh -c secret"),
	  "exec_start" },
	{ "event: a volume's is passed over", EVENT("volume", "destroy"), NULL },
	{ "event: one without an action is passed over", EVENT("container", ""), NULL },
	{ "event: an empty line is passed over", "", NULL },
	{ "event: no JSON is passed over", "}{", NULL },
	{ "event: one without an id is passed over",
	  "{\"Type\":\"container\",\"Action\":\"die\",\"Actor\":{\"ID\":\"abc\"}}", NULL },
};

static void event_test(void **state)
{
	const struct event_row *row = *state;
	char id[ENGINE_ID_SIZE] = "", action[ENGINE_ACTION_SIZE] = "";
	assert_int_equal(engine_json_event(row->line, strlen(row->line), id, action), row->action != NULL);
	assert_string_equal(action, row->action ? row->action : "");
	assert_string_equal(id, row->action ? ID : "");
}

static void image_test(void **state)
{
	struct engine_image image = { 0 };
	struct err e;
	_cleanup_json_ json_t *inspect =
		json_of("{'Id': '" ID "', 'Size': 12, 'Config': {'Env': ['A=b'], 'Volumes': {'/data': {}},"
			" 'Healthcheck': {'Test': ['CMD', '/x']}}}");
	_cleanup_json_ json_t *bare =
		json_of("{'Id': 'sha256:" ID "', 'Config': {'Healthcheck': {'Test': ['NONE']}}}");
	(void)state;
	assert_int_equal(engine_json_image(inspect, &image, &e), 0);
	assert_string_equal(image.id, "sha256:" ID);
	assert_string_equal(image.env[0], "A=b");
	assert_string_equal(image.volumes[0], "/data");
	assert_true(image.has_healthcheck && image.size_bytes == 12 && !image.env[1] && !image.volumes[1]);
	engine_image_clear(&image);
	assert_int_equal(engine_json_image(bare, &image, &e), 0);
	assert_true(!image.has_healthcheck && !image.env[0] && !image.volumes[0]);
	engine_image_clear(&image);
	engine_image_clear(&image);
	json_object_set_new(bare, "Id", json_string("sha256:short"));
	assert_int_equal(engine_json_image(bare, &image, &e), -ERR_ENGINE);
}

int main(void)
{
	struct rows r = { 0 };
	ROWS(&r, address_test, addresses);
	rows_one(&r, "the usual sockets are tried in order, the rootless ones only with a folder",
		 usual_test);
	ROWS(&r, demux_test, demuxes);
	ROWS(&r, head_test, heads);
	ROWS(&r, number_test, numbers);
	ROWS(&r, version_test, versions);
	ROWS(&r, warning_test, warnings);
	rows_one(&r, "what /info says is told on", info_test);
	ROWS(&r, error_test, errors);
	ROWS(&r, wants_test, wants);
	ROWS(&r, state_test, states);
	ROWS(&r, list_test, lists);
	ROWS(&r, volume_test, volumes);
	ROWS(&r, import_test, imports);
	ROWS(&r, event_test, events);
	rows_one(&r, "an image's id, size, environment, volumes and health check are read", image_test);
	return rows_run(&r, "engine_pure");
}
