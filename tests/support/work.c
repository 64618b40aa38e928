/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Posting work requests on a side, and waiting for completions and events. */
#include "support/endpoint.h"

#include "support/check.h"

#include <poll.h>
#include <sched.h>
#include <stdio.h>

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

void completion_print(const struct ibv_wc *wc)
{
	fprintf(stderr,
		"completion: wr_id %#llx status %d (%s) opcode %d qp %#x byte_len %u vendor_err %#x\n",
		(unsigned long long)wc->wr_id, (int)wc->status, ibv_wc_status_str(wc->status),
		(int)wc->opcode, wc->qp_num, wc->byte_len, wc->vendor_err);
}

bool completion_try(struct ibv_cq *cq, struct ibv_wc *wc, unsigned int timeout_ms)
{
	uint64_t until = 0;
	unsigned int tries;
	int got;

	for (;;) {
		for (tries = 0; tries < 256; tries++) {
			got = ibv_poll_cq(cq, 1, wc);
			CHECK_SAY(got >= 0 && got <= 1, "ibv_poll_cq returned %d", got);
			if (got)
				return true;
		}
		if (!until)
			until = now_us() + (uint64_t)timeout_ms * 1000u;
		else if (now_us() >= until)
			return false;
		/* The machine may have fewer cores than the test has pollers. */
		sched_yield();
	}
}

void completion_next(struct ibv_cq *cq, struct ibv_wc *wc)
{
	CHECK_SAY(completion_try(cq, wc, ENDPOINT_PATIENCE_MS), "no completion within %d ms",
		  ENDPOINT_PATIENCE_MS);
}

void completion_expect(struct ibv_cq *cq, uint64_t wr_id, enum ibv_wc_status status,
		       struct ibv_wc *wc)
{
	struct ibv_wc own = {0};

	if (!wc)
		wc = &own;
	CHECK_SAY(completion_try(cq, wc, ENDPOINT_PATIENCE_MS),
		  "no completion within %d ms, expected wr_id %#llx with status %d (%s)",
		  ENDPOINT_PATIENCE_MS, (unsigned long long)wr_id, (int)status,
		  ibv_wc_status_str(status));
	if (wc->wr_id != wr_id || wc->status != status) {
		completion_print(wc);
		check_failed(__FILE__, __LINE__, "expected wr_id %#llx with status %d (%s)",
			     (unsigned long long)wr_id, (int)status, ibv_wc_status_str(status));
	}
}

void completion_none(struct ibv_cq *cq, unsigned int ms)
{
	struct ibv_wc wc = {0};

	if (!completion_try(cq, &wc, ms))
		return;
	completion_print(&wc);
	check_failed(__FILE__, __LINE__, "a completion where none was expected");
}

int event_next(struct ibv_context *context, unsigned int timeout_ms)
{
	struct pollfd readable = {.fd = context->async_fd, .events = POLLIN};
	struct ibv_async_event event = {0};

	if (poll(&readable, 1, (int)timeout_ms) <= 0)
		return -1;
	CHECK_ZERO(ibv_get_async_event(context, &event));
	ibv_ack_async_event(&event);
	return (int)event.event_type;
}
