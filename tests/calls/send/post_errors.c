/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What ibv_post_send(3) and ibv_post_recv(3) refuse at the call, which entry of a list bad_wr
 * names, and which wrong requests are taken and fail in their completion.
 */
#include <string.h>

#include <infiniband/verbs.h>

#include "support/check.h"
#include "support/endpoint.h"

static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};

/* A queue pair linked to itself, and an address handle to it for UD. */
static struct endpoint ep;
static struct ibv_ah *ah;

static void open_end(enum ibv_qp_type type)
{
	struct ep_config config = ep_defaults(type);

	config.cap.max_send_wr = 8;
	config.cap.max_recv_wr = 8;
	config.cap.max_send_sge = 2;
	config.cap.max_recv_sge = 2;
	ep_open(&ep, &config, EP_HERE);
	ep_link(&ep, &ep);
	ah = ep_ah(&ep, &ep.local);
}

static void close_end(void)
{
	EXPECT_EQ(ibv_destroy_ah(ah), 0);
	ep_close(&ep);
}

static struct ibv_send_wr request(enum ibv_wr_opcode opcode, uint64_t wr_id, struct ibv_sge *sge,
				  int num_sge)
{
	struct ibv_send_wr wr = ep_wr(opcode, wr_id, sge, num_sge);

	if (ep.config.type == IBV_QPT_UD) {
		wr.wr.ud.ah = ah;
		wr.wr.ud.remote_qpn = ep.local.qpn;
		wr.wr.ud.remote_qkey = ep.config.qkey;
	} else if (opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = ep.local.addr;
		wr.wr.atomic.rkey = ep.local.rkey;
	} else {
		wr.wr.rdma.remote_addr = ep.local.addr;
		wr.wr.rdma.rkey = ep.local.rkey;
	}
	return wr;
}

static void refuse(struct ibv_send_wr *wr, int err)
{
	struct ibv_send_wr *bad = NULL;

	EXPECT_EQ(ibv_post_send(ep.qp, wr, &bad), err);
	EXPECT(bad == wr);
	EXPECT_EQ(ep_poll_none(&ep, EP_SEND_CQ), 0);
	EXPECT_EQ(ep_state(&ep), IBV_QPS_RTS);
}

static void at_the_call(enum ibv_qp_type type)
{
	struct ibv_sge sge[3];
	struct ibv_send_wr wr;

	open_end(type);
	for (int i = 0; i < 3; i++)
		sge[i] = ep_sge(&ep, 0, 8);
	expect_case("type %d: opcode outside the enum", (int)type);
	wr = request((enum ibv_wr_opcode)200, 1, sge, 1);
	refuse(&wr, EINVAL);
	wr = request((enum ibv_wr_opcode) - 1, 1, sge, 1);
	refuse(&wr, EINVAL);
	expect_case("type %d: num_sge", (int)type);
	wr = request(IBV_WR_SEND, 1, sge, (int)ep.cap.max_send_sge + 1);
	refuse(&wr, EINVAL);
	wr = request(IBV_WR_SEND, 1, sge, -1);
	refuse(&wr, EINVAL);
	expect_case("type %d: inline too long", (int)type);
	sge[0].length = ep.cap.max_inline_data + 1;
	wr = request(IBV_WR_SEND, 1, sge, 1);
	wr.send_flags |= IBV_SEND_INLINE;
	refuse(&wr, EINVAL);
	expect_case("type %d: inline too long by two elements", (int)type);
	sge[0].length = ep.cap.max_inline_data;
	sge[1].length = 1;
	wr = request(IBV_WR_SEND, 1, sge, 2);
	wr.send_flags |= IBV_SEND_INLINE;
	refuse(&wr, EINVAL);
	expect_case("type %d: inline lengths that wrap 32 bits", (int)type);
	sge[0].length = 0xffffffff;
	sge[1].length = 9;
	wr = request(IBV_WR_SEND, 1, sge, 2);
	wr.send_flags |= IBV_SEND_INLINE;
	refuse(&wr, EINVAL);
	if (type == IBV_QPT_RC) {
		sge[0].length = 8;
		expect_case("inline READ");
		wr = request(IBV_WR_RDMA_READ, 1, sge, 1);
		wr.send_flags |= IBV_SEND_INLINE;
		refuse(&wr, EINVAL);
		expect_case("inline ATOMIC");
		wr = request(IBV_WR_ATOMIC_FETCH_AND_ADD, 1, sge, 1);
		wr.send_flags |= IBV_SEND_INLINE;
		refuse(&wr, EINVAL);
	}
	close_end();
}

