/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: another user may bind the socket name of every block of queue pair numbers, and listen
 * there. Processes still make queue pairs, and the processes of one user find each other and not
 * the squatter. Where the kernel keeps no secret for the user (a filter refuses keyctl(2)), a queue
 * pair is refused with an errno, without delay.
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "support/check.h"
#include "support/clock.h"
#include "support/filter.h"
#include "support/intruder.h"
#include "support/process.h"

enum { BLOCKS = 16384, ROUNDS = 500 };

static int squatter(int sock, void *unused)
{
	(void)unused;
	descriptors_limit(BLOCKS + 100);
	user_become(INTRUDER_STRANGER);
	for (int block = 0; block < BLOCKS; block++) {
		struct sockaddr_un addr = {.sun_family = AF_UNIX};
		int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
		int n = snprintf(addr.sun_path + 1, sizeof(addr.sun_path) - 1, "verbatim/%d",
				 block);
		socklen_t length =
			(socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);

		CHECK(fd >= 0);
		CHECK_ZERO(bind(fd, (struct sockaddr *)&addr, length));
		/* Some listen, some do not, some with a queue that is full at once. */
		if (block % 3)
			CHECK_ZERO(listen(fd, block % 3 - 1));
	}
	message_meet(sock);
	message_meet(sock);
	return 0;
}

static const struct ping ping = {
	"queue pairs of one user find each other by names that nobody else knows", ROUNDS};

/* As the default filter of containers answers. */
static void keyctl_refuse(void)
{
	CHECK(filter_refuse(SYS_keyctl, EPERM));
}

static int without_secret(int sock, void *unused)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
	};
	struct resources resources;

	(void)sock;
	(void)unused;
	promise("without a secret a queue pair is refused");
	user_become(INTRUDER_VICTIM);
	keyctl_refuse();
	resources_open(&resources, 64, false);
	attr.send_cq = attr.recv_cq = resources.cq;
	errno = 0;
	CHECK(!ibv_create_qp(resources.pd, &attr));
	CHECK_EQ(errno, EADDRINUSE);
	resources_close(&resources);
	return 0;
}

int main(void)
{
	struct process attacker, a, b;

	watchdog(60);
	network_leave();
	if (syscall(SYS_keyctl, 0, -4, 0, 0, 0) < 0 && errno != ENOKEY)
		SKIP("the kernel keeps no keys here: keyctl: %s", strerror(errno));
	process_start(&attacker, squatter, NULL);
	message_meet(attacker.sock);
	victims_start(&a, &b, &ping);
	process_expect_success(&a, PROCESS_PATIENCE_MS);
	process_expect_success(&b, PROCESS_PATIENCE_MS);
	process_start(&a, without_secret, NULL);
	process_expect_success(&a, PROCESS_PATIENCE_MS);
	message_meet(attacker.sock);
	process_expect_success(&attacker, PROCESS_PATIENCE_MS);
	return 0;
}
