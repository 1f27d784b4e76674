/* SPDX-License-Identifier: MIT */
/* fake_process.c - the fake manager's processes: there are none. */
#include "manager/process.h"

int process_start(struct session *s, const struct exec_request *rq, const struct caller *who,
		  struct exec **ret, struct err *e)
{
	(void)s, (void)rq, (void)who, (void)ret;
	return err_set(e, ERR_UNSUPPORTED, "the fake has no processes");
}

int process_find(struct session *s, const char *id, struct exec **ret, struct err *e)
{
	(void)s, (void)id, (void)ret;
	return err_set(e, ERR_NOT_FOUND, "there is no such process");
}

json_t *process_get_state(struct exec *x)
{
	(void)x;
	return json_object();
}

json_t *process_list(struct session *s)
{
	(void)s;
	return json_array();
}

int process_read(struct exec *x, const struct process_wish *w, struct process_piece *ret, bool *ret_ended,
		 struct err *e)
{
	(void)x, (void)w, (void)ret, (void)ret_ended;
	return err_set(e, ERR_UNSUPPORTED, "the fake has no processes");
}

int process_write(struct exec *x, const struct process_input *in, size_t *ret_taken, struct err *e)
{
	(void)x, (void)in, (void)ret_taken;
	return err_set(e, ERR_UNSUPPORTED, "the fake has no processes");
}

int process_stop(struct exec *x, int grace_ms, int client_fd, struct err *e)
{
	(void)x, (void)grace_ms, (void)client_fd;
	return err_set(e, ERR_UNSUPPORTED, "the fake has no processes");
}

int process_forget(struct exec *x, const struct caller *who, struct err *e)
{
	(void)x, (void)who;
	return err_set(e, ERR_UNSUPPORTED, "the fake has no processes");
}
