/* SPDX-License-Identifier: MIT */
/* From a request to a verified sandbox. The row comes first, so that a lost reply leaves something to
 * reconcile. */
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "manager/driver.h"
#include "manager/grants.h"
#include "manager/internal.h"
#include "manager/session_default.h"
#include "manager/tools.h"

#define PROBE_TIMEOUT_MS 10000
#define MIB (1ll << 20)

/* What a later release brings, and what this one has. */
static const struct {
	const char *kind;
	bool known, here;
	enum workspace_kind as;
} workspaces[] = {
	{ "volume", true, true, WORKSPACE_VOLUME },
	{ "tmpfs", true, true, WORKSPACE_TMPFS },
	{ "named", true, false, 0 },
	{ "host", true, false, 0 },
};

static int check_workspace(const struct session_request *rq, const struct session_row *row,
			   enum workspace_kind *ret, struct err *e)
{
	if (rq->is_default) {
		*ret = strcmp(row->workspace_kind, "host") == 0 ? WORKSPACE_HOST : WORKSPACE_NAMED;
		return 0;
	}
	for (size_t i = 0; i < ARRAY_LEN(workspaces); i++) {
		if (strcmp(workspaces[i].kind, row->workspace_kind) != 0)
			continue;
		if (!workspaces[i].here) {
			int r = err_set(e, ERR_UNSUPPORTED, "workspace kind %s is not in this release",
					row->workspace_kind);
			snprintf(e->field, sizeof(e->field), "workspace.kind");
			return r;
		}
		if (row->workspace_name)
			return err_field(e, "workspace.name", "only a named or a host workspace has a name");
		*ret = workspaces[i].as;
		return 0;
	}
	return err_field(e, "workspace.kind", "must be volume, tmpfs, named or host");
}

