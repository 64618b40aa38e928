/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * ibv_modify_qp_rate_limit(3): what is refused, that the rate is kept by ibv_query_qp(3), and that
 * sending takes at least the time that the rate says. A slow machine takes longer; it cannot take
 * less.
 */
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "support/check.h"
#include "support/clock.h"
#include "support/endpoint.h"

#define RATE_KBPS 16000u /* 2 bytes in a microsecond */
#define BYTES     200000u
#define BURST     8192u
#define SLACK     (2 * BURST) /* the burst, and the run that may be sent on credit */

static int limit(struct endpoint *ep, uint32_t kbps, uint32_t burst, uint16_t packet)
{
	struct ibv_qp_rate_limit_attr attr = {
		.rate_limit = kbps, .max_burst_sz = burst, .typical_pkt_sz = packet};

	return ibv_modify_qp_rate_limit(ep->qp, &attr);
}

static uint32_t queried(struct endpoint *ep)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	CHECK(!ibv_query_qp(ep->qp, &attr, IBV_QP_RATE_LIMIT, &init));
	return attr.rate_limit;
}

static void refused(void)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);
	struct ibv_qp_rate_limit_attr bad = {.rate_limit = 1000, .comp_mask = 1};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS, .rate_limit = 1000};
	struct ibv_device_attr_ex device;
	struct endpoint ep;

	ep_open(&ep, &config, EP_HERE);
	CHECK(!ibv_query_device_ex(ep.context, NULL, &device));
	expect_case("capabilities");
	EXPECT(device.packet_pacing_caps.qp_rate_limit_min > 0);
	EXPECT(device.packet_pacing_caps.qp_rate_limit_max > RATE_KBPS);
	EXPECT(ibv_is_qpt_supported(device.packet_pacing_caps.supported_qpts, IBV_QPT_RC));
	expect_case("not in RTS");
	EXPECT_REFUSED(limit(&ep, RATE_KBPS, 0, 0), EINVAL);
	ep_link(&ep, &ep);
	expect_case("above the maximum");
	EXPECT_REFUSED(limit(&ep, device.packet_pacing_caps.qp_rate_limit_max + 1, 0, 0), EINVAL);
	expect_case("a burst or a packet size without a rate");
	EXPECT_REFUSED(limit(&ep, 0, 1000, 0), EINVAL);
	EXPECT_REFUSED(limit(&ep, 0, 0, 1000), EINVAL);
	expect_case("comp_mask");
	EXPECT_REFUSED(ibv_modify_qp_rate_limit(ep.qp, &bad), EINVAL);
	EXPECT_REFUSED(ibv_modify_qp_rate_limit(ep.qp, NULL), EINVAL);
	expect_case("through ibv_modify_qp only for raw packet queue pairs");
	EXPECT_REFUSED(ep_modify(&ep, &attr, IBV_QP_STATE | IBV_QP_RATE_LIMIT), EINVAL);
	expect_case("kept, and forgotten by RESET");
	EXPECT_EQ(queried(&ep), 0);
	EXPECT_EQ(limit(&ep, RATE_KBPS, 5000, 1000), 0);
	EXPECT_EQ(queried(&ep), RATE_KBPS);
	EXPECT_EQ(limit(&ep, device.packet_pacing_caps.qp_rate_limit_max, 0, 0), 0);
	EXPECT_EQ(limit(&ep, 0, 0, 0), 0);
	EXPECT_EQ(queried(&ep), 0);
	EXPECT_EQ(limit(&ep, RATE_KBPS, 0, 0), 0);
	CHECK(ep_move(&ep, IBV_QPS_RESET) == 0);
	EXPECT_EQ(queried(&ep), 0);
	ep_close(&ep);
}

/* Sending BYTES takes as long as the rate says, at least. */
static void takes_its_time(struct endpoint *near, struct endpoint *far, enum ibv_wr_opcode opcode)
{
	uint32_t piece = BYTES / 4;
	uint64_t began, least = (BYTES - SLACK) / 2; /* microseconds */

	for (uint64_t i = 0; i < 4 && opcode == IBV_WR_SEND; i++) {
		struct ibv_sge into = ep_sge(far, 0, piece);

		CHECK(ep_post_recv(far, i, &into, 1) == 0);
	}
	began = now_us();
	for (uint64_t i = 0; i < 4; i++) {
		struct ibv_sge sge = ep_sge(near, 65536, piece);
		struct ibv_send_wr wr = ep_wr(opcode, i, &sge, 1);

		wr.send_flags = IBV_SEND_SIGNALED;
		wr.wr.rdma.remote_addr = far->local.addr;
		wr.wr.rdma.rkey = far->local.rkey;
		CHECK(ep_post_send(near, &wr) == 0);
	}
	for (int i = 0; i < 4; i++) {
		struct ibv_wc wc;

		EXPECT_STATUS(ep_poll_one(near, EP_SEND_CQ, &wc), IBV_WC_SUCCESS);
	}
	EXPECT_SAY(now_us() - began >= least, "%u bytes took %llu us, the rate says %llu", BYTES,
		   (unsigned long long)(now_us() - began), (unsigned long long)least);
}

static void paced(enum ibv_qp_type type, enum ibv_wr_opcode opcode, enum ep_place place)
{
	struct ep_config config = ep_defaults(type);
	struct endpoint near, far;

	config.buf_len = 131072;
	ep_pair(&near, &far, &config, &config, place);
	expect_case("type %d, opcode %d", (int)type, (int)opcode);
	CHECK(limit(&near, RATE_KBPS, BURST, 0) == 0);
	takes_its_time(&near, &far, opcode);
	expect_case("type %d, opcode %d, after a pause: no more than a burst is saved up",
		    (int)type, (int)opcode);
	sleep_ms(2 * BYTES / 2000);
	if (opcode == IBV_WR_SEND) {
		struct ibv_wc wc[4];

		EXPECT_EQ(ep_poll(&far, EP_RECV_CQ, wc, 4, EP_WAIT_MS), 4);
	}
	takes_its_time(&near, &far, opcode);
	ep_pair_close(&near, &far);
}

