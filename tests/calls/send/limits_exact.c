/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A returned size is usable to the last slot without polling, one more is ENOMEM, and a slot comes
 * back when the completion that covers it is polled, not earlier (IBA 10.8.2).
 */
#include <string.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "support/check.h"
#include "support/endpoint.h"

static struct ibv_device_attr device;

/* Room for every completion of a queue of @asked, which may be returned larger. */
static uint32_t room(uint32_t asked)
{
	uint32_t cqe = 2 * asked + 64;

	return cqe < (uint32_t)device.max_cqe ? cqe : (uint32_t)device.max_cqe;
}

/* A write of nothing: always possible, needs no receive. */
static int post(struct endpoint *ep, uint64_t wr_id, bool signalled)
{
	struct ibv_send_wr wr = ep_wr(IBV_WR_RDMA_WRITE, wr_id, NULL, 0);

	wr.send_flags = signalled ? IBV_SEND_SIGNALED : 0;
	return ep_post_send(ep, &wr);
}

static void send_queue(uint32_t asked)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);
	struct ibv_wc wc;
	struct endpoint ep;
	uint32_t size;

	expect_case("send queue of %u", asked);
	config.cap.max_send_wr = asked;
	config.cqe = room(asked);
	ep_open(&ep, &config, EP_HERE);
	ep_link(&ep, &ep);
	size = ep.cap.max_send_wr;
	EXPECT(size >= asked);
	for (uint32_t i = 0; i < size; i++)
		CHECK(EXPECT_EQ(post(&ep, i, true), 0));
	EXPECT_EQ(post(&ep, 0, true), ENOMEM);

	expect_case("send queue of %u: completion alone frees nothing", asked);
	usleep(20000);
	EXPECT_EQ(post(&ep, 0, true), ENOMEM);

	expect_case("send queue of %u: a polled completion frees one", asked);
	EXPECT_STATUS(ep_poll_one(&ep, EP_SEND_CQ, &wc), IBV_WC_SUCCESS);
	EXPECT_EQ(wc.wr_id, 0);
	EXPECT_EQ(post(&ep, size, true), 0);
	EXPECT_EQ(post(&ep, 0, true), ENOMEM);
	for (uint32_t i = 1; i <= size; i++) {
		EXPECT_STATUS(ep_poll_one(&ep, EP_SEND_CQ, &wc), IBV_WC_SUCCESS);
		EXPECT_EQ(wc.wr_id, i);
	}
	ep_close(&ep);
}

static void unsignalled(void)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);
	struct ibv_wc wc;
	struct endpoint ep;
	uint32_t size;

	expect_case("unsignalled requests hold their slots");
	config.cap.max_send_wr = 16;
	ep_open(&ep, &config, EP_HERE);
	ep_link(&ep, &ep);
	size = ep.cap.max_send_wr;
	for (uint32_t i = 0; i < size; i++)
		CHECK(EXPECT_EQ(post(&ep, i, false), 0));
	EXPECT_EQ(ep_poll_none(&ep, EP_SEND_CQ), 0);
	EXPECT_EQ(post(&ep, 0, false), ENOMEM);

	expect_case("a polled completion frees those before it");
	ep_close(&ep);
	ep_open(&ep, &config, EP_HERE);
	ep_link(&ep, &ep);
	size = ep.cap.max_send_wr;
	for (uint32_t i = 0; i < size; i++)
		CHECK(EXPECT_EQ(post(&ep, i, i == 9), 0));
	EXPECT_STATUS(ep_poll_one(&ep, EP_SEND_CQ, &wc), IBV_WC_SUCCESS);
	EXPECT_EQ(wc.wr_id, 9);
	for (uint32_t i = 0; i < 10; i++)
		EXPECT_EQ(post(&ep, 100 + i, i == 9), 0);
	EXPECT_EQ(post(&ep, 0, true), ENOMEM);
	EXPECT_STATUS(ep_poll_one(&ep, EP_SEND_CQ, &wc), IBV_WC_SUCCESS);
	EXPECT_EQ(wc.wr_id, 109);
	EXPECT_EQ(post(&ep, 0, true), 0);
	ep_close(&ep);
}

