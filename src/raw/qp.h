/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Raw packet queue pairs over AF_PACKET sockets (needs CAP_NET_RAW): frames are sent as the program wrote them, and received by
 * the rules of flow.c. To the protocol such a queue pair is a datagram one whose link is the socket.
 */
#ifndef VB_RAW_QP_H
#define VB_RAW_QP_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

struct vb_engine;
struct vb_qp;

/* What the rules of a queue pair want the interface to let through. */
enum vb_raw_hear {
	VB_RAW_HEAR_OWN,       /* what it takes anyway */
	VB_RAW_HEAR_ADDRESS,   /* frames to one more address */
	VB_RAW_HEAR_MULTICAST, /* all multicast */
	VB_RAW_HEAR_ALL,
};

/* With queues of its own; and one that only receives, into the queues of its indirection table. */
extern const struct vb_qp_kind vb_raw_own, vb_raw_spread;

/* One more rule; the first opens the ears. Not under the engine's lock. */
int vb_raw_listen(struct vb_qp *qp, enum vb_raw_hear what, const uint8_t *mac);
void vb_raw_unlisten(struct vb_qp *qp);
/* Before the rules change: what has come is judged by those of its time. Not under an engine's lock. */
void vb_raw_catch_up(void);

#endif
