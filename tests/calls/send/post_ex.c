/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The ibv_wr_* calls of ibv_wr_post(3): every builder, batches, abort, faults told at the end. */
#include <arpa/inet.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "support/check.h"
#include "support/clock.h"
#include "support/endpoint.h"

/* An extended queue pair of its own on the objects of an endpoint, linked to itself. */
struct extended {
	struct endpoint ep;
	struct ibv_qp *qp;
	struct ibv_qp_ex *ex;
	struct ibv_ah *ah;
};

static uint64_t ops_of(enum ibv_qp_type type)
{
	uint64_t ops = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;

	if (type != IBV_QPT_UD)
		ops |= IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM;
	if (type == IBV_QPT_RC)
		ops |= IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
		       IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
	return ops;
}

static void extended_open(struct extended *e, enum ibv_qp_type type)
{
	struct ep_config config = ep_defaults(type);
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = type,
		.cap = {.max_send_wr = 8,
			.max_recv_wr = 64,
			.max_send_sge = 3,
			.max_recv_sge = 3,
			.max_inline_data = 64},
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = ops_of(type),
	};

	ep_open(&e->ep, &config, EP_HERE);
	EXPECT_EQ(ibv_destroy_qp(e->ep.qp), 0);
	attr.pd = e->ep.pd;
	attr.send_cq = e->ep.cq[EP_SEND_CQ];
	attr.recv_cq = e->ep.cq[EP_RECV_CQ];
	attr.qp_context = &e->ep;
	e->qp = ibv_create_qp_ex(e->ep.context, &attr);
	CHECK(e->qp);
	e->ex = ibv_qp_to_qp_ex(e->qp);
	CHECK(e->ex);
	e->ep.qp = e->qp;
	e->ep.local.qpn = e->qp->qp_num;
	e->ep.cap.max_send_wr = attr.cap.max_send_wr;
	e->ep.cap.max_send_sge = attr.cap.max_send_sge;
	e->ep.cap.max_inline_data = attr.cap.max_inline_data;
	ep_link(&e->ep, &e->ep);
	e->ah = ep_ah(&e->ep, &e->ep.local);
}

static void extended_close(struct extended *e)
{
	EXPECT_EQ(ibv_destroy_ah(e->ah), 0);
	ep_close(&e->ep);
}

static void address(struct extended *e)
{
	if (e->ep.config.type == IBV_QPT_UD)
		ibv_wr_set_ud_addr(e->ex, e->ah, e->ep.local.qpn, e->ep.config.qkey);
}

static struct ibv_wc sent(struct extended *e, uint64_t wr_id, enum ibv_wc_opcode opcode)
{
	struct ibv_wc wc;

	EXPECT_STATUS(ep_poll_one(&e->ep, EP_SEND_CQ, &wc), IBV_WC_SUCCESS);
	EXPECT_EQ(wc.wr_id, wr_id);
	EXPECT_EQ(wc.opcode, opcode);
	return wc;
}

static struct ibv_wc received(struct extended *e, uint64_t wr_id, uint32_t length)
{
	uint32_t grh = e->ep.config.type == IBV_QPT_UD ? 40 : 0;
	struct ibv_wc wc;

	EXPECT_STATUS(ep_poll_one(&e->ep, EP_RECV_CQ, &wc), IBV_WC_SUCCESS);
	EXPECT_EQ(wc.wr_id, wr_id);
	EXPECT_EQ(wc.byte_len, length + grh);
	return wc;
}

static void receive(struct extended *e, uint64_t wr_id)
{
	struct ibv_sge into = ep_sge(&e->ep, 32768, 1024);

	ep_fill(&e->ep, 32768, 0, 1024);
	CHECK(ep_post_recv(&e->ep, wr_id, &into, 1) == 0);
}

