/* SPDX-License-Identifier: MIT */
/* What /proc says of this process (proc(5)), under the names that Prometheus' own libraries use. */
#include <dirent.h>
#include <string.h>
#include <sys/resource.h>

#include "base/metrics.h"
#include "base/parse.h"

/* Fields of /proc/self/stat, the first one behind the program's name being number 3. */
enum { STAT_UTIME = 14, STAT_STIME = 15, STAT_THREADS = 20, STAT_START = 22, STAT_VSIZE = 23, STAT_RSS = 24 };
#define STAT_FIELDS 25

static int64_t number_of(const char *text)
{
	struct err ignored;
	int64_t n;

	return text && !parse_int(text, 0, INT64_MAX, &n, &ignored) ? n : 0;
}

/* All 0 where /proc is not there. */
static void read_stat(int64_t fields[STAT_FIELDS])
{
	_cleanup_fclose_ FILE *f = fopen("/proc/self/stat", "re");
	char line[1024] = "";
	char *at;

	if (!f || !fgets(line, sizeof(line), f) || !(at = strrchr(line, ')')) || at[1] != ' ')
		return;
	at += 2;
	for (int i = 3; i < STAT_FIELDS && at; i++)
		fields[i] = number_of(strsep(&at, " "));
}

/* When the system was started, in seconds since the epoch. */
static int64_t boot_s(void)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/stat", "re");
	_cleanup_free_ char *line = NULL;
	size_t size = 0;

	while (f && getline(&line, &size, f) > 0) {
		line[strcspn(line, "\n")] = '\0';
		if (!strncmp(line, "btime ", 6))
			return number_of(line + 6);
	}
	return 0;
}

static int64_t count_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	int64_t n = -3; /* ".", ".." and the folder itself */

	if (!d)
		return 0;
	while (readdir(d)) /* NOLINT(concurrency-mt-unsafe): nobody else reads this stream */
		n++;
	closedir(d);
	return n;
}

static int add(struct buf *out, const char *name, const char *kind, const char *help, double value,
	       struct err *e)
{
	return buf_addf(out, e, "# HELP process_%s %s\n# TYPE process_%s %s\nprocess_%s %.17g\n", name, help,
			name, kind, name, value);
}

int metrics_write_process(struct buf *out, struct err *e)
{
	int64_t f[STAT_FIELDS] = { 0 };
	double ticks = (double)sysconf(_SC_CLK_TCK), page = (double)sysconf(_SC_PAGESIZE);
	struct rlimit files = { 0 };

	read_stat(f);
	(void)getrlimit(RLIMIT_NOFILE, &files);
	const struct {
		const char *name, *kind, *help;
		double value;
	} rows[] = {
		{ "cpu_seconds_total", "counter", "User and system time, in seconds.",
		  (double)(f[STAT_UTIME] + f[STAT_STIME]) / ticks },
		{ "open_fds", "gauge", "Descriptors that are open.", (double)count_fds() },
		{ "max_fds", "gauge", "Descriptors that may be open.", (double)files.rlim_cur },
		{ "threads", "gauge", "Threads.", (double)f[STAT_THREADS] },
		{ "virtual_memory_bytes", "gauge", "Address space, in bytes.", (double)f[STAT_VSIZE] },
		{ "resident_memory_bytes", "gauge", "Memory in use, in bytes.", (double)f[STAT_RSS] * page },
		{ "start_time_seconds", "gauge", "When it was started, in seconds since the epoch.",
		  (double)boot_s() + (double)f[STAT_START] / ticks },
	};
	int r = buf_addf(out, e,
			 "# HELP berth_build_info Always 1; its label is the version.\n"
			 "# TYPE berth_build_info gauge\nberth_build_info{version=\"%s\"} 1\n",
			 BERTH_VERSION);

	for (size_t i = 0; i < ARRAY_LEN(rows) && !r; i++)
		r = add(out, rows[i].name, rows[i].kind, rows[i].help, rows[i].value, e);
	return r;
}
