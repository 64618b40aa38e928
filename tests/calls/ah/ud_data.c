/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Datagrams: the 40 bytes of header in front of the data, the length that counts them, and every
 * size up to the MTU.
 */
#include <arpa/inet.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "support/check.h"
#include "support/endpoint.h"

#define INTO 32768

static enum ep_place place;
static struct endpoint near, far;
static struct ibv_ah *ah;
static uint32_t mtu;
static uint8_t wanted[8192], got[8192];

static struct ibv_send_wr datagram(struct ibv_sge *sge, int num_sge, uint64_t wr_id)
{
	struct ibv_send_wr wr = ep_wr(IBV_WR_SEND, wr_id, sge, num_sge);

	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = far.local.qpn;
	wr.wr.ud.remote_qkey = far.config.qkey;
	return wr;
}

static void fill_pattern(uint32_t length, unsigned int seed)
{
	for (uint32_t i = 0; i < length; i++)
		wanted[i] = (uint8_t)(seed + i * 7 + (i >> 8));
}

static struct ibv_wc arrive(uint64_t wr_id, uint32_t length, unsigned int flags)
{
	struct ibv_wc wc;

	EXPECT_STATUS(ep_poll_one(&near, EP_SEND_CQ, &wc), IBV_WC_SUCCESS);
	EXPECT_EQ(wc.opcode, IBV_WC_SEND);
	EXPECT_STATUS(ep_poll_one(&far, EP_RECV_CQ, &wc), IBV_WC_SUCCESS);
	EXPECT_EQ(wc.opcode, IBV_WC_RECV);
	EXPECT_EQ(wc.wr_id, wr_id);
	EXPECT_EQ(wc.byte_len, 40 + length);
	EXPECT_EQ(wc.wc_flags, IBV_WC_GRH | flags);
	EXPECT_EQ(wc.src_qp, near.local.qpn);
	EXPECT_EQ(wc.qp_num, far.local.qpn);
	EXPECT_EQ(wc.pkey_index, 0);
	return wc;
}

static void lengths(void)
{
	const uint32_t sizes[] = {0, 1, 7, 8, 63, 255, 256, 1000, 1024, mtu - 1, mtu};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint32_t length = sizes[i];
		struct ibv_sge sge = ep_sge(&near, 3, length), into = ep_sge(&far, INTO, 8192);
		struct ibv_send_wr wr = datagram(&sge, 1, 1);
		struct ibv_wc wc;

		expect_case("%u bytes", length);
		fill_pattern(length, length + 1);
		ep_poke(&near, 3, wanted, length);
		ep_fill(&far, INTO, 0xee, 8192);
		CHECK(ep_post_recv(&far, 2, &into, 1) == 0);
		if (i & 1) {
			wr.opcode = IBV_WR_SEND_WITH_IMM;
			wr.imm_data = htonl(0xcafe0000 + length);
		}
		CHECK(ep_post_send(&near, &wr) == 0);
		wc = arrive(2, length, i & 1 ? IBV_WC_WITH_IMM : 0);
		if (i & 1)
			EXPECT_EQ(ntohl(wc.imm_data), 0xcafe0000 + length);
		ep_peek(&far, INTO + 40, got, length);
		EXPECT(!memcmp(got, wanted, length));
		EXPECT(ep_is_filled(&far, INTO + 40 + length, 0xee, 100));
	}
}

/* RFC 1071: a header with its checksum in place sums up to all ones. */
static bool checksum_is_right(const uint8_t *header)
{
	uint32_t sum = 0;

	for (int i = 0; i < 20; i += 2)
		sum += (uint32_t)(header[i] << 8 | header[i + 1]);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return sum == 0xffff;
}

