/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Raw packet queue pairs over AF_PACKET sockets (CAP_NET_RAW is needed). Frames are sent as the
 * program wrote them, and received by the rules of flow.c. For the protocol such a queue pair is a
 * datagram one whose link is the socket.
 */
#ifndef VB_RAW_QP_H
#define VB_RAW_QP_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

struct vb_engine;
struct vb_qp;

/* What the rules of a queue pair need the interface to let through. */
enum vb_raw_frames {
	VB_RAW_FRAMES_OWN,       /* only frames that the interface accepts anyway */
	VB_RAW_FRAMES_ADDRESS,   /* frames to one more address */
	VB_RAW_FRAMES_MULTICAST, /* all multicast frames */
	VB_RAW_FRAMES_ALL,
};

/*
 * A kind with receive queues of its own, and one that only receives, into the queues of its
 * indirection table.
 */
extern const struct vb_qp_kind vb_raw_own, vb_raw_spread;

/*
 * The queue pair has one more rule. With the first rule it begins to receive. Not under the
 * engine's lock.
 */
int vb_raw_receive_begin(struct vb_qp *qp, enum vb_raw_frames what, const uint8_t *mac);
void vb_raw_receive_end(struct vb_qp *qp);
/*
 * To be called before the rules change: frames that have come are judged by the rules of their
 * time. Not under an engine's lock.
 */
void vb_raw_catch_up(void);

#endif
