/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A returned size is usable to the last slot without polling, one more is ENOMEM, and a slot comes
 * back when the completion that covers it is polled, not earlier (IBA 10.8.2).
 */
#include <string.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "support/end.h"
#include "support/check.h"

static struct ibv_device_attr device;

/* Room for every completion of a queue of @asked, which may be returned larger. */
static uint32_t room(uint32_t asked)
{
	uint32_t cqe = 2 * asked + 64;

	return cqe < (uint32_t)device.max_cqe ? cqe : (uint32_t)device.max_cqe;
}

/* A write of nothing: always possible, needs no receive. */
static int post(struct end *end, uint64_t wr_id, bool signalled)
{
	struct ibv_send_wr wr = end_wr(IBV_WR_RDMA_WRITE, wr_id, NULL, 0);

	wr.send_flags = signalled ? IBV_SEND_SIGNALED : 0;
	return end_post_send(end, &wr);
}

static void send_queue(uint32_t asked)
{
	struct end_config config = end_defaults(IBV_QPT_RC);
	struct ibv_wc wc;
	struct end end;
	uint32_t size;

	expect_case("send queue of %u", asked);
	config.send_wr = asked;
	config.cqe = room(asked);
	end_open(&end, &config, END_HERE);
	end_link(&end, &end);
	size = end.info.max_send_wr;
	EXPECT(size >= asked);
	for (uint32_t i = 0; i < size; i++)
		CHECK(EXPECT_EQ(post(&end, i, true), 0));
	EXPECT_EQ(post(&end, 0, true), ENOMEM);

	expect_case("send queue of %u: completion alone frees nothing", asked);
	usleep(20000);
	EXPECT_EQ(post(&end, 0, true), ENOMEM);

	expect_case("send queue of %u: a polled completion frees one", asked);
	EXPECT_STATUS(end_poll_one(&end, END_SEND_CQ, &wc), IBV_WC_SUCCESS);
	EXPECT_EQ(wc.wr_id, 0);
	EXPECT_EQ(post(&end, size, true), 0);
	EXPECT_EQ(post(&end, 0, true), ENOMEM);
	for (uint32_t i = 1; i <= size; i++) {
		EXPECT_STATUS(end_poll_one(&end, END_SEND_CQ, &wc), IBV_WC_SUCCESS);
		EXPECT_EQ(wc.wr_id, i);
	}
	end_close(&end);
}

static void unsignalled(void)
{
	struct end_config config = end_defaults(IBV_QPT_RC);
	struct ibv_wc wc;
	struct end end;
	uint32_t size;

	expect_case("unsignalled requests hold their slots");
	config.send_wr = 16;
	end_open(&end, &config, END_HERE);
	end_link(&end, &end);
	size = end.info.max_send_wr;
	for (uint32_t i = 0; i < size; i++)
		CHECK(EXPECT_EQ(post(&end, i, false), 0));
	EXPECT_EQ(end_poll_none(&end, END_SEND_CQ), 0);
	EXPECT_EQ(post(&end, 0, false), ENOMEM);

	expect_case("a polled completion frees those before it");
	end_close(&end);
	end_open(&end, &config, END_HERE);
	end_link(&end, &end);
	size = end.info.max_send_wr;
	for (uint32_t i = 0; i < size; i++)
		CHECK(EXPECT_EQ(post(&end, i, i == 9), 0));
	EXPECT_STATUS(end_poll_one(&end, END_SEND_CQ, &wc), IBV_WC_SUCCESS);
	EXPECT_EQ(wc.wr_id, 9);
	for (uint32_t i = 0; i < 10; i++)
		EXPECT_EQ(post(&end, 100 + i, i == 9), 0);
	EXPECT_EQ(post(&end, 0, true), ENOMEM);
	EXPECT_STATUS(end_poll_one(&end, END_SEND_CQ, &wc), IBV_WC_SUCCESS);
	EXPECT_EQ(wc.wr_id, 109);
	EXPECT_EQ(post(&end, 0, true), 0);
	end_close(&end);
}

