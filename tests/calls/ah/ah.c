/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Address handles: which attributes are refused, which objects keep them alive, and handles made
 * from a completion.
 */
#include <string.h>

#include <infiniband/verbs.h>

#include "support/check.h"
#include "support/endpoint.h"

static struct ibv_context *ctx;
static struct ibv_pd *pd;

static struct ibv_ah_attr good(void)
{
	struct ibv_ah_attr attr = {
		.is_global = 1,
		.port_num = 1,
		.sl = 3,
		.static_rate = IBV_RATE_10_GBPS,
		.src_path_bits = 1,
		.grh = {.hop_limit = 64, .traffic_class = 0x28, .flow_label = 0xabcde},
	};

	CHECK(ibv_query_gid(ctx, 1, 0, &attr.grh.dgid) == 0);
	return attr;
}

static void creation(void)
{
	struct ibv_ah_attr attr = good();
	struct ibv_port_attr port;
	struct ibv_ah *ah;

	CHECK(ibv_query_port(ctx, 1, &port) == 0);
	expect_case("all attributes");
	ah = ibv_create_ah(pd, &attr);
	CHECK(ah);
	EXPECT(ah->pd == pd && ah->context == ctx);
	EXPECT_EQ(ibv_destroy_ah(ah), 0);

	expect_case("hop limit 0");
	attr.grh.hop_limit = 0;
	ah = ibv_create_ah(pd, &attr);
	if (EXPECT(ah != NULL))
		EXPECT_EQ(ibv_destroy_ah(ah), 0);

	expect_case("not global");
	attr = good();
	attr.is_global = 0;
	EXPECT_NULL(ibv_create_ah(pd, &attr), EINVAL);
	expect_case("port");
	attr = good();
	attr.port_num = 0;
	EXPECT_NULL(ibv_create_ah(pd, &attr), EINVAL);
	attr.port_num = 2;
	EXPECT_NULL(ibv_create_ah(pd, &attr), EINVAL);
	attr.port_num = 255;
	EXPECT_NULL(ibv_create_ah(pd, &attr), EINVAL);
	expect_case("sgid_index beyond the table");
	attr = good();
	attr.grh.sgid_index = (uint8_t)(port.gid_tbl_len < 256 ? port.gid_tbl_len : 255);
	EXPECT_NULL(ibv_create_ah(pd, &attr), EINVAL);
	attr.grh.sgid_index = 255;
	EXPECT_NULL(ibv_create_ah(pd, &attr), EINVAL);
	expect_case("what means nothing may have any value");
	attr = good();
	attr.sl = 255;
	attr.static_rate = 255;
	attr.src_path_bits = 255;
	attr.dlid = 0xffff;
	attr.grh.flow_label = UINT32_MAX;
	attr.grh.hop_limit = 255;
	attr.grh.traffic_class = 255;
	ah = ibv_create_ah(pd, &attr);
	if (EXPECT(ah != NULL))
		EXPECT_EQ(ibv_destroy_ah(ah), 0);
	expect_case("a multicast group");
	attr = good();
	attr.grh.dgid = (union ibv_gid){.raw = {0xff, 0x0e, [15] = 1}};
	ah = ibv_create_ah(pd, &attr);
	if (EXPECT(ah != NULL))
		EXPECT_EQ(ibv_destroy_ah(ah), 0);
	expect_case("sgid_index of an empty slot");
	attr = good();
	for (int i = 0; i < port.gid_tbl_len && i < 256; i++) {
		struct ibv_gid_entry entry;

		if (ibv_query_gid_ex(ctx, 1, (uint32_t)i, &entry, 0) != ENODATA)
			continue;
		attr.grh.sgid_index = (uint8_t)i;
		EXPECT_NULL(ibv_create_ah(pd, &attr), EINVAL);
		break;
	}
	expect_case("many at once");
	attr = good();
	{
		struct ibv_ah *many[256];

		for (int i = 0; i < 256; i++) {
			many[i] = ibv_create_ah(pd, &attr);
			CHECK(many[i]);
		}
		for (int i = 0; i < 256; i++)
			EXPECT_EQ(ibv_destroy_ah(many[i]), 0);
	}
}

static void handles(void)
{
	struct ibv_ah_attr attr = good();
	struct ibv_ah *ah = ibv_create_ah(pd, &attr);
	struct ibv_context *other = device_open();

	expect_case("context overwritten");
	CHECK(ah);
	ah->context = other;
	EXPECT_REFUSED(ibv_destroy_ah(ah), ENOENT);
	ah->context = ctx;
	expect_case("handle overwritten");
	{
		uint32_t handle = ah->handle;

		ah->handle = 0xdeadbeef;
		EXPECT_REFUSED(ibv_destroy_ah(ah), ENOENT);
		ah->handle = handle;
	}
	expect_case("handle of the domain overwritten");
	pd->handle += 100;
	EXPECT_NULL(ibv_create_ah(pd, &attr), ENOENT);
	pd->handle -= 100;
	EXPECT_EQ(ibv_destroy_ah(ah), 0);
	EXPECT_EQ(ibv_close_device(other), 0);
}

