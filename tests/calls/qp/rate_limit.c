/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * ibv_modify_qp_rate_limit(3): what is refused, that the rate is kept by ibv_query_qp(3), and that
 * sending takes at least the time that the rate says. A slow machine takes longer; it cannot take
 * less.
 */
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "support/clock.h"
#include "support/end.h"
#include "support/check.h"

#define RATE_KBPS 16000u /* 2 bytes in a microsecond */
#define BYTES     200000u
#define BURST     8192u
#define SLACK     (2 * BURST) /* the burst, and the run that may be sent on credit */

static int limit(struct end *end, uint32_t kbps, uint32_t burst, uint16_t packet)
{
	struct ibv_qp_rate_limit_attr attr = {
		.rate_limit = kbps, .max_burst_sz = burst, .typical_pkt_sz = packet};

	return ibv_modify_qp_rate_limit(end->qp, &attr);
}

static uint32_t queried(struct end *end)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	CHECK(!ibv_query_qp(end->qp, &attr, IBV_QP_RATE_LIMIT, &init));
	return attr.rate_limit;
}

static void refused(void)
{
	struct end_config config = end_defaults(IBV_QPT_RC);
	struct ibv_qp_rate_limit_attr bad = {.rate_limit = 1000, .comp_mask = 1};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS, .rate_limit = 1000};
	struct ibv_device_attr_ex device;
	struct end end;

	end_open(&end, &config, END_HERE);
	CHECK(!ibv_query_device_ex(end.ctx, NULL, &device));
	expect_case("capabilities");
	EXPECT(device.packet_pacing_caps.qp_rate_limit_min > 0);
	EXPECT(device.packet_pacing_caps.qp_rate_limit_max > RATE_KBPS);
	EXPECT(ibv_is_qpt_supported(device.packet_pacing_caps.supported_qpts, IBV_QPT_RC));
	expect_case("not in RTS");
	EXPECT_REFUSED(limit(&end, RATE_KBPS, 0, 0), EINVAL);
	end_link(&end, &end);
	expect_case("above the maximum");
	EXPECT_REFUSED(limit(&end, device.packet_pacing_caps.qp_rate_limit_max + 1, 0, 0), EINVAL);
	expect_case("a burst or a packet size without a rate");
	EXPECT_REFUSED(limit(&end, 0, 1000, 0), EINVAL);
	EXPECT_REFUSED(limit(&end, 0, 0, 1000), EINVAL);
	expect_case("comp_mask");
	EXPECT_REFUSED(ibv_modify_qp_rate_limit(end.qp, &bad), EINVAL);
	EXPECT_REFUSED(ibv_modify_qp_rate_limit(end.qp, NULL), EINVAL);
	expect_case("through ibv_modify_qp only for raw packet queue pairs");
	EXPECT_REFUSED(end_modify(&end, &attr, IBV_QP_STATE | IBV_QP_RATE_LIMIT), EINVAL);
	expect_case("kept, and forgotten by RESET");
	EXPECT_EQ(queried(&end), 0);
	EXPECT_EQ(limit(&end, RATE_KBPS, 5000, 1000), 0);
	EXPECT_EQ(queried(&end), RATE_KBPS);
	EXPECT_EQ(limit(&end, device.packet_pacing_caps.qp_rate_limit_max, 0, 0), 0);
	EXPECT_EQ(limit(&end, 0, 0, 0), 0);
	EXPECT_EQ(queried(&end), 0);
	EXPECT_EQ(limit(&end, RATE_KBPS, 0, 0), 0);
	CHECK(end_move(&end, IBV_QPS_RESET) == 0);
	EXPECT_EQ(queried(&end), 0);
	end_close(&end);
}

/* Sending BYTES takes as long as the rate says, at least. */
static void takes_its_time(struct end *near, struct end *far, enum ibv_wr_opcode opcode)
{
	uint32_t piece = BYTES / 4;
	uint64_t began, least = (BYTES - SLACK) / 2; /* microseconds */

	for (uint64_t i = 0; i < 4 && opcode == IBV_WR_SEND; i++) {
		struct ibv_sge into = end_sge(far, 0, piece);

		CHECK(end_post_recv(far, i, &into, 1) == 0);
	}
	began = now_us();
	for (uint64_t i = 0; i < 4; i++) {
		struct ibv_sge sge = end_sge(near, 65536, piece);
		struct ibv_send_wr wr = end_wr(opcode, i, &sge, 1);

		wr.send_flags = IBV_SEND_SIGNALED;
		wr.wr.rdma.remote_addr = far->info.addr;
		wr.wr.rdma.rkey = far->info.rkey;
		CHECK(end_post_send(near, &wr) == 0);
	}
	for (int i = 0; i < 4; i++) {
		struct ibv_wc wc;

		EXPECT_STATUS(end_poll_one(near, END_SEND_CQ, &wc), IBV_WC_SUCCESS);
	}
	EXPECT_SAY(now_us() - began >= least, "%u bytes took %llu us, the rate says %llu", BYTES,
		   (unsigned long long)(now_us() - began), (unsigned long long)least);
}