/* The queues of the last size that a query shows, with all the sgl entries. */
static void receive_queue(uint32_t asked)
{
	struct ep_config config = ep_defaults(IBV_QPT_UD);
	struct ibv_sge sge[EP_MAX_SGE];
	struct endpoint ep;

	expect_case("receive queue of %u", asked);
	config.cap.max_recv_wr = asked;
	config.cqe = room(asked);
	ep_open(&ep, &config, EP_HERE);
	CHECK(ep_bring_to(&ep, &ep.local, IBV_QPS_INIT) == 0);
	for (int i = 0; i < EP_MAX_SGE; i++)
		sge[i] = ep_sge(&ep, (size_t)i * 64, 64);
	EXPECT(ep.cap.max_recv_wr >= asked);
	for (uint32_t i = 0; i < ep.cap.max_recv_wr; i++)
		CHECK(EXPECT_EQ(ep_post_recv(&ep, i, sge,
					     (int)(ep.cap.max_recv_sge < EP_MAX_SGE
							   ? ep.cap.max_recv_sge
							   : EP_MAX_SGE)),
				0));
	EXPECT_EQ(ep_post_recv(&ep, 0, NULL, 0), ENOMEM);
	expect_case("receive queue of %u: each comes back once", asked);
	CHECK(ep_move(&ep, IBV_QPS_ERR) == 0);
	for (uint32_t i = 0; i < ep.cap.max_recv_wr; i++) {
		struct ibv_wc wc;

		EXPECT_STATUS(ep_poll_one(&ep, EP_RECV_CQ, &wc), IBV_WC_WR_FLUSH_ERR);
		EXPECT_EQ(wc.wr_id, i);
	}
	EXPECT_EQ(ep_poll_none(&ep, EP_RECV_CQ), 0);
	ep_close(&ep);
}

static uint32_t pattern(size_t i)
{
	return (uint32_t)(i * 2654435761u) >> 7;
}

/* A message gathered from max_sge pieces and scattered into max_sge pieces. */
static void all_elements(void)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);
	struct ibv_sge from[EP_MAX_SGE], to[EP_MAX_SGE];
	struct ibv_send_wr wr;
	struct ibv_wc wc;
	struct endpoint ep;
	int n;

	expect_case("max_sge elements");
	n = device.max_sge < EP_MAX_SGE ? device.max_sge : EP_MAX_SGE;
	config.cap.max_send_sge = config.cap.max_recv_sge = (uint32_t)n;
	ep_open(&ep, &config, EP_HERE);
	ep_link(&ep, &ep);
	for (int i = 0; i < n; i++) {
		from[i] = ep_sge(&ep, (size_t)i * 256, 100);
		to[i] = ep_sge(&ep, 32768 + (size_t)(n - 1 - i) * 256, 100);
		for (size_t j = 0; j < 100; j++)
			ep.buffer[(size_t)i * 256 + j] = (uint8_t)pattern((size_t)i * 100 + j);
	}
	CHECK(ep_post_recv(&ep, 1, to, n) == 0);
	wr = ep_wr(IBV_WR_SEND, 2, from, n);
	CHECK(ep_post_send(&ep, &wr) == 0);
	EXPECT_STATUS(ep_poll_one(&ep, EP_SEND_CQ, &wc), IBV_WC_SUCCESS);
	EXPECT_STATUS(ep_poll_one(&ep, EP_RECV_CQ, &wc), IBV_WC_SUCCESS);
	EXPECT_EQ(wc.byte_len, n * 100);
	for (int i = 0; i < n; i++)
		for (size_t j = 0; j < 100; j++) {
			uint8_t got = ep.buffer[32768 + (size_t)(n - 1 - i) * 256 + j];

			if (got != (uint8_t)pattern((size_t)i * 100 + j)) {
				EXPECT_SAY(false, "byte %zu of element %d differs", j, i);
				break;
			}
		}
	ep_close(&ep);
}

int main(int argc, char **argv)
{
	ep_main(argc, argv);
	{
		struct ibv_context *ctx = device_open();

		CHECK(ibv_query_device(ctx, &device) == 0);
		EXPECT_EQ(ibv_close_device(ctx), 0);
	}
	send_queue(1);
	send_queue(7);
	send_queue(64);
	send_queue(1000);
	unsignalled();
	receive_queue(1);
	receive_queue(13);
	receive_queue(500);
	/* The device's own maximum is as real as a small number. */
	send_queue((uint32_t)device.max_qp_wr);
	receive_queue((uint32_t)device.max_qp_wr);
	all_elements();
	return expect_done();
}
