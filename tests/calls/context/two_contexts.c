/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: objects of different contexts do not mix, also where the device is the same
 * (ibv_open_device(3)). Each call that takes two objects is given one of another context and
 * refuses it. Both objects can be destroyed afterwards, so nothing refers to them.
 */
#include <fcntl.h>

#include <infiniband/verbs.h>

#include "support/check.h"
#include "support/endpoint.h"

/* One of each, all of one context. */
struct objects {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_qp *qp, *xqp;
	struct ibv_wq *wq;
	struct ibv_mr *mr;
	struct ibv_mw *mw;
	struct ibv_dm *dm;
	struct ibv_buf *buf;
	char *buf_addr;
	struct ibv_dmah *dmah;
	struct ibv_td *td;
	struct ibv_xrcd *xrcd;
	struct ibv_comp_cntr *cntr;
};

static struct objects here, there;
static char memory[64];

static struct ibv_qp_init_attr_ex qp_attr(const struct objects *o)
{
	return (struct ibv_qp_init_attr_ex){
		.send_cq = o->cq,
		.recv_cq = o->cq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS,
		.pd = o->pd,
	};
}

static struct ibv_qp_init_attr_ex xrc_attr(const struct objects *o)
{
	return (struct ibv_qp_init_attr_ex){
		.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = o->xrcd};
}

static struct ibv_srq_init_attr_ex srq_attr(const struct objects *o)
{
	return (struct ibv_srq_init_attr_ex){
		.attr = {.max_wr = 4, .max_sge = 1},
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = o->pd,
		.cq = o->cq,
		.xrcd = o->xrcd,
	};
}

static struct ibv_wq_init_attr wq_attr(const struct objects *o)
{
	return (struct ibv_wq_init_attr){
		.wq_type = IBV_WQT_RQ, .max_wr = 4, .max_sge = 1, .pd = o->pd, .cq = o->cq};
}

