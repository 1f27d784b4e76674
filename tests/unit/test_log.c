/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/log.h"
#include "tests/unit/rows.h"

/* stdout leads into a pipe from capture_start to capture_end. */
struct capture {
	int saved, read;
};

static struct capture capture_start(void)
{
	int ends[2];
	fflush(stdout);
	struct capture c = { .saved = dup(STDOUT_FILENO) };
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(dup2(ends[1], STDOUT_FILENO), STDOUT_FILENO);
	close(ends[1]);
	c.read = ends[0];
	return c;
}

static char *read_all(int fd)
{
	struct buf b = BUF_INIT(16 << 20);
	struct err e;
	char part[4096];
	for (ssize_t n; (n = read(fd, part, sizeof(part))) > 0;)
		assert_int_equal(buf_add(&b, part, (size_t)n, &e), 0);
	close(fd);
	return buf_take(&b);
}

static char *capture_end(struct capture *c)
{
	dup2(c->saved, STDOUT_FILENO);
	close(c->saved);
	return read_all(c->read);
}

static void setup(bool json, bool color, enum log_level level)
{
	log_setup(&(struct log_format){ .json = json, .color = color, .level = level });
}

static const struct text_row {
	const char *name, *value, *readable, *json;
} texts[] = {
	{ "value: a word stands bare", "abc", "v=abc", "\"v\":\"abc\"" },
	{ "value: nothing is quoted", "", "v=\"\"", "\"v\":\"\"" },
	{ "value: NULL is nothing", NULL, "v=\"\"", "\"v\":\"\"" },
	{ "value: blanks are quoted", "ls -l", "v=\"ls -l\"", "\"v\":\"ls -l\"" },
	{ "value: an equals sign is quoted", "a=b", "v=\"a=b\"", "\"v\":\"a=b\"" },
	{ "value: quotes are escaped", "say \"x\"", "v=\"say \\\"x\\\"\"", "\"v\":\"say \\\"x\\\"\"" },
	{ "value: a newline forges no line", "a\nb", "v=a\\nb", "\"v\":\"a\\nb\"" },
	{ "value: an escape sequence reaches no terminal", "\x1b[2J", "v=\\x1b[2J", "\"v\":\"\\u001B[2J\"" },
	{ "value: a bidi override shows", "\xe2\x80\xae", "v=\\u{202E}", "\"v\":\"\\u202E\"" },
	{ "value: broken bytes show", "a\xff", "v=a\\xff", "\"v\":\"a\\uFFFD\"" },
	{ "value: letters stay", "gr\xc3\xbc", "v=gr\xc3\xbc", "\"v\":\"gr\\u00FC\"" },
};

static void text_test(void **state)
{
	const struct text_row *row = *state;
	for (int json = 0; json < 2; json++) {
		struct capture c = capture_start();
		setup(json, false, LOG_INFO);
		LOG(LOG_INFO, "tested", F("v", row->value), F("n", -7));
		_cleanup_free_ char *line = capture_end(&c);
		char want[200];
		if (json)
			snprintf(want, sizeof(want), "\"level\":\"info\",\"event\":\"tested\",%s,\"n\":-7}\n",
				 row->json);
		else
			snprintf(want, sizeof(want), " INFO  tested %s n=-7\n", row->readable);
		assert_true(strlen(line) > strlen(want));
		assert_string_equal(line + strlen(line) - strlen(want), want);
	}
}

static void readable_lines_begin_with_the_time(void **state)
{
	(void)state;
	struct capture c = capture_start();
	setup(false, false, LOG_INFO);
	LOG(LOG_WARN, "no fields");
	_cleanup_free_ char *line = capture_end(&c);
	for (const char *have = line, *want = "00:00:00.000"; *want; have++, want++)
		assert_true(*want == '0' ? *have >= '0' && *have <= '9' : *have == *want);
	assert_string_equal(line + strlen("12:00:00.123"), " WARN  no fields\n");
}

static void json_lines_are_objects_with_the_time(void **state)
{
	(void)state;
	struct capture c = capture_start();
	setup(true, true, LOG_INFO);
	LOG(LOG_ERROR, "failed", F("n", INT64_MIN));
	_cleanup_free_ char *line = capture_end(&c);
	struct err e;
	_cleanup_json_ json_t *value = NULL;
	assert_int_equal(json_text_parse(line, strlen(line), &value, &e), 0);
	assert_int_equal(json_string_length(json_object_get(value, "time")),
			 strlen("2026-01-31T12:00:00.123Z"));
	assert_string_equal(json_string_value(json_object_get(value, "level")), "error");
	assert_true(json_integer_value(json_object_get(value, "n")) == INT64_MIN);
}

static void lines_above_the_level_are_dropped(void **state)
{
	(void)state;
	struct capture c = capture_start();
	setup(false, false, LOG_WARN);
	LOG(LOG_DEBUG, "one");
	LOG(LOG_INFO, "two");
	LOG(LOG_WARN, "three");
	LOG(LOG_ERROR, "four");
	_cleanup_free_ char *lines = capture_end(&c);
	assert_null(strstr(lines, "one"));
	assert_null(strstr(lines, "two"));
	assert_non_null(strstr(lines, "WARN  three\n"));
	assert_non_null(strstr(lines, "ERROR four\n"));
}

