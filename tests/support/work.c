/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Posting work requests on a side. */
#include "support/endpoint.h"

static struct ibv_sge piece(const struct side *side, size_t offset, size_t length)
{
	return (struct ibv_sge){
		.addr = (uintptr_t)side->buffer + offset,
		.length = (uint32_t)length,
		.lkey = side->mr->lkey,
	};
}

int post_receive(struct side *side, uint64_t wr_id, size_t offset, size_t length)
{
	struct ibv_sge sge = piece(side, offset, length);
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1};
	struct ibv_recv_wr *bad = NULL;

	return ibv_post_recv(side->qp, &wr, &bad);
}

static int post(struct side *side, struct ibv_send_wr *wr, struct ibv_sge *sge)
{
	struct ibv_send_wr *bad = NULL;

	wr->sg_list = sge;
	wr->num_sge = 1;
	return ibv_post_send(side->qp, wr, &bad);
}

int post_send(struct side *side, uint64_t wr_id, size_t offset, size_t length, unsigned int flags)
{
	struct ibv_sge sge = piece(side, offset, length);
	struct ibv_send_wr wr = {.wr_id = wr_id, .opcode = IBV_WR_SEND, .send_flags = flags};

	if (side->settings.type == IBV_QPT_UD) {
		wr.wr.ud.ah = side->ah;
		wr.wr.ud.remote_qpn = side->remote.qpn;
		wr.wr.ud.remote_qkey = ENDPOINT_QKEY;
	}
	return post(side, &wr, &sge);
}

static int post_rdma(struct side *side, enum ibv_wr_opcode opcode, uint64_t wr_id,
		     struct ibv_sge sge, size_t remote_offset, unsigned int flags)
{
	struct ibv_send_wr wr = {.wr_id = wr_id, .opcode = opcode, .send_flags = flags};

	wr.wr.rdma.remote_addr = side->remote.addr + remote_offset;
	wr.wr.rdma.rkey = side->remote.rkey;
	return post(side, &wr, &sge);
}

int post_write(struct side *side, uint64_t wr_id, size_t offset, size_t length,
	       size_t remote_offset, unsigned int flags)
{
	return post_rdma(side, IBV_WR_RDMA_WRITE, wr_id, piece(side, offset, length), remote_offset,
			 flags);
}

int post_read(struct side *side, uint64_t wr_id, size_t offset, size_t length, size_t remote_offset,
	      unsigned int flags)
{
	return post_rdma(side, IBV_WR_RDMA_READ, wr_id, piece(side, offset, length), remote_offset,
			 flags);
}

static int post_atomic(struct side *side, enum ibv_wr_opcode opcode, uint64_t wr_id, size_t offset,
		       size_t remote_offset, uint64_t compare_add, uint64_t swap,
		       unsigned int flags)
{
	struct ibv_sge sge = piece(side, offset, sizeof(uint64_t));
	struct ibv_send_wr wr = {.wr_id = wr_id, .opcode = opcode, .send_flags = flags};

	wr.wr.atomic.remote_addr = side->remote.addr + remote_offset;
	wr.wr.atomic.rkey = side->remote.rkey;
	wr.wr.atomic.compare_add = compare_add;
	wr.wr.atomic.swap = swap;
	return post(side, &wr, &sge);
}

int post_fetch_add(struct side *side, uint64_t wr_id, size_t offset, size_t remote_offset,
		   uint64_t add, unsigned int flags)
{
	return post_atomic(side, IBV_WR_ATOMIC_FETCH_AND_ADD, wr_id, offset, remote_offset, add, 0,
			   flags);
}

int post_compare_swap(struct side *side, uint64_t wr_id, size_t offset, size_t remote_offset,
		      uint64_t compare, uint64_t swap, unsigned int flags)
{
	return post_atomic(side, IBV_WR_ATOMIC_CMP_AND_SWP, wr_id, offset, remote_offset, compare,
			   swap, flags);
}
