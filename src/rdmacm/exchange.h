/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the two sides have told each other of a connection, and what the states of its queue pair
 * take of it. All functions are called with the id's lock.
 */
#ifndef VB_RDMACM_EXCHANGE_H
#define VB_RDMACM_EXCHANGE_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

struct vb_cma_id;

struct vb_cma_exchange {
	bool known;   /* a request was received, or an own one is under way */
	bool replied; /* the other side's queue pair is known: RTR and RTS may be asked for */
	uint32_t peer_qpn;
	uint32_t rq_psn, sq_psn; /* the first that this side expects, and that the peer does */
	uint8_t responder_resources, initiator_depth;
	uint8_t retry_count;     /* of REQ, for both sides */
	uint8_t rnr_retry_count; /* what the other side asked for */
	struct ibv_ah_attr ah;
	uint8_t mtu; /* enum ibv_mtu */
};

bool vb_cma_exchange_known(const struct vb_cma_id *id);

/* Fills in the attributes of attr->qp_state. -EINVAL: the state is not one of a connection, or early. */
int vb_cma_exchange_attr(const struct vb_cma_id *id, struct ibv_qp_attr *attr, int *mask);

#endif