static void colours_come_only_when_asked_for(void **state)
{
	(void)state;
	struct capture c = capture_start();
	setup(false, true, LOG_INFO);
	LOG(LOG_ERROR, "red", F("k", "v"));
	_cleanup_free_ char *line = capture_end(&c);
	assert_non_null(strstr(line, "\033[31mERROR\033[0m red"));
	assert_non_null(strstr(line, "k=\033[0mv\n"));
}

static void a_long_text_is_cut(void **state)
{
	(void)state;
	_cleanup_free_ char *text = xcalloc(100001, 1);
	memset(text, 'x', 100000);
	memcpy(text + LOG_TEXT_MAX - 1, "\xe2\x82\xac", 3);
	for (int json = 0; json < 2; json++) {
		struct capture c = capture_start();
		setup(json, false, LOG_INFO);
		LOG(LOG_INFO, "long", F("v", text));
		_cleanup_free_ char *line = capture_end(&c);
		assert_in_range(strlen(line), LOG_TEXT_MAX, LOG_TEXT_MAX + 120);
		assert_non_null(strstr(line, json ? "x\\u2026\"" : "x\xe2\x80\xa6"));
	}
}

#define THREADS 4
#define LINES 300

static void *write_lines(void *arg)
{
	char text[6000]; /* above PIPE_BUF, where the kernel may split */
	memset(text, 'a' + *(int *)arg, sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	for (int i = 0; i < LINES; i++)
		LOG(LOG_INFO, "line", F("v", text));
	return NULL;
}

static void *read_thread(void *arg)
{
	return read_all(*(int *)arg);
}

static void threads_do_not_mix(void **state)
{
	(void)state;
	struct capture c = capture_start();
	pthread_t writers[THREADS], reader;
	int names[THREADS];
	setup(false, false, LOG_INFO);
	pthread_create(&reader, NULL, read_thread, &c.read);
	for (int i = 0; i < THREADS; i++) {
		names[i] = i;
		pthread_create(&writers[i], NULL, write_lines, &names[i]);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(writers[i], NULL);
	dup2(c.saved, STDOUT_FILENO);
	close(c.saved);
	void *got;
	pthread_join(reader, &got);
	_cleanup_free_ char *lines = got;
	int count = 0;
	for (char *line = lines, *end; (end = strchr(line, '\n')); line = end + 1, count++) {
		char *v = strstr(line, "v=");
		assert_true(v && v < end);
		assert_int_equal(end - v, 2 + 5999);
		for (char *p = v + 2; p < end; p++)
			assert_int_equal(*p, v[2]);
	}
	assert_int_equal(count, THREADS * LINES);
}

static void a_stalled_reader_loses_lines_and_is_told(void **state)
{
	(void)state;
	struct capture c = capture_start();
	char text[4000];
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	setup(false, false, LOG_INFO);
	for (int i = 0; i < 50; i++) /* a pipe holds 16 pages */
		LOG(LOG_INFO, "line", F("v", text));
	char part[1 << 17];
	assert_true(read(c.read, part, sizeof(part)) > 0);
	LOG(LOG_INFO, "last");
	_cleanup_free_ char *lines = capture_end(&c);
	char *told = strstr(lines, "WARN  log lines dropped count=");
	assert_non_null(told);
	assert_non_null(strstr(told, "INFO  last\n"));
}

static const struct color_row {
	const char *name, *color, *no_color;
	bool terminal, want;
} colors[] = {
	{ "colour: always", "always", "1", false, true },
	{ "colour: never", "never", NULL, true, false },
	{ "colour: auto on a terminal", "auto", NULL, true, true },
	{ "colour: auto on a pipe", "auto", NULL, false, false },
	{ "colour: auto with NO_COLOR", "auto", "1", true, false },
	{ "colour: auto with an empty NO_COLOR", "auto", "", true, true },
	{ "colour: NULL is auto", NULL, NULL, true, true },
};

static void color_test(void **state)
{
	const struct color_row *row = *state;
	int fd = row->terminal ? posix_openpt(O_RDWR | O_NOCTTY) : open("/dev/null", O_RDWR);
	assert_true(fd >= 0);
	fflush(stdout);
	int saved = dup(STDOUT_FILENO);
	dup2(fd, STDOUT_FILENO);
	bool got = log_wants_color(row->color, row->no_color);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	close(fd);
	assert_int_equal(got, row->want);
}

int main(void)
{
	struct rows r = { 0 };
	ROWS(&r, text_test, texts);
	rows_one(&r, "readable lines begin with the time", readable_lines_begin_with_the_time);
	rows_one(&r, "JSON lines are objects with the time", json_lines_are_objects_with_the_time);
	rows_one(&r, "lines above the level are dropped", lines_above_the_level_are_dropped);
	rows_one(&r, "colours come only when asked for", colours_come_only_when_asked_for);
	rows_one(&r, "a long text is cut at a character", a_long_text_is_cut);
	rows_one(&r, "lines of several threads do not mix", threads_do_not_mix);
	rows_one(&r, "a reader that stalls loses lines and is told how many",
		 a_stalled_reader_loses_lines_and_is_told);
	ROWS(&r, color_test, colors);
	return rows_run(&r, "log");
}
