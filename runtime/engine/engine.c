/* SPDX-License-Identifier: MIT */
/* Finding an engine, connecting, and what it says about itself. */
#include "runtime/engine/engine.h"

#include <errno.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "base/clock.h"
#include "base/parse.h"
#include "runtime/engine/engine_json.h"
#include "runtime/engine/engine_priv.h"

#define DEFAULT_PARALLEL 4
#define DEFAULT_TIMEOUT_MS 30000

/* ---- facts ---- */

void engine_get_facts(struct engine *g, struct engine_facts *ret)
{
	pthread_mutex_lock(&g->lock);
	*ret = g->facts;
	pthread_mutex_unlock(&g->lock);
}

static int get_bare(struct engine *g, const char *path, int64_t deadline_ms, json_t **ret, struct err *e)
{
	const struct engine_request rq = {
		.verb = ENGINE_GET, .api = ENGINE_API_BARE, .path = path, .deadline_ms = deadline_ms
	};
	return engine_call_json(g, &rq, ret, e);
}

/*
 * Another engine may come to listen at the address meanwhile. It has none of the containers that the callers
 * know, and would say of each that it is gone.
 */
static int check_same(struct engine *g, const struct engine_facts *f, struct err *e)
{
	struct engine_facts before;
	engine_get_facts(g, &before);
	if (!*before.info.id || !strcmp(before.info.id, f->info.id))
		return 0;
	return err_set(e, ERR_UNAVAILABLE, "another engine than before answers at %s", g->address.text);
}

/* Paths without a version are served by the newest the engine has: nothing to agree on yet. */
int engine_negotiate(struct engine *g, int64_t deadline_ms, struct err *e)
{
	_cleanup_json_ json_t *version = NULL, *info = NULL;
	struct engine_facts f = { 0 };
	atomic_store(&g->stale, false); /* a failure below sets it again */
	int r = get_bare(g, "/version", deadline_ms, &version, e);
	r = r ? r : engine_facts_version(&f, version, e);
	r = r ? r : get_bare(g, "/info", deadline_ms, &info, e);
	r = r ? r : engine_facts_info(&f, info, e);
	r = r ? r : check_same(g, &f, e);
	if (r) {
		atomic_store(&g->stale, true);
		return r;
	}
	snprintf(f.info.address, sizeof(f.info.address), "%s", g->address.text);
	if (!*g->address.path && !g->address.tls)
		engine_facts_warn(&f, "the connection to the engine is not encrypted and proves nothing: "
				      "whoever reaches it is root there");
	pthread_mutex_lock(&g->lock);
	g->facts = f;
	pthread_mutex_unlock(&g->lock);
	return 0;
}

/* ---- the limits of a local engine ---- */

/* The second number in the line of /proc/PID/limits that begins with name; 0 when it is unlimited or not
 * there. */
static int64_t hard_limit(const char *limits, const char *name)
{
	const char *at = strstr(limits, name);
	int64_t value = 0;
	struct err ignored;
	if (!at)
		return 0;
	at += strlen(name);
	at += strspn(at, " ");
	at += strcspn(at, " ");
	at += strspn(at, " ");
	_cleanup_free_ char *hard = xstrndup(at, strcspn(at, " \n"));
	return parse_int(hard, 1, INT64_MAX, &value, &ignored) ? 0 : value;
}

static struct ucred peer_of(const char *path)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	struct ucred peer = { 0 };
	socklen_t len = sizeof(peer);
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
	if (fd < 0 || connect(fd, (const struct sockaddr *)&a, sizeof(a)) ||
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len))
		return (struct ucred){ 0 };
	return peer;
}

/* 0 when it cannot be read. */
static int64_t pid_max(void)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/sys/kernel/pid_max", "re");
	char text[32] = "";
	int64_t value = 0;
	struct err ignored;
	bool read = f && fgets(text, sizeof(text), f);
	text[strcspn(text, "\n")] = 0;
	/* cppcheck-suppress resourceLeak ; _cleanup_fclose_ closes it */
	return read && parse_int(text, 1, INT64_MAX, &value, &ignored) == 0 ? value : 0;
}

/* May it raise limits? The root of a user name space has the capability too, but not over what rules them. */
static bool is_mighty(const struct ucred *peer)
{
	struct __user_cap_header_struct who = { _LINUX_CAPABILITY_VERSION_3, peer->pid };
	struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3] = { 0 };
	return !peer->uid && !syscall(SYS_capget, &who, caps) &&
	       caps[CAP_TO_INDEX(CAP_SYS_RESOURCE)].effective & CAP_TO_MASK(CAP_SYS_RESOURCE);
}

/*
 * An engine without CAP_SYS_RESOURCE cannot give a container more than it may have itself: the
 * start fails. So the hard limits of whoever listens there (the engine, or systemd for it) bound
 * what is asked for. Elsewhere (tcp, another pid name space) nothing is known and nothing bounded.
 */
static struct engine_spec_limits limits_of(const char *path)
{
	struct engine_spec_limits none = { 0 };
	struct ucred peer = *path ? peer_of(path) : (struct ucred){ 0 };
	if (peer.pid <= 0 || is_mighty(&peer))
		return none;
	_cleanup_free_ char *name = xasprintf("/proc/%d/limits", (int)peer.pid);
	_cleanup_fclose_ FILE *f = fopen(name, "re");
	char text[4096];
	size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;
	text[n] = 0;
	/* Who listens may be a proxy. Podman lowers its own nproc to kernel.pid_max, and more has no effect.
	 */
	int64_t nproc = hard_limit(text, "Max processes"), pids = pid_max();
	return (struct engine_spec_limits){ .nofile = hard_limit(text, "Max open files"),
					    .nproc = nproc && pids ? MIN(nproc, pids) : MAX(nproc, pids) };
}

