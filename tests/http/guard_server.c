/* SPDX-License-Identifier: MIT */
/*
 * guard_server.c - the HTTP server over the fake manager: prints its port, serves until SIGTERM.
 *
 *	guard_server ADMIN_TOKEN MAX_CONNECTIONS
 */
#include <signal.h>
#include <string.h>

#include "api/server.h"
#include "base/log.h"
#include "base/parse.h"
#include "manager/manager.h"

static void wait_for_end(void)
{
	sigset_t set;
	int signo;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigwait(&set, &signo);
}

static void block_end(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
}

int main(int argc, char **argv)
{
	struct settings settings = { .listen = (char[]){ "127.0.0.1:0" },
				     .admin_token = argc > 1 ? argv[1] : NULL,
				     .allowed_hosts = (char[]){ "berth.example, box:9000" },
				     .allowed_origins = (char[]){ "https://console.example" },
				     .workspace = (char[]){ "/workspace" },
				     .default_timeout_s = 120,
				     .max_timeout_s = 1800,
				     .max_body = 1 << 20 };
	struct manager *m;
	struct server *s;
	struct err e = { 0 };

	log_setup(&(struct log_format){ .level = LOG_DEBUG });
	block_end();
	if (argc != 3 || parse_int(argv[2], 1, 100000, &settings.max_connections, &e) ||
	    manager_new(&settings, &m, &e) || server_start(&settings, m, &s, &e)) {
		fprintf(stderr, "guard_server: %s\n", e.msg);
		return 1;
	}
	printf("port %d\n", server_port(s));
	(void)fflush(stdout);
	wait_for_end();
	server_stop(s, 5000);
	manager_free(m);
	return 0;
}
