/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The queue pair behind builders.h. */
#include "builders.h"

#include "support/check.h"

struct endpoint ep;
struct ibv_qp_ex *ex;
struct ibv_ah *ah;
struct ibv_mw *mw;

static uint64_t operations(enum ibv_qp_type type)
{
	if (type == IBV_QPT_UD)
		return IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
	return IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_READ |
	       IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |
	       IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_FLUSH |
	       IBV_QP_EX_WITH_ATOMIC_WRITE;
}

void builders_open(enum ibv_qp_type type)
{
	struct ep_config config = ep_defaults(type);

	config.send_ops = operations(type);
	config.cap.max_send_wr = QUEUE;
	config.cap.max_send_sge = 2;
	config.cap.max_inline_data = INLINE;
	config.mr_access |= IBV_ACCESS_MW_BIND | IBV_ACCESS_FLUSH_GLOBAL;
	config.qp_access_flags |= IBV_ACCESS_FLUSH_GLOBAL;
	ep_open(&ep, &config, EP_HERE);
	ep_link(&ep, &ep);
	ex = ibv_qp_to_qp_ex(ep.qp);
	ah = ep_ah(&ep, &ep.local);
	mw = ibv_alloc_mw(ep.pd, IBV_MW_TYPE_2);
	CHECK(ex && mw && ep.cap.max_send_sge >= 2 && ep.cap.max_inline_data >= INLINE &&
	      ep.cap.max_send_wr == QUEUE);
}

void builders_close(void)
{
	EXPECT_EQ(ibv_dealloc_mw(mw), 0);
	EXPECT_EQ(ibv_destroy_ah(ah), 0);
	ep_close(&ep);
}

void request_begin(uint64_t wr_id)
{
	ex->wr_id = wr_id;
	ex->wr_flags = IBV_SEND_SIGNALED;
}

/* A SEND of 8 bytes, complete. */
void request_send(uint64_t wr_id)
{
	request_begin(wr_id);
	ibv_wr_send(ex);
	if (ep.config.type == IBV_QPT_UD)
		ibv_wr_set_ud_addr(ex, ah, ep.local.qpn, ep.config.qkey);
	ibv_wr_set_sge(ex, ep.lkey, ep.local.addr, 8);
}

void request_sent(uint64_t wr_id, enum ibv_wc_status status)
{
	struct ibv_wc wc;

	EXPECT_STATUS(ep_poll_one(&ep, EP_SEND_CQ, &wc), status);
	EXPECT_EQ(wc.wr_id, wr_id);
}

/* Without a disturbance one batch of one SEND succeeds. */
void builders_work(void)
{
	struct ibv_sge into = ep_sge(&ep, 32768, 256);

	CHECK(ep_post_recv(&ep, 5, &into, 1) == 0);
	ibv_wr_start(ex);
	request_send(77);
	EXPECT_EQ(ibv_wr_complete(ex), 0);
	request_sent(77, IBV_WC_SUCCESS);
	EXPECT_EQ(ep_poll(&ep, EP_RECV_CQ, &(struct ibv_wc){0}, 1, EP_WAIT_MS), 1);
	EXPECT_EQ(ep_state(&ep), IBV_QPS_RTS);
}

void request_bind(struct ibv_mw *window, unsigned int access)
{
	struct ibv_mw_bind_info info = {
		.mr = ep.mr, .addr = ep.local.addr, .length = 64, .mw_access_flags = access};

	ibv_wr_bind_mw(ex, window, ibv_inc_rkey(mw->rkey), &info);
}