/* ---- connecting ---- */

static void global_init(void)
{
	curl_global_init(CURL_GLOBAL_DEFAULT);
}

static char *in_dir(const char *dir, const char *name)
{
	return dir ? xasprintf("%s/%s", dir, name) : NULL;
}

static struct engine *engine_new(const struct engine_options *o, const struct engine_address *a)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, global_init);
	struct engine *g = xcalloc(1, sizeof(*g));
	g->address = *a;
	g->ca = in_dir(o->tls_dir, "ca.pem");
	g->cert = in_dir(o->tls_dir, "cert.pem");
	g->key = in_dir(o->tls_dir, "key.pem");
	g->call_timeout_ms = o->call_timeout_ms > 0 ? o->call_timeout_ms : DEFAULT_TIMEOUT_MS;
	pthread_mutex_init(&g->lock, NULL);
	sem_init(&g->creating, 0, o->create_parallel > 0 ? (unsigned)o->create_parallel : DEFAULT_PARALLEL);
	return g;
}

void engine_free(struct engine *g)
{
	if (!g)
		return;
	for (size_t i = 0; i < g->idle_count; i++)
		curl_easy_cleanup(g->idle[i]);
	sem_destroy(&g->creating);
	pthread_mutex_destroy(&g->lock);
	free(g->ca);
	free(g->cert);
	free(g->key);
	free(g);
}

static int connect_to(const struct engine_options *o, const char *address, struct engine **ret, struct err *e)
{
	struct engine_address a;
	int r = engine_address_parse(address, o->tls_dir != NULL, &a, e);
	if (r)
		return r;
	_cleanup_(engine_free_cleanup_) struct engine *g = engine_new(o, &a);
	r = engine_negotiate(g, clock_mono_ms() + g->call_timeout_ms, e);
	if (r)
		return r;
	g->limits = limits_of(a.path);
	*ret = STEAL_PTR(g);
	return 0;
}

static bool is_socket(const char *address)
{
	struct stat st;
	return !stat(address + strlen("unix://"), &st) && S_ISSOCK(st.st_mode);
}

/* Takes the first that answers. A socket without a listener is passed over, an engine that does not suit is
 * not. */
static int connect_usual(const struct engine_options *o, struct engine **ret, struct err *e)
{
	char address[160], tried[200] = "", why[sizeof(e->msg)] = "";
	for (size_t i = 0; engine_address_usual(i, o->runtime_dir, address, sizeof(address)); i++) {
		size_t used = strlen(tried);
		snprintf(tried + used, sizeof(tried) - used, "%s%s", used ? ", " : "",
			 address + strlen("unix://"));
		if (!is_socket(address))
			continue;
		int r = connect_to(o, address, ret, e);
		if (r != -ERR_UNAVAILABLE)
			return r;
		if (!*why)
			memcpy(why, e->msg, sizeof(why));
	}
	if (*why)
		return err_set(e, ERR_UNAVAILABLE, "%.150s (tried %.150s)", why, tried);
	return err_set(e, ERR_UNAVAILABLE,
		       "no container engine found at %.190s: start Docker or Podman (systemctl start "
		       "docker), or set SANDBOX_ENGINE",
		       tried);
}

int engine_connect(const struct engine_options *options, struct engine **ret, struct err *e)
{
	if (!options->address)
		return connect_usual(options, ret, e);
	int r = connect_to(options, options->address, ret, e);
	return r == -ERR_UNAVAILABLE ? err_wrap(e, "is it started, and may this user use it?") : r;
}

/* ---- questions ---- */

void engine_get_info(struct engine *g, struct engine_info *ret)
{
	struct engine_facts f;
	engine_get_facts(g, &f);
	*ret = f.info;
}

const char *engine_warning(struct engine *g, int i)
{
	struct engine_facts f;
	engine_get_facts(g, &f);
	return i >= 0 && i < f.info.warnings_count ? f.warnings[i] : NULL;
}

int engine_ping(struct engine *g, int timeout_ms, struct err *e)
{
	const struct engine_request rq = { .verb = ENGINE_GET,
					   .path = "/_ping",
					   .deadline_ms = clock_mono_ms() + timeout_ms };
	return engine_call_json(g, &rq, NULL, e);
}

int engine_has_runtime(struct engine *g, const char *name, bool *ret, struct err *e)
{
	_cleanup_json_ json_t *info = NULL;
	int r = engine_get(g, "/info", &info, e);
	if (!r)
		*ret = json_object_get(json_object_get(info, "Runtimes"), name) != NULL;
	return r;
}

/* ---- turns ---- */

int engine_turn_take(struct engine *g, int64_t deadline_ms, struct err *e)
{
	struct timespec t = { deadline_ms / 1000, deadline_ms % 1000 * 1000000 };
	int r;
	do
		r = sem_clockwait(&g->creating, CLOCK_MONOTONIC, &t);
	while (r && errno == EINTR);
	return r ? err_set(e, ERR_TIMEOUT, "too many creates are under way: no turn came in time") : 0;
}

void engine_turn_give(struct engine *g)
{
	sem_post(&g->creating);
}