static void paced(enum ibv_qp_type type, enum ibv_wr_opcode opcode, enum end_place place)
{
	struct end_config config = end_defaults(type);
	struct end near, far;

	config.buf_len = 131072;
	end_pair(&near, &far, &config, &config, place);
	expect_case("type %d, opcode %d", (int)type, (int)opcode);
	CHECK(limit(&near, RATE_KBPS, BURST, 0) == 0);
	takes_its_time(&near, &far, opcode);
	expect_case("type %d, opcode %d, after a pause: no more than a burst is saved up",
		    (int)type, (int)opcode);
	sleep_ms(2 * BYTES / 2000);
	if (opcode == IBV_WR_SEND) {
		struct ibv_wc wc[4];

		EXPECT_EQ(end_poll(&far, END_RECV_CQ, wc, 4, END_WAIT_MS), 4);
	}
	takes_its_time(&near, &far, opcode);
	end_pair_close(&near, &far);
}

/* Each datagram counts with its size, whether it is received or not. */
static void paced_datagrams(enum end_place place)
{
	enum { COUNT = 50, PIECE = 1000 };
	struct end_config config = end_defaults(IBV_QPT_UD);
	struct end near, far;
	struct ibv_ah *ah;
	uint64_t began, least = (COUNT * PIECE - SLACK) / 2;

	config.recv_wr = 1;
	end_pair(&near, &far, &config, &config, place);
	expect_case("datagrams");
	CHECK(limit(&near, RATE_KBPS, BURST, 0) == 0);
	EXPECT_EQ(queried(&near), RATE_KBPS);
	ah = end_ah(&near, &far.info);
	began = now_us();
	for (uint64_t i = 0; i < COUNT; i++) {
		struct ibv_sge sge = end_sge(&near, 0, PIECE);
		struct ibv_send_wr wr = end_wr(IBV_WR_SEND, i, &sge, 1);

		wr.wr.ud.ah = ah;
		wr.wr.ud.remote_qpn = far.info.qpn;
		wr.wr.ud.remote_qkey = config.qkey;
		CHECK(end_post_send(&near, &wr) == 0);
	}
	for (int i = 0; i < COUNT; i++) {
		struct ibv_wc wc;

		EXPECT_STATUS(end_poll_one(&near, END_SEND_CQ, &wc), IBV_WC_SUCCESS);
	}
	EXPECT_SAY(now_us() - began >= least, "took %llu us, the rate says %llu",
		   (unsigned long long)(now_us() - began), (unsigned long long)least);
	EXPECT_EQ(ibv_destroy_ah(ah), 0);
	end_pair_close(&near, &far);
}

/* Frames on the loopback interface, where they disturb no other program. */
static struct ibv_qp *frames_open(struct end *end)
{
	struct ibv_qp_init_attr init = {
		.send_cq = end->cq[0],
		.recv_cq = end->cq[1],
		.cap = {.max_send_wr = 64, .max_send_sge = 1},
		.qp_type = IBV_QPT_RAW_PACKET,
	};
	struct ibv_qp *qp = ibv_create_qp(end->pd, &init);

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
	struct end_config config = end_defaults(IBV_QPT_RC);
	uint64_t began, least = (COUNT * PIECE - DEFAULT_BURST - PIECE) / 2;
	const char *given = getenv("VB_TEST_DEVICE");
	char *device = given ? strdup(given) : NULL; /* setenv(3) ends what getenv(3) gave */
	struct ibv_qp *qp;
	struct end end;

	setenv("VB_TEST_DEVICE", "vb_lo", 1);
	end_open(&end, &config, END_HERE);
	if (device)
		setenv("VB_TEST_DEVICE", device, 1);
	else
		unsetenv("VB_TEST_DEVICE");
	free(device);
	expect_case("frames");
	qp = frames_open(&end);
	if (!qp) {
		EXPECT_EQ(errno, EPERM); /* without CAP_NET_RAW */
		end_close(&end);
		return;
	}
	end_fill(&end, 0, 0, PIECE);
	began = now_us();
	for (uint64_t i = 0; i < COUNT; i++) {
		struct ibv_sge sge = end_sge(&end, 0, PIECE);
		struct ibv_send_wr wr = end_wr(IBV_WR_SEND, i, &sge, 1), *bad;

		CHECK(!ibv_post_send(qp, &wr, &bad));
	}
	for (int i = 0; i < COUNT; i++) {
		struct ibv_wc wc;

		EXPECT_STATUS(end_poll_one(&end, END_SEND_CQ, &wc), IBV_WC_SUCCESS);
	}
	EXPECT_SAY(now_us() - began >= least, "took %llu us, the rate says %llu",
		   (unsigned long long)(now_us() - began), (unsigned long long)least);
	EXPECT_EQ(ibv_destroy_qp(qp), 0);
	end_close(&end);
}

int main(int argc, char **argv)
{
	enum end_place place = end_main(argc, argv);

	refused();
	paced(IBV_QPT_RC, IBV_WR_SEND, place);
	paced(IBV_QPT_RC, IBV_WR_RDMA_WRITE, place);
	paced(IBV_QPT_UC, IBV_WR_RDMA_WRITE, place);
	paced_datagrams(place);
	if (place == END_HERE)
		paced_frames();
	return expect_done();
}
