/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory windows: wrong arguments and states of each call, limits, which object keeps which alive,
 * and windows among several queue pairs.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "support/check.h"
#include "support/endpoint.h"

#define BIND_LOCAL (IBV_ACCESS_MW_BIND | IBV_ACCESS_LOCAL_WRITE)

static void open_one(struct endpoint *ep)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);

	config.mr_access |= IBV_ACCESS_MW_BIND;
	ep_open(ep, &config, EP_HERE);
}

static void open_linked(struct endpoint *near, struct endpoint *far)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);

	config.mr_access = BIND_LOCAL;
	ep_pair(near, far, &config, &config, EP_HERE);
}

static void allocation(void)
{
	struct ibv_device_attr attr;
	struct endpoint ep;
	struct ibv_mw *mw;
	uint32_t handle;

	open_one(&ep);
	CHECK(ibv_query_device(ep.context, &attr) == 0);
	expect_case("reported");
	EXPECT(attr.max_mw > 0);
	EXPECT(attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW);
	EXPECT(attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B);
	EXPECT(!(attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2A));
	expect_case("no such type");
	EXPECT_NULL(ibv_alloc_mw(ep.pd, (enum ibv_mw_type)0), EINVAL);
	EXPECT_NULL(ibv_alloc_mw(ep.pd, (enum ibv_mw_type)3), EINVAL);
	expect_case("fields");
	mw = ibv_alloc_mw(ep.other_pd, IBV_MW_TYPE_2);
	CHECK(mw);
	EXPECT(mw->context == ep.context && mw->pd == ep.other_pd && mw->type == IBV_MW_TYPE_2);
	EXPECT(mw->rkey != 0);
	expect_case("its domain is busy");
	EXPECT_REFUSED(ibv_dealloc_pd(ep.other_pd), EBUSY);
	expect_case("foreign handle");
	handle = mw->handle;
	mw->handle = handle + 77;
	EXPECT_REFUSED(ibv_dealloc_mw(mw), ENOENT);
	mw->handle = handle;
	EXPECT_EQ(ibv_dealloc_mw(mw), 0);
	ep_close(&ep);
}

/* Exactly max_mw of them, the next is refused and leaves nothing behind. */
static void limit(void)
{
	struct ibv_device_attr attr;
	struct endpoint ep;
	struct ibv_mw **mw;
	int count = 0;

	expect_case("max_mw");
	open_one(&ep);
	CHECK(ibv_query_device(ep.context, &attr) == 0);
	mw = calloc((size_t)attr.max_mw, sizeof(struct ibv_mw *));
	CHECK(mw && attr.max_mw > 0);
	while (count < attr.max_mw && (mw[count] = ibv_alloc_mw(ep.pd, IBV_MW_TYPE_1)))
		count++;
	CHECK(count == attr.max_mw && mw[count - 1]);
	EXPECT_NULL(ibv_alloc_mw(ep.pd, IBV_MW_TYPE_1), ENOMEM);
	EXPECT_EQ(ibv_dealloc_mw(mw[--count]), 0);
	mw[count] = ibv_alloc_mw(ep.pd, IBV_MW_TYPE_2);
	EXPECT(mw[count++] != NULL);
	for (int i = 0; i < count; i++) {
		if (mw[i])
			EXPECT_EQ(ibv_dealloc_mw(mw[i]), 0);
	}
	free(mw);
	ep_close(&ep);
}

