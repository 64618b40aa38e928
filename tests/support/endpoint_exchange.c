/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Connecting over a socket: a file of its own, since not every program has processes. */
#include "support/endpoint.h"
#include "support/process.h"

void ep_exchange(struct endpoint *ep, int sock)
{
	struct peer remote;

	message_swap(sock, &ep->local, &remote, sizeof(remote));
	ep_connect(ep, &remote);
	message_meet(sock);
}
