/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What a connected endpoint does: requests, completions, events. */
#include "support/endpoint.h"

#include <poll.h>
#include <string.h>

#include "support/check.h"
#include "support/endpoint_apart.h"

struct ibv_sge ep_sge(const struct endpoint *ep, size_t offset, uint32_t length)
{
	bool here = ep->place == EP_HERE; /* a test may have registered another region */

	return (struct ibv_sge){
		.addr = (here ? (uintptr_t)ep->buffer : ep->local.addr) + offset,
		.length = length,
		.lkey = here ? ep->mr->lkey : ep->lkey,
	};
}

struct ibv_send_wr ep_wr(enum ibv_wr_opcode opcode, uint64_t wr_id, struct ibv_sge *sge,
			 int num_sge)
{
	return (struct ibv_send_wr){
		.wr_id = wr_id,
		.sg_list = sge,
		.num_sge = num_sge,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
	};
}

int ep_post_send(struct endpoint *ep, const struct ibv_send_wr *wr)
{
	struct ibv_send_wr one = *wr, *bad;

	if (ep->place == EP_APART) {
		struct ep_request request = {.verb = EP_POST_SEND, .wr = *wr};

		CHECK(wr->num_sge <= EP_MAX_SGE);
		if (wr->num_sge > 0)
			memcpy(request.sge, wr->sg_list,
			       sizeof(*wr->sg_list) * (size_t)wr->num_sge);
		return apart_do(ep, &request);
	}
	one.next = NULL;
	return ibv_post_send(ep->qp, &one, &bad);
}

int ep_post_recv(struct endpoint *ep, uint64_t wr_id, const struct ibv_sge *sge, int num_sge)
{
	struct ibv_sge copy[EP_MAX_SGE];
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = copy, .num_sge = num_sge}, *bad;

	CHECK(num_sge <= EP_MAX_SGE);
	if (num_sge > 0)
		memcpy(copy, sge, sizeof(*sge) * (size_t)num_sge);
	if (ep->place == EP_APART) {
		struct ep_request request = {.verb = EP_POST_RECV, .a = num_sge, .wr.wr_id = wr_id};

		if (num_sge > 0)
			memcpy(request.sge, sge, sizeof(*sge) * (size_t)num_sge);
		return apart_do(ep, &request);
	}
	return ep->srq ? ibv_post_srq_recv(ep->srq, &wr, &bad) : ibv_post_recv(ep->qp, &wr, &bad);
}

void ep_target(struct ibv_send_wr *wr, uint64_t addr, uint32_t rkey)
{
	if (wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
		wr->wr.atomic.remote_addr = addr;
		wr->wr.atomic.rkey = rkey;
	} else {
		wr->wr.rdma.remote_addr = addr;
		wr->wr.rdma.rkey = rkey;
	}
}

int ep_run(struct endpoint *ep, const struct ibv_send_wr *wr)
{
	struct ibv_wc wc;

	CHECK_ZERO(ep_post_send(ep, wr));
	return ep_poll_one(ep, EP_SEND_CQ, &wc);
}

int ep_recv(struct endpoint *ep, uint64_t wr_id, size_t offset, size_t length)
{
	struct ibv_sge sge = ep_sge(ep, offset, (uint32_t)length);

	return ep_post_recv(ep, wr_id, &sge, 1);
}

int ep_send(struct endpoint *ep, uint64_t wr_id, size_t offset, size_t length, unsigned int flags)
{
	struct ibv_sge sge = ep_sge(ep, offset, (uint32_t)length);
	struct ibv_send_wr wr = ep_wr(IBV_WR_SEND, wr_id, &sge, 1);

	wr.send_flags = flags;
	if (ep->config.type == IBV_QPT_UD) {
		wr.wr.ud.ah = ep_peer_ah(ep);
		wr.wr.ud.remote_qpn = ep->remote.qpn;
		wr.wr.ud.remote_qkey = EP_QKEY;
	}
	return ep_post_send(ep, &wr);
}

static int post_rdma(struct endpoint *ep, enum ibv_wr_opcode opcode, uint64_t wr_id,
		     struct ibv_sge sge, size_t remote_offset, unsigned int flags)
{
	struct ibv_send_wr wr = ep_wr(opcode, wr_id, &sge, 1);

	wr.send_flags = flags;
	wr.wr.rdma.remote_addr = ep->remote.addr + remote_offset;
	wr.wr.rdma.rkey = ep->remote.rkey;
	return ep_post_send(ep, &wr);
}

int ep_write(struct endpoint *ep, uint64_t wr_id, size_t offset, size_t length,
	     size_t remote_offset, unsigned int flags)
{
	return post_rdma(ep, IBV_WR_RDMA_WRITE, wr_id, ep_sge(ep, offset, (uint32_t)length),
			 remote_offset, flags);
}

