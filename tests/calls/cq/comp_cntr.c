/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Completion counters: values, limits, which operations they count at the requester and at the
 * responder, errors, bytes, and which object keeps which alive. Remote operations are counted also
 * when the peer is another process, which without counters would do them by itself.
 */
#include <sched.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "support/check.h"
#include "support/endpoint.h"

#define ALL_OPS 0x3fu

static struct ibv_comp_cntr *make(struct ibv_context *ctx, enum ibv_comp_cntr_type type)
{
	struct ibv_comp_cntr_init_attr attr = {.type = type};
	struct ibv_comp_cntr *cntr = ibv_create_comp_cntr(ctx, &attr);

	CHECK(cntr);
	return cntr;
}

static uint64_t value(struct ibv_comp_cntr *cntr, bool errors)
{
	uint64_t v = 12345;

	EXPECT_EQ(errors ? ibv_read_err_comp_cntr(cntr, &v) : ibv_read_comp_cntr(cntr, &v), 0);
	return v;
}

static int attach(struct ibv_qp *qp, struct ibv_comp_cntr *cntr, uint32_t ops)
{
	struct ibv_qp_attach_comp_cntr_attr attr = {.op_mask = ops};

	return ibv_qp_attach_comp_cntr(qp, cntr, &attr);
}

static void creation(struct ibv_context *ctx)
{
	struct ibv_comp_cntr_init_attr attr = {.comp_mask = 1};
	struct ibv_comp_cntr_caps caps = {0}, half = {.max_counters = 7};
	struct {
		struct ibv_comp_cntr_caps caps;
		uint64_t more;
	} newer;
	struct ibv_comp_cntr *cntr;
	uint32_t handle;

	expect_case("capabilities");
	EXPECT_EQ(ibv_query_comp_cntr_caps(ctx, &caps), 0);
	EXPECT_EQ(caps.max_value, UINT64_MAX);
	EXPECT(caps.max_counters > 0);
	EXPECT_EQ(caps.supported_qp_attach_ops, ALL_OPS);
	expect_case("capabilities for an older program");
	EXPECT_EQ(_ibv_query_comp_cntr_caps(ctx, &half, sizeof(half.max_value)), 0);
	EXPECT(half.max_value == UINT64_MAX && half.max_counters == 7);
	expect_case("capabilities for a newer program");
	newer.more = 7;
	EXPECT_EQ(_ibv_query_comp_cntr_caps(ctx, &newer.caps, sizeof(newer)), 0);
	EXPECT(newer.caps.max_counters == caps.max_counters && newer.more == 0);
	EXPECT_REFUSED(_ibv_query_comp_cntr_caps(ctx, NULL, 0), EINVAL);
	expect_case("create: refused");
	EXPECT_NULL(ibv_create_comp_cntr(ctx, &attr), EINVAL);
	attr.comp_mask = 0;
	attr.flags = 1;
	EXPECT_NULL(ibv_create_comp_cntr(ctx, &attr), EINVAL);
	attr.flags = 0;
	attr.type = (enum ibv_comp_cntr_type)2;
	EXPECT_NULL(ibv_create_comp_cntr(ctx, &attr), ENOTSUP);
	EXPECT_NULL(ibv_create_comp_cntr(ctx, NULL), EINVAL);
	expect_case("values: from zero, set, added, past the largest");
	cntr = make(ctx, IBV_COMP_CNTR_TYPE_WRS);
	EXPECT(value(cntr, false) == 0 && value(cntr, true) == 0);
	EXPECT_EQ(ibv_set_comp_cntr(cntr, 5), 0);
	EXPECT_EQ(ibv_inc_comp_cntr(cntr, 6), 0);
	EXPECT_EQ(ibv_set_err_comp_cntr(cntr, UINT64_MAX), 0);
	EXPECT(value(cntr, false) == 11 && value(cntr, true) == UINT64_MAX);
	EXPECT_EQ(ibv_inc_err_comp_cntr(cntr, 1), 0);
	EXPECT_EQ(value(cntr, true), 0);
	EXPECT_REFUSED(ibv_read_comp_cntr(cntr, NULL), EINVAL);
	expect_case("handle overwritten");
	handle = cntr->handle;
	cntr->handle = 0xdeadbeef;
	EXPECT_REFUSED(ibv_set_comp_cntr(cntr, 1), ENOENT);
	EXPECT_REFUSED(ibv_inc_err_comp_cntr(cntr, 1), ENOENT);
	EXPECT_REFUSED(ibv_destroy_comp_cntr(cntr), ENOENT);
	cntr->handle = handle;
	EXPECT_EQ(ibv_destroy_comp_cntr(cntr), 0);
}