/* What the call itself refuses; nothing is posted and the key stays. */
static void wrong_arguments(void)
{
	struct endpoint near, far;
	struct ibv_mw *mw, *two;
	struct ibv_mr *zero, *other;
	struct ibv_send_wr wr = {.opcode = IBV_WR_BIND_MW}, *bad;
	struct ibv_mw_bind bind = {.wr_id = 1};
	struct endpoint fresh;
	uint32_t key;

	open_linked(&near, &far);
	mw = ibv_alloc_mw(far.pd, IBV_MW_TYPE_1);
	two = ibv_alloc_mw(far.pd, IBV_MW_TYPE_2);
	zero = ibv_reg_mr(far.pd, far.buffer, 4096, BIND_LOCAL | IBV_ACCESS_ZERO_BASED);
	other = ibv_reg_mr(far.other_pd, far.buffer, 4096, BIND_LOCAL);
	CHECK(mw && two && zero && other);
	key = mw->rkey;
	bind.bind_info = (struct ibv_mw_bind_info){.mr = far.mr,
						   .addr = (uintptr_t)far.buffer,
						   .length = 64,
						   .mw_access_flags = IBV_ACCESS_REMOTE_WRITE};
	expect_case("ibv_bind_mw on type 2");
	EXPECT_EQ(ibv_bind_mw(far.qp, two, &bind), EINVAL);
	expect_case("a range, no region");
	bind.bind_info.mr = NULL;
	EXPECT_EQ(ibv_bind_mw(far.qp, mw, &bind), EINVAL);
	expect_case("region of another domain");
	bind.bind_info.mr = other;
	EXPECT_EQ(ibv_bind_mw(far.qp, mw, &bind), EPERM);
	expect_case("zero-based region");
	bind.bind_info.mr = zero;
	bind.bind_info.addr = 0;
	EXPECT_REFUSED(ibv_bind_mw(far.qp, mw, &bind), EINVAL);
	expect_case("zero-based window");
	bind.bind_info.mr = far.mr;
	bind.bind_info.addr = (uintptr_t)far.buffer;
	bind.bind_info.mw_access_flags |= IBV_ACCESS_ZERO_BASED;
	EXPECT_REFUSED(ibv_bind_mw(far.qp, mw, &bind), EINVAL);
	expect_case("rights that no window has");
	bind.bind_info.mw_access_flags = IBV_ACCESS_MW_BIND;
	EXPECT_REFUSED(ibv_bind_mw(far.qp, mw, &bind), EINVAL);
	wr.bind_mw.mw = two;
	wr.bind_mw.bind_info = bind.bind_info;
	EXPECT_EQ(ibv_post_send(far.qp, &wr, &bad), EINVAL);
	EXPECT(bad == &wr);
	expect_case("no window");
	wr.bind_mw.mw = NULL;
	wr.bind_mw.bind_info.mw_access_flags = IBV_ACCESS_REMOTE_READ;
	EXPECT_EQ(ibv_post_send(far.qp, &wr, &bad), EINVAL);
	expect_case("a queue pair that is not ready");
	open_one(&fresh);
	bind.bind_info.mw_access_flags = IBV_ACCESS_REMOTE_WRITE;
	EXPECT_REFUSED(ibv_bind_mw(fresh.qp, mw, &bind), EINVAL);
	ep_close(&fresh);
	expect_case("nothing was posted");
	EXPECT_EQ(mw->rkey, key);
	EXPECT_EQ(ep_poll_none(&far, EP_SEND_CQ), 0);
	EXPECT_EQ(ep_state(&far), IBV_QPS_RTS);
	EXPECT_EQ(ibv_dealloc_mw(mw), 0);
	EXPECT_EQ(ibv_dealloc_mw(two), 0);
	EXPECT_EQ(ibv_dereg_mr(zero), 0);
	EXPECT_EQ(ibv_dereg_mr(other), 0);
	ep_pair_close(&near, &far);
}

