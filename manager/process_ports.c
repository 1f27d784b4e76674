/* SPDX-License-Identifier: MIT */
/* The ports on which processes listen: one job of the agent's for all that run. */
#include "base/clock.h"
#include "manager/builtin.h"
#include "manager/internal.h"

#define PATIENCE_MS 3000 /* a list is no place to wait long for a sandbox that is busy or stands still */
#define ALL_MS 10000
#define PORTS_MAX 1024 /* of one process: a hostile one may open thousands */

static int64_t pid_of(const json_t *state)
{
	bool running = json_is_true(json_object_get(state, "running"));
	return running ? json_integer_value(json_object_get(state, "pid")) : 0;
}

/* A port that the agent has found, in its order: ascending. */
static void take_entry(json_t *list, const struct builtin_entry *entry)
{
	size_t i;
	json_t *state;
	json_array_foreach (list, i, state) {
		json_t *ports = json_object_get(state, "ports");
		if (pid_of(state) == entry->pid && entry->size <= UINT16_MAX &&
		    json_array_size(ports) < PORTS_MAX)
			json_array_append_new(ports, json_integer((json_int_t)entry->size));
	}
}

static int ask(struct session *s, const char *const *pids, json_t *list, struct err *e)
{
	const struct builtin_ask ports = {
		.name = "ports", .args = pids, .client_fd = -1, .patience_ms = PATIENCE_MS
	};
	_cleanup_(builtin_free_cleanup_) struct builtin_job *b = NULL;
	struct builtin_piece piece;
	int64_t deadline = clock_mono_ms() + ALL_MS;
	int r = builtin_start(s, &ports, &b, e);
	while (r >= 0 && (r = builtin_next(b, &piece, e)) == BUILTIN_ENTRY) {
		if (clock_left_ms(deadline) == 0)
			return err_set(e, ERR_TIMEOUT, "the sandbox tells of too many ports");
		take_entry(list, &piece.entry);
	}
	return r < 0 ? r : 0;
}

/* What is not known is null; one that does not run listens nowhere. */
static void give_up(json_t *list)
{
	size_t i;
	json_t *state;
	json_array_foreach (list, i, state)
		if (json_is_true(json_object_get(state, "running")))
			json_object_set_new(state, "ports", json_null());
}

void process_ports_add(struct session *s, json_t *list)
{
	char texts[PROCESS_KEPT_MAX][24];
	const char *pids[PROCESS_KEPT_MAX + 1] = { NULL };
	size_t i, count = 0;
	json_t *state;
	struct err ignored; /* null says it */
	json_array_foreach (list, i, state) {
		json_object_set_new(state, "ports", json_array());
		if (pid_of(state) <= 0 || count == PROCESS_KEPT_MAX)
			continue;
		snprintf(texts[count], sizeof(texts[count]), "%lld", (long long)pid_of(state));
		pids[count] = texts[count];
		count++;
	}
	if (count && ask(s, pids, list, &ignored) < 0)
		give_up(list);
}
