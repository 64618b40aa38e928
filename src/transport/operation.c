/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The table of operations (ibv_post_send(3), ibv_wr_post(3), ibv_poll_cq(3)). */
#include "transport/operation.h"

/* XRC sends the same as RC (IBA A14). */
#define RC         (VB_SENDER(VB_SERVICE_RC) | VB_SENDER(VB_SERVICE_XRC))
#define UC         VB_SENDER(VB_SERVICE_UC)
#define UD         VB_SENDER(VB_SERVICE_UD)
#define RAW        VB_SENDER_RAW /* a frame has no place for an immediate */

#define DATA       (VB_CARRIES_MEMORY | VB_CARRIES_INLINE)
#define REMOTE     VB_CARRIES_REMOTE
#define IMMEDIATE  VB_CARRIES_IMMEDIATE
#define INVALIDATE VB_CARRIES_INVALIDATE
#define ATOMIC     (VB_CARRIES_MEMORY | VB_CARRIES_REMOTE | VB_CARRIES_OPERANDS)

#define NOT_OFFERED                                                                \
	{                                                                          \
		.kind = VB_REQUEST_NONE, .carries = DATA, .wc_opcode = IBV_WC_SEND \
	}

/* ibv_post_send(3) lists SEND_WITH_INV for UC, but UC has no opcode for it (IBA 9.2). */
const struct vb_operation vb_operations[VB_OPERATIONS + 1] = {
	[IBV_WR_RDMA_WRITE] =
		{
			.kind = VB_REQUEST_DATA,
			.op = VB_OP_WRITE,
			.senders = RC | UC,
			.carries = DATA | REMOTE,
			.direct = true,
			.wc_opcode = IBV_WC_RDMA_WRITE,
			.ex_flag = IBV_QP_EX_WITH_RDMA_WRITE,
		},
	[IBV_WR_RDMA_WRITE_WITH_IMM] =
		{
			.kind = VB_REQUEST_DATA,
			.op = VB_OP_WRITE,
			.flags = VB_RUN_IMM,
			.senders = RC | UC,
			.carries = DATA | REMOTE | IMMEDIATE,
			.wc_opcode = IBV_WC_RDMA_WRITE,
			.ex_flag = IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM,
		},
	[IBV_WR_SEND] =
		{
			.kind = VB_REQUEST_DATA,
			.op = VB_OP_SEND,
			.senders = RC | UC | UD | RAW,
			.carries = DATA,
			.wc_opcode = IBV_WC_SEND,
			.ex_flag = IBV_QP_EX_WITH_SEND,
		},
	[IBV_WR_SEND_WITH_IMM] =
		{
			.kind = VB_REQUEST_DATA,
			.op = VB_OP_SEND,
			.flags = VB_RUN_IMM,
			.senders = RC | UC | UD,
			.carries = DATA | IMMEDIATE,
			.wc_opcode = IBV_WC_SEND,
			.ex_flag = IBV_QP_EX_WITH_SEND_WITH_IMM,
		},
	[IBV_WR_RDMA_READ] =
		{
			.kind = VB_REQUEST_READ,
			.op = VB_OP_READ_REQUEST,
			.senders = RC,
			.carries = VB_CARRIES_MEMORY | REMOTE,
			.direct = true,
			.wc_opcode = IBV_WC_RDMA_READ,
			.ex_flag = IBV_QP_EX_WITH_RDMA_READ,
		},
	[IBV_WR_ATOMIC_CMP_AND_SWP] =
		{
			.kind = VB_REQUEST_ATOMIC,
			.op = VB_OP_COMPARE_SWAP,
			.senders = RC,
			.carries = ATOMIC,
			.bytes = 8,
			.direct = true,
			.wc_opcode = IBV_WC_COMP_SWAP,
			.ex_flag = IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP,
		},
	[IBV_WR_ATOMIC_FETCH_AND_ADD] =
		{
			.kind = VB_REQUEST_ATOMIC,
			.op = VB_OP_FETCH_ADD,
			.senders = RC,
			.carries = ATOMIC,
			.bytes = 8,
			.direct = true,
			.wc_opcode = IBV_WC_FETCH_ADD,
			.ex_flag = IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD,
		},
	[IBV_WR_LOCAL_INV] =
		{
			.kind = VB_REQUEST_LOCAL,
			.senders = RC | UC,
			.carries = INVALIDATE,
			.wc_opcode = IBV_WC_LOCAL_INV,
			.ex_flag = IBV_QP_EX_WITH_LOCAL_INV,
		},
	[IBV_WR_BIND_MW] =
		{
			.kind = VB_REQUEST_LOCAL,
			.senders = RC | UC,
			.wc_opcode = IBV_WC_BIND_MW,
			.ex_flag = IBV_QP_EX_WITH_BIND_MW,
		},
	[IBV_WR_SEND_WITH_INV] =
		{
			.kind = VB_REQUEST_DATA,
			.op = VB_OP_SEND,
			.flags = VB_RUN_INV,
			.senders = RC,
			.carries = DATA | INVALIDATE,
			.wc_opcode = IBV_WC_SEND,
			.ex_flag = IBV_QP_EX_WITH_SEND_WITH_INV,
		},
	[IBV_WR_FLUSH] =
		{
			.kind = VB_REQUEST_CONFIRMED,
			.op = VB_OP_FLUSH,
			.senders = RC,
			.carries = REMOTE,
			.direct = true,
			.wc_opcode = IBV_WC_FLUSH,
			.ex_flag = IBV_QP_EX_WITH_FLUSH,
		},
	[IBV_WR_ATOMIC_WRITE] =
		{
			.kind = VB_REQUEST_CONFIRMED,
			.op = VB_OP_ATOMIC_WRITE,
			.senders = RC,
			.carries = DATA | REMOTE,
			.bytes = 8,
			.direct = true,
			.wc_opcode = IBV_WC_ATOMIC_WRITE,
			.ex_flag = IBV_QP_EX_WITH_ATOMIC_WRITE,
		},
	/*
	 * Not offered: such a request is accepted with its data and fails in its completion. The
	 * last row stands for every other opcode.
	 */
	[IBV_WR_TSO] = NOT_OFFERED,
	[IBV_WR_DRIVER1] = NOT_OFFERED,
	[IBV_WR_DRIVER1 + 1] = NOT_OFFERED,
	[IBV_WR_DRIVER1 + 2] = NOT_OFFERED,
	[VB_OPERATIONS] = NOT_OFFERED,
};

uint8_t vb_operation_sender(enum ibv_qp_type type)
{
	switch (type) {
	case IBV_QPT_RC:
		return VB_SENDER(VB_SERVICE_RC);
	case IBV_QPT_UC:
		return VB_SENDER(VB_SERVICE_UC);
	case IBV_QPT_UD:
		return VB_SENDER(VB_SERVICE_UD);
	case IBV_QPT_RAW_PACKET:
		return VB_SENDER_RAW;
	case IBV_QPT_XRC_SEND:
		return VB_SENDER(VB_SERVICE_XRC);
	default:
		return 0;
	}
}

bool vb_qp_type_has_opcode(enum ibv_qp_type type, enum ibv_wr_opcode opcode)
{
	return (unsigned int)opcode < VB_OPERATIONS &&
	       vb_operation((uint8_t)opcode)->senders & vb_operation_sender(type);
}
