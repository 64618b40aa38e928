/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Reliable connections move data: every operation, length, scatter/gather form and flag. */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "support/check.h"
#include "support/endpoint.h"

#define BUF     (1 << 20)
#define HALF    (BUF / 2)
#define LARGEST (300 * 1024)

static enum ep_place place;
static struct endpoint near, far;
static uint8_t *wanted, *got;

static void open_pair(void)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);

	config.buf_len = BUF;
	ep_pair(&near, &far, &config, &config, place);
}

/* Bytes that name their offset and the @round, so that nothing old passes for new. */
static void make_pattern(uint8_t *to, size_t length, unsigned int round)
{
	uint32_t x = round * 2654435761u + 12345;

	for (size_t i = 0; i < length; i++) {
		x = x * 1664525 + 1013904223;
		to[i] = (uint8_t)(x >> 24);
	}
}

/* Fills the source, makes the target's range and its surroundings known. */
static void prepare(struct endpoint *from, size_t from_at, struct endpoint *to, size_t to_at,
		    size_t length)
{
	static unsigned int round;

	make_pattern(wanted, length, ++round);
	ep_poke(from, from_at, wanted, length);
	ep_fill(to, to_at - 64, 0xee, length + 128);
}

/* The data is in its place and nothing beside it changed. */
static void check_arrived(struct endpoint *to, size_t at, size_t length)
{
	ep_peek(to, at, got, length);
	EXPECT_SAY(!memcmp(got, wanted, length), "the data differs");
	EXPECT_SAY(ep_is_filled(to, at - 64, 0xee, 64), "bytes before the range changed");
	EXPECT_SAY(ep_is_filled(to, at + length, 0xee, 64), "bytes behind the range changed");
}

static struct ibv_wc send_done(enum ibv_wc_opcode opcode, uint64_t wr_id)
{
	struct ibv_wc wc;

	EXPECT_STATUS(ep_poll_one(&near, EP_SEND_CQ, &wc), IBV_WC_SUCCESS);
	EXPECT_EQ(wc.opcode, opcode);
	EXPECT_EQ(wc.wr_id, wr_id);
	EXPECT_EQ(wc.qp_num, near.local.qpn);
	return wc;
}

static struct ibv_wc recv_done(enum ibv_wc_opcode opcode, uint64_t wr_id, uint32_t length,
			       unsigned int flags)
{
	struct ibv_wc wc;

	EXPECT_STATUS(ep_poll_one(&far, EP_RECV_CQ, &wc), IBV_WC_SUCCESS);
	EXPECT_EQ(wc.opcode, opcode);
	EXPECT_EQ(wc.wr_id, wr_id);
	EXPECT_EQ(wc.qp_num, far.local.qpn);
	EXPECT_EQ(wc.byte_len, length);
	EXPECT_EQ(wc.wc_flags, flags);
	return wc;
}

/* One message of @length by @opcode from odd addresses to odd addresses. */
static void message(enum ibv_wr_opcode opcode, uint32_t length, size_t skew)
{
	size_t source = 4096 + skew, target = HALF + 4096 + 3 * skew;
	struct ibv_sge sge = ep_sge(&near, source, length), into = ep_sge(&far, target, length);
	struct ibv_send_wr wr = ep_wr(opcode, length + 7, &sge, 1);
	bool imm = opcode == IBV_WR_SEND_WITH_IMM || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
	struct ibv_wc wc;

	expect_case("opcode %d, %u bytes, skew %zu, MTU %u", (int)opcode, length, skew,
		    128u << near.config.mtu);
	wr.imm_data = htonl(length ^ 0xa5a5a5a5);
	wr.wr.rdma.rkey = far.local.rkey;
	wr.wr.rdma.remote_addr = far.local.addr + target;
	switch (opcode) {
	case IBV_WR_RDMA_READ:
		prepare(&far, target, &near, source, length);
		CHECK(ep_post_send(&near, &wr) == 0);
		wc = send_done(IBV_WC_RDMA_READ, length + 7);
		EXPECT_EQ(wc.byte_len, length);
		check_arrived(&near, source, length);
		return;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		/*
		 * Its receive gives no buffer, and one that has a buffer would not see it touched.
		 */
		CHECK(ep_post_recv(&far, 99, NULL, 0) == 0);
		break;
	case IBV_WR_SEND:
	case IBV_WR_SEND_WITH_IMM:
		into.length = length + 10; /* more room than data */
		CHECK(ep_post_recv(&far, 99, &into, 1) == 0);
		break;
	default:
		break;
	}
	prepare(&near, source, &far, target, length);
	CHECK(ep_post_send(&near, &wr) == 0);
	send_done(opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM ? IBV_WC_SEND
									  : IBV_WC_RDMA_WRITE,
		  length + 7);
	if (opcode != IBV_WR_RDMA_WRITE) {
		wc = recv_done(opcode == IBV_WR_RDMA_WRITE_WITH_IMM ? IBV_WC_RECV_RDMA_WITH_IMM
								    : IBV_WC_RECV,
			       99, length, imm ? IBV_WC_WITH_IMM : 0);
		if (imm)
			EXPECT_EQ(ntohl(wc.imm_data), length ^ 0xa5a5a5a5);
	}
	check_arrived(&far, target, length);
}