/* Those before the bad one are posted, it and those behind it are not. */
static void bad_in_a_list(enum ibv_qp_type type)
{
	struct ibv_send_wr wr[4], *bad = NULL;
	struct ibv_recv_wr recv[4], *bad_recv = NULL;
	struct ibv_wc wc;

	expect_case("type %d: third of a send list is bad", (int)type);
	open_end(type);
	for (int i = 0; i < 4; i++) {
		struct ibv_sge into = ep_sge(&ep, 0, 256);

		CHECK(ep_post_recv(&ep, 10u + (uint64_t)i, &into, 1) == 0);
		wr[i] = request(IBV_WR_SEND, (uint64_t)i, NULL, 0);
		wr[i].next = i < 3 ? &wr[i + 1] : NULL;
	}
	wr[2].num_sge = 100;
	EXPECT_EQ(ibv_post_send(ep.qp, wr, &bad), EINVAL);
	EXPECT(bad == &wr[2]);
	for (uint64_t i = 0; i < 2; i++) {
		EXPECT_STATUS(ep_poll_one(&ep, EP_SEND_CQ, &wc), IBV_WC_SUCCESS);
		EXPECT_EQ(wc.wr_id, i);
	}
	EXPECT_EQ(ep_poll_none(&ep, EP_SEND_CQ), 0);
	for (uint64_t i = 0; i < 2; i++) {
		EXPECT_STATUS(ep_poll_one(&ep, EP_RECV_CQ, &wc), IBV_WC_SUCCESS);
		EXPECT_EQ(wc.wr_id, 10 + i);
	}

	expect_case("type %d: third of a receive list is bad", (int)type);
	memset(recv, 0, sizeof(recv));
	for (uint64_t i = 0; i < 4; i++) {
		recv[i].wr_id = 20 + i;
		recv[i].next = i < 3 ? &recv[i + 1] : NULL;
	}
	recv[2].num_sge = (int)ep.cap.max_recv_sge + 1;
	EXPECT_EQ(ibv_post_recv(ep.qp, recv, &bad_recv), EINVAL);
	EXPECT(bad_recv == &recv[2]);
	CHECK(ep_move(&ep, IBV_QPS_ERR) == 0);
	{
		/* What flushes are the two of the first four that were not used, and these two. */
		static const uint64_t want[] = {12, 13, 20, 21};

		for (int i = 0; i < 4; i++) {
			EXPECT_STATUS(ep_poll_one(&ep, EP_RECV_CQ, &wc), IBV_WC_WR_FLUSH_ERR);
			EXPECT_EQ(wc.wr_id, want[i]);
		}
	}
	EXPECT_EQ(ep_poll_none(&ep, EP_RECV_CQ), 0);
	close_end();
}

/* A list that points to itself ends at "full". */
static void endless_list(void)
{
	struct ibv_send_wr wr, *bad = NULL;
	struct ibv_recv_wr recv = {.wr_id = 1}, *bad_recv = NULL;

	expect_case("endless receive list");
	open_end(IBV_QPT_UD);
	recv.next = &recv;
	EXPECT_EQ(ibv_post_recv(ep.qp, &recv, &bad_recv), ENOMEM);
	EXPECT(bad_recv == &recv);
	expect_case("endless send list");
	wr = request(IBV_WR_SEND, 1, NULL, 0);
	wr.send_flags = 0;
	wr.next = &wr;
	EXPECT_EQ(ibv_post_send(ep.qp, &wr, &bad), ENOMEM);
	EXPECT(bad == &wr);
	close_end();
}

/* Each row is refused alone; that nothing was posted is seen once, at the end. */
struct bad_request {
	const char *name;
	unsigned int opcode;
	uint32_t types; /* bit per type */
	void (*spoil)(struct ibv_send_wr *wr);
};

#define UD_ONLY (1u << IBV_QPT_UD)
#define RC_ONLY (1u << IBV_QPT_RC)
#define ALL     (1u << IBV_QPT_RC | 1u << IBV_QPT_UC | 1u << IBV_QPT_UD)

static void no_handle(struct ibv_send_wr *wr)
{
	wr->wr.ud.ah = NULL;
}

static void most_elements(struct ibv_send_wr *wr)
{
	wr->num_sge = INT32_MAX;
}

static void fewest_elements(struct ibv_send_wr *wr)
{
	wr->num_sge = INT32_MIN;
	wr->send_flags |= IBV_SEND_INLINE;
}

static void inline_data(struct ibv_send_wr *wr)
{
	wr->send_flags |= IBV_SEND_INLINE;
}

