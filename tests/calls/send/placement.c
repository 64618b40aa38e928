/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * FLUSH (ibv_wr_flush): what was written before is placed where the type says; rights, levels,
 * refusals.
 */
#include <errno.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "support/check.h"
#include "support/endpoint.h"

#define BOTH     (IBV_ACCESS_FLUSH_GLOBAL | IBV_ACCESS_FLUSH_PERSISTENT)
#define WRITABLE (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)

static struct endpoint near, far;
static enum ep_place place;

static void open_pair(uint32_t region, uint32_t queue)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);

	config.send_ops = IBV_QP_EX_WITH_FLUSH | IBV_QP_EX_WITH_RDMA_WRITE;
	config.mr_access = WRITABLE | region;
	config.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | queue;
	ep_pair(&near, &far, &config, &config, place);
}

static void close_pair(void)
{
	ep_pair_close(&near, &far);
}

/* A WRITE and the FLUSH behind it in one batch; the status of the FLUSH. */
static int flush(uint32_t rkey, uint64_t addr, size_t length, uint8_t type, uint8_t level)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(near.qp);
	struct ibv_wc wc;
	int status;

	ep_fill(&near, 0, 0x3c, 64);
	ibv_wr_start(ex);
	ex->wr_id = 1;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_rdma_write(ex, far.local.rkey, far.local.addr + 4096);
	ibv_wr_set_sge(ex, near.lkey, near.local.addr, 64);
	ex->wr_id = 2;
	ibv_wr_flush(ex, rkey, addr, length, type, level);
	CHECK(ibv_wr_complete(ex) == 0);
	EXPECT_STATUS(ep_poll_one(&near, EP_SEND_CQ, &wc), IBV_WC_SUCCESS);
	EXPECT_EQ(wc.wr_id, 1);
	status = ep_poll_one(&near, EP_SEND_CQ, &wc);
	EXPECT_EQ(wc.wr_id, 2);
	if (status == IBV_WC_SUCCESS) {
		EXPECT_EQ(wc.opcode, IBV_WC_FLUSH);
		EXPECT(ep_is_filled(&far, 4096, 0x3c, 64));
		ep_fill(&far, 4096, 0, 64);
		return status;
	}
	ep_relink(&near, &far);
	return status;
}

static void every_type_and_level(void)
{
	open_pair(BOTH, BOTH);
	for (int type = 1; type <= 3; type++) {
		for (int level = IBV_FLUSH_RANGE; level <= IBV_FLUSH_MR; level++) {
			expect_case("type %u level %u", type, level);
			EXPECT_STATUS(flush(far.local.rkey, far.local.addr + 4096, 64,
					    (uint8_t)type, (uint8_t)level),
				      IBV_WC_SUCCESS);
		}
	}
	expect_case("a range that ends where the region does, at any byte");
	EXPECT_STATUS(flush(far.local.rkey, far.local.addr + far.config.buf_len - 5, 5,
			    IBV_FLUSH_GLOBAL | IBV_FLUSH_PERSISTENT, IBV_FLUSH_RANGE),
		      IBV_WC_SUCCESS);
	expect_case("the whole region: address and length do not matter");
	EXPECT_STATUS(flush(far.local.rkey, 1, 0, IBV_FLUSH_GLOBAL, IBV_FLUSH_MR), IBV_WC_SUCCESS);
	expect_case("no bytes: no key is looked at");
	EXPECT_STATUS(flush(far.local.rkey + 1, 1, 0, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE),
		      IBV_WC_SUCCESS);
	close_pair();
}

