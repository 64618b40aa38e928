/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* XRC for tests: domains, shared receive queues, receivers and senders. */
#include "support/xrc.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/check.h"
#include "support/qp_state.h"

struct ibv_xrcd *xrc_domain(struct ibv_context *context, const char *path, int oflags)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = path ? open(path, O_RDONLY | O_CREAT | O_CLOEXEC, 0600) : -1,
		.oflags = oflags,
	};
	struct ibv_xrcd *xrcd;

	CHECK(!path || attr.fd >= 0);
	xrcd = ibv_open_xrcd(context, &attr);
	if (path) {
		int saved = errno;

		close(attr.fd); /* the domain stays valid without it */
		errno = saved;
	}
	return xrcd;
}

struct ibv_srq_init_attr_ex xrc_srq_attr(const struct resources *resources, struct ibv_xrcd *xrcd)
{
	return (struct ibv_srq_init_attr_ex){
		.attr = {.max_wr = 4, .max_sge = 1},
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = resources->pd,
		.cq = resources->cq,
		.xrcd = xrcd,
	};
}

void xrc_queue_open(struct xrc_queue *queue, struct resources *resources, struct ibv_xrcd *xrcd)
{
	struct ibv_srq_init_attr_ex attr = xrc_srq_attr(resources, xrcd);

	attr.attr.max_wr = 64;
	memset(queue, 0, sizeof(*queue));
	queue->resources = resources;
	queue->pd = attr.pd = ibv_alloc_pd(resources->context);
	queue->cq = attr.cq = ibv_create_cq(resources->context, 256, NULL, NULL, 0);
	CHECK(queue->pd && queue->cq);
	queue->srq = ibv_create_srq_ex(resources->context, &attr);
	CHECK(queue->srq);
	CHECK_ZERO(ibv_get_srq_num(queue->srq, &queue->number));
	queue->buffer = aligned_alloc(4096, XRC_BUFFER);
	CHECK(queue->buffer);
	memset(queue->buffer, 0, XRC_BUFFER);
	queue->mr = ibv_reg_mr(queue->pd, queue->buffer, XRC_BUFFER, EP_ACCESS);
	CHECK(queue->mr);
}

void xrc_queue_close(struct xrc_queue *queue)
{
	CHECK_ZERO(ibv_destroy_srq(queue->srq));
	CHECK_ZERO(ibv_dereg_mr(queue->mr));
	CHECK_ZERO(ibv_destroy_cq(queue->cq));
	CHECK_ZERO(ibv_dealloc_pd(queue->pd));
	free(queue->buffer);
}

struct xrc_target xrc_target(const struct xrc_queue *queue)
{
	return (struct xrc_target){
		.addr = (uintptr_t)queue->buffer,
		.rkey = queue->mr->rkey,
		.number = queue->number,
	};
}

void xrc_post(struct xrc_queue *queue, uint64_t wr_id, size_t offset, uint32_t length)
{
	struct ibv_sge sge = {.addr = (uintptr_t)queue->buffer + offset,
			      .length = length,
			      .lkey = queue->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;

	CHECK_ZERO(ibv_post_srq_recv(queue->srq, &wr, &bad));
}

struct ibv_qp *xrc_receiver(struct ibv_context *context, struct ibv_xrcd *xrcd)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD,
		.xrcd = xrcd,
	};

	return ibv_create_qp_ex(context, &attr);
}

struct ibv_qp *xrc_receiver_open(struct ibv_context *context, struct ibv_xrcd *xrcd, uint32_t qpn)
{
	struct ibv_qp_open_attr attr = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE,
		.qp_num = qpn,
		.xrcd = xrcd,
		.qp_type = IBV_QPT_XRC_RECV,
	};

	return ibv_open_qp(context, &attr);
}

void xrc_sender_open(struct endpoint *ep, struct resources *resources)
{
	struct ep_config config;

	config = ep_defaults(IBV_QPT_XRC_SEND);
	config.cap.max_recv_wr = config.cap.max_recv_sge = 0;
	ep_open_on(ep, resources, &config, NULL, XRC_BUFFER);
}

struct peer xrc_peer(const struct resources *resources, const struct ibv_qp *qp)
{
	return (struct peer){
		.gid = resources->gid,
		.qpn = qp->qp_num,
		.psn = 0x123,
		.mtu = resources->mtu,
	};
}

void xrc_receiver_connect(struct resources *resources, struct ibv_qp *qp, const struct peer *sender)
{
	struct ep_config config = ep_defaults(IBV_QPT_XRC_RECV);
	struct peer local = xrc_peer(resources, qp);
	struct ibv_qp_attr attr;

	config.sgid_index = (uint8_t)resources->gid_index;
	attr = ep_attr(&config, &local, sender);
	CHECK_ZERO(qp_bring_to(qp, &attr, IBV_QPS_RTS));
}

int xrc_request(struct endpoint *ep, enum ibv_wr_opcode opcode, const struct xrc_target *target,
		uint32_t length)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)ep->buffer, .length = length, .lkey = ep->mr->lkey};
	struct ibv_send_wr *bad, wr = {
					 .wr_id = 1,
					 .sg_list = &sge,
					 .num_sge = 1,
					 .opcode = opcode,
					 .send_flags = IBV_SEND_SIGNALED,
					 .imm_data = 0x01020304,
					 .qp_type.xrc.remote_srqn = target->number,
				 };

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = target->addr;
		wr.wr.atomic.rkey = target->rkey;
		wr.wr.atomic.compare_add = 1;
	} else if (opcode != IBV_WR_SEND && opcode != IBV_WR_SEND_WITH_IMM) {
		wr.wr.rdma.remote_addr = target->addr;
		wr.wr.rdma.rkey = target->rkey;
	}
	return ibv_post_send(ep->qp, &wr, &bad);
}