static const struct bad_request bad_requests[] = {
	{"first number of the gap in the enum", 12, ALL, NULL},
	{"last number of the gap in the enum", 13, ALL, NULL},
	{"one above the enum", 16, ALL, NULL},
	{"one above 8 bits", 256, ALL, NULL},
	{"FLUSH, which only a builder can describe", IBV_WR_FLUSH, ALL, NULL},
	{"SEND without an address handle", IBV_WR_SEND, UD_ONLY, no_handle},
	{"SEND_WITH_IMM without an address handle", IBV_WR_SEND_WITH_IMM, UD_ONLY, no_handle},
	{"as many elements as num_sge can say", IBV_WR_SEND, ALL, most_elements},
	{"as few, inline", IBV_WR_SEND, ALL, fewest_elements},
	{"inline COMPARE_AND_SWAP", IBV_WR_ATOMIC_CMP_AND_SWP, RC_ONLY, inline_data},
};

static void bad_arguments(enum ibv_qp_type type)
{
	struct ibv_send_wr wr, *bad;
	struct ibv_sge sge;
	struct ibv_wc wc;

	open_end(type);
	sge = ep_sge(&ep, 0, 8);
	for (size_t i = 0; i < sizeof(bad_requests) / sizeof(bad_requests[0]); i++) {
		if (!(bad_requests[i].types & 1u << type))
			continue;
		expect_case("type %d: %s", (int)type, bad_requests[i].name);
		wr = request((enum ibv_wr_opcode)bad_requests[i].opcode, 1, &sge, 1);
		if (bad_requests[i].spoil)
			bad_requests[i].spoil(&wr);
		bad = NULL;
		EXPECT_EQ(ibv_post_send(ep.qp, &wr, &bad), EINVAL);
		EXPECT(bad == &wr);
	}
	for (size_t i = 0; i < 4; i++) {
		const int counts[] = {(int)ep.cap.max_recv_sge + 1, INT32_MAX, -1, INT32_MIN};
		struct ibv_recv_wr recv = {.sg_list = &sge, .num_sge = counts[i]}, *bad_recv = NULL;

		expect_case("type %d: a receive of %d elements", (int)type, counts[i]);
		EXPECT_EQ(ibv_post_recv(ep.qp, &recv, &bad_recv), EINVAL);
		EXPECT(bad_recv == &recv);
	}
	expect_case("type %d: nothing was posted, and the queue pair works", (int)type);
	CHECK(ep_post_recv(&ep, 9, NULL, 0) == 0);
	CHECK(ep_post_recv(&ep, 9, NULL, 0) == 0);
	wr = request(IBV_WR_SEND, 2, NULL, 0);
	EXPECT_EQ(ep_post_send(&ep, &wr), 0);
	EXPECT_STATUS(ep_poll_one(&ep, EP_SEND_CQ, &wc), IBV_WC_SUCCESS);
	EXPECT_EQ(wc.wr_id, 2);
	close_end();
}

/*
 * Inline data may come from more pieces than the queue takes elements, and be exactly as long as
 * granted.
 */
static void inline_pieces(enum ibv_qp_type type)
{
	struct ibv_sge sge[8], into;
	struct ibv_send_wr wr;
	struct ibv_wc wc;
	uint32_t piece, grh = type == IBV_QPT_UD ? 40 : 0;

	expect_case("type %d: all the inline data, in more pieces than max_send_sge", (int)type);
	open_end(type);
	CHECK(ep.cap.max_send_sge < 8 && ep.cap.max_inline_data >= 8);
	piece = ep.cap.max_inline_data / 8;
	for (int i = 0; i < 8; i++) {
		sge[i] = ep_sge(&ep, (size_t)i * 512, piece);
		sge[i].lkey = 0xdeadbeef; /* not looked at */
		ep_fill(&ep, (size_t)i * 512, 'a' + i, piece);
	}
	sge[7].length += ep.cap.max_inline_data % 8;
	into = ep_sge(&ep, 8192, 4096);
	CHECK(ep_post_recv(&ep, 9, &into, 1) == 0);
	wr = request(IBV_WR_SEND, 2, sge, 8);
	wr.send_flags |= IBV_SEND_INLINE;
	EXPECT_EQ(ibv_post_send(ep.qp, &wr, &(struct ibv_send_wr *){NULL}), 0);
	EXPECT_STATUS(ep_poll_one(&ep, EP_SEND_CQ, &wc), IBV_WC_SUCCESS);
	EXPECT_STATUS(ep_poll_one(&ep, EP_RECV_CQ, &wc), IBV_WC_SUCCESS);
	EXPECT_EQ(wc.byte_len, ep.cap.max_inline_data + grh);
	for (int i = 0; i < 8; i++)
		EXPECT(ep_is_filled(&ep, 8192 + grh + (size_t)i * piece, 'a' + i, piece));
	close_end();
}