static void lengths(void)
{
	static const uint32_t sizes[] = {0,    1,    7,     8,     63,    64,     255,    256,
					 1023, 1024, 1025,  2047,  2048,  2049,   4096,   4097,
					 8191, 8192, 16385, 65536, 70001, 262144, LARGEST};
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_SEND,      IBV_WR_SEND_WITH_IMM,       IBV_WR_RDMA_WRITE,
		IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE_WITH_IMM,
	};

	for (size_t o = 0; o < sizeof(opcodes) / sizeof(opcodes[0]); o++)
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
			for (size_t skew = 0; skew < 6; skew += 5)
				message(opcodes[o], sizes[i], skew);
}

/* Gathered from pieces of all lengths, scattered into others; empty pieces need no key. */
static void scatter_gather(void)
{
	static const uint32_t pieces[][4] = {
		{1, 2, 3, 4}, {1000, 1, 1000, 5000}, {0, 10, 0, 20},  {4096, 4096, 4096, 4096},
		{8, 0, 0, 0}, {0, 0, 0, 8},          {3, 1021, 9, 1},
	};

	for (size_t p = 0; p < sizeof(pieces) / sizeof(pieces[0]); p++) {
		struct ibv_sge from[4], to[4];
		size_t offset = 0, length = 0;
		struct ibv_send_wr wr;

		expect_case("scatter/gather %zu", p);
		for (int i = 0; i < 4; i++) {
			/* The other list is cut elsewhere: its pieces in reverse order. */
			from[i] = ep_sge(&near, (size_t)i * 8192, pieces[p][i]);
			to[i] = ep_sge(&far, HALF + (size_t)i * 8192, pieces[p][3 - i]);
			for (int j = 0; j < 2; j++) {
				struct ibv_sge *sge = j ? &to[i] : &from[i];

				if (sge->length)
					continue;
				sge->lkey = 0xdeadbeef; /* not read */
				sge->addr = 1;
			}
			length += pieces[p][i];
		}
		make_pattern(wanted, length, 1000 + (unsigned int)p);
		for (int i = 0; i < 4; offset += from[i].length, i++)
			ep_poke(&near, (size_t)i * 8192, wanted + offset, from[i].length);
		CHECK(ep_post_recv(&far, 5, to, 4) == 0);
		wr = ep_wr(IBV_WR_SEND, 6, from, 4);
		CHECK(ep_post_send(&near, &wr) == 0);
		send_done(IBV_WC_SEND, 6);
		recv_done(IBV_WC_RECV, 5, (uint32_t)length, 0);
		offset = 0;
		for (int i = 0; i < 4; offset += to[i].length, i++)
			ep_peek(&far, HALF + (size_t)i * 8192, got + offset, to[i].length);
		EXPECT(!memcmp(got, wanted, length));

		expect_case("scatter/gather %zu, WRITE and READ back", p);
		wr = ep_wr(IBV_WR_RDMA_WRITE, 7, from, 4);
		wr.wr.rdma.remote_addr = far.local.addr + HALF + 100000;
		wr.wr.rdma.rkey = far.local.rkey;
		CHECK(ep_post_send(&near, &wr) == 0);
		send_done(IBV_WC_RDMA_WRITE, 7);
		ep_peek(&far, HALF + 100000, got, length);
		EXPECT(!memcmp(got, wanted, length));
		for (int i = 0; i < 4; i++)
			ep_fill(&near, (size_t)i * 8192, 0, from[i].length + 1);
		wr.opcode = IBV_WR_RDMA_READ;
		CHECK(ep_post_send(&near, &wr) == 0);
		send_done(IBV_WC_RDMA_READ, 7);
		offset = 0;
		for (int i = 0; i < 4; offset += from[i].length, i++)
			ep_peek(&near, (size_t)i * 8192, got + offset, from[i].length);
		EXPECT(!memcmp(got, wanted, length));
	}
}

