/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What ibv_create_qp_ex(3) accepts: types, capabilities, send operations. */
#include "qp/qp_create.h"

#include <errno.h>
#include <stddef.h>

#include "base/reason.h"
#include "object/context.h"
#include "process/limits.h"
#include "transport/operation.h"

static int type_check(const struct ibv_qp_init_attr_ex *attr)
{
	switch (attr->qp_type) {
	case IBV_QPT_RC:
	case IBV_QPT_UC:
	case IBV_QPT_UD:
	case IBV_QPT_RAW_PACKET:
	case IBV_QPT_XRC_SEND:
	case IBV_QPT_XRC_RECV:
		return 0;
	case IBV_QPT_DRIVER:
		return vb_refuse(EOPNOTSUPP, VB_REASON_UNSUPPORTED,
				 "create_qp: type %d is not offered", (int)attr->qp_type);
	default:
		return vb_refuse(EINVAL, VB_REASON_ARG, "create_qp: %d is no queue pair type",
				 (int)attr->qp_type);
	}
}

static int over(const char *what, uint32_t asked, uint32_t limit)
{
	return vb_refuse(EINVAL, VB_REASON_ARG_LIMIT, "create_qp: %s %u exceeds %u", what, asked,
			 limit);
}

static int cap_check(const struct ibv_qp_init_attr_ex *attr)
{
	const struct ibv_qp_cap *cap = &attr->cap;

	if (cap->max_send_wr > VB_MAX_QP_WR)
		return over("max_send_wr", cap->max_send_wr, VB_MAX_QP_WR);
	if (cap->max_send_sge > VB_MAX_SGE)
		return over("max_send_sge", cap->max_send_sge, VB_MAX_SGE);
	if (cap->max_inline_data > VB_MAX_INLINE)
		return over("max_inline_data", cap->max_inline_data, VB_MAX_INLINE);
	if (attr->qp_type == IBV_QPT_XRC_SEND)
		return 0; /* no receive side */
	if (attr->srq)
		return 0; /* the receive sizes are ignored (ibv_create_qp(3)) */
	if (cap->max_recv_wr > VB_MAX_QP_WR)
		return over("max_recv_wr", cap->max_recv_wr, VB_MAX_QP_WR);
	if (cap->max_recv_sge > VB_MAX_SGE)
		return over("max_recv_sge", cap->max_recv_sge, VB_MAX_SGE);
	return 0;
}

static int send_ops_check(const struct ibv_qp_init_attr_ex *attr)
{
	uint64_t left = attr->send_ops_flags;

	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS))
		return 0;
	for (unsigned int opcode = 0; opcode < VB_OPERATIONS; opcode++) {
		const struct vb_operation *row = vb_operation((uint8_t)opcode);

		if (!(left & row->ex_flag))
			continue;
		if (!(row->senders & vb_operation_sender(attr->qp_type)))
			return vb_refuse(EOPNOTSUPP, VB_REASON_OPCODE,
					 "create_qp: operation %d with queue pair type %d",
					 (int)opcode, (int)attr->qp_type);
		left &= ~row->ex_flag;
	}
	if (left)
		return vb_refuse(EOPNOTSUPP, VB_REASON_UNSUPPORTED,
				 "create_qp: send_ops_flags 0x%llx", (unsigned long long)left);
	return 0;
}

static int objects_check(struct ibv_context *ctx, const struct ibv_qp_init_attr_ex *attr)
{
	int err;

	if (attr->srq && attr->qp_type == IBV_QPT_XRC_SEND)
		return vb_refuse(EINVAL, VB_REASON_ARG, "create_qp: XRC_SEND receives nothing");
	/* A queue pair that spreads over other queues uses their CQs. */
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_IND_TABLE) &&
	    (!attr->send_cq || (!attr->recv_cq && attr->qp_type != IBV_QPT_XRC_SEND)))
		return vb_refuse(EINVAL, VB_REASON_ARG, "create_qp: no completion queue");
	if (attr->comp_mask & IBV_QP_INIT_ATTR_IND_TABLE)
		return 0;
	err = vb_context_check(ctx, VB_HANDLE_CQ, attr->send_cq->handle, attr->send_cq, "send_cq");
	if (!err && attr->recv_cq)
		err = vb_context_check(ctx, VB_HANDLE_CQ, attr->recv_cq->handle, attr->recv_cq,
				       "recv_cq");
	return err;
}

static int flags_check(const struct ibv_qp_init_attr_ex *attr)
{
	uint32_t offered = 0;

	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS))
		return 0;
	if (attr->qp_type == IBV_QPT_UD)
		offered = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB;
	if (attr->qp_type == IBV_QPT_RAW_PACKET)
		offered = IBV_QP_CREATE_CVLAN_STRIPPING;
	if (!(attr->create_flags & ~offered))
		return 0;
	return vb_refuse(EOPNOTSUPP, VB_REASON_UNSUPPORTED, "create_qp: create_flags 0x%x",
			 attr->create_flags);
}

/* Attributes that only another kind takes. */
static int mask_check(const struct vb_qp_kind *kind, const struct ibv_qp_init_attr_ex *attr)
{
	uint32_t mask = attr->comp_mask;

	if (mask & IBV_QP_INIT_ATTR_XRCD)
		return vb_refuse(EINVAL, VB_REASON_ARG_MASK,
				 "create_qp: an XRC domain is for XRC_RECV, not type %d",
				 (int)attr->qp_type);
	if (!kind->frames && mask & (IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH))
		return vb_refuse(
			EINVAL, VB_REASON_ARG_MASK,
			"create_qp: only a raw packet queue pair takes an indirection table");
	return 0;
}

/* The face has checked that no other bits are set, and that a type has the domain that it needs. */
int vb_qp_create_check(struct ibv_context *ctx, const struct vb_qp_kind *kind,
		       const struct ibv_qp_init_attr_ex *attr)
{
	int err = type_check(attr);

	if (!err)
		err = flags_check(attr);
	if (!err && !kind->create)
		err = mask_check(kind, attr);
	if (!err && kind->check)
		err = kind->check(attr);
	if (err || kind->create)
		return err;
	err = cap_check(attr);
	if (!err)
		err = send_ops_check(attr);
	if (!err)
		err = objects_check(ctx, attr);
	return err;
}
