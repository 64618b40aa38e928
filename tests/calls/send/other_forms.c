/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Forms of requests and completions beside the usual ones: the queue of an XRC request named by
 * ibv_wr_set_xrc_srqn(), the key that a message invalidated read from an extended CQ, a basic
 * shared receive queue that is asked for by its type, and the flag for huge pages.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "support/check.h"
#include "support/clock.h"
#include "support/endpoint.h"
#include "support/xrc.h"

static struct resources resources;

static void xrc_queue_by_builder(void)
{
	struct ibv_xrcd *xrcd = xrc_domain(resources.context, NULL, O_CREAT);
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_XRC_SEND,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = resources.pd,
		.send_cq = resources.cq,
		.cap = {.max_send_wr = 4, .max_send_sge = 1, .max_inline_data = 16},
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
	};
	struct ep_config config;
	struct xrc_queue queue;
	struct endpoint sender;
	struct peer receiver;
	struct ibv_qp_ex *ex;
	struct ibv_qp *qp;
	struct ibv_wc wc;

	promise("ibv_wr_set_xrc_srqn names the queue that a request of the builders is for");
	CHECK(xrcd);
	config = ep_defaults(IBV_QPT_XRC_SEND);
	xrc_queue_open(&queue, &resources, xrcd);
	qp = xrc_receiver(resources.context, xrcd);
	CHECK(qp);
	xrc_sender_open(&sender, &resources);
	CHECK_ZERO(ibv_destroy_qp(sender.qp));
	sender.qp = ibv_create_qp_ex(resources.context, &init);
	CHECK(sender.qp);
	ep_init_qp(sender.qp, &config);
	sender.local.qpn = sender.qp->qp_num;
	xrc_receiver_connect(&resources, qp, &sender.local);
	receiver = xrc_peer(&resources, qp);
	ep_connect(&sender, &receiver);
	ex = ibv_qp_to_qp_ex(sender.qp);
	CHECK(ex);
	xrc_post(&queue, 5, 0, 64);
	ibv_wr_start(ex);
	ex->wr_id = 6;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(ex);
	ibv_wr_set_xrc_srqn(ex, queue.number);
	ibv_wr_set_inline_data(ex, "twelve bytes", 12);
	CHECK_ZERO(ibv_wr_complete(ex));
	completion_expect(resources.cq, 6, IBV_WC_SUCCESS, NULL);
	completion_expect(queue.cq, 5, IBV_WC_SUCCESS, &wc);
	CHECK_EQ(wc.byte_len, 12);
	CHECK(!memcmp(queue.buffer, "twelve bytes", 12));
	ep_close(&sender);
	CHECK_ZERO(ibv_destroy_qp(qp));
	xrc_queue_close(&queue);
	CHECK_ZERO(ibv_close_xrcd(xrcd));
}

/* A window of type 2 on the endpoint's buffer, bound. */
static struct ibv_mw *bind_window(struct endpoint *ep)
{
	struct ibv_mw *mw = ibv_alloc_mw(resources.pd, IBV_MW_TYPE_2);
	struct ibv_mr *mr =
		ibv_reg_mr(resources.pd, ep->buffer, ep->size, EP_ACCESS | IBV_ACCESS_MW_BIND);
	struct ibv_send_wr *bad, wr = {
					 .wr_id = 1,
					 .opcode = IBV_WR_BIND_MW,
					 .send_flags = IBV_SEND_SIGNALED,
				 };

	CHECK(mw && mr);
	CHECK_ZERO(ibv_dereg_mr(ep->mr));
	ep->mr = mr;
	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	wr.bind_mw.bind_info = (struct ibv_mw_bind_info){
		.mr = mr,
		.addr = (uintptr_t)ep->buffer,
		.length = ep->size,
		.mw_access_flags = IBV_ACCESS_REMOTE_WRITE,
	};
	CHECK_ZERO(ibv_post_send(ep->qp, &wr, &bad));
	completion_expect(resources.cq, 1, IBV_WC_SUCCESS, NULL);
	return mw;
}

static void invalidated_key(void)
{
	struct ibv_cq_init_attr_ex init = {.cqe = 8, .wc_flags = IBV_WC_EX_WITH_BYTE_LEN};
	struct ibv_cq_ex *cq = ibv_create_cq_ex(resources.context, &init);
	struct ibv_send_wr *bad, wr = {
					 .wr_id = 2,
					 .opcode = IBV_WR_SEND_WITH_INV,
					 .send_flags = IBV_SEND_SIGNALED,
				 };
	struct ibv_poll_cq_attr poll = {0};
	struct ep_config config;
	struct endpoint near, far;
	struct ibv_mw *mw;
	uint32_t rkey;
	int err;

	promise("ibv_wc_read_invalidated_rkey tells the key that a message invalidated");
	CHECK(cq);
	config = ep_defaults(IBV_QPT_RC);
	config.recv_cq = ibv_cq_ex_to_cq(cq);
	ep_open_on(&near, &resources, NULL, NULL, 4096);
	ep_open_on(&far, &resources, &config, NULL, 4096);
	ep_link(&near, &far);
	mw = bind_window(&far);
	rkey = mw->rkey;
	CHECK_ZERO(ep_recv(&far, 9, 0, 64));
	wr.invalidate_rkey = rkey;
	CHECK_ZERO(ibv_post_send(near.qp, &wr, &bad));
	completion_expect(resources.cq, 2, IBV_WC_SUCCESS, NULL);
	do {
		err = ibv_start_poll(cq, &poll);
	} while (err == ENOENT);
	CHECK_ZERO(err);
	CHECK_EQ(cq->wr_id, 9);
	CHECK_EQ(cq->status, IBV_WC_SUCCESS);
	CHECK(ibv_wc_read_wc_flags(cq) & IBV_WC_WITH_INV);
	CHECK_EQ(ibv_wc_read_invalidated_rkey(cq), rkey);
	ibv_end_poll(cq);
	CHECK_ZERO(ibv_dealloc_mw(mw));
	ep_close(&near);
	ep_close(&far);
	CHECK_ZERO(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
}

static void basic_queue(void)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = {.max_wr = 4, .max_sge = 1},
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = IBV_SRQT_BASIC,
		.pd = resources.pd,
	};
	struct ibv_recv_wr *bad, wr = {.wr_id = 1};
	struct ibv_srq *srq = ibv_create_srq_ex(resources.context, &attr);

	promise("IBV_SRQT_BASIC is what ibv_create_srq makes");
	CHECK(srq);
	CHECK_ZERO(ibv_post_srq_recv(srq, &wr, &bad));
	CHECK_ZERO(ibv_destroy_srq(srq));
}

static void huge_flag(void)
{
	static char buffer[4096];
	struct ibv_mr *mr;

	promise("IBV_ACCESS_HUGETLB is taken for memory of any page size");
	mr = ibv_reg_mr(resources.pd, buffer + 1, 100, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_HUGETLB);
	CHECK(mr && mr->length == 100);
	CHECK_ZERO(ibv_dereg_mr(mr));
}

int main(void)
{
	watchdog(60);
	resources_open(&resources, 64, false);
	xrc_queue_by_builder();
	invalidated_key();
	basic_queue();
	huge_flag();
	resources_close(&resources);
	return 0;
}
