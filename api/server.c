/* SPDX-License-Identifier: MIT */
#include "api/server.h"

#include <arpa/inet.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <string.h>

#include "api/conns.h"
#include "api/exchange.h"
#include "api/listen.h"
#include "api/openapi.h"
#include "base/id.h"
#include "base/json.h"
#include "base/log.h"

#define STACK_BYTES (256 * 1024)
#define CONNECTION_MEMORY (64 * 1024) /* headers of a request, and the chunks of a stream */
/* Connections above the limit, for the health check and to say no. */
#define RESERVE 32

struct server {
	struct api api;
	struct conns *conns;
	struct MHD_Daemon *daemon;
	int listen_fd, port;
};

/* ---- what the library calls ---- */

static struct conn *conn_of(struct MHD_Connection *mhd)
{
	return MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

static bool is_loopback(const char *address)
{
	return !strncmp(address, "127.", 4) || !strcmp(address, "::1");
}

static void on_connection(void *ctx, struct MHD_Connection *mhd, void **slot,
			  enum MHD_ConnectionNotificationCode code)
{
	struct server *s = ctx;
	char name[LISTEN_NAME_SIZE];
	int fd;

	if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
		conns_remove(*slot); /* the library closes the socket after this */
		*slot = NULL;
		return;
	}
	fd = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
	listen_peer_name(MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr, name);
	listen_tune_client(fd);
	*slot = conns_add(s->conns, fd, name, is_loopback(name));
}

/* The only moment in which the target can be seen as it was sent. */
static void *on_target(void *ctx, const char *target, struct MHD_Connection *mhd)
{
	struct server *s = ctx;
	struct conn *conn = conn_of(mhd);

	conn_expect_headers(conn);
	return exchange_new(&s->api, conn, target);
}

/* NOLINTNEXTLINE(readability-function-size): the parameters are those of MHD_AccessHandlerCallback */
static enum MHD_Result on_request(void *ctx, struct MHD_Connection *mhd, const char *url, const char *method,
				  const char *version, const char *bytes, size_t *size, void **slot)
{
	(void)ctx;
	(void)url;
	return exchange_step(*slot, mhd, method, version, bytes, size) ? MHD_NO : MHD_YES;
}

static void on_completed(void *ctx, struct MHD_Connection *mhd, void **slot,
			 enum MHD_RequestTerminationCode code)
{
	(void)ctx;
	(void)code;
	exchange_free(*slot);
	*slot = NULL;
	conn_end(conn_of(mhd));
}

/* Escapes stay: the library would decode %00 into the end of the path, and %2f into a slash. */
static size_t keep_escapes(void *ctx, struct MHD_Connection *mhd, char *text)
{
	(void)ctx;
	(void)mhd;
	return strlen(text);
}

static void PRINTF_LIKE(2, 0) on_message(void *ctx, const char *fmt, va_list args)
{
	char text[256];

	(void)ctx;
	(void)vsnprintf(text, sizeof(text), fmt, args);
	text[strcspn(text, "\n")] = '\0';
	LOG(LOG_DEBUG, "http", F("message", text));
}

/* ---- start and stop ---- */

static int start_daemon(struct server *s, int max_connections, struct err *e)
{
	/* Poll, since the library's select() stops at descriptor 1023; ITC, so that it can be quiesced. */
	s->daemon = MHD_start_daemon(
		MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL | MHD_USE_ITC |
			MHD_USE_ERROR_LOG,
		0, NULL, NULL, on_request, s, MHD_OPTION_EXTERNAL_LOGGER, on_message, NULL,
		MHD_OPTION_LISTEN_SOCKET, s->listen_fd, MHD_OPTION_NOTIFY_CONNECTION, on_connection, s,
		MHD_OPTION_URI_LOG_CALLBACK, on_target, s, MHD_OPTION_NOTIFY_COMPLETED, on_completed, s,
		MHD_OPTION_UNESCAPE_CALLBACK, keep_escapes, s, MHD_OPTION_CONNECTION_LIMIT,
		(unsigned)(max_connections + RESERVE), MHD_OPTION_CONNECTION_MEMORY_LIMIT,
		(size_t)CONNECTION_MEMORY, MHD_OPTION_THREAD_STACK_SIZE, (size_t)STACK_BYTES,
		/* Ours are the deadlines: this one is for inactivity, and counts the time a handler takes. */
		MHD_OPTION_CONNECTION_TIMEOUT, 0u, MHD_OPTION_END);
	if (!s->daemon)
		return err_set(e, ERR_INTERNAL, "the HTTP server does not start");
	return 0;
}

static void describe_api(struct api *api)
{
	_cleanup_json_ json_t *doc = openapi_make();
	char hash[ID_HASH_SIZE];

	api->openapi = json_text(doc);
	id_hash(api->openapi, strlen(api->openapi), hash);
	(void)snprintf(api->openapi_tag, sizeof(api->openapi_tag), "\"%.32s\"", hash);
}

static void init_api(struct api *api, const struct settings *settings, struct manager *m,
		     const struct listen_address *a)
{
	api->settings = settings;
	api->manager = m;
	(void)snprintf(api->guard.listen_host, sizeof(api->guard.listen_host), "%s", a->host);
	api->guard.listens_anywhere = listen_is_wildcard(a);
	api->guard.allowed_hosts = settings->allowed_hosts;
	api->guard.allowed_origins = settings->allowed_origins;
	describe_api(api);
}

static void server_free(struct server *s)
{
	conns_free(s->conns);
	free(s->api.openapi);
	if (s->listen_fd >= 0)
		close(s->listen_fd);
	free(s);
}
DEFINE_CLEANUP(struct server *, server_free)

int server_start(const struct settings *settings, struct manager *m, struct server **ret, struct err *e)
{
	_cleanup_(server_free_cleanup_) struct server *s = xcalloc(1, sizeof(*s));
	int max_connections = (int)settings->max_connections;
	struct listen_address address;
	const struct conns_limits limits = { .total = max_connections,
					     .per_address = MAX(max_connections / 2, 1) };

	s->listen_fd = -1;
	if (listen_parse(settings->listen, &address, e) || listen_open(&address, &s->listen_fd, &s->port, e))
		return -e->code;
	init_api(&s->api, settings, m, &address);
	s->conns = conns_new(&limits);
	if (start_daemon(s, max_connections, e))
		return -e->code;
	*ret = STEAL_PTR(s);
	return 0;
}

int server_port(const struct server *s)
{
	return s->port;
}

void server_stop(struct server *s, int deadline_ms)
{
	if (!s)
		return;
	atomic_store(&s->api.stopping, true);
	/* Later connects are refused; the library gives the descriptor back to us, and is done with it once
	 * stopped. */
	(void)MHD_quiesce_daemon(s->daemon);
	(void)shutdown(s->listen_fd, SHUT_RDWR);
	conns_drain(s->conns);
	manager_quiesce(s->api.manager);
	if (!conns_wait_quiet(s->conns, deadline_ms))
		LOG(LOG_WARN, "requests are cut off by the stop");
	MHD_stop_daemon(s->daemon);
	server_free(s);
}