/* A full send queue refuses the bind, and the window's key stays. */
static void queue_full(void)
{
	struct endpoint near, far;
	struct ibv_mw *mw;
	struct ibv_mw_bind bind = {.wr_id = 1};
	uint32_t key;
	int rc, posted = 0;

	expect_case("full queue");
	open_linked(&near, &far);
	mw = ibv_alloc_mw(far.pd, IBV_MW_TYPE_1);
	CHECK(mw);
	do {
		key = mw->rkey;
		rc = ibv_bind_mw(far.qp, mw, &bind);
	} while (!rc && ++posted <= (int)far.cap.max_send_wr);
	EXPECT_EQ(rc, ENOMEM);
	EXPECT_EQ(posted, far.cap.max_send_wr);
	EXPECT_EQ(mw->rkey, key);
	EXPECT_EQ(ibv_dealloc_mw(mw), 0);
	ep_pair_close(&near, &far);
}

static int bind_2(struct endpoint *ep, struct ibv_mw *mw, uint32_t rkey)
{
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED, .wr_id = 3};
	struct ibv_wc wc;

	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = rkey;
	wr.bind_mw.bind_info =
		(struct ibv_mw_bind_info){.mr = ep->mr,
					  .addr = (uintptr_t)ep->buffer,
					  .length = 4096,
					  .mw_access_flags = IBV_ACCESS_REMOTE_WRITE};
	CHECK(ep_post_send(ep, &wr) == 0);
	return ep_poll_one(ep, EP_SEND_CQ, &wc);
}

static int write_via(struct endpoint *ep, uint64_t addr, uint32_t rkey)
{
	struct ibv_sge sge = ep_sge(ep, 0, 8);
	struct ibv_send_wr wr = ep_wr(IBV_WR_RDMA_WRITE, 1, &sge, 1);
	struct ibv_wc wc;

	wr.wr.rdma.remote_addr = addr;
	wr.wr.rdma.rkey = rkey;
	CHECK(ep_post_send(ep, &wr) == 0);
	return ep_poll_one(ep, EP_SEND_CQ, &wc);
}

/* ibv_post_send(3): of the key only the low 8 bits are the caller's. */
static void tags(void)
{
	struct endpoint near, far;
	struct ibv_mw *mw;
	uint32_t index;

	expect_case("tags");
	open_linked(&near, &far);
	mw = ibv_alloc_mw(far.pd, IBV_MW_TYPE_2);
	CHECK(mw);
	index = mw->rkey >> 8;
	EXPECT_STATUS(bind_2(&far, mw, 0xabcdef42), IBV_WC_SUCCESS);
	EXPECT_EQ(mw->rkey, index << 8 | 0x42);
	EXPECT_STATUS(write_via(&near, (uintptr_t)far.buffer, mw->rkey), IBV_WC_SUCCESS);
	EXPECT_EQ(ibv_inc_rkey(0x123456ff), 0x12345600);
	EXPECT_EQ(ibv_dealloc_mw(mw), 0);
	ep_pair_close(&near, &far);
}

/*
 * The second pair's queue pairs are of the first pair's domain and device, so that they may use its
 * keys.
 */
struct quartet {
	struct endpoint near, far;
	struct ibv_qp *qp[2];
};

static void connect_extra(struct quartet *q)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.send_cq = q->near.cq[0],
		.recv_cq = q->near.cq[1],
		.cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1},
	};
	struct ibv_qp *own[2] = {q->near.qp, q->far.qp};
	struct peer info[2];

	q->qp[0] = ibv_create_qp(q->near.pd, &attr);
	attr.send_cq = q->far.cq[0];
	attr.recv_cq = q->far.cq[1];
	q->qp[1] = ibv_create_qp(q->far.pd, &attr);
	CHECK(q->qp[0] && q->qp[1]);
	info[0] = q->near.local;
	info[1] = q->far.local;
	info[0].qpn = q->qp[0]->qp_num;
	info[1].qpn = q->qp[1]->qp_num;
	q->near.qp = q->qp[0];
	q->far.qp = q->qp[1];
	CHECK(ep_bring_to(&q->near, &info[1], IBV_QPS_RTS) == 0);
	CHECK(ep_bring_to(&q->far, &info[0], IBV_QPS_RTS) == 0);
	q->near.qp = own[0];
	q->far.qp = own[1];
}

