/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The order of completions and of effects within one RC queue pair (IBA 9.5, 10.8.3). */
#include <arpa/inet.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "support/check.h"
#include "support/endpoint.h"

#define SLOT 1024

static enum ep_place place;
static struct endpoint near, far;

static const enum ibv_wr_opcode opcodes[] = {
	IBV_WR_SEND,
	IBV_WR_RDMA_WRITE,
	IBV_WR_RDMA_READ,
	IBV_WR_ATOMIC_FETCH_AND_ADD,
	IBV_WR_RDMA_WRITE_WITH_IMM,
	IBV_WR_SEND_WITH_IMM,
};

#define KINDS (sizeof(opcodes) / sizeof(opcodes[0]))

static int post(enum ibv_wr_opcode opcode, uint64_t wr_id, uint32_t length)
{
	struct ibv_sge sge = ep_sge(&near, 0, length);
	struct ibv_send_wr wr = ep_wr(opcode, wr_id, &sge, 1);

	wr.imm_data = htonl((uint32_t)wr_id);
	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		sge.length = 8;
		wr.wr.atomic.remote_addr = far.local.addr + 32768;
		wr.wr.atomic.rkey = far.local.rkey;
		wr.wr.atomic.compare_add = 1;
	} else {
		wr.wr.rdma.remote_addr = far.local.addr + 40960;
		wr.wr.rdma.rkey = far.local.rkey;
	}
	return ep_post_send(&near, &wr);
}

/* All kinds mixed, many in flight: send completions in posting order, receives likewise. */
static void mixed(void)
{
	uint64_t next_recv = 0, expect_recv = 0, expect_send = 0, posted = 0;
	uint32_t x = 12345;

	expect_case("mixed operations");
	while (next_recv < 32) {
		struct ibv_sge into = ep_sge(&far, 49152, 4096);

		CHECK(ep_post_recv(&far, next_recv++, &into, 1) == 0);
	}
	while (expect_send < 1500) {
		struct ibv_wc wc[16];
		int n;

		while (posted < 1500 && posted - expect_send < 20) {
			x = x * 1664525 + 1013904223;
			CHECK(post(opcodes[(x >> 16) % KINDS], posted, (x >> 8) % 3000) == 0);
			posted++;
		}
		n = ep_poll(&near, EP_SEND_CQ, wc, 16, 1);
		for (int i = 0; i < n; i++) {
			EXPECT_STATUS(wc[i].status, IBV_WC_SUCCESS);
			EXPECT_EQ(wc[i].wr_id, expect_send);
			expect_send++;
		}
		n = ep_poll(&far, EP_RECV_CQ, wc, 16, 0);
		for (int i = 0; i < n; i++) {
			struct ibv_sge into = ep_sge(&far, 49152, 4096);

			EXPECT_STATUS(wc[i].status, IBV_WC_SUCCESS);
			EXPECT_EQ(wc[i].wr_id, expect_recv);
			expect_recv++;
			CHECK(ep_post_recv(&far, next_recv++, &into, 1) == 0);
		}
	}
	/* What the sender knows done has consumed its receive. */
	for (;;) {
		struct ibv_wc wc;

		if (ep_poll(&far, EP_RECV_CQ, &wc, 1, 20) != 1)
			break;
		EXPECT_EQ(wc.wr_id, expect_recv);
		expect_recv++;
	}
	EXPECT(expect_recv > 500 && expect_recv < 1000);
}

/* A SEND's completion means that the WRITEs before it are in memory. */
static void write_then_send(void)
{
	struct ibv_sge source = ep_sge(&near, 0, 8000);
	struct ibv_send_wr write = ep_wr(IBV_WR_RDMA_WRITE, 1, &source, 1);
	struct ibv_send_wr send = ep_wr(IBV_WR_SEND, 2, NULL, 0);
	struct ibv_wc wc;

	write.send_flags = 0;
	write.wr.rdma.remote_addr = far.local.addr + 16384;
	write.wr.rdma.rkey = far.local.rkey;
	for (int i = 1; i <= 200; i++) {
		expect_case("WRITE then SEND, round %d", i);
		ep_fill(&near, 0, i, 8000);
		CHECK(ep_post_recv(&far, 5000, NULL, 0) == 0);
		CHECK(ep_post_send(&near, &write) == 0);
		CHECK(ep_post_send(&near, &send) == 0);
		EXPECT_STATUS(ep_poll_one(&far, EP_RECV_CQ, &wc), IBV_WC_SUCCESS);
		EXPECT(ep_is_filled(&far, 16384, i, 8000));
		EXPECT_STATUS(ep_poll_one(&near, EP_SEND_CQ, &wc), IBV_WC_SUCCESS);
	}
}

