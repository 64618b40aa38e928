/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: a process that calls the socket names of another process without pause holds up nobody.
 *   loop     processes of another user connect and hang up in loops: messages between two victims,
 *            which sleep for events, go on
 *   silent   a process of another user connects as often as it can and says nothing: the victim
 *            does not run out of descriptors, a process of its user still reaches it, and the
 *            victim ends the silent connections
 *
 * usage: callers loop|silent
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "support/check.h"
#include "support/clock.h"
#include "support/intruder.h"
#include "support/process.h"

enum { ROUNDS = 200, LIMIT = 256, SILENT = 1000, OWN_FILES = 128, CALLERS = 2 };

/* Until it is killed. */
static int caller(int sock, void *unused)
{
	(void)unused;
	user_become(INTRUDER_STRANGER);
	message_meet(sock);
	for (unsigned int i = 0;; i++) {
		int fd = name_call_any(i);

		if (fd >= 0)
			close(fd);
	}
	return 0;
}

static const struct ping ping = {"callers in a loop do not hold up messages", ROUNDS};

static void loop_test(void)
{
	struct process callers[CALLERS], a, b;

	for (int i = 0; i < CALLERS; i++)
		process_start(&callers[i], caller, NULL);
	for (int i = 0; i < CALLERS; i++)
		message_meet(callers[i].sock);
	victims_start(&a, &b, &ping);
	process_expect_success(&a, 60000);
	process_expect_success(&b, PROCESS_PATIENCE_MS);
	for (int i = 0; i < CALLERS; i++)
		process_kill(&callers[i]);
}

/* Makes its connections when told, then waits until they are ended. Says how many there were. */
static int silent(int sock, void *unused)
{
	static struct pollfd open_ones[SILENT];
	uint32_t n = 0;

	(void)unused;
	descriptors_limit(SILENT + 100);
	user_become(INTRUDER_STRANGER);
	message_meet(sock);
	for (unsigned int i = 0; i < 4 * SILENT && n < SILENT; i++) {
		int fd = name_call_any(i);

		if (fd >= 0)
			open_ones[n++] = (struct pollfd){.fd = fd};
	}
	message_send(sock, &n, sizeof(n));
	for (uint32_t i = 0; i < n; i++)
		CHECK_SAY(poll(&open_ones[i], 1, 20000) == 1, "connection %u of %u is kept", i, n);
	message_meet(sock);
	return 0;
}

static int victim(int sock, void *unused)
{
	struct resources resources;
	struct endpoint ep;
	int files[OWN_FILES];

	(void)unused;
	promise("silent callers leave the victim its descriptors and its peers");
	descriptors_limit(LIMIT);
	user_become(INTRUDER_VICTIM);
	resources_open(&resources, 64, true);
	ep_open_on(&ep, &resources, NULL, NULL, 4096);
	message_meet(sock);
	message_meet(sock); /* the attack has begun */
	for (int i = 0; i < OWN_FILES; i++) {
		files[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
		CHECK_SAY(files[i] >= 0, "file %d: errno %d", i, errno);
	}
	for (int i = 0; i < OWN_FILES; i++)
		close(files[i]);
	ep_exchange(&ep, sock);
	ping_by_events(&ep, 100, true);
	message_meet(sock);
	ep_close(&ep);
	resources_close(&resources);
	return 0;
}

static void silent_test(void)
{
	struct process attacker, a;
	struct resources resources;
	struct endpoint ep;
	uint32_t n;

	process_start(&attacker, silent, NULL);
	process_start(&a, victim, NULL);
	message_meet(a.sock);
	message_meet(attacker.sock);
	message_receive(attacker.sock, &n, sizeof(n));
	CHECK_SAY(n > LIMIT, "only %u connections were made", n);
	message_meet(a.sock);
	user_become(INTRUDER_VICTIM);
	resources_open(&resources, 64, true);
	ep_open_on(&ep, &resources, NULL, NULL, 4096);
	ep_exchange(&ep, a.sock);
	ping_by_events(&ep, 100, false);
	message_meet(a.sock);
	message_meet(attacker.sock);
	ep_close(&ep);
	resources_close(&resources);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "loop";

	watchdog(100);
	network_leave();
	if (!strcmp(what, "loop"))
		loop_test();
	else
		silent_test();
	return 0;
}