static uint64_t atomic(enum ibv_wr_opcode opcode, uint64_t compare_add, uint64_t swap, size_t at)
{
	struct ibv_sge sge = ep_sge(&near, 1024, 8);
	struct ibv_send_wr wr = ep_wr(opcode, 8, &sge, 1);
	uint64_t old;
	struct ibv_wc wc;

	wr.wr.atomic.remote_addr = far.local.addr + at;
	wr.wr.atomic.rkey = far.local.rkey;
	wr.wr.atomic.compare_add = compare_add;
	wr.wr.atomic.swap = swap;
	ep_fill(&near, 1024, 0xcc, 16);
	CHECK(ep_post_send(&near, &wr) == 0);
	wc = send_done(opcode == IBV_WR_ATOMIC_CMP_AND_SWP ? IBV_WC_COMP_SWAP : IBV_WC_FETCH_ADD,
		       8);
	EXPECT_EQ(wc.byte_len, 8);
	EXPECT(ep_is_filled(&near, 1032, 0xcc, 8));
	ep_peek(&near, 1024, &old, sizeof(old));
	return old;
}

static uint64_t word_at(size_t at)
{
	uint64_t word;

	ep_peek(&far, at, &word, sizeof(word));
	return word;
}

static void atomics(void)
{
	uint64_t word = 0x1122334455667788;
	struct ibv_sge halves[2];
	struct ibv_send_wr wr;

	ep_poke(&far, 4096, &word, sizeof(word));
	expect_case("FETCH_ADD");
	EXPECT_EQ(atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0, 4096), 0x1122334455667788);
	EXPECT_EQ(word_at(4096), 0x1122334455667789);
	expect_case("FETCH_ADD of minus two");
	EXPECT_EQ(atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, (uint64_t)-2, 0, 4096), 0x1122334455667789);
	EXPECT_EQ(word_at(4096), 0x1122334455667787);
	expect_case("CMP_SWAP that fits");
	EXPECT_EQ(atomic(IBV_WR_ATOMIC_CMP_AND_SWP, 0x1122334455667787, 5, 4096),
		  0x1122334455667787);
	EXPECT_EQ(word_at(4096), 5);
	expect_case("CMP_SWAP that does not");
	EXPECT_EQ(atomic(IBV_WR_ATOMIC_CMP_AND_SWP, 6, 7, 4096), 5);
	EXPECT_EQ(word_at(4096), 5);

	expect_case("FETCH_ADD into two halves");
	halves[0] = ep_sge(&near, 2048, 4);
	halves[1] = ep_sge(&near, 3072, 4);
	wr = ep_wr(IBV_WR_ATOMIC_FETCH_AND_ADD, 9, halves, 2);
	wr.wr.atomic.remote_addr = far.local.addr + 4096;
	wr.wr.atomic.rkey = far.local.rkey;
	wr.wr.atomic.compare_add = 1;
	word = 0xaabbccdd00112233;
	ep_poke(&far, 4096, &word, sizeof(word));
	CHECK(ep_post_send(&near, &wr) == 0);
	send_done(IBV_WC_FETCH_ADD, 9);
	ep_peek(&near, 2048, got, 4);
	ep_peek(&near, 3072, got + 4, 4);
	EXPECT(!memcmp(got, &word, 8));

	expect_case("many FETCH_ADDs at once");
	word = 0;
	ep_poke(&far, 4096, &word, sizeof(word));
	for (int i = 0; i < 60; i++) {
		wr.wr_id = (uint64_t)i;
		CHECK(ep_post_send(&near, &wr) == 0);
	}
	for (uint64_t i = 0; i < 60; i++)
		send_done(IBV_WC_FETCH_ADD, i);
	EXPECT_EQ(word_at(4096), 60);
}