/* The queues of the last size that a query shows, with all the sgl entries. */
static void receive_queue(uint32_t asked)
{
	struct end_config config = end_defaults(IBV_QPT_UD);
	struct ibv_sge sge[END_MAX_SGE];
	struct end end;

	expect_case("receive queue of %u", asked);
	config.recv_wr = asked;
	config.cqe = room(asked);
	end_open(&end, &config, END_HERE);
	CHECK(end_bring_to(&end, &end.info, IBV_QPS_INIT) == 0);
	for (int i = 0; i < END_MAX_SGE; i++)
		sge[i] = end_sge(&end, (size_t)i * 64, 64);
	EXPECT(end.info.max_recv_wr >= asked);
	for (uint32_t i = 0; i < end.info.max_recv_wr; i++)
		CHECK(EXPECT_EQ(end_post_recv(&end, i, sge,
					      (int)(end.info.max_recv_sge < END_MAX_SGE
							    ? end.info.max_recv_sge
							    : END_MAX_SGE)),
				0));
	EXPECT_EQ(end_post_recv(&end, 0, NULL, 0), ENOMEM);
	expect_case("receive queue of %u: each comes back once", asked);
	CHECK(end_move(&end, IBV_QPS_ERR) == 0);
	for (uint32_t i = 0; i < end.info.max_recv_wr; i++) {
		struct ibv_wc wc;

		EXPECT_STATUS(end_poll_one(&end, END_RECV_CQ, &wc), IBV_WC_WR_FLUSH_ERR);
		EXPECT_EQ(wc.wr_id, i);
	}
	EXPECT_EQ(end_poll_none(&end, END_RECV_CQ), 0);
	end_close(&end);
}

static uint32_t pattern(size_t i)
{
	return (uint32_t)(i * 2654435761u) >> 7;
}

/* A message gathered from max_sge pieces and scattered into max_sge pieces. */
static void all_elements(void)
{
	struct end_config config = end_defaults(IBV_QPT_RC);
	struct ibv_sge from[END_MAX_SGE], to[END_MAX_SGE];
	struct ibv_send_wr wr;
	struct ibv_wc wc;
	struct end end;
	int n;

	expect_case("max_sge elements");
	n = device.max_sge < END_MAX_SGE ? device.max_sge : END_MAX_SGE;
	config.send_sge = config.recv_sge = (uint32_t)n;
	end_open(&end, &config, END_HERE);
	end_link(&end, &end);
	for (int i = 0; i < n; i++) {
		from[i] = end_sge(&end, (size_t)i * 256, 100);
		to[i] = end_sge(&end, 32768 + (size_t)(n - 1 - i) * 256, 100);
		for (size_t j = 0; j < 100; j++)
			end.buf[(size_t)i * 256 + j] = (uint8_t)pattern((size_t)i * 100 + j);
	}
	CHECK(end_post_recv(&end, 1, to, n) == 0);
	wr = end_wr(IBV_WR_SEND, 2, from, n);
	CHECK(end_post_send(&end, &wr) == 0);
	EXPECT_STATUS(end_poll_one(&end, END_SEND_CQ, &wc), IBV_WC_SUCCESS);
	EXPECT_STATUS(end_poll_one(&end, END_RECV_CQ, &wc), IBV_WC_SUCCESS);
	EXPECT_EQ(wc.byte_len, n * 100);
	for (int i = 0; i < n; i++)
		for (size_t j = 0; j < 100; j++) {
			uint8_t got = end.buf[32768 + (size_t)(n - 1 - i) * 256 + j];

			if (got != (uint8_t)pattern((size_t)i * 100 + j)) {
				EXPECT_SAY(false, "byte %zu of element %d differs", j, i);
				break;
			}
		}
	end_close(&end);
}

int main(int argc, char **argv)
{
	end_main(argc, argv);
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