/*
 * The members of a request share their room: where a datagram has its address handle, a request
 * that UD does not have brings a remote address, a window, or nothing. It is taken and fails in its
 * completion as with the other types.
 */
static void unfit_datagram(enum ibv_wr_opcode opcode, uint64_t remote_addr)
{
	struct ibv_qp_attr again = {.qp_state = IBV_QPS_RTS};
	struct ibv_sge sge = ep_sge(&ep, 0, 8);
	struct ibv_send_wr wr = ep_wr(opcode, 3, &sge, 1), *bad;
	struct ibv_wc wc;

	expect_case("UD: opcode %d and %#llx in the handle's place", (int)opcode,
		    (unsigned long long)remote_addr);
	memset(&wr.wr, 0, sizeof(wr.wr));
	wr.wr.rdma.remote_addr = remote_addr;
	wr.wr.rdma.rkey = 1;
	EXPECT_EQ(ibv_post_send(ep.qp, &wr, &bad), 0);
	EXPECT_STATUS(ep_poll_one(&ep, EP_SEND_CQ, &wc), IBV_WC_LOC_QP_OP_ERR);
	EXPECT_EQ(wc.wr_id, 3);
	EXPECT_EQ(ep_state(&ep), IBV_QPS_SQE);
	CHECK(ep_modify(&ep, &again, IBV_QP_STATE) == 0);
}

static void unfit_datagrams(void)
{
	open_end(IBV_QPT_UD);
	for (int opcode = 0; opcode <= IBV_WR_ATOMIC_WRITE; opcode++) {
		if (opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM ||
		    (opcode > IBV_WR_DRIVER1 && opcode < IBV_WR_ATOMIC_WRITE))
			continue;
		unfit_datagram((enum ibv_wr_opcode)opcode, 0x1000);
		unfit_datagram((enum ibv_wr_opcode)opcode, 0);
	}
	close_end();
}

/* An operation that the type does not have is taken and completes LOC_QP_OP_ERR. */
static void unfit(enum ibv_qp_type type, enum ibv_wr_opcode opcode)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	struct ibv_wc wc;

	expect_case("type %d: opcode %d does not fit", (int)type, (int)opcode);
	open_end(type);
	sge = ep_sge(&ep, 0, 8);
	wr = request(opcode, 3, &sge, 1);
	wr.send_flags = 0; /* an error is told anyway */
	EXPECT_EQ(ep_post_send(&ep, &wr), 0);
	EXPECT_STATUS(ep_poll_one(&ep, EP_SEND_CQ, &wc), IBV_WC_LOC_QP_OP_ERR);
	EXPECT_EQ(wc.wr_id, 3);
	EXPECT(wc.vendor_err != 0);
	EXPECT_EQ(ep_state(&ep), type == IBV_QPT_RC ? IBV_QPS_ERR : IBV_QPS_SQE);
	close_end();
}

int main(int argc, char **argv)
{
	ep_main(argc, argv);
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		at_the_call(types[i]);
		bad_in_a_list(types[i]);
		bad_arguments(types[i]);
		inline_pieces(types[i]);
		unfit(types[i], IBV_WR_DRIVER1);
	}
	unfit_datagrams();
	endless_list();
	unfit(IBV_QPT_UC, IBV_WR_RDMA_READ);
	unfit(IBV_QPT_UC, IBV_WR_ATOMIC_CMP_AND_SWP);
	unfit(IBV_QPT_UC, IBV_WR_ATOMIC_FETCH_AND_ADD);
	unfit(IBV_QPT_UC, IBV_WR_SEND_WITH_INV);
	unfit(IBV_QPT_UC, IBV_WR_TSO);
	unfit(IBV_QPT_UD, IBV_WR_RDMA_WRITE);
	unfit(IBV_QPT_UD, IBV_WR_RDMA_WRITE_WITH_IMM);
	unfit(IBV_QPT_UD, IBV_WR_RDMA_READ);
	unfit(IBV_QPT_UD, IBV_WR_ATOMIC_CMP_AND_SWP);
	unfit(IBV_QPT_UD, IBV_WR_ATOMIC_FETCH_AND_ADD);
	unfit(IBV_QPT_UD, IBV_WR_SEND_WITH_INV);
	unfit(IBV_QPT_UD, IBV_WR_LOCAL_INV);
	unfit(IBV_QPT_UD, IBV_WR_BIND_MW);
	unfit(IBV_QPT_RC, IBV_WR_TSO);
	return expect_done();
}
