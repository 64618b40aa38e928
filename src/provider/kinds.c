/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Chooses the kind. That of a queue pair follows from its type, or from the kind of the shared
 * receive queue that it uses.
 */
#include "provider/kinds.h"

#include "engine/srq.h"
#include "qp/qp.h"
#include "raw/qp.h"
#include "tag/srq.h"
#include "xrc/xrc.h"

static const struct vb_qp_kind *qp_kind(const struct ibv_qp_init_attr_ex *attr)
{
	switch (attr->qp_type) {
	case IBV_QPT_XRC_RECV:
		return &vb_xrc_handle;
	case IBV_QPT_RAW_PACKET:
		return attr->comp_mask & IBV_QP_INIT_ATTR_IND_TABLE ? &vb_raw_spread : &vb_raw_own;
	default:
		return &vb_qp_ordinary;
	}
}

int vb_kinds_create_qp(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr,
		       struct ibv_qp **qp)
{
	return vb_qp_create(ctx, qp_kind(attr), attr, qp);
}

static const struct vb_srq_kind *srq_kind(const struct ibv_srq_init_attr_ex *attr)
{
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE))
		return &vb_srq_ordinary;
	switch (attr->srq_type) {
	case IBV_SRQT_XRC:
		return &vb_xrc_srq;
	case IBV_SRQT_TM:
		return &vb_tm_srq;
	default:
		return &vb_srq_ordinary;
	}
}

int vb_kinds_create_srq(struct ibv_context *ctx, struct ibv_srq_init_attr_ex *attr,
			struct ibv_srq **srq)
{
	return vb_srq_create(ctx, srq_kind(attr), attr, srq);
}
