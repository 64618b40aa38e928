/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What a connection's queue pair takes of the exchange (rdma_init_qp_attr(3)). */
#include "rdmacm/exchange.h"

#include "rdmacm/face.h"
#include "rdmacm/id.h"

/*
 * Stock's values, which programs know: it asks for the longest RNR timer, and those to whom that
 * matters modify the queue pair afterwards.
 */
enum { MIN_RNR_TIMER = 0, TIMEOUT = 19 };

bool vb_cma_exchange_known(const struct vb_cma_id *id)
{
	return id->exchange.known;
}

static int fill_init(const struct vb_cma_id *id, struct ibv_qp_attr *attr, int *mask)
{
	attr->pkey_index = 0;
	attr->port_num = id->pub.port_num;
	attr->qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
	if (id->exchange.responder_resources)
		attr->qp_access_flags |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	*mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
	return 0;
}

static int fill_rtr(const struct vb_cma_id *id, struct ibv_qp_attr *attr, int *mask)
{
	const struct vb_cma_exchange *x = &id->exchange;

	attr->ah_attr = x->ah;
	attr->path_mtu = (enum ibv_mtu)x->mtu;
	attr->dest_qp_num = x->peer_qpn;
	attr->rq_psn = x->rq_psn;
	*mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (id->pub.qp_type == IBV_QPT_RC || id->pub.qp_type == IBV_QPT_XRC_RECV) {
		attr->max_dest_rd_atomic = x->responder_resources;
		attr->min_rnr_timer = MIN_RNR_TIMER;
		*mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	}
	return 0;
}

static int fill_rts(const struct vb_cma_id *id, struct ibv_qp_attr *attr, int *mask)
{
	const struct vb_cma_exchange *x = &id->exchange;

	attr->sq_psn = x->sq_psn;
	*mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
	if (id->pub.qp_type == IBV_QPT_RC || id->pub.qp_type == IBV_QPT_XRC_SEND) {
		attr->retry_cnt = x->retry_count;
		attr->rnr_retry = x->rnr_retry_count;
		attr->max_rd_atomic = x->initiator_depth;
		*mask |= IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
	}
	if (id->pub.qp_type != IBV_QPT_UC) {
		attr->timeout = id->options.ack_timeout_set ? id->options.ack_timeout : TIMEOUT;
		*mask |= IBV_QP_TIMEOUT;
	}
	return 0;
}

int vb_cma_exchange_attr(const struct vb_cma_id *id, struct ibv_qp_attr *attr, int *mask)
{
	if (attr->qp_state == IBV_QPS_INIT)
		return fill_init(id, attr, mask);
	if (id->exchange.replied && attr->qp_state == IBV_QPS_RTR)
		return fill_rtr(id, attr, mask);
	if (id->exchange.replied && attr->qp_state == IBV_QPS_RTS)
		return fill_rts(id, attr, mask);
	return vb_refuse(EINVAL, VB_REASON_CMA_STATE,
			 "init_qp_attr: queue pair state %d, the id is in the state \"%s\"",
			 attr->qp_state, vb_cma_state_name(id->state));
}
