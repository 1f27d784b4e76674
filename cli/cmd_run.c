/* SPDX-License-Identifier: MIT */
/* cmd_run.c - one command in a session of its own, or in one that is there. */
#include "cli/cmd.h"

static int check(const struct options *o, struct err *e)
{
	const char *name = o->session ? options_seen(o, OPTIONS_CREATE, OPTIONS_EXEC) : NULL;
	if (name)
		return err_set(e, ERR_INVALID, "--%s is for a new session and does not go with --session",
			       name);
	return 0;
}

static int open_session(struct cli *cli, struct err *e)
{
	_cleanup_json_ json_t *created = NULL;
	if (cli->opt.session)
		return session_resolve(cli, cli->opt.session, e);
	int rc = session_create(cli, &created, e);
	if (!rc && !cli->opt.rm)
		say("session %s (berth exec %s -- CMD; berth rm %s)", cli->session, cli->session,
		    cli->session);
	return rc;
}

/* A session that stays behind against the caller's will must at least be known. */
static int remove_session(struct cli *cli, struct err *e)
{
	struct err why;
	if (cli->interrupt.count > 1 || session_remove(cli, cli->session, &why)) {
		bool hasty = cli->interrupt.count > 1;
		say("session %s is not removed%s%s", cli->session, hasty ? "" : ": ", hasty ? "" : why.msg);
		return err_set(e, ERR_INTERNAL, "session %s stays behind: berth rm %s", cli->session,
			       cli->session);
	}
	return 0;
}

int cmd_run(struct cli *cli, struct err *e)
{
	_cleanup_json_ json_t *body = NULL;
	int rc = check(&cli->opt, e);
	if (!rc)
		rc = exec_body(cli, cli->opt.session != NULL, &body, e);
	if (!rc)
		rc = open_session(cli, e);
	if (!rc && !cli->interrupt.signal)
		rc = exec_run(cli, body, e);
	if (!cli->opt.rm || !*cli->session)
		return rc;
	struct err left;
	if (remove_session(cli, &left) && !rc) {
		*e = left;
		rc = -(int)left.code;
	}
	return rc;
}