static void inline_data(void)
{
	uint32_t lengths_[] = {0, 1, 8, 33, near.cap.max_inline_data};
	uint8_t source[4096];
	struct ibv_send_wr wr;

	CHECK(near.cap.max_inline_data <= sizeof(source));
	for (size_t i = 0; i < sizeof(lengths_) / sizeof(lengths_[0]); i++) {
		uint32_t n = lengths_[i];
		struct ibv_sge sge = {.addr = (uintptr_t)source, .length = n, .lkey = 0xdeadbeef};
		struct ibv_sge into = ep_sge(&far, HALF, 8192);

		expect_case("inline SEND of %u", n);
		make_pattern(source, sizeof(source), 50 + n);
		memcpy(wanted, source, n);
		CHECK(ep_post_recv(&far, 3, &into, 1) == 0);
		wr = ep_wr(IBV_WR_SEND, 4, &sge, 1);
		wr.send_flags |= IBV_SEND_INLINE;
		CHECK(ep_post_send(&near, &wr) == 0);
		memset(source, 0, sizeof(source)); /* ours again as soon as the call returned */
		send_done(IBV_WC_SEND, 4);
		recv_done(IBV_WC_RECV, 3, n, 0);
		ep_peek(&far, HALF, got, n);
		EXPECT(!memcmp(got, wanted, n));

		expect_case("inline WRITE of %u", n);
		make_pattern(source, sizeof(source), 90 + n);
		memcpy(wanted, source, n);
		wr.opcode = IBV_WR_RDMA_WRITE;
		wr.wr.rdma.remote_addr = far.local.addr + HALF;
		wr.wr.rdma.rkey = far.local.rkey;
		CHECK(ep_post_send(&near, &wr) == 0);
		memset(source, 0, sizeof(source));
		send_done(IBV_WC_RDMA_WRITE, 4);
		ep_peek(&far, HALF, got, n);
		EXPECT(!memcmp(got, wanted, n));
	}
}

/* Messages of nothing: no element, or elements of length 0; wrong keys are not looked at. */
static void nothing(void)
{
	struct ibv_sge empty = {.addr = 0x10, .length = 0, .lkey = 0xdeadbeef};
	struct ibv_send_wr wr;

	for (int n = 0; n < 2; n++) {
		expect_case("SEND of nothing, %d elements", n);
		CHECK(ep_post_recv(&far, 1, &empty, n) == 0);
		wr = ep_wr(IBV_WR_SEND, 2, &empty, n);
		CHECK(ep_post_send(&near, &wr) == 0);
		send_done(IBV_WC_SEND, 2);
		recv_done(IBV_WC_RECV, 1, 0, 0);

		expect_case("WRITE of nothing with a wrong rkey, %d elements", n);
		wr.opcode = IBV_WR_RDMA_WRITE;
		wr.wr.rdma.rkey = 0xdeadbeef;
		wr.wr.rdma.remote_addr = 3;
		CHECK(ep_post_send(&near, &wr) == 0);
		send_done(IBV_WC_RDMA_WRITE, 2);

		expect_case("READ of nothing with a wrong rkey, %d elements", n);
		wr.opcode = IBV_WR_RDMA_READ;
		CHECK(ep_post_send(&near, &wr) == 0);
		send_done(IBV_WC_RDMA_READ, 2);

		expect_case("WRITE_IMM of nothing, %d elements", n);
		CHECK(ep_post_recv(&far, 1, &empty, n) == 0);
		wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
		CHECK(ep_post_send(&near, &wr) == 0);
		send_done(IBV_WC_RDMA_WRITE, 2);
		recv_done(IBV_WC_RECV_RDMA_WITH_IMM, 1, 0, IBV_WC_WITH_IMM);
	}
	EXPECT_EQ(ep_state(&near), IBV_QPS_RTS);
	EXPECT_EQ(ep_state(&far), IBV_QPS_RTS);
}

/* A receive used by WRITE_WITH_IMM lends only its place in the queue, not its buffer. */
static void write_imm_leaves_buffer(void)
{
	struct ibv_sge into = ep_sge(&far, HALF, 4096), sge = ep_sge(&near, 0, 512);
	struct ibv_send_wr wr = ep_wr(IBV_WR_RDMA_WRITE_WITH_IMM, 2, &sge, 1);

	expect_case("WRITE_IMM and its receive's buffer");
	ep_fill(&far, HALF, 0x99, 4096);
	CHECK(ep_post_recv(&far, 1, &into, 1) == 0);
	wr.wr.rdma.rkey = far.local.rkey;
	wr.wr.rdma.remote_addr = far.local.addr;
	CHECK(ep_post_send(&near, &wr) == 0);
	send_done(IBV_WC_RDMA_WRITE, 2);
	recv_done(IBV_WC_RECV_RDMA_WITH_IMM, 1, 512, IBV_WC_WITH_IMM);
	EXPECT(ep_is_filled(&far, HALF, 0x99, 4096));
}

