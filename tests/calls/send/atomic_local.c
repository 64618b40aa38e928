/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * ATOMICs whose local side is wrong, on a connection that has been in use for long, where the
 * requester does them without the responder if it can: the fault is told as it is on the first
 * request (ibv_post_send(3)).
 */
#include "support/check.h"
#include "support/clock.h"
#include "support/endpoint.h"

enum { WARM = 20 };

static struct ibv_send_wr fetch_add(struct endpoint *far, uint64_t wr_id, struct ibv_sge *sge)
{
	struct ibv_send_wr wr = ep_wr(IBV_WR_ATOMIC_FETCH_AND_ADD, wr_id, sge, 1);

	wr.send_flags = IBV_SEND_SIGNALED;
	wr.wr.atomic.remote_addr = far->local.addr;
	wr.wr.atomic.rkey = far->local.rkey;
	wr.wr.atomic.compare_add = 1;
	return wr;
}

/* Until the peer's memory is within reach, if it will be at all. */
static void warm_up(struct endpoint *near, struct endpoint *far)
{
	for (uint64_t i = 0; i < WARM; i++) {
		struct ibv_sge sge = ep_sge(near, 64, 8);
		struct ibv_send_wr wr = fetch_add(far, i, &sge);
		struct ibv_wc wc;

		CHECK(ep_post_send(near, &wr) == 0);
		CHECK(ep_poll_one(near, EP_SEND_CQ, &wc) == IBV_WC_SUCCESS);
		sleep_ms(5);
	}
}

static void wrong_key(const char *name, uint32_t lkey, enum ep_place place)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct ibv_wc wc;
	struct endpoint near, far;

	expect_case("FETCH_ADD, %s", name);
	ep_pair(&near, &far, &config, &config, place);
	warm_up(&near, &far);
	sge = ep_sge(&near, 64, 8);
	sge.lkey = lkey;
	wr = fetch_add(&far, WARM, &sge);
	CHECK(ep_post_send(&near, &wr) == 0);
	EXPECT_STATUS(ep_poll_one(&near, EP_SEND_CQ, &wc), IBV_WC_LOC_PROT_ERR);
	EXPECT_EQ(ep_state(&near), IBV_QPS_ERR);
	ep_pair_close(&near, &far);
}

int main(int argc, char **argv)
{
	enum ep_place place = ep_main(argc, argv);

	wrong_key("unknown lkey", 0xdeadbeef, place);
	wrong_key("lkey 0", 0, place);
	return expect_done();
}