static int write_other(struct quartet *q, uint32_t rkey)
{
	struct ibv_qp *own = q->near.qp;
	int status;

	q->near.qp = q->qp[0];
	status = write_via(&q->near, (uintptr_t)q->far.buffer, rkey);
	q->near.qp = own;
	return status;
}

/*
 * Type 1 serves every queue pair of the domain. Type 2 serves the one that it was bound on, and
 * none once that is destroyed.
 */
static void several_queue_pairs(void)
{
	struct quartet q;
	struct ibv_mw *one, *two;
	struct ibv_mw_bind bind = {.wr_id = 1, .send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr inv = {.opcode = IBV_WR_LOCAL_INV, .send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	open_linked(&q.near, &q.far);
	connect_extra(&q);
	one = ibv_alloc_mw(q.far.pd, IBV_MW_TYPE_1);
	two = ibv_alloc_mw(q.far.pd, IBV_MW_TYPE_2);
	CHECK(one && two);
	bind.bind_info = (struct ibv_mw_bind_info){.mr = q.far.mr,
						   .addr = (uintptr_t)q.far.buffer,
						   .length = 4096,
						   .mw_access_flags = IBV_ACCESS_REMOTE_WRITE};
	CHECK(ibv_bind_mw(q.far.qp, one, &bind) == 0);
	CHECK(ep_poll_one(&q.far, EP_SEND_CQ, &wc) == IBV_WC_SUCCESS);
	CHECK(bind_2(&q.far, two, 5) == IBV_WC_SUCCESS);
	expect_case("type 1 through both");
	EXPECT_STATUS(write_via(&q.near, (uintptr_t)q.far.buffer, one->rkey), IBV_WC_SUCCESS);
	EXPECT_STATUS(write_other(&q, one->rkey), IBV_WC_SUCCESS);
	expect_case("type 2 through its own");
	EXPECT_STATUS(write_via(&q.near, (uintptr_t)q.far.buffer, two->rkey), IBV_WC_SUCCESS);
	expect_case("type 2 invalidated on another");
	inv.invalidate_rkey = two->rkey;
	CHECK(ibv_post_send(q.qp[1], &inv, &bad) == 0);
	EXPECT_STATUS(ep_poll_one(&q.far, EP_SEND_CQ, &wc), IBV_WC_MW_BIND_ERR);
	EXPECT_STATUS(write_via(&q.near, (uintptr_t)q.far.buffer, two->rkey), IBV_WC_SUCCESS);
	ibv_destroy_qp(q.qp[0]);
	ibv_destroy_qp(q.qp[1]);
	connect_extra(&q);
	expect_case("type 2 through another");
	EXPECT_STATUS(write_other(&q, two->rkey), IBV_WC_REM_ACCESS_ERR);
	EXPECT_EQ(ibv_destroy_qp(q.qp[0]), 0);
	EXPECT_EQ(ibv_destroy_qp(q.qp[1]), 0);
	expect_case("the queue pair goes, its window is free");
	connect_extra(&q);
	EXPECT_EQ(ibv_destroy_qp(q.far.qp), 0);
	q.far.qp = q.qp[1];
	EXPECT_STATUS(write_other(&q, one->rkey), IBV_WC_SUCCESS);
	EXPECT_STATUS(bind_2(&q.far, two, 6), IBV_WC_SUCCESS);
	EXPECT_STATUS(write_other(&q, two->rkey), IBV_WC_SUCCESS);
	EXPECT_EQ(ibv_destroy_qp(q.qp[0]), 0);
	EXPECT_EQ(ibv_dealloc_mw(one), 0);
	EXPECT_EQ(ibv_dealloc_mw(two), 0);
	ep_pair_close(&q.near, &q.far);
}

/* ibv_dereg_mr(3) and ibv_rereg_mr(3) while windows are bound; region and windows go on. */
static void region_busy(void)
{
	struct endpoint near, far;
	struct ibv_mw *mw;
	struct ibv_mr *mr;

	expect_case("busy region");
	open_linked(&near, &far);
	mr = far.mr;
	mw = ibv_alloc_mw(far.pd, IBV_MW_TYPE_2);
	CHECK(mw);
	CHECK(bind_2(&far, mw, 1) == IBV_WC_SUCCESS);
	EXPECT_REFUSED(ibv_dereg_mr(mr), EBUSY);
	EXPECT_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			       IBV_ACCESS_LOCAL_WRITE),
		  IBV_REREG_MR_ERR_CMD);
	EXPECT_STATUS(write_via(&near, (uintptr_t)far.buffer, mw->rkey), IBV_WC_SUCCESS);
	EXPECT_EQ(ibv_dealloc_mw(mw), 0);
	EXPECT_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			       IBV_ACCESS_LOCAL_WRITE),
		  0);
	ep_pair_close(&near, &far);
}

