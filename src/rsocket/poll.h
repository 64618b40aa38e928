/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Readiness of one socket, for rpoll(3), rselect(3) and repoll_wait(3). */
#ifndef VB_RSOCKET_POLL_H
#define VB_RSOCKET_POLL_H

#include <poll.h>

#include "rsocket/socket.h"

/* What of `events` holds now, and POLLERR and POLLHUP. Takes what has come. */
short vb_rs_readiness(struct vb_rsocket *rs, short events);

/* Whether the socket has a descriptor that tells of arrivals (wait.h); otherwise only the bell rings. */
bool vb_rs_has_queue(const struct vb_rsocket *rs);

/* A number that changes with each thing that arrives, and with each write that found no room. */
uint64_t vb_rs_in_edge(struct vb_rsocket *rs);
uint64_t vb_rs_out_edge(struct vb_rsocket *rs);

#endif
