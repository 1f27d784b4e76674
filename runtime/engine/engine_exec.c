/* SPDX-License-Identifier: MIT */
/* An exec as a stream: stdin and stdout are the stream, the rest is the complaint. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "runtime/engine/engine_demux.h"
#include "runtime/engine/engine_hijack.h"
#include "runtime/engine/engine_json.h"

#define INPUT_SIZE 65536
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
	char *complaint; /* what was handed out last; owned */
	size_t at, len;  /* bytes of input that wait */
	uint8_t input[INPUT_SIZE];
};

static void keep(char words[WORDS_SIZE], size_t *used, const void *bytes, size_t len)
{
	size_t n = MIN(len, WORDS_SIZE - *used);
	memcpy(words + *used, bytes, n);
	*used += n;
}

/* Takes the next piece of input off its framing; bytes for the reader, 0 when there were none, -errno. */
static ssize_t take_piece(struct exec_stream *x, uint8_t *out, size_t size)
{
	struct engine_demux_piece piece;
	/* Never more input than the reader has room for: what a piece has is given out at once. */
	size_t room = MIN(x->len - x->at, size);
	ssize_t used = engine_demux_next(&x->demux, x->input + x->at, room, &piece);
	if (used < 0)
		return x->broken = -EPROTO;
	x->at += (size_t)used;
	if (piece.len && piece.stream == DEMUX_STDERR)
		keep(x->errors, &x->errors_len, piece.at, piece.len);
	if (!piece.len || piece.stream != DEMUX_STDOUT)
		return 0;
	keep(x->first, &x->first_len, piece.at, piece.len);
	memcpy(out, piece.at, piece.len);
	return (ssize_t)piece.len;
}

/* 1 when there is input, 0 at the end, -EAGAIN, or another -errno. */
static ssize_t fill(struct exec_stream *x)
{
	size_t n = 0;
	CURLcode code = x->ended ? CURLE_OK : curl_easy_recv(x->handle, x->input, sizeof(x->input), &n);
	if (code == CURLE_AGAIN)
		return -EAGAIN;
	if (code)
		return x->broken = -ECONNRESET;
	x->at = 0;
	x->len = n;
	x->ended = !n;
	return n > 0;
}

/* 1 when there is input to take, else what the read ends with. */
static ssize_t more(struct exec_stream *x, bool wanted, int *fills)
{
	if (x->broken)
		return x->broken;
	if (x->at < x->len)
		return 1;
	return wanted && ++*fills <= FILLS_MAX ? fill(x) : -EAGAIN;
}

/*
 * As much as the input at hand gives: small frames would cost a call each otherwise. Error texts
 * alone give 0 bytes but are no end, so the loop goes on.
 */
static ssize_t exec_read(struct stream *s, void *bytes, size_t size)
{
	struct exec_stream *x = (struct exec_stream *)s;
	size_t done = 0;
	ssize_t r = 1;
	for (int fills = 0; done < size && r > 0;) {
		r = more(x, !done, &fills);
		ssize_t n = r > 0 ? take_piece(x, (uint8_t *)bytes + done, size - done) : 0;
		if (n < 0)
			r = n;
		else
			done += (size_t)n;
	}
	return done ? (ssize_t)done : r;
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

/* Docker tells a program that is not there on stdout, Podman on stderr (engine-pitfalls A28). */
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
	free(x);
}

static const struct stream_ops exec_ops = { exec_read, exec_write, exec_complaint, exec_close };

static int stream_new(CURL *handle, const struct buf *early, struct stream **ret, struct err *e)
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
	x->len = early->len; /* below HEAD_MAX, which is below INPUT_SIZE */
	if (early->len)
		memcpy(x->input, early->data, early->len);
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
	_cleanup_buf_ struct buf early = BUF_INIT(INPUT_SIZE);
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
	atomic_fetch_add(&g->calls, 1);
	r = engine_hijack(g, start, "{\"Detach\":false,\"Tty\":false}", deadline, &handle, &early, e);
	if (r)
		atomic_fetch_add(&g->errors, 1);
	return r ? r : stream_new(handle, &early, ret, e);
}
