/* SPDX-License-Identifier: MIT */
#include "base/log.h"

#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/utf8.h"

#define STALL_MS 1000

static struct log_format format = { .level = LOG_INFO };
static atomic_uint dropped;

static const struct {
	const char *name, *label, *color;
} levels[] = {
	[LOG_ERROR] = { "error", "ERROR", "\033[31m" },
	[LOG_WARN] = { "warn", "WARN ", "\033[33m" },
	[LOG_INFO] = { "info", "INFO ", "\033[32m" },
	[LOG_DEBUG] = { "debug", "DEBUG", "\033[2m" },
};

void log_setup(const struct log_format *f)
{
	format = *f;
}

bool log_wants_color(const char *color, const char *no_color)
{
	if (color && !strcmp(color, "always"))
		return true;
	if (color && !strcmp(color, "never"))
		return false;
	return isatty(STDOUT_FILENO) && !(no_color && *no_color);
}

static bool wait_writable(int timeout_ms)
{
	struct pollfd p = { .fd = STDOUT_FILENO, .events = POLLOUT };
	int n;
	do
		n = poll(&p, 1, timeout_ms);
	while (n < 0 && errno == EINTR);
	return n > 0 && (p.revents & POLLOUT);
}

/* One write(2) for the line; only a stdout that takes it in parts sees more. */
static void put(const char *line, size_t len)
{
	while (len) {
		ssize_t n = write(STDOUT_FILENO, line, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN && wait_writable(STALL_MS))
			continue;
		if (n <= 0)
			return;
		line += n;
		len -= (size_t)n;
	}
}

/*
 * stdio's lock of stdout keeps lines apart, since a pipe may split a write above PIPE_BUF (pipe(7)).
 * It can be taken again by the same thread, which the line about dropped ones does.
 */
static void emit(const char *line, size_t len)
{
	flockfile(stdout);
	if (!wait_writable(atomic_load(&dropped) ? 0 : STALL_MS)) {
		atomic_fetch_add(&dropped, 1);
	} else {
		unsigned lost = atomic_exchange(&dropped, 0);
		if (lost)
			LOG(LOG_WARN, "log lines dropped", F("count", lost));
		put(line, len);
	}
	funlockfile(stdout);
}

/* Every text, cut and escaped, with quotes where a reader would lose its bounds. */
static void print_text(FILE *out, const char *text, bool shown)
{
	size_t len = strlen(text);
	_cleanup_free_ char *safe =
		shown && len <= LOG_TEXT_MAX ? xstrdup(text) : utf8_escape(text, len, LOG_TEXT_MAX);
	bool bare = *safe && !strpbrk(safe, " \"=");
	if (!bare)
		putc('"', out);
	for (const char *p = safe; *p; p++) {
		if (*p == '"')
			putc('\\', out);
		putc(*p, out);
	}
	if (!bare)
		putc('"', out);
}

static void print_readable(FILE *out, enum log_level level, const char *event, const struct log_field *fields)
{
	const char *dim = format.color ? "\033[2m" : "", *plain = format.color ? "\033[0m" : "";
	char time[CLOCK_TEXT_SIZE];
	clock_format(clock_wall_ms(), time);
	/* "2026-01-31T12:00:00.123Z": the clock's part of it */
	fprintf(out, "%s%.12s%s %s%s%s %s", dim, time + strlen("2026-01-31T"), plain,
		format.color ? levels[level].color : "", levels[level].label, plain, event);
	for (; fields->name; fields++) {
		fprintf(out, " %s%s=%s", dim, fields->name, plain);
		if (fields->text)
			print_text(out, fields->text, fields->shown);
		else
			fprintf(out, "%lld", (long long)fields->number);
	}
}

static json_t *cut_text(const char *text)
{
	size_t len = strlen(text), end = MIN(len, LOG_TEXT_MAX);
	while (end < len && end && ((uint8_t)text[end] & 0xc0) == 0x80)
		end--;
	_cleanup_free_ char *cut = xasprintf("%.*s%s", (int)end, text, end < len ? "\xe2\x80\xa6" : "");
	return json_string_lossy(cut, strlen(cut));
}

/* All that is not ASCII leaves as \uXXXX: exact for a program, harmless for a terminal. */
static void print_json(FILE *out, enum log_level level, const char *event, const struct log_field *fields)
{
	_cleanup_json_ json_t *line = json_object();
	char time[CLOCK_TEXT_SIZE];
	clock_format(clock_wall_ms(), time);
	json_object_set_new(line, "time", json_string(time));
	json_object_set_new(line, "level", json_string(levels[level].name));
	json_object_set_new(line, "event", json_string(event));
	for (; fields->name; fields++)
		json_object_set_new(line, fields->name,
				    fields->text ? cut_text(fields->text) : json_integer(fields->number));
	json_dumpf(line, out, JSON_COMPACT | JSON_ENSURE_ASCII);
}

void log_write(enum log_level level, const char *event, const struct log_field *fields)
{
	if (level > format.level)
		return;
	_cleanup_free_ char *line = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&line, &len);
	if (!out)
		abort();
	(format.json ? print_json : print_readable)(out, level, event, fields);
	putc('\n', out);
	if (fclose(out))
		abort();
	emit(line, len);
}