/* What lies in the 40 bytes: an IPv6 header, or zeros and an IPv4 header (IBA A17.4.5.2). */
static void header(void)
{
	static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
	static const uint8_t zeros[20];
	struct ibv_ah_attr attr = {
		.is_global = 1,
		.port_num = 1,
		.grh = {.dgid = far.local.gid,
			.sgid_index = near.config.sgid_index,
			.hop_limit = 33,
			.traffic_class = 0xb8},
	};
	struct ibv_ah *marked = ibv_create_ah(near.pd, &attr);
	struct ibv_sge sge = ep_sge(&near, 0, 16), into = ep_sge(&far, INTO, 8192);
	struct ibv_send_wr wr;

	expect_case("header bytes, GID %u", near.config.sgid_index);
	CHECK(marked);
	wr = datagram(&sge, 1, 1);
	wr.wr.ud.ah = marked;
	ep_fill(&far, INTO, 0xee, 256);
	CHECK(ep_post_recv(&far, 2, &into, 1) == 0);
	CHECK(ep_post_send(&near, &wr) == 0);
	arrive(2, 16, 0);
	ep_peek(&far, INTO, got, 40);
	if (!memcmp(near.local.gid.raw, mapped, sizeof(mapped))) {
		const uint8_t *ip = got + 20;

		EXPECT(!memcmp(got, zeros, 20));
		EXPECT_EQ(ip[0], 0x45);
		EXPECT_EQ(ip[1] & 0xfc, 0xb8);
		EXPECT_EQ(ip[8], 33);
		EXPECT_EQ(ip[9], 17); /* UDP */
		EXPECT(checksum_is_right(ip));
		EXPECT(!memcmp(ip + 12, near.local.gid.raw + 12, 4));
		EXPECT(!memcmp(ip + 16, far.local.gid.raw + 12, 4));
		/* IP header, UDP header, BTH, DETH, payload, ICRC. */
		EXPECT_EQ(ip[2] << 8 | ip[3], 20 + 8 + 12 + 8 + 16 + 4);
	} else {
		EXPECT_EQ(got[0] >> 4, 6);
		EXPECT_EQ(((got[0] << 4 | got[1] >> 4) & 0xfc), 0xb8);
		EXPECT_EQ(got[6], 17);
		EXPECT_EQ(got[7], 33);
		EXPECT(!memcmp(got + 8, near.local.gid.raw, 16));
		EXPECT(!memcmp(got + 24, far.local.gid.raw, 16));
	}
	EXPECT_EQ(ibv_destroy_ah(marked), 0);
}

/* Header and payload may be cut anywhere by the receive's elements. */
static void scattered(void)
{
	static const uint32_t cuts[][3] = {{40, 100, 60}, {20, 20, 160}, {7, 50, 143}, {1, 1, 198}};

	fill_pattern(160, 9);
	for (size_t c = 0; c < sizeof(cuts) / sizeof(cuts[0]); c++) {
		struct ibv_sge from[2] = {ep_sge(&near, 0, 60), ep_sge(&near, 1000, 100)}, to[3];
		struct ibv_send_wr wr = datagram(from, 2, 1);
		size_t at = 0;

		expect_case("scattered %zu", c);
		ep_poke(&near, 0, wanted, 60);
		ep_poke(&near, 1000, wanted + 60, 100);
		for (int i = 0; i < 3; i++)
			to[i] = ep_sge(&far, INTO + (size_t)i * 1024, cuts[c][i]);
		CHECK(ep_post_recv(&far, 3, to, 3) == 0);
		CHECK(ep_post_send(&near, &wr) == 0);
		arrive(3, 160, 0);
		for (int i = 0; i < 3; at += cuts[c][i], i++)
			ep_peek(&far, INTO + (size_t)i * 1024, got + at, cuts[c][i]);
		EXPECT(!memcmp(got + 40, wanted, 160));
	}
}

/* A message too long for the first receive is dropped and the receive takes the next. */
static void too_small(void)
{
	struct ibv_sge sge = ep_sge(&near, 0, 500), into = ep_sge(&far, INTO, 40 + 499);
	struct ibv_send_wr wr = datagram(&sge, 1, 1);
	struct ibv_wc wc;

	expect_case("receive too small");
	CHECK(ep_post_recv(&far, 4, &into, 1) == 0);
	CHECK(ep_post_send(&near, &wr) == 0);
	EXPECT_STATUS(ep_poll_one(&near, EP_SEND_CQ, &wc), IBV_WC_SUCCESS);
	EXPECT_EQ(ep_poll_none(&far, EP_RECV_CQ), 0);
	EXPECT_EQ(ep_state(&far), IBV_QPS_RTS);
	wr.sg_list->length = 499;
	CHECK(ep_post_send(&near, &wr) == 0);
	arrive(4, 499, 0);
}