static int check_ranges(const struct session_row *row, bool may_be_endless, struct err *e)
{
	const struct {
		const char *field;
		int64_t value, min, max;
	} rows[] = {
		{ "limits.memory_mb", row->memory_mb, SESSION_MEMORY_MIN_MB, SESSION_MEMORY_MAX_MB },
		{ "limits.cpus", row->cpu_milli, 10, 1024 * 1000 },
		{ "limits.pids", row->pids, 16, 4 << 20 },
		{ "ttl_s", row->ttl_s, 0, 366ll * 86400 },
		{ "idle_s", row->idle_s, 0, 366ll * 86400 },
		{ "workspace.size_mb", row->workspace_mb, 1, 16 << 20 },
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (rows[i].value < rows[i].min || rows[i].value > rows[i].max)
			return err_field(e, rows[i].field, "must be from %lld to %lld%s",
					 (long long)rows[i].min, (long long)rows[i].max,
					 i == 1 ? " thousandths" : "");
	if (!may_be_endless && (!row->ttl_s || !row->idle_s))
		return err_field(e, row->ttl_s ? "idle_s" : "ttl_s", "0 (no limit) needs the admin token");
	return 0;
}

static int64_t or_default(int64_t asked, int64_t standard)
{
	return asked < 0 ? standard : asked;
}

static char *json_or_empty(const json_t *object)
{
	return object ? json_dumps(object, JSON_COMPACT | JSON_SORT_KEYS) : xstrdup("{}");
}

static void fill_row(const struct manager *m, const struct session_request *rq, struct session_row *row)
{
	const struct settings *set = m->settings;
	char id[ID_SIZE], sandbox[ID_SIZE];
	int64_t now = clock_wall_ms();
	id_new("s_", id);
	id_new("b_", sandbox);
	*row = (struct session_row){
		.id = xstrdup(id),
		.name = rq->name ? xstrdup(rq->name) : NULL,
		.labels = json_or_empty(rq->labels),
		.env = json_or_empty(rq->env),
		.image = xstrdup(rq->image ? rq->image : set->image),
		.memory_mb = or_default(rq->memory_mb, set->memory_mb),
		.cpu_milli = or_default(rq->cpu_milli, set->cpu_milli),
		.pids = or_default(rq->pids, set->pids),
		.ttl_s = or_default(rq->ttl_s, set->ttl_s),
		.idle_s = or_default(rq->idle_s, set->idle_s),
		.network = xstrdup(rq->network ? rq->network : "none"),
		.isolation = xstrdup(rq->isolation ? rq->isolation : "runc"),
		.workspace_kind = xstrdup(rq->is_default       ? (set->project_dir ? "host" : "named")
					  : rq->workspace_kind ? rq->workspace_kind
							       : "volume"),
		.workspace_name = rq->is_default       ? xstrdup(SESSION_DEFAULT_WORKSPACE)
				  : rq->workspace_name ? xstrdup(rq->workspace_name)
						       : NULL,
		.workspace_mb = or_default(rq->workspace_mb, set->workspace_mb),
		.state = xstrdup(session_state_name(SESSION_CREATING)),
		.sandbox = xstrdup(sandbox),
		.created_ms = now,
	};
	row->expires_ms = row->ttl_s ? now + row->ttl_s * 1000 : 0;
	row->idle_ms = row->idle_s ? now + row->idle_s * 1000 : 0;
}

static void spec_of(const struct session_row *row, enum workspace_kind kind, struct sandbox_spec *ret)
{
	*ret = (struct sandbox_spec){
		.id = row->sandbox,
		.image = row->image_id,
		.memory_bytes = row->memory_mb * MIB,
		.cpu_milli = row->cpu_milli,
		.pids = row->pids,
		.network = row->network,
		.runtime = strcmp(row->isolation, "runc") == 0     ? NULL
			   : strcmp(row->isolation, "gvisor") == 0 ? "runsc"
								   : row->isolation,
		.workspace = kind,
		.workspace_bytes = row->workspace_mb * MIB,
		.workspace_name = row->workspace_name,
	};
}

/* What the spec of a sandbox to be borrows, besides the row. */
struct creation {
	struct engine_image image;
	struct sandbox_mount mounts[SANDBOX_MOUNTS_MAX];
	char *granted; /* for the audit */
	size_t max;    /* sessions that may live with it */
};

static void creation_clear(struct creation *c)
{
	free(c->granted);
	engine_image_clear(&c->image);
}

/* What it gets from outside, for the audit; NULL: nothing. Owned by the caller. */
static char *granted(const struct sandbox_spec *spec)
{
	_cleanup_buf_ struct buf text = BUF_INIT(16384);
	struct err e;
	int r = 0;
	if (strcmp(spec->network, "none") != 0)
		r = buf_addf(&text, &e, " network %s", spec->network);
	if (r == 0 && spec->workspace_host)
		r = buf_addf(&text, &e, " folder %s", spec->workspace_host);
	for (size_t i = 0; r == 0 && i < spec->mount_count; i++)
		r = buf_addf(&text, &e, " mount %s at %s", spec->mounts[i].host, spec->mounts[i].path);
	return text.len ? xstrdup(text.data + 1) : NULL;
}

static int add_grants(struct manager *m, const struct session_request *rq, struct creation *c,
		      struct sandbox_spec *spec, struct err *e)
{
	c->max = rq->is_default ? SIZE_MAX : (size_t)m->settings->max_sessions;
	if (spec->workspace == WORKSPACE_HOST)
		spec->workspace_host = grants_get_project(m->grants, &spec->uid, &spec->gid);
	spec->mounts = c->mounts;
	if ((rq->mounts || rq->is_default) &&
	    grants_find_mounts(m->grants, rq->mounts, c->mounts, &spec->mount_count, e) < 0)
		return -(int)e->code;
	c->granted = granted(spec);
	return 0;
}

static int check(struct manager *m, const struct session_request *rq, struct session_row *row,
		 struct sandbox_spec *ret_spec, struct creation *c, struct err *e)
{
	enum workspace_kind kind = WORKSPACE_VOLUME;
	struct sandbox_places places;
	int r = check_ranges(row, rq->may_be_endless, e);
	if (r == 0)
		r = exec_env_check(rq->env, e);
	if (r == 0)
		r = check_workspace(rq, row, &kind, e);
	if (r < 0)
		return r;
	spec_of(row, kind, ret_spec);
	r = add_grants(m, rq, c, ret_spec, e);
	if (r == 0)
		r = sandbox_divide(ret_spec, &places, e);
	if (r == 0)
		r = m->driver->plan(m, rq, ret_spec, row, &c->image, e);
	ret_spec->image = row->image_id;
	ret_spec->image_volumes = (const char *const *)c->image.volumes;
	return r == 0 ? sandbox_divide(ret_spec, &places, e) : r; /* with the image's volumes */
}

/* An image without the shell is a fine sandbox, but `command` has to be refused there. */
static bool has_shell(const struct manager *m, struct channel *c)
{
	const char *const argv[] = { m->settings->shell, "-c", ":", NULL };
	const char *const env[] = { "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
				    NULL };
	const struct job_spec spec = { .tag = "probe",
				       .argv = argv,
				       .env = env,
				       .cwd = "/",
				       .timeout_ms = PROBE_TIMEOUT_MS,
				       .head_bytes = 1024,
				       .tail_bytes = 1024,
				       .keep = PROTO_KEEP_ENDS };
	_cleanup_(job_unref_cleanup_) struct job *j = NULL;
	struct err e;
	if (job_start(c, &spec, &j, &e) < 0)
		return true;
	job_go(j);
	struct job_output out;
	enum job_event ev;
	do
		ev = job_next(j, PROBE_TIMEOUT_MS, -1, &out);
	while (ev == JOB_OUTPUT || ev == JOB_GAP);
	if (ev != JOB_END)
		job_cancel(j, 0);
	job_forget(j);
	if (ev != JOB_END)
		return true;
	return job_get_end(j)->reason != PROTO_START_FAILED;
}

void session_probe_shell(struct session *s, struct channel *c)
{
	bool shell = has_shell(s->manager, c);
	pthread_mutex_lock(&s->lock);
	s->no_shell = !shell;
	pthread_mutex_unlock(&s->lock);
}

/* Has somebody asked for its end while it was being made? */
static int check_doom(struct session *s, struct err *e)
{
	pthread_mutex_lock(&s->lock);
	int r = s->doom ? err_set(e, ERR_GONE, "session %s was %s while it was being created", s->id, s->doom)
			: 0;
	pthread_mutex_unlock(&s->lock);
	return r;
}

static int finish(struct session *s, const char *image, struct sandbox *box, const struct caller *who,
		  struct err *e)
{
	int r = check_doom(s, e);
	if (r < 0)
		return r;
	pthread_mutex_lock(&s->lock);
	s->channel = STEAL_PTR(box->channel);
	s->row.container = xstrdup(box->container);
	s->row.ready_ms = clock_wall_ms();
	s->row.link_generation = 1;
	s->row.memory_mb = (int64_t)(box->hello.memory_max / MIB);
	s->row.cpu_milli = (int64_t)box->hello.cpu_milli;
	s->row.pids = (int64_t)box->hello.pids_max;
	pthread_mutex_unlock(&s->lock);
	session_probe_shell(s, s->channel);
	struct audit_row audit = audit_of(who, "session.create", s->id, image, "ok", NULL);
	return session_move(s, SESSION_EV_VERIFIED, NULL, NULL, &audit, e);
}

/* The row of a session that never came to be; what was made of it is gone already, or found by its label. */
static void give_up(struct session *s, const char *image, const struct caller *who, const struct err *why)
{
	struct err ignored; /* a row that the store refuses is closed by reconcile */
	struct audit_row audit = audit_of(who, "session.create", s->id, image, err_name(why->code), why->msg);
	const char *reason = why->code == ERR_GONE ? "deleted" : "create_failed";
	(void)!session_move(s, SESSION_EV_FAILED, reason, why->msg, &audit, &ignored);
	LOG(LOG_WARN, "session failed", F("session", s->id), F("why", why->msg));
}

/* image: as asked for, for the audit; the session's own texts may be replaced meanwhile. */
static int bring_up(struct manager *m, struct session *s, const char *image, const struct sandbox_spec *spec,
		    const struct caller *who, struct err *e)
{
	struct sandbox box = { 0 };
	int r = m->driver->make(m, spec, &box, e);
	if (r == 0)
		r = finish(s, image, &box, who, e);
	if (r == 0)
		return 0;
	struct err ignored; /* a remainder is found by its label */
	if (box.container[0])
		(void)!m->driver->destroy(m, s->sandbox, box.container, &ignored);
	channel_unref(box.channel);
	give_up(s, image, who, e);
	return r;
}

/* Gives it a token and a place in the table, and writes its row. */
static int admit(struct manager *m, struct session_row *row, const struct creation *c,
		 const struct caller *who, struct session **ret, char ret_token[64], struct err *e)
{
	char hash[ID_HASH_SIZE];
	id_token("bst_", ret_token);
	id_hash(ret_token, strlen(ret_token), hash);
	row->token_hash = xstrdup(hash);
	struct session_row own;
	session_row_copy(row, &own);
	struct session *s = session_new(m, &own);
	if (!sessions_enter(m, s, c->max)) {
		session_unref(s);
		err_set(e, ERR_LIMIT, "there are %lld sessions already (SANDBOX_MAX_SESSIONS)",
			(long long)m->settings->max_sessions);
		e->retry_after_s = 5;
		return -ERR_LIMIT;
	}
	struct audit_row audit = audit_of(who, "session.create", row->id, row->image, "accepted", c->granted);
	int r = store_session_insert(m->store, row, &audit, e);
	if (r < 0) {
		sessions_leave(m, s);
		session_unref(s);
		return r;
	}
	*ret = s;
	return 0;
}

int sessions_create(struct manager *m, const struct session_request *rq, const struct caller *who,
		    struct session_row *ret_row, char ret_token[64], struct err *e)
{
	_cleanup_(session_row_clear) struct session_row row = { 0 };
	_cleanup_(creation_clear) struct creation c = { 0 };
	_cleanup_(session_unref_cleanup_) struct session *s = NULL;
	struct sandbox_spec spec;
	fill_row(m, rq, &row);
	int r = check(m, rq, &row, &spec, &c, e);
	if (r == 0)
		r = admit(m, &row, &c, who, &s, ret_token, e);
	if (r != 0)
		return r;
	r = bring_up(m, s, row.image, &spec, who, e);
	if (r < 0) {
		sessions_leave(m, s);
		return r;
	}
	session_copy_row(s, ret_row);
	tools_learn(s);
	return 0;
}