/* Each type is a right of its own, of the region and of the queue pair. */
static void rights(void)
{
	static const struct {
		const char *name;
		uint32_t region, queue;
		uint8_t type;
		int status;
	} rows[] = {
		{"the region allows less", IBV_ACCESS_FLUSH_GLOBAL, BOTH, IBV_FLUSH_PERSISTENT,
		 IBV_WC_REM_ACCESS_ERR},
		{"the region allows less than both", IBV_ACCESS_FLUSH_PERSISTENT, BOTH,
		 IBV_FLUSH_GLOBAL | IBV_FLUSH_PERSISTENT, IBV_WC_REM_ACCESS_ERR},
		{"the region allows none", 0, BOTH, IBV_FLUSH_GLOBAL, IBV_WC_REM_ACCESS_ERR},
		{"the queue pair allows less", BOTH, IBV_ACCESS_FLUSH_GLOBAL, IBV_FLUSH_PERSISTENT,
		 IBV_WC_REM_INV_REQ_ERR},
		{"the queue pair allows none", BOTH, 0, IBV_FLUSH_GLOBAL, IBV_WC_REM_INV_REQ_ERR},
		{"just enough", IBV_ACCESS_FLUSH_GLOBAL, IBV_ACCESS_FLUSH_GLOBAL, IBV_FLUSH_GLOBAL,
		 IBV_WC_SUCCESS},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		for (int level = IBV_FLUSH_RANGE; level <= IBV_FLUSH_MR; level++) {
			expect_case("rights: %s, level %u", rows[i].name, level);
			open_pair(rows[i].region, rows[i].queue);
			EXPECT_STATUS(flush(far.local.rkey, far.local.addr, 64, rows[i].type,
					    (uint8_t)level),
				      rows[i].status);
			close_pair();
		}
	}
}

static void wrong_targets(void)
{
	open_pair(BOTH, BOTH);
	expect_case("unknown key");
	EXPECT_STATUS(flush(far.local.rkey + 1, far.local.addr, 64, IBV_FLUSH_GLOBAL,
			    IBV_FLUSH_RANGE),
		      IBV_WC_REM_ACCESS_ERR);
	expect_case("unknown key, whole region");
	EXPECT_STATUS(flush(far.local.rkey + 1, far.local.addr, 64, IBV_FLUSH_GLOBAL, IBV_FLUSH_MR),
		      IBV_WC_REM_ACCESS_ERR);
	expect_case("a byte too many");
	EXPECT_STATUS(flush(far.local.rkey, far.local.addr, far.config.buf_len + 1,
			    IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE),
		      IBV_WC_REM_ACCESS_ERR);
	expect_case("longer than any message");
	EXPECT_STATUS(flush(far.local.rkey, far.local.addr, (1ull << 31) + 1, IBV_FLUSH_GLOBAL,
			    IBV_FLUSH_RANGE),
		      IBV_WC_LOC_LEN_ERR);
	close_pair();
}

/* What the builder refuses is told by complete; ibv_post_send has no words for a FLUSH. */
static void wrong_arguments(void)
{
	struct ibv_qp_ex *ex;
	struct ibv_send_wr wr;

	open_pair(BOTH, BOTH);
	ex = ibv_qp_to_qp_ex(near.qp);
	for (int i = 0; i < 3; i++) {
		static const uint8_t bad[3][2] = {
			{0, IBV_FLUSH_RANGE}, {4, IBV_FLUSH_RANGE}, {IBV_FLUSH_GLOBAL, 2}};

		expect_case("type %u, level %u", bad[i][0], bad[i][1]);
		ibv_wr_start(ex);
		ibv_wr_flush(ex, far.local.rkey, far.local.addr, 64, bad[i][0], bad[i][1]);
		EXPECT_EQ(ibv_wr_complete(ex), EINVAL);
	}
	expect_case("ibv_post_send");
	wr = ep_wr(IBV_WR_FLUSH, 3, NULL, 0);
	EXPECT_EQ(ep_post_send(&near, &wr), EINVAL);
	EXPECT_EQ(ep_state(&near), IBV_QPS_RTS);
	EXPECT_EQ(ep_poll_none(&near, EP_SEND_CQ), 0);
	close_pair();
}

int main(int argc, char **argv)
{
	place = ep_main(argc, argv);
	every_type_and_level();
	rights();
	wrong_targets();
	wrong_arguments();
	return expect_done();
}