/* Only destroying a queue pair detaches its counters; the endpoint gets another one to close. */
static void qp_replace(struct endpoint *ep)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC,
					.send_cq = ep->cq[EP_SEND_CQ],
					.recv_cq = ep->cq[EP_RECV_CQ]};

	EXPECT_EQ(ibv_destroy_qp(ep->qp), 0);
	ep->qp = ibv_create_qp(ep->pd, &init);
	CHECK(ep->qp);
}

static void attaching(void)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);
	struct ibv_qp_attach_comp_cntr_attr attr = {.op_mask = 1, .comp_mask = 1};
	struct ibv_comp_cntr *a, *b;
	struct endpoint ep;

	ep_open(&ep, &config, EP_HERE);
	a = make(ep.context, IBV_COMP_CNTR_TYPE_WRS);
	b = make(ep.context, IBV_COMP_CNTR_TYPE_BYTES);
	expect_case("attach: refused");
	EXPECT_REFUSED(ibv_qp_attach_comp_cntr(ep.qp, a, &attr), EINVAL);
	EXPECT_REFUSED(ibv_qp_attach_comp_cntr(ep.qp, a, NULL), EINVAL);
	EXPECT_REFUSED(attach(ep.qp, a, 0), EINVAL);
	EXPECT_REFUSED(attach(ep.qp, a, 1u << 6), ENOTSUP);
	expect_case("attach: in RESET and INIT");
	EXPECT_EQ(attach(ep.qp, a, IBV_QP_ATTACH_COMP_CNTR_OP_SEND), 0);
	CHECK(ep_bring_to(&ep, &ep.local, IBV_QPS_INIT) == 0);
	EXPECT_EQ(attach(ep.qp, b, IBV_QP_ATTACH_COMP_CNTR_OP_RECV), 0);
	EXPECT_EQ(attach(ep.qp, a, IBV_QP_ATTACH_COMP_CNTR_OP_RDMA_READ), 0);
	expect_case("attach: an operation that is counted already");
	EXPECT_REFUSED(attach(ep.qp, b,
			      IBV_QP_ATTACH_COMP_CNTR_OP_SEND |
				      IBV_QP_ATTACH_COMP_CNTR_OP_RDMA_WRITE),
		       EBUSY);
	EXPECT_REFUSED(attach(ep.qp, a, IBV_QP_ATTACH_COMP_CNTR_OP_SEND), EBUSY);
	expect_case("attach: beyond INIT");
	ep_link(&ep, &ep);
	EXPECT_REFUSED(attach(ep.qp, b, IBV_QP_ATTACH_COMP_CNTR_OP_RDMA_WRITE), EINVAL);
	expect_case("destroyed while attached");
	EXPECT_REFUSED(ibv_destroy_comp_cntr(a), EBUSY);
	EXPECT_REFUSED(ibv_destroy_comp_cntr(b), EBUSY);
	qp_replace(&ep);
	EXPECT_EQ(ibv_destroy_comp_cntr(a), 0);
	EXPECT_EQ(ibv_destroy_comp_cntr(b), 0);
	ep_close(&ep);
}

static void request(struct endpoint *from, struct endpoint *to, enum ibv_wr_opcode opcode,
		    uint32_t length, int status)
{
	struct ibv_sge sge = ep_sge(from, 0, length);
	struct ibv_send_wr wr = ep_wr(opcode, 1, &sge, 1);
	struct ibv_wc wc;

	wr.wr.rdma.remote_addr = to->local.addr + 4096;
	wr.wr.rdma.rkey = to->local.rkey;
	CHECK(ep_post_send(from, &wr) == 0);
	EXPECT_STATUS(ep_poll_one(from, EP_SEND_CQ, &wc), status);
}

