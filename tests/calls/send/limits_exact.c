/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A returned size is usable to the last slot without polling, one more is ENOMEM, and a slot comes
 * back when the completion that covers it is polled, not earlier (IBA 10.8.2). A slot grants all
 * the elements and inline data that it has room for, also where none were asked for, and each of
 * them can be used (ibv_create_qp(3), "the actual values").
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

enum { FROM = 0, TO = 32768, WORD = 8 };
enum { INLINE_LEAST = 48, ELEMENTS_LEAST = 3 }; /* ibv_create_qp(3) */

static uint32_t grh(const struct endpoint *ep)
{
	return ep->config.type == IBV_QPT_UD ? 40 : 0;
}

static struct ibv_send_wr message(struct endpoint *ep, struct ibv_sge *sge, int num_sge)
{
	struct ibv_send_wr wr = ep_wr(IBV_WR_SEND, 1, sge, num_sge);

	if (ep->config.type == IBV_QPT_UD) {
		wr.wr.ud.ah = ep_peer_ah(ep);
		wr.wr.ud.remote_qpn = ep->local.qpn;
		wr.wr.ud.remote_qkey = ep->config.qkey;
	}
	return wr;
}

/* To itself; the bytes have come whole. */
static void arrives(struct endpoint *ep, const struct ibv_send_wr *wr, uint32_t length)
{
	struct ibv_sge into = ep_sge(ep, TO, 4096);
	struct ibv_wc wc;

	ep_fill(ep, TO, 0, 4096);
	CHECK(ep_post_recv(ep, 2, &into, 1) == 0);
	if (!EXPECT_EQ(ep_post_send(ep, wr), 0))
		return;
	EXPECT_STATUS(ep_poll_one(ep, EP_SEND_CQ, &wc), IBV_WC_SUCCESS);
	EXPECT_STATUS(ep_poll_one(ep, EP_RECV_CQ, &wc), IBV_WC_SUCCESS);
	EXPECT_EQ(wc.byte_len, length + grh(ep));
	EXPECT(ep_is_filled(ep, TO + grh(ep), 0x5a, length));
	EXPECT(ep_is_filled(ep, TO + grh(ep) + length, 0, 64));
}

/* The key is not looked at where the data is inline. */
static void inline_data(struct endpoint *ep, uint32_t length)
{
	struct ibv_sge sge = ep_sge(ep, FROM, length);
	struct ibv_send_wr wr = message(ep, &sge, 1);

	sge.lkey = 0xdeadbeef;
	wr.send_flags |= IBV_SEND_INLINE;
	arrives(ep, &wr, length);
}

static void inline_room(struct endpoint *ep)
{
	struct ibv_sge sge = ep_sge(ep, FROM, ep->cap.max_inline_data + 1);
	struct ibv_send_wr wr = message(ep, &sge, 1);

	EXPECT_SAY(ep->cap.max_inline_data >= INLINE_LEAST, "%u bytes inline",
		   ep->cap.max_inline_data);
	inline_data(ep, WORD);
	inline_data(ep, ep->cap.max_inline_data);
	wr.send_flags |= IBV_SEND_INLINE;
	EXPECT_EQ(ep_post_send(ep, &wr), EINVAL);
}

static void element_room(struct endpoint *ep)
{
	struct ibv_sge sge[EP_MAX_SGE + 1];
	struct ibv_send_wr wr = message(ep, sge, (int)ep->cap.max_send_sge);

	for (size_t i = 0; i < EP_MAX_SGE + 1; i++)
		sge[i] = ep_sge(ep, FROM + i * 16, 3);
	CHECK(ep->cap.max_send_sge >= ELEMENTS_LEAST && ep->cap.max_send_sge <= EP_MAX_SGE);
	arrives(ep, &wr, 3 * ep->cap.max_send_sge);
	wr.num_sge++;
	EXPECT_EQ(ep_post_send(ep, &wr), EINVAL);
}

static void shown(struct endpoint *ep)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	EXPECT_EQ(ibv_query_qp(ep->qp, &attr, IBV_QP_CAP, &init), 0);
	EXPECT(!memcmp(&attr.cap, &ep->cap, sizeof(attr.cap)));
	EXPECT(!memcmp(&init.cap, &ep->cap, sizeof(init.cap)));
}

static void send_room(enum ibv_qp_type type, uint64_t send_ops)
{
	static const uint32_t asks[][2] = {{1, 0},  {1, 1},  {2, 0},   {3, 48},  {4, 64},
					   {7, 20}, {32, 0}, {1, 512}, {32, 512}};

	for (size_t i = 0; i < sizeof(asks) / sizeof(asks[0]); i++) {
		struct ep_config config = ep_defaults(type);
		struct endpoint ep;

		config.send_ops = send_ops;
		config.cap.max_send_sge = asks[i][0];
		config.cap.max_inline_data = asks[i][1];
		expect_case("type %d%s: %u elements and %u bytes inline are asked for", (int)type,
			    send_ops ? ", extended" : "", asks[i][0], asks[i][1]);
		ep_open(&ep, &config, EP_HERE);
		ep_link(&ep, &ep);
		EXPECT(ep.cap.max_send_sge >= asks[i][0]);
		EXPECT(ep.cap.max_inline_data >= asks[i][1]);
		/* Elements and inline data share their room. */
		EXPECT(ep.cap.max_inline_data >= ep.cap.max_send_sge * sizeof(struct ibv_sge));
		shown(&ep);
		ep_fill(&ep, FROM, 0x5a, 4096);
		inline_room(&ep);
		element_room(&ep);
		ep_close(&ep);
	}
}

/* A receive of a message has room for one element, whether asked for or not. */
static void receive_room(uint32_t srq_wr)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);
	struct endpoint ep;

	expect_case("no element is asked for, of a %s receive queue", srq_wr ? "shared" : "own");
	config.srq_wr = srq_wr;
	config.srq_sge = config.cap.max_recv_sge = 0;
	ep_open(&ep, &config, EP_HERE);
	ep_link(&ep, &ep);
	if (srq_wr) {
		struct ibv_srq_attr attr;

		EXPECT_EQ(ibv_query_srq(ep.srq, &attr), 0);
		EXPECT_EQ(attr.max_sge, 1);
	} else {
		EXPECT_EQ(ep.cap.max_recv_sge, 1);
		shown(&ep);
	}
	ep_fill(&ep, FROM, 0x5a, 4096);
	inline_data(&ep, WORD);
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
	for (int extended = 0; extended < 2; extended++) {
		uint64_t ops = extended ? IBV_QP_EX_WITH_SEND : 0;

		send_room(IBV_QPT_RC, ops);
		send_room(IBV_QPT_UC, ops);
		send_room(IBV_QPT_UD, ops);
	}
	receive_room(0);
	receive_room(4);
	return expect_done();
}