/* A READ sees the WRITE before it and, if that one is fenced, not the WRITE behind it. */
static void write_then_read(void)
{
	struct ibv_sge source = ep_sge(&near, 0, SLOT), into = ep_sge(&near, 8192, SLOT);
	struct ibv_sge later = ep_sge(&near, 16384, SLOT);
	struct ibv_send_wr write = ep_wr(IBV_WR_RDMA_WRITE, 1, &source, 1);
	struct ibv_send_wr read = ep_wr(IBV_WR_RDMA_READ, 2, &into, 1);
	struct ibv_send_wr behind = ep_wr(IBV_WR_RDMA_WRITE, 3, &later, 1);
	struct ibv_wc wc;

	write.wr.rdma.remote_addr = far.local.addr + 16384;
	write.wr.rdma.rkey = far.local.rkey;
	read.wr.rdma = behind.wr.rdma = write.wr.rdma;
	behind.send_flags |= IBV_SEND_FENCE; /* without it the READ may see either (IBA 10.8.3) */
	write.next = &read;
	read.next = &behind;
	for (int i = 1; i <= 200; i++) {
		struct ibv_send_wr *bad = NULL;

		expect_case("WRITE, READ, WRITE, round %d", i);
		ep_fill(&near, 0, i, SLOT);
		ep_fill(&near, 16384, 255 - i, SLOT);
		ep_fill(&near, 8192, 0, SLOT);
		CHECK(ibv_post_send(near.qp, &write, &bad) == 0);
		for (uint64_t k = 1; k <= 3; k++) {
			EXPECT_STATUS(ep_poll_one(&near, EP_SEND_CQ, &wc), IBV_WC_SUCCESS);
			EXPECT_EQ(wc.wr_id, k);
		}
		EXPECT(ep_is_filled(&near, 8192, i, SLOT));
		EXPECT(ep_is_filled(&far, 16384, 255 - i, SLOT));
	}
}

/* Each message has its own length, so that a receive in the wrong place shows. */
static void receives_in_order(void)
{
	expect_case("receives in order");
	for (int round = 0; round < 20; round++) {
		struct ibv_wc wc;

		for (uint64_t i = 0; i < 30; i++) {
			struct ibv_sge into = ep_sge(&far, i * SLOT, SLOT);

			CHECK(ep_post_recv(&far, i, &into, 1) == 0);
		}
		for (uint32_t i = 0; i < 30; i++)
			CHECK(post(IBV_WR_SEND_WITH_IMM, i, 10 + 30 * i) == 0);
		for (uint32_t i = 0; i < 30; i++) {
			EXPECT_STATUS(ep_poll_one(&far, EP_RECV_CQ, &wc), IBV_WC_SUCCESS);
			EXPECT_EQ(wc.wr_id, i);
			EXPECT_EQ(ntohl(wc.imm_data), i);
			EXPECT_EQ(wc.byte_len, 10 + 30 * i);
		}
		for (uint32_t i = 0; i < 30; i++) {
			EXPECT_STATUS(ep_poll_one(&near, EP_SEND_CQ, &wc), IBV_WC_SUCCESS);
			EXPECT_EQ(wc.wr_id, i);
		}
	}
}

int main(int argc, char **argv)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);

	place = ep_main(argc, argv);
	config.cap.max_recv_wr = 128;
	ep_pair(&near, &far, &config, &config, place);
	write_then_send();
	write_then_read();
	receives_in_order();
	mixed();
	ep_pair_close(&near, &far);
	return expect_done();
}