int ep_read(struct endpoint *ep, uint64_t wr_id, size_t offset, size_t length, size_t remote_offset,
	    unsigned int flags)
{
	return post_rdma(ep, IBV_WR_RDMA_READ, wr_id, ep_sge(ep, offset, (uint32_t)length),
			 remote_offset, flags);
}

static int post_atomic(struct endpoint *ep, enum ibv_wr_opcode opcode, uint64_t wr_id,
		       size_t offset, size_t remote_offset, uint64_t compare_add, uint64_t swap,
		       unsigned int flags)
{
	struct ibv_sge sge = ep_sge(ep, offset, sizeof(uint64_t));
	struct ibv_send_wr wr = ep_wr(opcode, wr_id, &sge, 1);

	wr.send_flags = flags;
	wr.wr.atomic.remote_addr = ep->remote.addr + remote_offset;
	wr.wr.atomic.rkey = ep->remote.rkey;
	wr.wr.atomic.compare_add = compare_add;
	wr.wr.atomic.swap = swap;
	return ep_post_send(ep, &wr);
}

int ep_fetch_add(struct endpoint *ep, uint64_t wr_id, size_t offset, size_t remote_offset,
		 uint64_t add, unsigned int flags)
{
	return post_atomic(ep, IBV_WR_ATOMIC_FETCH_AND_ADD, wr_id, offset, remote_offset, add, 0,
			   flags);
}

int ep_compare_swap(struct endpoint *ep, uint64_t wr_id, size_t offset, size_t remote_offset,
		    uint64_t compare, uint64_t swap, unsigned int flags)
{
	return post_atomic(ep, IBV_WR_ATOMIC_CMP_AND_SWP, wr_id, offset, remote_offset, compare,
			   swap, flags);
}

int ep_poll(struct endpoint *ep, enum ep_cq which, struct ibv_wc *wc, int max, int ms)
{
	CHECK(max <= EP_MAX_POLLED);
	if (ep->place == EP_APART) {
		struct ep_request request = {.verb = EP_POLL, .a = (int)which, .b = max, .c = ms};
		struct ep_reply reply;

		apart_ask(ep, &request, &reply);
		memcpy(wc, reply.wc, sizeof(*wc) * (size_t)reply.result);
		return reply.result;
	}
	return completion_poll(ep->cq[which], wc, max, (unsigned int)ms);
}

int ep_poll_one(struct endpoint *ep, enum ep_cq which, struct ibv_wc *wc)
{
	memset(wc, 0, sizeof(*wc));
	return ep_poll(ep, which, wc, 1, EP_WAIT_MS) == 1 ? (int)wc->status : -1;
}

int ep_poll_none(struct endpoint *ep, enum ep_cq which)
{
	struct ibv_wc wc;

	return ep_poll(ep, which, &wc, 1, EP_QUIET_MS);
}

static bool event_here(struct endpoint *ep, struct ep_event *event, int ms)
{
	struct pollfd poller = {.fd = ep->context->async_fd, .events = POLLIN};
	struct ibv_async_event got;

	memset(event, 0, sizeof(*event));
	event->type = -1;
	if (poll(&poller, 1, ms) != 1 || ibv_get_async_event(ep->context, &got))
		return false;
	event->type = (int)got.event_type;
	event->own_qp = got.element.qp == ep->qp;
	event->own_srq = ep->srq && got.element.srq == ep->srq;
	for (int i = 0; i < 2; i++)
		event->own_cq[i] = got.element.cq == ep->cq[i];
	ibv_ack_async_event(&got);
	return true;
}

bool ep_event(struct endpoint *ep, struct ep_event *event, int ms)
{
	struct ep_request request = {.verb = EP_EVENT, .a = ms};
	struct ep_reply reply;

	if (ep->place == EP_HERE)
		return event_here(ep, event, ms);
	apart_ask(ep, &request, &reply);
	*event = reply.event;
	return reply.result;
}

bool ep_wait_event(struct endpoint *ep, enum ibv_event_type type, int ms)
{
	struct ep_event event;

	while (ep_event(ep, &event, ms))
		if (event.type == (int)type)
			return true;
	return false;
}

void resources_try(struct resources *resources)
{
	struct endpoint here, there;

	ep_open_on(&here, resources, NULL, NULL, 4096);
	ep_open_on(&there, resources, NULL, NULL, 4096);
	ep_link(&here, &there);
	CHECK_ZERO(ep_recv(&there, 1, 0, 64));
	CHECK_ZERO(ep_send(&here, 2, 0, 64, 0));
	completion_expect(resources->cq, 1, IBV_WC_SUCCESS, NULL);
	ep_close(&here);
	ep_close(&there);
}