/* Each datagram counts with its size, whether it is received or not. */
static void paced_datagrams(enum ep_place place)
{
	enum { COUNT = 50, PIECE = 1000 };
	struct ep_config config = ep_defaults(IBV_QPT_UD);
	struct endpoint near, far;
	struct ibv_ah *ah;
	uint64_t began, least = (COUNT * PIECE - SLACK) / 2;

	config.cap.max_recv_wr = 1;
	ep_pair(&near, &far, &config, &config, place);
	expect_case("datagrams");
	CHECK(limit(&near, RATE_KBPS, BURST, 0) == 0);
	EXPECT_EQ(queried(&near), RATE_KBPS);
	ah = ep_ah(&near, &far.local);
	began = now_us();
	for (uint64_t i = 0; i < COUNT; i++) {
		struct ibv_sge sge = ep_sge(&near, 0, PIECE);
		struct ibv_send_wr wr = ep_wr(IBV_WR_SEND, i, &sge, 1);

		wr.wr.ud.ah = ah;
		wr.wr.ud.remote_qpn = far.local.qpn;
		wr.wr.ud.remote_qkey = config.qkey;
		CHECK(ep_post_send(&near, &wr) == 0);
	}
	for (int i = 0; i < COUNT; i++) {
		struct ibv_wc wc;

		EXPECT_STATUS(ep_poll_one(&near, EP_SEND_CQ, &wc), IBV_WC_SUCCESS);
	}
	EXPECT_SAY(now_us() - began >= least, "took %llu us, the rate says %llu",
		   (unsigned long long)(now_us() - began), (unsigned long long)least);
	EXPECT_EQ(ibv_destroy_ah(ah), 0);
	ep_pair_close(&near, &far);
}

/* Frames on the loopback interface, where they disturb no other program. */
static struct ibv_qp *frames_open(struct endpoint *ep)
{
	struct ibv_qp_init_attr init = {
		.send_cq = ep->cq[0],
		.recv_cq = ep->cq[1],
		.cap = {.max_send_wr = 64, .max_send_sge = 1},
		.qp_type = IBV_QPT_RAW_PACKET,
	};
	struct ibv_qp *qp = ibv_create_qp(ep->pd, &init);

	for (int state = IBV_QPS_INIT; qp && state <= IBV_QPS_RTS; state++) {
		struct ibv_qp_attr attr = {.qp_state = (enum ibv_qp_state)state,
					   .port_num = 1,
					   .rate_limit = RATE_KBPS};
		int mask = state == IBV_QPS_INIT  ? IBV_QP_PORT
			   : state == IBV_QPS_RTS ? IBV_QP_RATE_LIMIT
						  : 0;

		CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | mask));
	}
	return qp;
}

/* The rate that ibv_modify_qp(3) sets: the burst is what it brings in 4 ms. */
static void paced_frames(void)
{
	enum { COUNT = 50, PIECE = 1000, DEFAULT_BURST = RATE_KBPS / 8 * 4 };
	struct ep_config config = ep_defaults(IBV_QPT_RC);
	uint64_t began, least = (COUNT * PIECE - DEFAULT_BURST - PIECE) / 2;
	const char *given = getenv("VB_TEST_DEVICE");
	char *device = given ? strdup(given) : NULL; /* setenv(3) ends what getenv(3) gave */
	struct ibv_qp *qp;
	struct endpoint ep;

	setenv("VB_TEST_DEVICE", "vb_lo", 1);
	ep_open(&ep, &config, EP_HERE);
	if (device)
		setenv("VB_TEST_DEVICE", device, 1);
	else
		unsetenv("VB_TEST_DEVICE");
	free(device);
	expect_case("frames");
	qp = frames_open(&ep);
	if (!qp) {
		EXPECT_EQ(errno, EPERM); /* without CAP_NET_RAW */
		ep_close(&ep);
		return;
	}
	ep_fill(&ep, 0, 0, PIECE);
	began = now_us();
	for (uint64_t i = 0; i < COUNT; i++) {
		struct ibv_sge sge = ep_sge(&ep, 0, PIECE);
		struct ibv_send_wr wr = ep_wr(IBV_WR_SEND, i, &sge, 1), *bad;

		CHECK(!ibv_post_send(qp, &wr, &bad));
	}
	for (int i = 0; i < COUNT; i++) {
		struct ibv_wc wc;

		EXPECT_STATUS(ep_poll_one(&ep, EP_SEND_CQ, &wc), IBV_WC_SUCCESS);
	}
	EXPECT_SAY(now_us() - began >= least, "took %llu us, the rate says %llu",
		   (unsigned long long)(now_us() - began), (unsigned long long)least);
	EXPECT_EQ(ibv_destroy_qp(qp), 0);
	ep_close(&ep);
}

int main(int argc, char **argv)
{
	enum ep_place place = ep_main(argc, argv);

	refused();
	paced(IBV_QPT_RC, IBV_WR_SEND, place);
	paced(IBV_QPT_RC, IBV_WR_RDMA_WRITE, place);
	paced(IBV_QPT_UC, IBV_WR_RDMA_WRITE, place);
	paced_datagrams(place);
	if (place == EP_HERE)
		paced_frames();
	return expect_done();
}