/* Without a GRH in the completion nothing global can be filled in. */
static void from_wc_without_grh(void)
{
	struct ibv_wc wc = {.slid = 7, .sl = 2, .dlid_path_bits = 1};
	struct ibv_grh grh;
	struct ibv_ah_attr attr;

	expect_case("ibv_init_ah_from_wc without GRH");
	memset(&grh, 0, sizeof(grh));
	memset(&attr, 0xa5, sizeof(attr));
	EXPECT_EQ(ibv_init_ah_from_wc(ctx, 1, &wc, &grh, &attr), 0);
	EXPECT_EQ(attr.is_global, 0);
	EXPECT_EQ(attr.dlid, 7);
	EXPECT_EQ(attr.sl, 2);
	EXPECT_EQ(attr.src_path_bits, 1);
	EXPECT_EQ(attr.port_num, 1);
}

static void send_to(struct endpoint *from, struct endpoint *to, struct ibv_ah *ah, uint32_t qpn)
{
	struct ibv_sge sge = ep_sge(from, 0, 16), into = ep_sge(to, 1024, 256);
	struct ibv_send_wr wr = ep_wr(IBV_WR_SEND, 1, &sge, 1);

	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = qpn;
	wr.wr.ud.remote_qkey = to->config.qkey;
	CHECK(ep_post_recv(to, 9, &into, 1) == 0);
	CHECK(ep_post_send(from, &wr) == 0);
}

/* A receives from B and answers with nothing but the completion: handle, number, all from it. */
static void from_wc(void)
{
	struct ep_config config = ep_defaults(IBV_QPT_UD);
	struct ibv_grh grh;
	struct ibv_ah_attr attr, by_hand;
	struct ibv_ah *to_a, *back;
	struct ibv_wc wc;
	struct endpoint a, b;

	expect_case("ibv_create_ah_from_wc");
	ep_pair(&a, &b, &config, &config, EP_HERE);
	by_hand = good();
	by_hand.grh.traffic_class = 0xa8;
	to_a = ibv_create_ah(b.pd, &by_hand);
	CHECK(to_a);
	send_to(&b, &a, to_a, a.local.qpn);
	EXPECT_STATUS(ep_poll_one(&a, EP_RECV_CQ, &wc), IBV_WC_SUCCESS);
	EXPECT(wc.wc_flags & IBV_WC_GRH);
	EXPECT_EQ(wc.src_qp, b.local.qpn);
	ep_peek(&a, 1024, &grh, sizeof(grh));

	memset(&attr, 0xa5, sizeof(attr));
	EXPECT_EQ(ibv_init_ah_from_wc(a.context, 1, &wc, &grh, &attr), 0);
	EXPECT_EQ(attr.is_global, 1);
	EXPECT_EQ(attr.grh.sgid_index, 0);
	EXPECT(!memcmp(&attr.grh.dgid, &b.local.gid, sizeof(attr.grh.dgid)));
	EXPECT_EQ(attr.grh.traffic_class & 0xfc, 0xa8);
	EXPECT_EQ(attr.grh.hop_limit, 64);
	EXPECT_EQ(attr.port_num, 1);

	back = ibv_create_ah_from_wc(a.pd, &wc, &grh, 1);
	if (EXPECT(back != NULL)) {
		send_to(&a, &b, back, wc.src_qp);
		EXPECT_STATUS(ep_poll_one(&b, EP_RECV_CQ, &wc), IBV_WC_SUCCESS);
		EXPECT_EQ(wc.src_qp, a.local.qpn);
		EXPECT_EQ(ibv_destroy_ah(back), 0);
	}
	expect_case("ibv_init_ah_from_wc, wrong port");
	memset(&attr, 0xa5, sizeof(attr));
	EXPECT_MINUS1(ibv_init_ah_from_wc(a.context, 2, &wc, &grh, &attr), EINVAL);
	EXPECT_NULL(ibv_create_ah_from_wc(a.pd, &wc, &grh, 2), EINVAL);
	expect_case("ibv_init_ah_from_wc, no header");
	memset(&grh, 0, sizeof(grh));
	EXPECT_MINUS1(ibv_init_ah_from_wc(a.context, 1, &wc, &grh, &attr), EPROTONOSUPPORT);
	EXPECT_NULL(ibv_create_ah_from_wc(a.pd, &wc, &grh, 1), EPROTONOSUPPORT);
	EXPECT_EQ(attr.port_num, 0xa5);
	expect_case("ibv_create_ah_from_wc, nothing global to make it of");
	wc.wc_flags = 0;
	EXPECT_NULL(ibv_create_ah_from_wc(a.pd, &wc, &grh, 1), EINVAL);
	EXPECT_EQ(ibv_destroy_ah(to_a), 0);
	ep_pair_close(&a, &b);
}

/* The host's stack makes the frames: there is no MAC address to tell. */
static void ethernet_address(void)
{
	struct ibv_ah_attr attr = good();
	uint8_t mac[ETHERNET_LL_SIZE] = {1, 2, 3, 4, 5, 6};
	uint16_t vid = 7;

	expect_case("ibv_resolve_eth_l2_from_gid");
	EXPECT_EQ(ibv_resolve_eth_l2_from_gid(ctx, &attr, mac, &vid), EOPNOTSUPP);
	EXPECT(mac[0] == 1 && mac[5] == 6 && vid == 7);
}

int main(int argc, char **argv)
{
	ep_main(argc, argv);
	ctx = device_open();
	pd = ibv_alloc_pd(ctx);
	CHECK(pd);
	creation();
	handles();
	from_wc_without_grh();
	from_wc();
	ethernet_address();
	EXPECT_EQ(ibv_dealloc_pd(pd), 0);
	EXPECT_EQ(ibv_close_device(ctx), 0);
	return expect_done();
}
