/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rdma_init_qp_attr(3). */
#include <string.h>

#include "base/lock.h"
#include "rdmacm/exchange.h"
#include "rdmacm/face.h"
#include "rdmacm/id.h"
#include "rdmacm/qp.h"

/* Before the exchange, and of datagrams at any time: whatever state is asked for. */
static void fill_port(const struct vb_cma_id *id, struct ibv_qp_attr *attr, int *mask)
{
	attr->pkey_index = 0;
	attr->port_num = id->pub.port_num;
	*mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
	if (id->pub.qp_type == IBV_QPT_UD) {
		attr->qkey = RDMA_UDP_QKEY;
		*mask |= IBV_QP_QKEY;
	} else {
		attr->qp_access_flags = 0;
		*mask |= IBV_QP_ACCESS_FLAGS;
	}
}

int vb_cma_qp_attr(struct vb_cma_id *id, struct ibv_qp_attr *attr, int *mask)
{
	int err = 0;

	vb_mutex_take(&id->lock, VB_ORDER_CM_ID);
	if (id->pub.qp_type != IBV_QPT_UD && vb_cma_exchange_known(id))
		err = vb_cma_exchange_attr(id, attr, mask);
	else
		fill_port(id, attr, mask);
	vb_mutex_release(&id->lock);
	return err;
}

static int move_datagram(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	if (attr->qp_state == IBV_QPS_RTR)
		mask = IBV_QP_STATE;
	if (attr->qp_state == IBV_QPS_RTS) {
		mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
		attr->sq_psn = 0;
	}
	return -ibv_modify_qp(qp, attr, mask);
}

int vb_cma_qp_move(struct vb_cma_id *id, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state};
	int mask, err;

	err = vb_cma_qp_attr(id, &attr, &mask);
	if (err)
		return err;
	if (id->pub.qp_type == IBV_QPT_UD)
		return move_datagram(id->pub.qp, &attr, mask);
	return -ibv_modify_qp(id->pub.qp, &attr, mask);
}

VB_EXPORT int rdma_init_qp_attr(struct rdma_cm_id *pub, struct ibv_qp_attr *attr, int *mask)
{
	struct vb_cma_id *id = vb_cma_id_of(pub);
	int err = vb_cma_id_check(id, "init_qp_attr");

	if (!err && (!attr || !mask))
		err = vb_cma_refuse_null("init_qp_attr", "an argument");
	return vb_cma_answer(err ? err : vb_cma_qp_attr(id, attr, mask));
}