/* ibv_wr_bind_mw, ibv_wr_local_inv and ibv_wr_send_inv: the three do what the opcodes do. */
static void builders(void)
{
	struct endpoint near, far;
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1},
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV |
				  IBV_QP_EX_WITH_SEND_WITH_INV,
	};
	struct ibv_mw_bind_info info = {.mw_access_flags = IBV_ACCESS_REMOTE_WRITE, .length = 64};
	struct ibv_sge into;
	struct ibv_qp_ex *ex;
	struct ibv_qp *own;
	struct ibv_mw *mw;
	struct ibv_wc wc;

	expect_case("builders");
	open_linked(&near, &far);
	own = far.qp;
	attr.send_cq = far.cq[0];
	attr.recv_cq = far.cq[1];
	attr.pd = far.pd;
	far.qp = ibv_create_qp_ex(far.context, &attr);
	CHECK(far.qp);
	CHECK(ibv_destroy_qp(own) == 0);
	far.local.qpn = far.qp->qp_num;
	CHECK(ep_move(&near, IBV_QPS_RESET) == 0);
	ep_link(&near, &far);
	mw = ibv_alloc_mw(far.pd, IBV_MW_TYPE_2);
	CHECK(mw);
	info.mr = far.mr;
	info.addr = (uintptr_t)far.buffer;
	into = ep_sge(&near, 0, 64);
	CHECK(ep_post_recv(&near, 4, &into, 1) == 0);
	ex = ibv_qp_to_qp_ex(far.qp);
	ibv_wr_start(ex);
	ex->wr_flags = IBV_SEND_SIGNALED;
	ex->wr_id = 1;
	ibv_wr_bind_mw(ex, mw, 7, &info);
	ex->wr_id = 2;
	ibv_wr_local_inv(ex, (mw->rkey & 0xffffff00) | 7);
	ex->wr_id = 3;
	ibv_wr_send_inv(ex, 0x777); /* the receiver has no such window */
	EXPECT_EQ(ibv_wr_complete(ex), 0);
	EXPECT_STATUS(ep_poll_one(&far, EP_SEND_CQ, &wc), IBV_WC_SUCCESS);
	EXPECT(wc.wr_id == 1 && wc.opcode == IBV_WC_BIND_MW);
	EXPECT_STATUS(ep_poll_one(&far, EP_SEND_CQ, &wc), IBV_WC_SUCCESS);
	EXPECT(wc.wr_id == 2 && wc.opcode == IBV_WC_LOCAL_INV);
	EXPECT_STATUS(ep_poll_one(&near, EP_RECV_CQ, &wc), IBV_WC_MW_BIND_ERR);
	expect_case("builders: a fault is told by complete");
	ibv_wr_start(ex);
	info.mw_access_flags = IBV_ACCESS_MW_BIND;
	ibv_wr_bind_mw(ex, mw, 8, &info);
	EXPECT_EQ(ibv_wr_complete(ex), EINVAL);
	EXPECT_EQ(ibv_dealloc_mw(mw), 0);
	ep_pair_close(&near, &far);
}

