/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A queue pair of the protocol as its three stands make it: the simulator, the fuzz targets, the
 * unit tests. Each has an environment of its own, which is the point of it: what they share is how
 * the queue pair is set up.
 */
#ifndef TESTS_SUPPORT_PROTOCOL_H
#define TESTS_SUPPORT_PROTOCOL_H

#include "transport/operation.h"
#include "transport/tqp.h"

enum {
	PROTOCOL_ACCESS = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
			  IBV_ACCESS_REMOTE_ATOMIC,
	PROTOCOL_FLUSH = IBV_ACCESS_FLUSH_GLOBAL | IBV_ACCESS_FLUSH_PERSISTENT,
	PROTOCOL_QKEY = 0x11111111,
};

static inline void protocol_service(struct vb_tqp *qp, enum vb_service service)
{
	qp->service = (uint8_t)service;
	qp->sender = (uint8_t)VB_SENDER(service);
	qp->pkey = 0xffff;
	qp->qkey = PROTOCOL_QKEY;
}

static inline void protocol_send_queue(struct vb_tqp *qp, char *entries, uint32_t count,
				       uint16_t stride)
{
	qp->sq = entries;
	qp->sq_size = count;
	qp->sq_stride = stride;
}

/*
 * As a device does once max_rd_atomic and max_dest_rd_atomic are set; the rings have VB_RESOURCES
 * places, or as many as are used.
 */
static inline void protocol_rings(struct vb_tqp *qp, struct vb_resource *res, uint32_t *rd_end)
{
	qp->resp.res_slots = vb_resource_slots(qp->max_dest_rd_atomic);
	qp->resp.res = qp->resp.res_slots ? res : NULL;
	qp->req.rd_slots = (uint16_t)vb_resource_slots(qp->max_rd_atomic);
	qp->req.rd_end = qp->req.rd_slots ? rd_end : NULL;
}

/* The walk from INIT to `state`: RTR, or RTS. */
static inline void protocol_walk(struct vb_tqp *qp, enum ibv_qp_state state, uint32_t rq_psn,
				 uint32_t sq_psn)
{
	qp->state = IBV_QPS_RTR;
	vb_tqp_start_responder(qp, rq_psn);
	if (state == IBV_QPS_RTR)
		return;
	qp->state = IBV_QPS_RTS;
	vb_tqp_start_requester(qp, sq_psn);
}

#endif
