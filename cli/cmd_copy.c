/* SPDX-License-Identifier: MIT */
/* cmd_copy.c - `berth cp`: a file or folder into a session or out of it. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/cmd.h"
#include "cli/pipes.h"
#include "cli/remote.h"
#include "cli/tree.h"

#define BEGIN_MS 60000

/* "SESSION:PATH", unless a slash comes first: then it is a local name with a colon in it. */
static const char *remote_part(const char *text)
{
	const char *colon = strchr(text, ':'), *slash = strchr(text, '/');
	return colon && colon > text && (!slash || colon < slash) ? colon : NULL;
}

/* Without the slashes at its end; "/" stays. */
static char *trimmed(const char *path)
{
	size_t len = strlen(path);
	while (len > 1 && path[len - 1] == '/')
		len--;
	return xstrndup(path, len);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash && slash[1] ? slash + 1 : path;
}

/* Is there a name to put a copy under? "..", "." and "/" have none. */
static bool has_name(const char *path)
{
	const char *name = base_name(path);
	return *name && strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && strcmp(name, "/") != 0;
}

static char *below(const char *folder, const char *path)
{
	return xasprintf("%s/%s", strcmp(folder, "/") ? folder : "", base_name(path));
}

static char *api_path(const struct cli *cli, const char *what, const char *path, const char *more)
{
	_cleanup_free_ char *base = client_path("/v1/sessions/%s/files/", cli->session);
	_cleanup_free_ char *query = remote_query(path);
	return xasprintf("%s%s?%s%s", base, what, query, more);
}

static void tell(const struct cli *cli, const char *from, const char *to)
{
	if (cli->opt.json) {
		_cleanup_json_ json_t *done = json_pack("{s:s, s:s}", "from", from, "to", to);
		if (done)
			format_json(stdout, done);
	}
}

/* ---- into the session ---- */

struct packing {
	struct tree *tree;
	struct progress progress;
};

static ssize_t give(void *ctx, char *room, size_t size, struct err *e)
{
	struct packing *p = ctx;
	ssize_t n = tree_read(p->tree, room, size, e);
	if (n > 0)
		progress_add(&p->progress, (size_t)n);
	return n;
}

/* What the sandbox has refused is said; it is a failure, since the copy is not whole. */
static int check_report(json_t *report, size_t left_out, struct err *e)
{
	json_t *one = NULL;
	size_t i = 0;
	json_int_t refused = json_integer_value(json_object_get(report, "refused"));
	json_array_foreach (json_object_get(report, "errors"), i, one) {
		_cleanup_free_ char *path = format_value(json_object_get(one, "path"));
		_cleanup_free_ char *why = format_value(json_object_get(one, "error"));
		say("left out: %s: %s", path, why);
	}
	if (refused > 0 || left_out)
		return err_set(e, ERR_UNPROCESSABLE, "%lld entries are left out",
			       (long long)refused + (long long)left_out);
	return 0;
}

static int make_folder(struct cli *cli, const char *path, struct err *e)
{
	_cleanup_free_ char *url = client_path("/v1/sessions/%s/files/mkdir", cli->session);
	_cleanup_json_ json_t *body = json_object(), *reply = NULL;
	remote_put_path(body, path);
	return call_json(cli, "POST", url, body, &reply, e);
}

static int send_folder(struct cli *cli, const char *local, const char *remote, struct err *e)
{
	struct packing p = { 0 };
	_cleanup_free_ char *url = api_path(cli, "archive", remote, "&format=tar");
	int rc = make_folder(cli, remote, e);
	if (rc || (rc = tree_open(local, &p.tree, e)))
		return rc;
	_cleanup_(tree_free_cleanup_) struct tree *tree = p.tree;
	struct client_request rq = { .method = "PUT",
				     .path = url,
				     .timeout_ms = BEGIN_MS,
				     .idle_ms = REMOTE_IDLE_MS,
				     .on_read = give,
				     .read_length = -1,
				     .ctx = &p };
	_cleanup_reply_ struct client_reply reply = { 0 };
	progress_begin(&p.progress, base_name(local), -1, cli->opt.quiet);
	rc = client_call(cli->client, &rq, &reply, e);
	progress_end(&p.progress);
	return rc ? rc : check_report(reply.body, tree_left_out(tree), e);
}

static int send_file(struct cli *cli, int fd, const struct stat *st, const char *remote, struct err *e)
{
	char mode[16];
	snprintf(mode, sizeof(mode), "&mode=0%o", S_ISREG(st->st_mode) ? st->st_mode & 0777u : 0644u);
	_cleanup_free_ char *url = api_path(cli, "content", remote, mode);
	return remote_put(cli, url, fd, S_ISREG(st->st_mode) ? st->st_size : -1, base_name(remote),
			  cli->opt.quiet, e);
}

/* Where a copy of `local` (NULL: stdin) goes: under its own name when the target is a folder. What has no
 * name, such as ".", goes into the folder itself. */
static int remote_target(struct cli *cli, const char *local, const char *path, char **ret, struct err *e)
{
	char type[16] = "";
	_cleanup_free_ char *plain = trimmed(*path ? path : ".");
	int rc = remote_type(cli, plain, type, e);
	bool folder = !strcmp(type, "dir") || (*path && path[strlen(path) - 1] == '/');
	if (rc)
		return rc;
	if (folder && !local)
		return err_set(e, ERR_INVALID, "%s is a folder: say what stdin shall be called in it", plain);
	*ret = folder && has_name(local) ? below(plain, local) : STEAL_PTR(plain);
	return 0;
}