/* SEND in its four ways of giving data. */
static void sends(enum ibv_qp_type type)
{
	struct extended e;
	size_t at = 32768 + (type == IBV_QPT_UD ? 40 : 0);
	struct ibv_sge list[2];
	struct ibv_data_buf bufs[2];
	char one[16], two[16];
	struct ibv_wc wc;

	extended_open(&e, type);
	ep_fill(&e.ep, 0, 0x11, 100);
	ep_fill(&e.ep, 200, 0x22, 100);

	expect_case("type %d: one element", (int)type);
	receive(&e, 1);
	ibv_wr_start(e.ex);
	e.ex->wr_id = 101;
	e.ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(e.ex);
	address(&e);
	ibv_wr_set_sge(e.ex, e.ep.lkey, e.ep.local.addr, 100);
	EXPECT_EQ(ibv_wr_complete(e.ex), 0);
	sent(&e, 101, IBV_WC_SEND);
	received(&e, 1, 100);
	EXPECT(ep_is_filled(&e.ep, at, 0x11, 100));

	expect_case("type %d: list", (int)type);
	receive(&e, 2);
	list[0] = ep_sge(&e.ep, 0, 60);
	list[1] = ep_sge(&e.ep, 200, 40);
	ibv_wr_start(e.ex);
	e.ex->wr_id = 102;
	e.ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send_imm(e.ex, htonl(0x12345678));
	address(&e);
	ibv_wr_set_sge_list(e.ex, 2, list);
	EXPECT_EQ(ibv_wr_complete(e.ex), 0);
	sent(&e, 102, IBV_WC_SEND);
	wc = received(&e, 2, 100);
	EXPECT(wc.wc_flags & IBV_WC_WITH_IMM);
	EXPECT_EQ(ntohl(wc.imm_data), 0x12345678);
	EXPECT(ep_is_filled(&e.ep, at, 0x11, 60));
	EXPECT(ep_is_filled(&e.ep, at + 60, 0x22, 40));

	expect_case("type %d: inline", (int)type);
	receive(&e, 3);
	memset(one, 0x33, sizeof(one));
	ibv_wr_start(e.ex);
	e.ex->wr_id = 103;
	e.ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(e.ex);
	address(&e);
	ibv_wr_set_inline_data(e.ex, one, sizeof(one));
	memset(one, 0, sizeof(one)); /* the buffer is the caller's again at once */
	EXPECT_EQ(ibv_wr_complete(e.ex), 0);
	sent(&e, 103, IBV_WC_SEND);
	received(&e, 3, sizeof(one));
	EXPECT(ep_is_filled(&e.ep, at, 0x33, sizeof(one)));

	expect_case("type %d: inline list", (int)type);
	receive(&e, 4);
	memset(one, 0x44, sizeof(one));
	memset(two, 0x55, sizeof(two));
	bufs[0].addr = one;
	bufs[0].length = sizeof(one);
	bufs[1].addr = two;
	bufs[1].length = sizeof(two);
	ibv_wr_start(e.ex);
	e.ex->wr_id = 104;
	e.ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(e.ex);
	address(&e);
	ibv_wr_set_inline_data_list(e.ex, 2, bufs);
	EXPECT_EQ(ibv_wr_complete(e.ex), 0);
	sent(&e, 104, IBV_WC_SEND);
	received(&e, 4, sizeof(one) + sizeof(two));
	EXPECT(ep_is_filled(&e.ep, at, 0x44, sizeof(one)));
	EXPECT(ep_is_filled(&e.ep, at + sizeof(one), 0x55, sizeof(two)));
	extended_close(&e);
}