/* One counter for each operation of the near end, in the order of the bits. */
static void counting(enum ibv_comp_cntr_type type, enum ep_place place)
{
	const bool bytes = type == IBV_COMP_CNTR_TYPE_BYTES;
	struct ep_config config = ep_defaults(IBV_QPT_RC);
	struct ibv_comp_cntr *cntr[6];
	struct ibv_sge into;
	struct endpoint near, far;
	struct ibv_wc wc;
	/* What each bit has seen: SEND, RECV, READ, remote READ, WRITE, remote WRITE. */
	const uint64_t times[6] = {1, 2, 3, 4, 5, 6};
	const uint32_t length[6] = {10, 20, 3000, 40, 5000, 60};

	config.sq_sig_all = 1;
	ep_open(&near, &config, EP_HERE);
	ep_open(&far, &config, place);
	expect_case("counting %s", bytes ? "bytes" : "operations");
	for (int i = 0; i < 6; i++) {
		cntr[i] = make(near.context, type);
		CHECK(attach(near.qp, cntr[i], 1u << i) == 0);
	}
	ep_link(&near, &far);
	for (uint64_t i = 0; i < times[0]; i++) {
		into = ep_sge(&far, 8192, 100);
		CHECK(ep_post_recv(&far, 1, &into, 1) == 0);
		request(&near, &far, IBV_WR_SEND, length[0], IBV_WC_SUCCESS);
	}
	for (uint64_t i = 0; i < times[1]; i++) {
		into = ep_sge(&near, 8192, 100);
		CHECK(ep_post_recv(&near, 1, &into, 1) == 0);
		request(&far, &near, IBV_WR_SEND, length[1], IBV_WC_SUCCESS);
		EXPECT_STATUS(ep_poll_one(&near, EP_RECV_CQ, &wc), IBV_WC_SUCCESS);
	}
	for (uint64_t i = 0; i < times[2]; i++)
		request(&near, &far, IBV_WR_RDMA_READ, length[2], IBV_WC_SUCCESS);
	for (uint64_t i = 0; i < times[3]; i++)
		request(&far, &near, IBV_WR_RDMA_READ, length[3], IBV_WC_SUCCESS);
	for (uint64_t i = 0; i < times[4]; i++)
		request(&near, &far, IBV_WR_RDMA_WRITE, length[4], IBV_WC_SUCCESS);
	for (uint64_t i = 0; i < times[5]; i++)
		request(&far, &near, IBV_WR_RDMA_WRITE, length[5], IBV_WC_SUCCESS);
	for (int i = 0; i < 6; i++) {
		expect_case("counting %s: bit %d", bytes ? "bytes" : "operations", i);
		EXPECT_EQ(value(cntr[i], false), bytes ? times[i] * length[i] : times[i]);
		EXPECT_EQ(value(cntr[i], true), 0);
	}
	expect_case("errors: refused at the peer, flushed, refused here");
	CHECK(ep_post_recv(&near, 1, NULL, 0) == 0);
	far.local.rkey ^= 0x5a5a0000;
	near.local.rkey ^= 0x5a5a0000;
	request(&far, &near, IBV_WR_RDMA_WRITE, 8, IBV_WC_REM_ACCESS_ERR);
	EXPECT_STATUS(ep_poll_one(&near, EP_RECV_CQ, &wc), IBV_WC_WR_FLUSH_ERR);
	request(&near, &far, IBV_WR_RDMA_READ, 8, IBV_WC_WR_FLUSH_ERR);
	EXPECT_EQ(value(cntr[5], true), 1);
	EXPECT_EQ(value(cntr[1], true), 1);
	EXPECT_EQ(value(cntr[2], true), 1);
	EXPECT_EQ(value(cntr[0], true) + value(cntr[3], true) + value(cntr[4], true), 0);
	qp_replace(&near);
	for (int i = 0; i < 6; i++)
		EXPECT_EQ(ibv_destroy_comp_cntr(cntr[i]), 0);
	ep_close(&near);
	ep_close(&far);
}

int main(int argc, char **argv)
{
	enum ep_place place = ep_main(argc, argv);
	struct ibv_context *ctx = device_open();

	creation(ctx);
	EXPECT_EQ(ibv_close_device(ctx), 0);
	attaching();
	counting(IBV_COMP_CNTR_TYPE_WRS, place);
	counting(IBV_COMP_CNTR_TYPE_BYTES, place);
	return expect_done();
}