static enum ibv_wc_status next_of(struct ibv_cq_ex *cq, enum ibv_wc_opcode *opcode, uint32_t *key)
{
	struct ibv_poll_cq_attr attr = {.comp_mask = 0};
	enum ibv_wc_status status;

	while (ibv_start_poll(cq, &attr) == ENOENT)
		;
	status = cq->status;
	*opcode = ibv_wc_read_opcode(cq);
	*key = *opcode == IBV_WC_RECV ? ibv_wc_read_invalidated_rkey(cq) : 0;
	if (*opcode == IBV_WC_RECV)
		EXPECT_EQ(ibv_wc_read_wc_flags(cq), IBV_WC_WITH_INV);
	ibv_end_poll(cq);
	return status;
}

/* ibv_create_cq_ex(3): the key that a message took away, told by the extended queue. */
static void extended_completion(void)
{
	struct ibv_cq_init_attr_ex init = {.cqe = 8};
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 4, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
	};
	struct ibv_send_wr inv = {.opcode = IBV_WR_SEND_WITH_INV}, *bad;
	enum ibv_wc_opcode opcode;
	struct ibv_cq_ex *cq;
	struct peer info;
	struct ibv_qp *own;
	struct ibv_mw *mw;
	struct endpoint ep;
	uint32_t key;

	expect_case("extended completion");
	open_one(&ep);
	cq = ibv_create_cq_ex(ep.context, &init);
	mw = ibv_alloc_mw(ep.pd, IBV_MW_TYPE_2);
	CHECK(cq && mw);
	attr.send_cq = attr.recv_cq = ibv_cq_ex_to_cq(cq);
	own = ep.qp;
	ep.qp = ibv_create_qp(ep.pd, &attr);
	CHECK(ep.qp);
	info = ep.local;
	info.qpn = ep.qp->qp_num;
	CHECK(ep_bring_to(&ep, &info, IBV_QPS_RTS) == 0); /* to itself */
	inv.opcode = IBV_WR_BIND_MW;
	inv.send_flags = IBV_SEND_SIGNALED;
	inv.bind_mw.mw = mw;
	inv.bind_mw.rkey = 9;
	inv.bind_mw.bind_info =
		(struct ibv_mw_bind_info){.mr = ep.mr,
					  .addr = (uintptr_t)ep.buffer,
					  .length = 64,
					  .mw_access_flags = IBV_ACCESS_REMOTE_READ};
	CHECK(ibv_post_send(ep.qp, &inv, &bad) == 0);
	EXPECT_STATUS(next_of(cq, &opcode, &key), IBV_WC_SUCCESS);
	EXPECT_EQ(opcode, IBV_WC_BIND_MW);
	CHECK(ep_post_recv(&ep, 4, NULL, 0) == 0);
	inv = (struct ibv_send_wr){.opcode = IBV_WR_SEND_WITH_INV, .invalidate_rkey = mw->rkey};
	CHECK(ibv_post_send(ep.qp, &inv, &bad) == 0);
	EXPECT_STATUS(next_of(cq, &opcode, &key), IBV_WC_SUCCESS);
	EXPECT_EQ(opcode, IBV_WC_RECV);
	EXPECT_EQ(key, mw->rkey);
	EXPECT_EQ(ibv_destroy_qp(ep.qp), 0);
	EXPECT_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	EXPECT_EQ(ibv_dealloc_mw(mw), 0);
	ep.qp = own;
	ep_close(&ep);
}

int main(int argc, char **argv)
{
	ep_main(argc, argv);
	allocation();
	limit();
	wrong_arguments();
	queue_full();
	tags();
	several_queue_pairs();
	region_busy();
	builders();
	extended_completion();
	return expect_done();
}
