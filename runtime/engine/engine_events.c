/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "base/metrics.h"
#include "runtime/engine/engine_json.h"
#include "runtime/engine/engine_priv.h"

#define LINE_MAX_BYTES (1u << 20)
#define QUIET_S                                                                                           \
	3600 /* a stream without a byte for so long is given up, in case the other side is gone without a \
		word */

struct reading {
	struct buf line;
	const atomic_bool *stop;
	engine_event_fn on_event;
	void *ctx;
};

static void take_lines(struct reading *rd)
{
	char *nl;
	while ((nl = rd->line.data ? memchr(rd->line.data, '\n', rd->line.len) : NULL)) {
		size_t len = (size_t)(nl - rd->line.data);
		char id[ENGINE_ID_SIZE], action[ENGINE_ACTION_SIZE];
		if (engine_json_event(rd->line.data, len, id, action))
			rd->on_event(rd->ctx, id, action);
		buf_consume(&rd->line, len + 1);
	}
}

static size_t on_bytes(char *bytes, size_t size, size_t count, void *ctx)
{
	struct reading *rd = ctx;
	struct err ignored; /* a line over the limit breaks the stream */
	if (buf_add(&rd->line, bytes, size * count, &ignored))
		return 0;
	take_lines(rd);
	return size * count;
}

/* libcurl calls this once a second at least, also while nothing comes (CURLOPT_XFERINFOFUNCTION(3)). */
static int on_tick(void *ctx, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
	const struct reading *rd = ctx;
	(void)a;
	(void)b;
	(void)c;
	(void)d;
	return atomic_load(rd->stop);
}

static int stream_events(struct engine *g, const char *url, struct reading *rd, struct err *e)
{
	CURL *h = curl_easy_init();
	long status = 0;
	if (!h)
		abort();
	engine_handle_setup(g, h);
	curl_easy_setopt(h, CURLOPT_URL, url);
	curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, on_bytes);
	curl_easy_setopt(h, CURLOPT_WRITEDATA, rd);
	curl_easy_setopt(h, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(h, CURLOPT_XFERINFOFUNCTION, on_tick);
	curl_easy_setopt(h, CURLOPT_XFERINFODATA, rd);
	curl_easy_setopt(h, CURLOPT_LOW_SPEED_LIMIT, 1L);
	curl_easy_setopt(h, CURLOPT_LOW_SPEED_TIME, (long)QUIET_S);
	CURLcode code = curl_easy_perform(h);
	curl_easy_getinfo(h, CURLINFO_RESPONSE_CODE, &status);
	int r = 0;
	/* It ends when the engine does: whoever answers then is asked who it is. */
	atomic_store(&g->stale, true);
	if (code == CURLE_ABORTED_BY_CALLBACK)
		r = 0;
	else if (code && code != CURLE_OPERATION_TIMEDOUT)
		r = engine_transport_error(g, h, code, e);
	else if (status >= 400)
		r = engine_json_error(status, rd->line.data ? rd->line.data : "", rd->line.len, e);
	curl_easy_cleanup(h);
	return r;
}

int engine_events(struct engine *g, const char *label_key, const char *label_value, const atomic_bool *stop,
		  engine_event_fn on_event, void *ctx, struct err *e)
{
	struct reading rd = { BUF_INIT(LINE_MAX_BYTES), stop, on_event, ctx };
	_cleanup_buf_ struct buf url = BUF_INIT(4096);
	_cleanup_free_ char *filter = engine_label_filter(label_key, label_value, true);
	/* Without a version: what is read of an event is the same in all of them. */
	int r = buf_addf(&url, e, "%s/events", g->address.base);
	r = r ? r : engine_path_query(&url, "filters", filter, e);
	r = r ? r : stream_events(g, url.data, &rd, e);
	metrics_add(METRIC_ENGINE_CALLS, "events", metrics_result((enum err_code) - r), 1);
	buf_clear(&rd.line);
	return r;
}