/* No completion without IBV_SEND_SIGNALED; the next signalled one tells of all before it. */
static void signalling(void)
{
	struct ibv_sge sge = ep_sge(&near, 0, 64);
	struct ibv_send_wr wr = ep_wr(IBV_WR_RDMA_WRITE, 0, &sge, 1);

	expect_case("unsignalled");
	wr.wr.rdma.remote_addr = far.local.addr + HALF;
	wr.wr.rdma.rkey = far.local.rkey;
	for (int i = 0; i < 10; i++) {
		ep_fill(&near, 0, i + 1, 64);
		wr.wr_id = (uint64_t)i;
		wr.send_flags = i == 9 ? IBV_SEND_SIGNALED | IBV_SEND_FENCE : 0;
		CHECK(ep_post_send(&near, &wr) == 0);
	}
	send_done(IBV_WC_RDMA_WRITE, 9);
	EXPECT_EQ(ep_poll_none(&near, EP_SEND_CQ), 0);
	EXPECT(ep_is_filled(&far, HALF, 10, 64));
}

/* FENCE: what follows a READ carries what the READ brought. */
static void fence(void)
{
	struct ibv_sge sge = ep_sge(&near, 0, 8192);
	struct ibv_send_wr read = ep_wr(IBV_WR_RDMA_READ, 1, &sge, 1);
	struct ibv_send_wr write = ep_wr(IBV_WR_RDMA_WRITE, 2, &sge, 1);

	for (int i = 0; i < 50; i++) {
		expect_case("fence, round %d", i);
		ep_fill(&near, 0, 0, 8192);
		ep_fill(&far, HALF, i + 1, 8192);
		ep_fill(&far, HALF + 65536, 0, 8192);
		read.wr.rdma.remote_addr = far.local.addr + HALF;
		write.wr.rdma.remote_addr = far.local.addr + HALF + 65536;
		read.wr.rdma.rkey = write.wr.rdma.rkey = far.local.rkey;
		write.send_flags = IBV_SEND_SIGNALED | IBV_SEND_FENCE;
		CHECK(ep_post_send(&near, &read) == 0);
		CHECK(ep_post_send(&near, &write) == 0);
		send_done(IBV_WC_RDMA_READ, 1);
		send_done(IBV_WC_RDMA_WRITE, 2);
		EXPECT(ep_is_filled(&far, HALF + 65536, i + 1, 8192));
	}
}

/* A send that finds no receive waits for one as long as rnr_retry 7 says: for ever. */
static void receive_comes_later(void)
{
	struct ibv_sge sge = ep_sge(&near, 0, 5000), into = ep_sge(&far, HALF, 5000);
	struct ibv_send_wr wr = ep_wr(IBV_WR_SEND, 1, &sge, 1);

	expect_case("receive posted later");
	prepare(&near, 0, &far, HALF, 5000);
	CHECK(ep_post_send(&near, &wr) == 0);
	EXPECT_EQ(ep_poll_none(&near, EP_SEND_CQ), 0);
	CHECK(ep_post_recv(&far, 2, &into, 1) == 0);
	send_done(IBV_WC_SEND, 1);
	recv_done(IBV_WC_RECV, 2, 5000, 0);
	check_arrived(&far, HALF, 5000);
}

/* Every path MTU cuts the same messages elsewhere. */
static void each_mtu(void)
{
	static const uint32_t sizes[] = {255, 256, 257, 4096, 4097, 50000};
	struct ep_config config = ep_defaults(IBV_QPT_RC);
	struct ibv_port_attr port;

	CHECK(ibv_query_port(near.context, 1, &port) == 0);
	config.buf_len = BUF;
	for (config.mtu = IBV_MTU_256; config.mtu <= port.active_mtu; config.mtu++) {
		expect_case("close before MTU %u", 128u << config.mtu);
		ep_pair_close(&near, &far);
		ep_pair(&near, &far, &config, &config, place);
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			message(IBV_WR_SEND, sizes[i], 1);
			message(IBV_WR_RDMA_WRITE_WITH_IMM, sizes[i], 2);
			message(IBV_WR_RDMA_READ, sizes[i], 3);
		}
	}
}

int main(int argc, char **argv)
{
	place = ep_main(argc, argv);
	wanted = malloc(BUF);
	got = malloc(BUF);
	CHECK(wanted && got);
	open_pair();
	lengths();
	scatter_gather();
	atomics();
	inline_data();
	nothing();
	write_imm_leaves_buffer();
	signalling();
	fence();
	receive_comes_later();
	each_mtu();
	expect_case("close");
	ep_pair_close(&near, &far);
	free(wanted);
	free(got);
	return expect_done();
}