static int copy_in(struct cli *cli, const char *source, const char *path, struct err *e)
{
	bool piped = !strcmp(source, "-");
	_cleanup_free_ char *local = trimmed(source), *remote = NULL;
	struct stat st;
	/* O_NONBLOCK: to open a FIFO must not wait for a writer; reads wait in poll. */
	_cleanup_close_ int fd = piped ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
				       : open(local, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st))
		return err_sys(e, ERR_NOT_FOUND, errno, "%s", source);
	int rc = remote_target(cli, piped ? NULL : local, path, &remote, e);
	if (rc)
		return rc;
	rc = S_ISDIR(st.st_mode) ? send_folder(cli, local, remote, e) : send_file(cli, fd, &st, remote, e);
	if (!rc)
		tell(cli, source, remote);
	return rc;
}

/* ---- out of the session ---- */

static int receive_folder(struct cli *cli, const char *remote, const char *local, struct err *e)
{
	struct tree_in *in = NULL;
	struct err other;
	size_t left_out = 0;
	int fd = -1;
	_cleanup_free_ char *url = api_path(cli, "archive", remote, "&format=tar");
	if (mkdir(local, 0777) && errno != EEXIST)
		return err_sys(e, ERR_INVALID, errno, "cannot make %s", local);
	int rc = tree_in_start(local, &in, &fd, e);
	if (rc)
		return rc;
	rc = remote_get(cli, url, fd, base_name(remote), cli->opt.quiet, e);
	close(fd);
	/* When unpacking fails, the transfer only knows that nobody reads. */
	int unpacked = tree_in_finish(in, &left_out, &other);
	if (unpacked && (!rc || pipes_is_unread(e))) {
		*e = other;
		return err_wrap(e, "%s", local);
	}
	if (!rc && left_out)
		return err_set(e, ERR_UNPROCESSABLE, "%zu entries are left out", left_out);
	return rc;
}

/* Under a name of its own until it is whole, so that a copy that breaks leaves what was there. */
static int receive_file(struct cli *cli, const char *remote, const char *local, struct err *e)
{
	_cleanup_free_ char *url = api_path(cli, "content", remote, "");
	if (!strcmp(local, "-"))
		return remote_get(cli, url, STDOUT_FILENO, base_name(remote), true, e);
	struct stat st;
	if (!stat(local, &st) && !S_ISREG(st.st_mode)) {
		_cleanup_close_ int fd = open(local, O_WRONLY | O_CLOEXEC);
		return fd < 0 ? err_sys(e, ERR_INVALID, errno, "cannot write %s", local)
			      : remote_get(cli, url, fd, base_name(remote), cli->opt.quiet, e);
	}
	_cleanup_free_ char *part = xasprintf("%s.XXXXXX", local);
	int fd = mkostemp(part, O_CLOEXEC);
	if (fd < 0)
		return err_sys(e, ERR_INVALID, errno, "cannot write %s", local);
	int rc = remote_get(cli, url, fd, base_name(remote), cli->opt.quiet, e);
	mode_t mask = umask(0);
	umask(mask);
	if (!rc && fchmod(fd, 0666 & ~mask))
		rc = err_sys(e, ERR_INVALID, errno, "cannot write %s", local);
	if (close(fd) && !rc)
		rc = err_sys(e, ERR_NO_SPACE, errno, "cannot write %s", local);
	if (!rc && rename(part, local))
		rc = err_sys(e, ERR_INVALID, errno, "cannot write %s", local);
	if (rc)
		unlink(part);
	return rc;
}

static bool is_folder(const char *path)
{
	struct stat st;
	return !stat(path, &st) && S_ISDIR(st.st_mode);
}

/* Where a copy goes here: under its own name when the target is a folder. */
static int local_target(const char *remote, const char *target, bool folder, char **ret, struct err *e)
{
	_cleanup_free_ char *local = trimmed(target);
	if (!strcmp(target, "-") && folder)
		return err_set(e, ERR_INVALID, "%s is a folder: berth archive prints one", remote);
	if (!is_folder(local) || (folder && !has_name(remote)))
		*ret = STEAL_PTR(local);
	else if (has_name(remote))
		*ret = below(local, remote);
	else
		return err_set(e, ERR_INVALID, "%s is a folder", local);
	return 0;
}

static int copy_out(struct cli *cli, const char *path, const char *target, struct err *e)
{
	char type[16];
	_cleanup_free_ char *remote = trimmed(*path ? path : "."), *local = NULL;
	int rc = remote_type(cli, remote, type, e);
	if (rc)
		return rc;
	if (!*type)
		return err_set(e, ERR_NOT_FOUND, "%s: no such file", remote);
	bool folder = !strcmp(type, "dir");
	rc = local_target(remote, target, folder, &local, e);
	if (rc)
		return rc;
	rc = folder ? receive_folder(cli, remote, local, e) : receive_file(cli, remote, local, e);
	if (strcmp(local, "-") != 0) {
		if (!rc)
			tell(cli, remote, local);
		return rc;
	}
	return rc && pipes_is_unread(e) ? 0 : rc;
}

int cmd_copy(struct cli *cli, struct err *e)
{
	const char *source = cli->opt.operands.at[0], *target = cli->opt.operands.at[1];
	const char *from = remote_part(source), *to = remote_part(target);
	if (!from == !to)
		return err_set(
			e, ERR_INVALID, "one of the two must be SESSION:PATH, the other a local path%s",
			from ? "; from session to session: berth cp A:PATH - | berth cp - B:PATH" : "");
	const char *colon = from ? from : to;
	_cleanup_free_ char *session = from ? xstrndup(source, (size_t)(colon - source))
					    : xstrndup(target, (size_t)(colon - target));
	int rc = session_resolve(cli, session, e);
	if (rc)
		return rc;
	return from ? copy_out(cli, colon + 1, target, e) : copy_in(cli, source, colon + 1, e);
}
