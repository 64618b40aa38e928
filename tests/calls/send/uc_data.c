/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Unreliable connections: SEND and WRITE of every length, and drops without harm. */
#include <arpa/inet.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "support/check.h"
#include "support/endpoint.h"

#define BUF       (1 << 19)
#define HALF      (BUF / 2)
#define MARK_BYTE 0xee

static enum ep_place place;
static struct endpoint near, far;
static uint8_t wanted[HALF], got[HALF];

static void fill_pattern(size_t length, unsigned int seed)
{
	for (size_t i = 0; i < length; i++)
		wanted[i] = (uint8_t)(seed + i * 13 + (i >> 8) + (i >> 16));
}

static void sent(uint64_t wr_id, enum ibv_wc_opcode opcode)
{
	struct ibv_wc wc;

	EXPECT_STATUS(ep_poll_one(&near, EP_SEND_CQ, &wc), IBV_WC_SUCCESS);
	EXPECT_EQ(wc.wr_id, wr_id);
	EXPECT_EQ(wc.opcode, opcode);
}

static struct ibv_wc received(uint64_t wr_id, enum ibv_wc_opcode opcode, uint32_t length,
			      unsigned int flags)
{
	struct ibv_wc wc;

	EXPECT_STATUS(ep_poll_one(&far, EP_RECV_CQ, &wc), IBV_WC_SUCCESS);
	EXPECT_EQ(wc.wr_id, wr_id);
	EXPECT_EQ(wc.opcode, opcode);
	EXPECT_EQ(wc.byte_len, length);
	EXPECT_EQ(wc.wc_flags, flags);
	return wc;
}

/* Every message is followed by one with immediate data, which arrives after it. */
static void message(enum ibv_wr_opcode opcode, uint32_t length)
{
	struct ibv_sge sge = ep_sge(&near, 64, length), into = ep_sge(&far, HALF, length);
	struct ibv_send_wr wr = ep_wr(opcode, 1, &sge, 1);
	bool write = opcode == IBV_WR_RDMA_WRITE || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
	bool imm = opcode == IBV_WR_SEND_WITH_IMM || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
	struct ibv_wc wc;

	expect_case("opcode %d, %u bytes", (int)opcode, length);
	fill_pattern(length, length * 3 + (unsigned int)opcode);
	ep_poke(&near, 64, wanted, length);
	ep_fill(&far, HALF, MARK_BYTE, length + 64);
	wr.wr.rdma.remote_addr = far.local.addr + HALF;
	wr.wr.rdma.rkey = far.local.rkey;
	wr.imm_data = htonl(length);
	if (opcode != IBV_WR_RDMA_WRITE)
		CHECK(ep_post_recv(&far, 2, &into, write ? 0 : 1) == 0);
	CHECK(ep_post_send(&near, &wr) == 0);
	sent(1, write ? IBV_WC_RDMA_WRITE : IBV_WC_SEND);
	if (opcode == IBV_WR_RDMA_WRITE) {
		/* Its arrival shows in what comes behind it. */
		struct ibv_send_wr behind = ep_wr(IBV_WR_SEND, 3, NULL, 0);

		CHECK(ep_post_recv(&far, 4, NULL, 0) == 0);
		CHECK(ep_post_send(&near, &behind) == 0);
		sent(3, IBV_WC_SEND);
		received(4, IBV_WC_RECV, 0, 0);
	} else {
		wc = received(2, write ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV, length,
			      imm ? IBV_WC_WITH_IMM : 0);
		if (imm)
			EXPECT_EQ(ntohl(wc.imm_data), length);
	}
	ep_peek(&far, HALF, got, length);
	EXPECT(!memcmp(got, wanted, length));
	EXPECT(ep_is_filled(&far, HALF + length, MARK_BYTE, 64));
}

static void lengths(void)
{
	static const enum ibv_wr_opcode opcodes[] = {IBV_WR_SEND, IBV_WR_SEND_WITH_IMM,
						     IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM};
	static const uint32_t sizes[] = {0,    1,    8,    63,   1023,  1024,
					 1025, 2048, 4096, 9999, 65536, 200000};

	for (size_t o = 0; o < sizeof(opcodes) / sizeof(opcodes[0]); o++)
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
			message(opcodes[o], sizes[i]);
}

/* A message that finds no receive, or one too short, is lost; the next one is not. */
static void drops(void)
{
	struct ibv_sge sge = ep_sge(&near, 0, 5000), small = ep_sge(&far, HALF, 100);
	struct ibv_send_wr wr = ep_wr(IBV_WR_SEND, 1, &sge, 1);
	struct ibv_wc wc;

	expect_case("no receive");
	CHECK(ep_post_send(&near, &wr) == 0);
	sent(1, IBV_WC_SEND);
	EXPECT_EQ(ep_poll(&far, EP_RECV_CQ, &wc, 1, 20), 0);
	expect_case("receive too short");
	CHECK(ep_post_recv(&far, 5, &small, 1) == 0);
	CHECK(ep_post_send(&near, &wr) == 0);
	sent(1, IBV_WC_SEND);
	EXPECT_EQ(ep_poll(&far, EP_RECV_CQ, &wc, 1, 20), 0);
	expect_case("the receive takes the next that fits");
	sge.length = 100;
	CHECK(ep_post_send(&near, &wr) == 0);
	sent(1, IBV_WC_SEND);
	received(5, IBV_WC_RECV, 100, 0);
	EXPECT_EQ(ep_state(&near), IBV_QPS_RTS);
	EXPECT_EQ(ep_state(&far), IBV_QPS_RTS);
}

/* Messages to a queue pair that is not ready go nowhere and fail nowhere. */
static void not_ready(void)
{
	struct ep_config config = ep_defaults(IBV_QPT_UC);
	struct ibv_send_wr wr = ep_wr(IBV_WR_SEND, 1, NULL, 0);
	struct endpoint a, b;
	struct ibv_wc wc;

	expect_case("peer not ready");
	ep_open(&a, &config, EP_HERE);
	ep_open(&b, &config, place);
	CHECK(ep_bring_to(&a, &b.local, IBV_QPS_RTS) == 0);
	CHECK(ep_bring_to(&b, &a.local, IBV_QPS_INIT) == 0);
	CHECK(ep_post_recv(&b, 1, NULL, 0) == 0);
	CHECK(ep_post_send(&a, &wr) == 0);
	EXPECT_STATUS(ep_poll_one(&a, EP_SEND_CQ, &wc), IBV_WC_SUCCESS);
	EXPECT_EQ(ep_poll_none(&b, EP_RECV_CQ), 0);
	EXPECT_EQ(ep_state(&a), IBV_QPS_RTS);
	ep_pair_close(&a, &b);
}

int main(int argc, char **argv)
{
	struct ep_config config = ep_defaults(IBV_QPT_UC);

	place = ep_main(argc, argv);
	config.buf_len = BUF;
	ep_pair(&near, &far, &config, &config, place);
	lengths();
	drops();
	ep_pair_close(&near, &far);
	not_ready();
	return expect_done();
}
