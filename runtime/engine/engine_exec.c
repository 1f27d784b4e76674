/* SPDX-License-Identifier: MIT */
/* An exec as a stream: stdin and stdout are the stream, the rest is the complaint. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "runtime/engine/engine_demux.h"
#include "runtime/engine/engine_hijack.h"
#include "runtime/engine/engine_json.h"
#include "runtime/engine/engine_metrics.h"

#define EARLY_MAX 65536
#define WORDS_SIZE 400 /* kept of what may become a complaint */
#define FILLS_MAX 16   /* of one read: a process that floods stderr must not hold the reader's thread */

struct exec_stream {
	struct stream base;
	CURL *handle;
	struct engine_demux demux;
	bool ended;
	int broken;              /* -errno that every further read gives; 0: none */
	char errors[WORDS_SIZE]; /* the first bytes of stderr */
	char first[WORDS_SIZE];  /* the first bytes of stdout */
	size_t errors_len, first_len;
	char *complaint;  /* what was handed out last; owned */
	struct buf early; /* what came with the answer's head, not read yet */
};

static void keep(char words[WORDS_SIZE], size_t *used, const void *bytes, size_t len)
{
	size_t n = MIN(len, WORDS_SIZE - *used);
	memcpy(words + *used, bytes, n);
	*used += n;
}

/*
 * Takes what was read off its framing, in place: payload moves down over the headers. The bytes of stdout
 * that are left; -EPROTO when the framing is broken, and also at the next read when something came before the
 * break.
 */
static ssize_t unframe(struct exec_stream *x, uint8_t *bytes, size_t len)
{
	struct engine_demux_piece piece;
	size_t done = 0;
	for (size_t at = 0; at < len;) {
		ssize_t used = engine_demux_next(&x->demux, bytes + at, len - at, &piece);
		if (used < 0) {
			x->broken = -EPROTO;
			return done ? (ssize_t)done : x->broken;
		}
		at += (size_t)used;
		if (piece.len && piece.stream == DEMUX_STDERR)
			keep(x->errors, &x->errors_len, piece.at, piece.len);
		if (!piece.len || piece.stream != DEMUX_STDOUT)
			continue;
		keep(x->first, &x->first_len, piece.at, piece.len);
		memmove(bytes + done, piece.at, piece.len);
		done += piece.len;
	}
	return (ssize_t)done;
}

/* Bytes as they come, those that came with the head first; 0 at the end, -EAGAIN, or another -errno. */
static ssize_t receive(struct exec_stream *x, uint8_t *bytes, size_t size)
{
	size_t n = MIN(size, x->early.len);
	if (n) {
		memcpy(bytes, x->early.data, n);
		buf_consume(&x->early, n);
		if (!x->early.len)
			buf_clear(&x->early);
		return (ssize_t)n;
	}
	CURLcode code = x->ended ? CURLE_OK : curl_easy_recv(x->handle, bytes, size, &n);
	if (code == CURLE_AGAIN)
		return -EAGAIN;
	if (code)
		return x->broken = -ECONNRESET;
	x->ended = !n;
	return (ssize_t)n;
}

/* Headers or error texts alone give no bytes but are no end, so the loop goes on. */
static ssize_t exec_read(struct stream *s, void *bytes, size_t size)
{
	struct exec_stream *x = (struct exec_stream *)s;
	for (int fills = 0; fills < FILLS_MAX && !x->broken; fills++) {
		ssize_t n = receive(x, bytes, size);
		if (n <= 0)
			return n;
		n = unframe(x, bytes, (size_t)n);
		if (n)
			return n;
	}
	return x->broken ? x->broken : -EAGAIN;
}

static ssize_t exec_write(struct stream *s, const void *bytes, size_t len)
{
	struct exec_stream *x = (struct exec_stream *)s;
	size_t n = 0;
	CURLcode code = curl_easy_send(x->handle, bytes, len, &n);
	if (code == CURLE_AGAIN)
		return -EAGAIN;
	return code ? -EPIPE : (ssize_t)n;
}

/* Text and not the first bytes of somebody's protocol? */
static bool is_prose(const char *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)bytes[i] < ' ' && !strchr("\t\r\n", bytes[i]))
			return false;
	return len > 0;
}

/* Docker tells a program that is not there on stdout, Podman on stderr. */
static const char *exec_complaint(struct stream *s)
{
	struct exec_stream *x = (struct exec_stream *)s;
	const char *words = x->errors_len ? x->errors : x->first;
	size_t len = x->errors_len ? x->errors_len : is_prose(x->first, x->first_len) ? x->first_len : 0;
	while (len && strchr(" \r\n", words[len - 1]))
		len--;
	free(x->complaint);
	return x->complaint = utf8_escape(words, len, WORDS_SIZE);
}

static void exec_close(struct stream *s)
{
	struct exec_stream *x = (struct exec_stream *)s;
	curl_easy_cleanup(x->handle);
	free(x->complaint);
	buf_clear(&x->early);
	free(x);
}

static const struct stream_ops exec_ops = { exec_read, exec_write, exec_complaint, exec_close };

/* *early moves in. */
static int stream_new(CURL *handle, struct buf *early, struct stream **ret, struct err *e)
{
	struct exec_stream *x = xcalloc(1, sizeof(*x));
	curl_socket_t fd = CURL_SOCKET_BAD;
	x->base.ops = &exec_ops;
	x->handle = handle;
	if (curl_easy_getinfo(handle, CURLINFO_ACTIVESOCKET, &fd) || fd == CURL_SOCKET_BAD) {
		exec_close(&x->base);
		return err_set(e, ERR_UNAVAILABLE, "the exec's connection is lost already");
	}
	x->base.fd = fd;
	x->early = *early;
	*early = BUF_INIT(EARLY_MAX);
	*ret = &x->base;
	return 0;
}

static json_t *exec_body(const char *const *argv, unsigned uid, unsigned gid)
{
	json_t *cmd = json_array();
	for (size_t i = 0; argv[i]; i++)
		json_array_append_new(cmd, json_string(argv[i]));
	return json_pack("{s:o, s:o, s:b, s:b, s:b, s:b, s:b}", "Cmd", cmd, "User",
			 json_sprintf("%u:%u", uid, gid), "AttachStdin", 1, "AttachStdout", 1, "AttachStderr",
			 1, "Tty", 0, "Privileged", 0);
}

int engine_exec_open(struct engine *g, const char *id, const char *const *argv, unsigned uid, unsigned gid,
		     struct stream **ret, struct err *e)
{
	_cleanup_json_ json_t *body = exec_body(argv, uid, gid), *reply = NULL;
	_cleanup_buf_ struct buf early = BUF_INIT(EARLY_MAX);
	char exec[ENGINE_ID_SIZE];
	CURL *handle = NULL;
	int64_t deadline = clock_mono_ms() + g->call_timeout_ms;
	int r = engine_check_name("id", id, e);
	_cleanup_free_ char *create = r ? NULL : xasprintf("/containers/%s/exec", id);
	r = r ? r : engine_post(g, create, body, &reply, e);
	r = r ? r : engine_json_id(reply, "Id", exec, e);
	if (r)
		return r;
	/* Never a second start of the same exec: Docker answers 200 with an error inside, Podman 500. */
	_cleanup_free_ char *start = xasprintf("/exec/%s/start", exec);
	int64_t started_us = clock_mono_us();
	r = engine_hijack(g, start, "{\"Detach\":false,\"Tty\":false}", deadline, &handle, &early, e);
	engine_metrics_count(ENGINE_POST, start, started_us, r);
	return r ? r : stream_new(handle, &early, ret, e);
}
