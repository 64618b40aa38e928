/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Rights that are taken away while a connection stands are gone from the next request on, whichever
 * path requests take, and can be given back.
 */
#include <string.h>

#include <infiniband/verbs.h>

#include "support/check.h"
#include "support/endpoint.h"

static enum ep_place place;
static struct endpoint near, far;

static int request(enum ibv_wr_opcode opcode, uint32_t rkey)
{
	struct ibv_sge sge = ep_sge(&near, 0, 8);
	struct ibv_send_wr wr = ep_wr(opcode, 1, &sge, 1);

	ep_target(&wr, far.local.addr, rkey);
	return ep_run(&near, &wr);
}

static void mend(void)
{
	struct ep_event event;

	ep_relink(&near, &far);
	while (ep_event(&far, &event, 5))
		EXPECT(event.type == IBV_EVENT_QP_REQ_ERR || event.type == IBV_EVENT_QP_ACCESS_ERR);
}

/* The queue pair's flag, changed in RTS. */
static void queue_pair(enum ibv_wr_opcode opcode, uint32_t flag)
{
	struct ibv_qp_attr attr = {.qp_access_flags = far.config.qp_access_flags & ~flag};

	expect_case("opcode %d: QP flag taken away in RTS", (int)opcode);
	EXPECT_STATUS(request(opcode, far.local.rkey), IBV_WC_SUCCESS);
	CHECK(ep_modify(&far, &attr, IBV_QP_ACCESS_FLAGS) == 0);
	EXPECT_STATUS(request(opcode, far.local.rkey), IBV_WC_REM_INV_REQ_ERR);
	EXPECT_EQ(ep_state(&far), IBV_QPS_ERR);
	mend();
	expect_case("opcode %d: QP flag given back", (int)opcode);
	CHECK(ep_modify(&far, &attr, IBV_QP_ACCESS_FLAGS) == 0);
	attr.qp_access_flags |= flag;
	CHECK(ep_modify(&far, &attr, IBV_QP_ACCESS_FLAGS) == 0);
	EXPECT_STATUS(request(opcode, far.local.rkey), IBV_WC_SUCCESS);
}

/* The region goes after it was used. */
static void region(enum ibv_wr_opcode opcode)
{
	struct ep_key key;

	expect_case("opcode %d: region goes", (int)opcode);
	CHECK(ep_reg(&far, 0, 4096, (int)far.config.mr_access, false, &key) == 0);
	for (int i = 0; i < 10; i++)
		EXPECT_STATUS(request(opcode, key.rkey), IBV_WC_SUCCESS);
	EXPECT_EQ(ep_dereg(&far, key.index), 0);
	EXPECT_STATUS(request(opcode, key.rkey), IBV_WC_REM_ACCESS_ERR);
	mend();
	/* The next region, perhaps in the same slot, is not reached by the old key. */
	CHECK(ep_reg(&far, 0, 4096, (int)far.config.mr_access, false, &key) == 0);
	EXPECT_STATUS(request(opcode, key.rkey), IBV_WC_SUCCESS);
	EXPECT_EQ(ep_dereg(&far, key.index), 0);
}

/* A queue pair in ERR or RESET is not reached through its memory either. */
static void state(enum ibv_wr_opcode opcode, enum ibv_qp_state state_)
{
	uint64_t word = 7, after = 0;

	expect_case("opcode %d: far queue pair in state %d", (int)opcode, (int)state_);
	ep_poke(&far, 0, &word, sizeof(word));
	ep_fill(&near, 0, 0x44, 8);
	EXPECT_STATUS(request(IBV_WR_RDMA_READ, far.local.rkey), IBV_WC_SUCCESS);
	ep_fill(&near, 0, 0x44, 8);
	CHECK(ep_move(&far, state_) == 0);
	EXPECT_STATUS(request(opcode, far.local.rkey), IBV_WC_RETRY_EXC_ERR);
	ep_peek(&far, 0, &after, sizeof(after));
	EXPECT_EQ(after, 7);
	if (opcode == IBV_WR_RDMA_READ)
		EXPECT(ep_is_filled(&near, 0, 0x44, 8));
	mend();
}

int main(int argc, char **argv)
{
	static const enum ibv_wr_opcode opcodes[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
						     IBV_WR_ATOMIC_FETCH_AND_ADD};
	static const uint32_t flags[] = {IBV_ACCESS_REMOTE_WRITE, IBV_ACCESS_REMOTE_READ,
					 IBV_ACCESS_REMOTE_ATOMIC};
	struct ep_config config = ep_defaults(IBV_QPT_RC);

	place = ep_main(argc, argv);
	config.timeout = 10;
	config.retry_cnt = 2;
	ep_pair(&near, &far, &config, &config, place);
	for (int i = 0; i < 3; i++) {
		queue_pair(opcodes[i], flags[i]);
		region(opcodes[i]);
		state(opcodes[i], IBV_QPS_ERR);
		state(opcodes[i], IBV_QPS_RESET);
	}
	ep_pair_close(&near, &far);
	return expect_done();
}