static void inline_data(void)
{
	uint8_t source[64];
	struct ibv_sge sge = {.addr = (uintptr_t)source, .length = 60, .lkey = 0xdeadbeef};
	struct ibv_sge into = ep_sge(&far, INTO, 8192);
	struct ibv_send_wr wr = datagram(&sge, 1, 1);

	expect_case("inline");
	fill_pattern(60, 77);
	memcpy(source, wanted, 60);
	wr.send_flags |= IBV_SEND_INLINE;
	CHECK(ep_post_recv(&far, 5, &into, 1) == 0);
	CHECK(ep_post_send(&near, &wr) == 0);
	memset(source, 0, sizeof(source));
	arrive(5, 60, 0);
	ep_peek(&far, INTO + 40, got, 60);
	EXPECT(!memcmp(got, wanted, 60));
}

/* A queue pair sends to itself; the header shows its own address on both sides. */
static void to_itself(void)
{
	struct ibv_sge sge = ep_sge(&near, 0, 32), into = ep_sge(&near, INTO, 256);
	struct ibv_send_wr wr = datagram(&sge, 1, 8);
	struct ibv_ah *self = ep_ah(&near, &near.local);
	struct ibv_wc wc;

	expect_case("to itself");
	wr.wr.ud.ah = self;
	wr.wr.ud.remote_qpn = near.local.qpn;
	wr.wr.ud.remote_qkey = near.config.qkey;
	CHECK(ep_post_recv(&near, 6, &into, 1) == 0);
	CHECK(ep_post_send(&near, &wr) == 0);
	EXPECT_STATUS(ep_poll_one(&near, EP_SEND_CQ, &wc), IBV_WC_SUCCESS);
	EXPECT_STATUS(ep_poll_one(&near, EP_RECV_CQ, &wc), IBV_WC_SUCCESS);
	EXPECT_EQ(wc.src_qp, near.local.qpn);
	EXPECT_EQ(wc.byte_len, 72);
	EXPECT_EQ(ibv_destroy_ah(self), 0);
}

/* The pair keeps the order of what it delivers. */
static void in_order(void)
{
	expect_case("in order");
	for (int round = 0; round < 4; round++) {
		for (uint64_t i = 0; i < 32; i++) {
			struct ibv_sge into = ep_sge(&far, INTO + i * 256, 256);

			CHECK(ep_post_recv(&far, i, &into, 1) == 0);
		}
		for (uint32_t i = 0; i < 32; i++) {
			struct ibv_sge sge = ep_sge(&near, 0, 10);
			struct ibv_send_wr wr = datagram(&sge, 1, i);

			wr.opcode = IBV_WR_SEND_WITH_IMM;
			wr.imm_data = htonl(i);
			CHECK(ep_post_send(&near, &wr) == 0);
		}
		for (uint32_t i = 0; i < 32; i++)
			EXPECT_EQ(ntohl(arrive(i, 10, IBV_WC_WITH_IMM).imm_data), i);
	}
}

/* IPv6 has another header; the first entry is an IPv4 one. */
static void headers_of_other_addresses(int entries)
{
	struct ep_config config = ep_defaults(IBV_QPT_UD);

	for (int i = 1; i < entries; i++) {
		union ibv_gid gid = {.global.interface_id = 0};

		CHECK(ibv_query_gid(near.context, 1, i, &gid) == 0);
		if (!gid.global.interface_id)
			continue;
		ep_pair_close(&near, &far);
		config.sgid_index = (uint8_t)i;
		ep_pair(&near, &far, &config, &config, place);
		header();
	}
}

int main(int argc, char **argv)
{
	struct ep_config config = ep_defaults(IBV_QPT_UD);
	struct ibv_port_attr port;

	place = ep_main(argc, argv);
	ep_pair(&near, &far, &config, &config, place);
	CHECK(ibv_query_port(near.context, 1, &port) == 0);
	mtu = 128u << port.active_mtu;
	ah = ep_ah(&near, &far.local);
	lengths();
	header();
	scattered();
	too_small();
	inline_data();
	to_itself();
	in_order();
	expect_case("close");
	EXPECT_EQ(ibv_destroy_ah(ah), 0);
	headers_of_other_addresses(port.gid_tbl_len < 256 ? port.gid_tbl_len : 256);
	expect_case("close");
	ep_pair_close(&near, &far);
	return expect_done();
}
