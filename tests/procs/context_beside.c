/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: packets for a context are not lost while the program polls another one, which empties the
 * sockets of the process: they wait, however many they are.
 *
 * A READ brings more than the library keeps for a context between two polls. Its queue pair may not
 * try again, so that a lost packet shows as a completion in error.
 */
#include "support/check.h"
#include "support/clock.h"
#include "support/endpoint.h"
#include "support/process.h"

#include <stdlib.h>
#include <string.h>

enum {
	LENGTH = 4 << 20,
	STEADY = 200,       /* polls after which a context counts as polled */
	MEANWHILE = 100000, /* polls of the other one, at most; each may bring a datagram */
	OFTEN = 30,
	TIMEOUT = 20, /* 4.3 s (IBA 9.7.6.1.3) */
};

struct side {
	struct resources resources[2];
	struct endpoint ep[2];
};

static void side_open(struct side *side, int sock)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);

	config.retry_cnt = 0;
	config.timeout = TIMEOUT;
	for (int i = 0; i < 2; i++) {
		resources_open(&side->resources[i], 16, false);
		ep_open_on(&side->ep[i], &side->resources[i], &config, NULL, LENGTH);
		ep_exchange(&side->ep[i], sock);
	}
	message_meet(sock);
}

static void side_close(struct side *side)
{
	for (int i = 0; i < 2; i++) {
		ep_close(&side->ep[i]);
		resources_close(&side->resources[i]);
	}
}

static int target(int sock, void *unused)
{
	struct side side;

	(void)unused;
	side_open(&side, sock);
	memset(side.ep[0].buffer, 0x5a, LENGTH);
	message_meet(sock);
	message_meet(sock);
	side_close(&side);
	return 0;
}

static void read_beside(struct side *side)
{
	uint8_t *last = side->ep[0].buffer + LENGTH - 1;
	struct ibv_wc wc;

	*last = 0;
	for (int i = 0; i < STEADY; i++)
		CHECK_EQ(ibv_poll_cq(side->resources[0].cq, 1, &wc), 0);
	CHECK_ZERO(ep_read(&side->ep[0], 1, 0, LENGTH, 0, IBV_SEND_SIGNALED));
	for (int i = 0; i < MEANWHILE && !__atomic_load_n(last, __ATOMIC_RELAXED); i++)
		CHECK_EQ(ibv_poll_cq(side->resources[1].cq, 1, &wc), 0);
	completion_expect(side->resources[0].cq, 1, IBV_WC_SUCCESS, NULL);
	CHECK_EQ(*last, 0x5a);
}

int main(void)
{
	struct process process;
	struct side side;

	watchdog(90);
	promise("packets for a context wait while the program polls another one");
	CHECK_ZERO(setenv("VERBATIM_LINK", "udp", 1));
	process_start(&process, target, NULL);
	side_open(&side, process.sock);
	message_meet(process.sock);
	for (int i = 0; i < OFTEN; i++)
		read_beside(&side);
	message_meet(process.sock);
	process_expect_success(&process, PROCESS_PATIENCE_MS);
	side_close(&side);
	return 0;
}