static void rdma(enum ibv_qp_type type)
{
	struct extended e;
	uint64_t remote;
	struct ibv_wc wc;

	extended_open(&e, type);
	remote = e.ep.local.addr + 32768;
	expect_case("type %d: WRITE", (int)type);
	ep_fill(&e.ep, 0, 0x66, 100);
	ibv_wr_start(e.ex);
	e.ex->wr_id = 1;
	e.ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_rdma_write(e.ex, e.ep.local.rkey, remote);
	ibv_wr_set_sge(e.ex, e.ep.lkey, e.ep.local.addr, 100);
	EXPECT_EQ(ibv_wr_complete(e.ex), 0);
	sent(&e, 1, IBV_WC_RDMA_WRITE);
	/* UC completes before the data is there; nobody polls for it, so the progress thread takes it. */
	for (int i = 0; i < EP_WAIT_MS && !ep_is_filled(&e.ep, 32768, 0x66, 100); i++)
		sleep_ms(1);
	EXPECT(ep_is_filled(&e.ep, 32768, 0x66, 100));

	expect_case("type %d: WRITE_IMM", (int)type);
	CHECK(ep_post_recv(&e.ep, 7, NULL, 0) == 0);
	ibv_wr_start(e.ex);
	e.ex->wr_id = 2;
	e.ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_rdma_write_imm(e.ex, e.ep.local.rkey, remote, htonl(77));
	ibv_wr_set_sge(e.ex, e.ep.lkey, e.ep.local.addr, 50);
	EXPECT_EQ(ibv_wr_complete(e.ex), 0);
	sent(&e, 2, IBV_WC_RDMA_WRITE);
	wc = received(&e, 7, 50);
	EXPECT_EQ(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	EXPECT_EQ(ntohl(wc.imm_data), 77);
	if (type == IBV_QPT_RC) {
		uint64_t word = 40;

		expect_case("READ");
		ep_fill(&e.ep, 32768, 0x77, 100);
		ibv_wr_start(e.ex);
		e.ex->wr_id = 3;
		e.ex->wr_flags = IBV_SEND_SIGNALED;
		ibv_wr_rdma_read(e.ex, e.ep.local.rkey, remote);
		ibv_wr_set_sge(e.ex, e.ep.lkey, e.ep.local.addr, 100);
		EXPECT_EQ(ibv_wr_complete(e.ex), 0);
		wc = sent(&e, 3, IBV_WC_RDMA_READ);
		EXPECT_EQ(wc.byte_len, 100);
		EXPECT(ep_is_filled(&e.ep, 0, 0x77, 100));

		expect_case("FETCH_ADD and CMP_SWP in one batch");
		ep_poke(&e.ep, 32768, &word, sizeof(word));
		ibv_wr_start(e.ex);
		e.ex->wr_id = 4;
		e.ex->wr_flags = IBV_SEND_SIGNALED;
		ibv_wr_atomic_fetch_add(e.ex, e.ep.local.rkey, remote, 2);
		ibv_wr_set_sge(e.ex, e.ep.lkey, e.ep.local.addr, 8);
		e.ex->wr_id = 5;
		ibv_wr_atomic_cmp_swp(e.ex, e.ep.local.rkey, remote, 42, 99);
		ibv_wr_set_sge(e.ex, e.ep.lkey, e.ep.local.addr + 8, 8);
		EXPECT_EQ(ibv_wr_complete(e.ex), 0);
		wc = sent(&e, 4, IBV_WC_FETCH_ADD);
		EXPECT_EQ(wc.byte_len, 8);
		sent(&e, 5, IBV_WC_COMP_SWAP);
		ep_peek(&e.ep, 0, &word, sizeof(word));
		EXPECT_EQ(word, 40);
		ep_peek(&e.ep, 8, &word, sizeof(word));
		EXPECT_EQ(word, 42);
		ep_peek(&e.ep, 32768, &word, sizeof(word));
		EXPECT_EQ(word, 99);
	}
	extended_close(&e);
}

static void build(struct extended *e, uint64_t wr_id)
{
	e->ex->wr_id = wr_id;
	e->ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(e->ex);
	address(e);
	ibv_wr_set_sge(e->ex, e->ep.lkey, e->ep.local.addr, 8);
}

/* A batch is all or nothing. */
static void batches(enum ibv_qp_type type)
{
	struct ibv_sge list[8];
	struct extended e;
	char data[2048] = {0};

	extended_open(&e, type);
	for (uint64_t i = 0; i < 16; i++)
		receive(&e, i);
	expect_case("type %d: abort posts nothing", (int)type);
	ibv_wr_start(e.ex);
	build(&e, 1);
	build(&e, 2);
	ibv_wr_abort(e.ex);
	EXPECT_EQ(ep_poll_none(&e.ep, EP_SEND_CQ), 0);

	expect_case("type %d: an empty batch", (int)type);
	ibv_wr_start(e.ex);
	EXPECT_EQ(ibv_wr_complete(e.ex), 0);

	expect_case("type %d: too long for the queue", (int)type);
	ibv_wr_start(e.ex);
	for (uint64_t i = 0; i <= e.ep.cap.max_send_wr; i++)
		build(&e, i);
	EXPECT_EQ(ibv_wr_complete(e.ex), ENOMEM);
	EXPECT_EQ(ep_poll_none(&e.ep, EP_SEND_CQ), 0);

	expect_case("type %d: too many elements in the second", (int)type);
	for (int i = 0; i < 8; i++)
		list[i] = ep_sge(&e.ep, 0, 1);
	ibv_wr_start(e.ex);
	build(&e, 1);
	e.ex->wr_id = 2;
	ibv_wr_send(e.ex);
	address(&e);
	ibv_wr_set_sge_list(e.ex, e.ep.cap.max_send_sge + 1 < 8 ? e.ep.cap.max_send_sge + 1 : 8,
			    list);
	build(&e, 3);
	if (e.ep.cap.max_send_sge < 8)
		EXPECT_EQ(ibv_wr_complete(e.ex), EINVAL);
	else
		ibv_wr_abort(e.ex);
	EXPECT_EQ(ep_poll_none(&e.ep, EP_SEND_CQ), 0);

	expect_case("type %d: inline too long", (int)type);
	CHECK(e.ep.cap.max_inline_data < sizeof(data));
	ibv_wr_start(e.ex);
	build(&e, 1);
	e.ex->wr_id = 2;
	ibv_wr_send(e.ex);
	address(&e);
	ibv_wr_set_inline_data(e.ex, data, e.ep.cap.max_inline_data + 1);
	EXPECT_EQ(ibv_wr_complete(e.ex), EINVAL);
	EXPECT_EQ(ep_poll_none(&e.ep, EP_SEND_CQ), 0);

	expect_case("type %d: afterwards everything works", (int)type);
	ibv_wr_start(e.ex);
	for (uint64_t i = 0; i < 8; i++)
		build(&e, i);
	EXPECT_EQ(ibv_wr_complete(e.ex), 0);
	for (uint64_t i = 0; i < 8; i++)
		sent(&e, i, IBV_WC_SEND);
	for (uint64_t i = 0; i < 8; i++)
		received(&e, i, 8);
	EXPECT_EQ(ep_state(&e.ep), IBV_QPS_RTS);

	expect_case("type %d: ibv_post_send on the same queue pair", (int)type);
	{
		struct ibv_sge sge = ep_sge(&e.ep, 0, 8);
		struct ibv_send_wr wr = ep_wr(IBV_WR_SEND, 50, &sge, 1);

		wr.wr.ud.ah = e.ah;
		wr.wr.ud.remote_qpn = e.ep.local.qpn;
		wr.wr.ud.remote_qkey = e.ep.config.qkey;
		EXPECT_EQ(ep_post_send(&e.ep, &wr), 0);
		sent(&e, 50, IBV_WC_SEND);
		received(&e, 8, 8);
	}
	extended_close(&e);
}

/* In RESET nothing can be sent; the batch says so when it is completed. */
static void wrong_state(void)
{
	struct extended e;

	expect_case("complete in RESET");
	extended_open(&e, IBV_QPT_RC);
	CHECK(ep_move(&e.ep, IBV_QPS_RESET) == 0);
	ibv_wr_start(e.ex);
	build(&e, 1);
	EXPECT_EQ(ibv_wr_complete(e.ex), EINVAL);
	expect_case("complete in ERR flushes");
	CHECK(ep_bring_to(&e.ep, &e.ep.local, IBV_QPS_ERR) == 0);
	ibv_wr_start(e.ex);
	build(&e, 2);
	EXPECT_EQ(ibv_wr_complete(e.ex), 0);
	{
		struct ibv_wc wc;

		EXPECT_STATUS(ep_poll_one(&e.ep, EP_SEND_CQ, &wc), IBV_WC_WR_FLUSH_ERR);
		EXPECT_EQ(wc.wr_id, 2);
	}
	extended_close(&e);
}

int main(int argc, char **argv)
{
	static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};

	ep_main(argc, argv);
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		sends(types[i]);
		if (types[i] != IBV_QPT_UD)
			rdma(types[i]);
		batches(types[i]);
	}
	wrong_state();
	return expect_done();
}
