/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the tests of librdmacm's calls share: a network namespace with one device (v0: OWN_V4 and
 * OWN_V6), addresses from text, and events that must be the next ones.
 */
#ifndef TESTS_CM_CM_H
#define TESTS_CM_CM_H

#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdint.h>

#define OWN_V4   "192.0.2.1"
#define OWN_V6   "fd00:192::1"
#define OTHER_V4 "192.0.2.9" /* of the same network, of nobody */

/* Moves into the namespace; the test is skipped where that is not allowed. */
void cm_network(void);

/* The address, of whatever family; port in host order. Valid until the eighth call after. */
struct sockaddr *cm_address(const char *text, uint16_t port);

struct rdma_cm_id *cm_id(struct rdma_event_channel *channel, enum rdma_port_space ps);

/*
 * The next event of the channel, which must be of this type and come within some seconds. The caller
 * acknowledges it.
 */
struct rdma_cm_event *cm_event(struct rdma_event_channel *channel, enum rdma_cm_event_type type);
/* The same, acknowledged; its status. */
int cm_pass(struct rdma_event_channel *channel, enum rdma_cm_event_type type);
/* Whether an event waits. */
bool cm_waits(struct rdma_event_channel *channel);

/* An id with its route resolved, from the own address to the own address. */
struct rdma_cm_id *cm_routed(struct rdma_event_channel *channel, enum rdma_port_space ps,
			     const char *to, uint16_t port);

/* Gives the id a queue pair with the smallest queues. */
void cm_make_qp(struct rdma_cm_id *id);
/* Two such ids of this process, connected by a listener of the channel: the caller's and the listener's. */
void cm_connect_pair(struct rdma_event_channel *channel, uint16_t port, struct rdma_cm_id *pair[2]);

#endif
