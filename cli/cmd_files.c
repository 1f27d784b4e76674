/* SPDX-License-Identifier: MIT */
/* cmd_files.c - print, list and archive files of a session. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "cli/cmd.h"
#include "cli/pipes.h"
#include "cli/remote.h"

#define LIST_MAX 100000

static const struct format_column file_columns[] = {
	{ "MODE", "mode" },      { "TYPE", "type" }, { "SIZE", "size" },
	{ "MODIFIED", "mtime" }, { "PATH", "path" },
};

int cmd_cat(struct cli *cli, struct err *e)
{
	int rc = session_resolve(cli, cli->opt.operands.at[0], e);
	for (size_t i = 1; !rc && i < cli->opt.operands.count; i++) {
		const char *name = cli->opt.operands.at[i];
		_cleanup_free_ char *query = remote_query(name);
		_cleanup_free_ char *path = client_path("/v1/sessions/%s/files/content", cli->session);
		_cleanup_free_ char *url = xasprintf("%s?%s", path, query);
		rc = remote_get(cli, url, STDOUT_FILENO, name, true, e);
		if (rc && pipes_is_unread(e))
			return 0; /* as a pipe's end is for cat */
		if (rc)
			err_wrap(e, "%s", name);
	}
	return rc;
}

/* ---- ls-files ---- */

static void print_files(const struct cli *cli, json_t *reply)
{
	json_t *entries = json_object_get(reply, "entries"), *entry = NULL;
	size_t i = 0;
	if (cli->opt.json) {
		format_json(stdout, reply);
	} else if (cli->opt.quiet) {
		json_array_foreach (entries, i, entry) {
			_cleanup_free_ char *path = format_value(json_object_get(entry, "path"));
			puts(path);
		}
	} else {
		format_table(stdout, file_columns, ARRAY_LEN(file_columns), entries, cli->color);
	}
}

int cmd_files(struct cli *cli, struct err *e)
{
	const struct options *o = &cli->opt;
	_cleanup_json_ json_t *body = json_object(), *reply = NULL;
	int rc = session_resolve(cli, o->operands.at[0], e);
	if (rc)
		return rc;
	remote_put_path(body, o->operands.count > 1 ? o->operands.at[1] : ".");
	json_object_set_new(body, "recursive", json_boolean(o->recursive));
	put_number(body, "max", o->limit < 0 ? LIST_MAX : o->limit);
	_cleanup_free_ char *path = client_path("/v1/sessions/%s/files/list", cli->session);
	rc = call_json(cli, "POST", path, body, &reply, e);
	if (rc)
		return rc;
	print_files(cli, reply);
	if (json_is_true(json_object_get(reply, "truncated")))
		say("there are more; these are the first %zu",
		    json_array_size(json_object_get(reply, "entries")));
	return 0;
}

/* ---- archive ---- */

/* Into a file that has its name only once it is whole. */
static int archive_to_file(struct cli *cli, const char *url, const char *name, struct err *e)
{
	_cleanup_free_ char *part = xasprintf("%s.part", name);
	int fd = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd < 0)
		return err_sys(e, ERR_INVALID, errno, "cannot write %s", part);
	int rc = remote_get(cli, url, fd, name, cli->opt.quiet, e);
	if (close(fd) && !rc)
		rc = err_sys(e, ERR_NO_SPACE, errno, "cannot write %s", part);
	if (!rc && rename(part, name))
		rc = err_sys(e, ERR_INVALID, errno, "cannot write %s", name);
	if (rc)
		unlink(part);
	return rc;
}

int cmd_archive(struct cli *cli, struct err *e)
{
	const struct options *o = &cli->opt;
	if (!o->output && isatty(STDOUT_FILENO))
		return err_set(e, ERR_INVALID,
			       "an archive is nothing for a terminal: use -o FILE, or a pipe");
	int rc = session_resolve(cli, o->operands.at[0], e);
	if (rc)
		return rc;
	_cleanup_free_ char *query = remote_query(o->operands.count > 1 ? o->operands.at[1] : ".");
	_cleanup_free_ char *path = client_path("/v1/sessions/%s/files/archive?format=%s", cli->session,
						o->format ? o->format : "tar.gz");
	_cleanup_free_ char *url = xasprintf("%s&%s", path, query);
	return o->output ? archive_to_file(cli, url, o->output, e)
			 : remote_get(cli, url, STDOUT_FILENO, "archive", o->quiet, e);
}
