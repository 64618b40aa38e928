/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Every address that a device shows carries traffic: RC, UD with its header, and the way back. */
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "support/check.h"
#include "support/endpoint.h"

static void rc(const char *device, uint8_t index, enum ep_place place)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);
	struct ibv_sge sge, into;
	struct endpoint near, far;
	struct ibv_send_wr wr;
	struct ibv_wc wc;

	expect_case("%s GID %u: RC", device, index);
	config.sgid_index = index;
	ep_pair(&near, &far, &config, &config, place);
	sge = ep_sge(&near, 0, 3000);
	into = ep_sge(&far, 0, 3000);
	wr = ep_wr(IBV_WR_SEND, 1, &sge, 1);
	ep_fill(&near, 0, index + 1, 3000);
	CHECK(ep_post_recv(&far, 2, &into, 1) == 0);
	CHECK(ep_post_send(&near, &wr) == 0);
	EXPECT_STATUS(ep_poll_one(&near, EP_SEND_CQ, &wc), IBV_WC_SUCCESS);
	EXPECT_STATUS(ep_poll_one(&far, EP_RECV_CQ, &wc), IBV_WC_SUCCESS);
	EXPECT(ep_is_filled(&far, 0, index + 1, 3000));
	ep_pair_close(&near, &far);
}

static void datagram(struct endpoint *from, struct endpoint *to, struct ibv_ah *ah,
		     struct ibv_wc *wc)
{
	struct ibv_sge sge = ep_sge(from, 0, 32), into = ep_sge(to, 1024, 256);
	struct ibv_send_wr wr = ep_wr(IBV_WR_SEND, 1, &sge, 1);

	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = to->local.qpn;
	wr.wr.ud.remote_qkey = to->config.qkey;
	CHECK(ep_post_recv(to, 2, &into, 1) == 0);
	CHECK(ep_post_send(from, &wr) == 0);
	EXPECT_STATUS(ep_poll_one(from, EP_SEND_CQ, wc), IBV_WC_SUCCESS);
	EXPECT_STATUS(ep_poll_one(to, EP_RECV_CQ, wc), IBV_WC_SUCCESS);
	EXPECT_EQ(wc->byte_len, 72);
	EXPECT(wc->wc_flags & IBV_WC_GRH);
}

/* The receiver finds the way back from the completion alone, by the entry that was addressed. */
static void ud(const char *device, uint8_t index)
{
	struct ep_config config = ep_defaults(IBV_QPT_UD);
	struct endpoint near, far;
	struct ibv_ah_attr attr;
	struct ibv_ah *ah, *back;
	struct ibv_grh grh;
	struct ibv_wc wc;

	expect_case("%s GID %u: UD", device, index);
	config.sgid_index = index;
	ep_pair(&near, &far, &config, &config, EP_HERE);
	ah = ep_ah(&near, &far.local);
	datagram(&near, &far, ah, &wc);
	ep_peek(&far, 1024, &grh, sizeof(grh));
	EXPECT_EQ(ibv_init_ah_from_wc(far.context, 1, &wc, &grh, &attr), 0);
	EXPECT_EQ(attr.is_global, 1);
	EXPECT_EQ(attr.grh.sgid_index, index);
	EXPECT(!memcmp(&attr.grh.dgid, &near.local.gid, sizeof(attr.grh.dgid)));
	expect_case("%s GID %u: UD back", device, index);
	back = ibv_create_ah_from_wc(far.pd, &wc, &grh, 1);
	CHECK(back);
	datagram(&far, &near, back, &wc);
	EXPECT_EQ(ibv_destroy_ah(back), 0);
	EXPECT_EQ(ibv_destroy_ah(ah), 0);
	ep_pair_close(&near, &far);
}

static void each_gid(const char *device, enum ep_place place)
{
	struct ibv_context *ctx;
	struct ibv_port_attr port;

	CHECK(setenv("VB_TEST_DEVICE", device, 1) == 0);
	ctx = device_open();
	CHECK(ibv_query_port(ctx, 1, &port) == 0);
	for (int i = 0; i < port.gid_tbl_len && i < 256; i++) {
		struct ibv_gid_entry entry;

		if (ibv_query_gid_ex(ctx, 1, (uint32_t)i, &entry, 0))
			continue;
		rc(device, (uint8_t)i, place);
		ud(device, (uint8_t)i);
	}
	EXPECT_EQ(ibv_close_device(ctx), 0);
}

int main(int argc, char **argv)
{
	enum ep_place place = ep_main(argc, argv);
	struct ibv_device **list = ibv_get_device_list(NULL);

	CHECK(list);
	for (int i = 0; list[i]; i++)
		each_gid(ibv_get_device_name(list[i]), place);
	ibv_free_device_list(list);
	return expect_done();
}