static void make_memory(struct objects *o)
{
	struct ibv_alloc_dm_attr dm = {.length = 64};
	struct ibv_dmah_init_attr dmah = {.comp_mask = 0};

	o->mr = ibv_reg_mr(o->pd, memory, sizeof(memory),
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	o->mw = ibv_alloc_mw(o->pd, IBV_MW_TYPE_1);
	o->dm = ibv_alloc_dm(o->ctx, &dm);
	o->buf_addr = ibv_alloc_buf(o->pd, 64, &o->buf);
	o->dmah = ibv_alloc_dmah(o->ctx, &dmah);
	CHECK(o->mr && o->mw && o->dm && o->buf_addr && o->dmah);
}

static void make(struct objects *o)
{
	struct ibv_xrcd_init_attr xrcd = {.comp_mask = IBV_XRCD_INIT_ATTR_FD |
						       IBV_XRCD_INIT_ATTR_OFLAGS,
					  .fd = -1,
					  .oflags = O_CREAT};
	struct ibv_srq_init_attr srq = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_comp_cntr_init_attr cntr = {.type = IBV_COMP_CNTR_TYPE_BYTES};
	struct ibv_td_init_attr td = {.comp_mask = 0};
	struct ibv_qp_init_attr_ex qp, xqp;
	struct ibv_wq_init_attr wq;

	o->ctx = device_open();
	o->pd = ibv_alloc_pd(o->ctx);
	o->channel = ibv_create_comp_channel(o->ctx);
	o->cq = ibv_create_cq(o->ctx, 8, NULL, o->channel, 0);
	o->xrcd = ibv_open_xrcd(o->ctx, &xrcd);
	o->td = ibv_alloc_td(o->ctx, &td);
	o->cntr = ibv_create_comp_cntr(o->ctx, &cntr);
	CHECK(o->pd && o->channel && o->cq && o->xrcd && o->td && o->cntr);
	o->srq = ibv_create_srq(o->pd, &srq);
	qp = qp_attr(o);
	o->qp = ibv_create_qp_ex(o->ctx, &qp);
	xqp = xrc_attr(o);
	o->xqp = ibv_create_qp_ex(o->ctx, &xqp);
	wq = wq_attr(o);
	o->wq = ibv_create_wq(o->ctx, &wq);
	CHECK(o->srq && o->qp && o->xqp && o->wq);
	make_memory(o);
}

/* In an order in which nothing is busy: a reference that a refused call kept would show. */
static void destroy(struct objects *o)
{
	expect_case("nothing refers to what was refused");
	EXPECT_EQ(ibv_dereg_mr(o->mr), 0);
	EXPECT_EQ(ibv_dealloc_mw(o->mw), 0);
	EXPECT_EQ(ibv_free_dm(o->dm), 0);
	errno = 0;
	ibv_free_buf(o->buf);
	EXPECT_EQ(errno, 0);
	EXPECT_EQ(ibv_dealloc_dmah(o->dmah), 0);
	EXPECT_EQ(ibv_destroy_wq(o->wq), 0);
	EXPECT_EQ(ibv_destroy_qp(o->qp), 0);
	EXPECT_EQ(ibv_destroy_qp(o->xqp), 0);
	EXPECT_EQ(ibv_destroy_comp_cntr(o->cntr), 0);
	EXPECT_EQ(ibv_destroy_srq(o->srq), 0);
	EXPECT_EQ(ibv_dealloc_td(o->td), 0);
	EXPECT_EQ(ibv_close_xrcd(o->xrcd), 0);
	EXPECT_EQ(ibv_destroy_cq(o->cq), 0);
	EXPECT_EQ(ibv_destroy_comp_channel(o->channel), 0);
	EXPECT_EQ(ibv_dealloc_pd(o->pd), 0);
	EXPECT_EQ(ibv_close_device(o->ctx), 0);
}

/* A creation with one member of the attributes from the other context. */
#define FOREIGN(verb, make_attr, member, err)                             \
	do {                                                              \
		__typeof__(make_attr(&here)) attr_ = make_attr(&here);    \
                                                                          \
		expect_case("%s: %s of another context", #verb, #member); \
		attr_.member = make_attr(&there).member;                  \
		EXPECT_NULL(verb(here.ctx, &attr_), err);                 \
	} while (0)

static void queues(void)
{
	struct ibv_cq_init_attr_ex cq = {
		.cqe = 4, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD, .parent_domain = there.pd};
	struct ibv_qp_init_attr_ex with_srq = qp_attr(&here);
	struct ibv_rwq_ind_table_init_attr table = {.ind_tbl = &there.wq};
	struct ibv_qp_attach_comp_cntr_attr attach = {.op_mask = IBV_QP_ATTACH_COMP_CNTR_OP_SEND};
	struct ibv_qp_open_attr open = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE,
		.qp_num = there.xqp->qp_num,
		.xrcd = there.xrcd,
		.qp_type = IBV_QPT_XRC_RECV,
	};

	FOREIGN(ibv_create_qp_ex, qp_attr, pd, ENOENT);
	FOREIGN(ibv_create_qp_ex, qp_attr, send_cq, ENOENT);
	FOREIGN(ibv_create_qp_ex, qp_attr, recv_cq, ENOENT);
	FOREIGN(ibv_create_qp_ex, xrc_attr, xrcd, ENOENT);
	FOREIGN(ibv_create_srq_ex, srq_attr, pd, ENOENT);
	FOREIGN(ibv_create_srq_ex, srq_attr, cq, ENOENT);
	FOREIGN(ibv_create_srq_ex, srq_attr, xrcd, ENOENT);
	FOREIGN(ibv_create_wq, wq_attr, pd, ENOENT);
	FOREIGN(ibv_create_wq, wq_attr, cq, ENOENT);
	expect_case("ibv_create_qp_ex: srq of another context");
	with_srq.srq = there.srq;
	EXPECT_NULL(ibv_create_qp_ex(here.ctx, &with_srq), ENOENT);
	expect_case("ibv_open_qp: xrcd of another context");
	EXPECT_NULL(ibv_open_qp(here.ctx, &open), ENOENT);
	expect_case("ibv_create_cq: channel of another context");
	EXPECT_NULL(ibv_create_cq(here.ctx, 4, NULL, there.channel, 0), EINVAL);
	expect_case("ibv_create_cq_ex: domain of another context");
	EXPECT_NULL(ibv_create_cq_ex(here.ctx, &cq), ENOENT);
	expect_case("ibv_create_rwq_ind_table: queue of another context");
	EXPECT_NULL(ibv_create_rwq_ind_table(here.ctx, &table), EINVAL);
	expect_case("ibv_qp_attach_comp_cntr: counter of another context");
	EXPECT_REFUSED(ibv_qp_attach_comp_cntr(here.qp, there.cntr, &attach), ENOENT);
}

static void memory_and_domains(void)
{
	struct ibv_parent_domain_init_attr parent = {.pd = there.pd};
	struct ibv_mr_init_attr region = {.comp_mask = IBV_REG_MR_MASK_ADDR | IBV_REG_MR_MASK_DMAH,
					  .addr = memory,
					  .length = 8,
					  .dmah = there.dmah};
	struct ibv_mw_bind bind = {
		.bind_info = {.mr = there.mr, .addr = (uintptr_t)memory, .length = 8}};

	expect_case("ibv_alloc_parent_domain: pd, td of another context");
	EXPECT_NULL(ibv_alloc_parent_domain(here.ctx, &parent), ENOENT);
	parent = (struct ibv_parent_domain_init_attr){.pd = here.pd, .td = there.td};
	EXPECT_NULL(ibv_alloc_parent_domain(here.ctx, &parent), EINVAL);
	expect_case("ibv_reg_dm_mr: memory of another context");
	EXPECT_NULL(ibv_reg_dm_mr(here.pd, there.dm, 0, 8, IBV_ACCESS_ZERO_BASED), ENOENT);
	expect_case("ibv_reg_buf_mr: buffer of another context");
	EXPECT_NULL(ibv_reg_buf_mr(here.pd, there.buf, there.buf_addr, 8, 0), EINVAL);
	expect_case("ibv_reg_mr_ex: hints of another context");
	EXPECT_NULL(ibv_reg_mr_ex(here.pd, &region), ENOENT);
	expect_case("ibv_bind_mw: window and region of another context than the queue pair's");
	EXPECT_REFUSED(ibv_bind_mw(here.qp, there.mw, &bind), EINVAL);
	expect_case("ibv_rereg_mr: domain of another context");
	EXPECT_EQ(ibv_rereg_mr(here.mr, IBV_REREG_MR_CHANGE_PD, there.pd, NULL, 0, 0),
		  IBV_REREG_MR_ERR_CMD);
}

int main(int argc, char **argv)
{
	ep_main(argc, argv);
	make(&here);
	make(&there);
	queues();
	memory_and_domains();
	destroy(&there);
	destroy(&here);
	return expect_done();
}
