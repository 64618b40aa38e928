/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory windows as the peer sees them: what a bind grants, what replaces it, what ends it. Each
 * function is a promise of ibv_alloc_mw(3), ibv_bind_mw(3) or ibv_post_send(3); the far end holds
 * the windows, in this process or in another.
 */
#include <errno.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "support/check.h"
#include "support/endpoint.h"

#define AT     8192u /* where windows begin in the far buffer */
#define LENGTH 4096u

#define READ   IBV_ACCESS_REMOTE_READ
#define WRITE  IBV_ACCESS_REMOTE_WRITE
#define ATOMIC IBV_ACCESS_REMOTE_ATOMIC
#define LOCAL  IBV_ACCESS_LOCAL_WRITE
#define BIND   IBV_ACCESS_MW_BIND

static struct endpoint near, far;
static enum ep_place place;

static void open_pair(enum ibv_qp_type type)
{
	struct ep_config config = ep_defaults(type);

	ep_pair(&near, &far, &config, &config, place);
}

static void close_pair(void)
{
	ep_pair_close(&near, &far);
}

/* Back to RTS after a request that ended in ERR. */
static void mend(void)
{
	ep_relink(&near, &far);
	while (ep_wait_event(&far, IBV_EVENT_QP_ACCESS_ERR, 5))
		;
}

static struct ep_key region(int access)
{
	struct ep_key key;

	CHECK(ep_reg(&far, 0, far.config.buf_len, access, false, &key) == 0);
	return key;
}

/* One request to @addr; its status. What goes wrong is mended. */
static int request(enum ibv_wr_opcode opcode, uint64_t addr, uint32_t rkey, uint32_t length)
{
	struct ibv_sge sge = ep_sge(&near, 0, length);
	struct ibv_send_wr wr = ep_wr(opcode, 1, &sge, 1);
	int status;

	ep_target(&wr, addr, rkey);
	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		wr.wr.atomic.compare_add = 1;
	status = ep_run(&near, &wr);
	if (status != IBV_WC_SUCCESS)
		mend();
	return status;
}

static int write_to(uint64_t addr, uint32_t rkey)
{
	ep_fill(&near, 0, 0x5a, 64);
	return request(IBV_WR_RDMA_WRITE, addr, rkey, 64);
}

static uint64_t address(void)
{
	return far.local.addr + AT;
}

/* The completion of the far end's latest bind or invalidation. */
static int far_done(enum ibv_wc_opcode opcode)
{
	struct ibv_wc wc;
	int status = ep_poll_one(&far, EP_SEND_CQ, &wc);

	EXPECT_EQ(wc.opcode, opcode);
	if (status != IBV_WC_SUCCESS)
		EXPECT(wc.vendor_err != 0);
	return status;
}

static uint32_t bound(int index, const struct ep_key *key, int access)
{
	uint32_t rkey;

	CHECK(ep_bind(&far, index, key, AT, LENGTH, access, &rkey) == 0);
	CHECK(far_done(IBV_WC_BIND_MW) == IBV_WC_SUCCESS);
	return rkey;
}

static int local_inv(uint32_t rkey)
{
	struct ibv_send_wr wr = ep_wr(IBV_WR_LOCAL_INV, 78, NULL, 0);

	wr.invalidate_rkey = rkey;
	CHECK(ep_post_send(&far, &wr) == 0);
	return far_done(IBV_WC_LOCAL_INV);
}

/*
 * The window's rights count, not the region's: none at all is needed there but LOCAL_WRITE for
 * changes.
 */
static void rights(enum ibv_mw_type type)
{
	struct ep_key key;
	uint32_t rkey;

	open_pair(IBV_QPT_RC);
	expect_case("type %d: a window of reading over a region without remote rights", (int)type);
	key = region(BIND);
	CHECK(ep_window(&far, 0, type) == 0);
	rkey = bound(0, &key, READ);
	ep_fill(&far, AT, 0x11, 64);
	EXPECT_STATUS(request(IBV_WR_RDMA_READ, address(), rkey, 64), IBV_WC_SUCCESS);
	EXPECT(ep_is_filled(&near, 0, 0x11, 64));
	EXPECT_STATUS(write_to(address(), rkey), IBV_WC_REM_ACCESS_ERR);
	EXPECT(ep_is_filled(&far, AT, 0x11, 64));
	expect_case("type %d: the region's own key grants nothing by that", (int)type);
	EXPECT_STATUS(request(IBV_WR_RDMA_READ, address(), key.rkey, 64), IBV_WC_REM_ACCESS_ERR);
	expect_case("type %d: a window with no right", (int)type);
	CHECK(ep_window(&far, 1, type) == 0);
	rkey = bound(1, &key, 0);
	EXPECT_STATUS(request(IBV_WR_RDMA_READ, address(), rkey, 64), IBV_WC_REM_ACCESS_ERR);
	expect_case("type %d: LOCAL_WRITE gives a peer nothing", (int)type);
	key = region(BIND | LOCAL);
	CHECK(ep_window(&far, 2, type) == 0);
	rkey = bound(2, &key, LOCAL);
	EXPECT_STATUS(write_to(address(), rkey), IBV_WC_REM_ACCESS_ERR);
	expect_case("type %d: writing and atomics", (int)type);
	CHECK(ep_window(&far, 3, type) == 0);
	rkey = bound(3, &key, WRITE | ATOMIC);
	EXPECT_STATUS(write_to(address(), rkey), IBV_WC_SUCCESS);
	EXPECT(ep_is_filled(&far, AT, 0x5a, 64));
	EXPECT_STATUS(request(IBV_WR_ATOMIC_FETCH_AND_ADD, address(), rkey, 8), IBV_WC_SUCCESS);
	EXPECT_STATUS(request(IBV_WR_RDMA_READ, address(), rkey, 64), IBV_WC_REM_ACCESS_ERR);
	close_pair();
}

/* A window is its range and nothing beside it. */
static void ranges(enum ibv_mw_type type)
{
	struct ep_key key;
	uint32_t rkey;

	open_pair(IBV_QPT_RC);
	key = region(BIND | LOCAL);
	CHECK(ep_window(&far, 0, type) == 0);
	rkey = bound(0, &key, WRITE);
	expect_case("type %d: first and last byte", (int)type);
	EXPECT_STATUS(write_to(address(), rkey), IBV_WC_SUCCESS);
	EXPECT_STATUS(write_to(address() + LENGTH - 64, rkey), IBV_WC_SUCCESS);
	expect_case("type %d: a byte in front", (int)type);
	EXPECT_STATUS(write_to(address() - 1, rkey), IBV_WC_REM_ACCESS_ERR);
	expect_case("type %d: a byte behind", (int)type);
	EXPECT_STATUS(write_to(address() + LENGTH - 63, rkey), IBV_WC_REM_ACCESS_ERR);
	close_pair();
}

/* ibv_bind_mw(3): a bind replaces the one before; a length of zero ends it. */
static void type_1_life(void)
{
	struct ep_key key;
	uint32_t first, second;

	open_pair(IBV_QPT_RC);
	key = region(BIND | LOCAL);
	CHECK(ep_window(&far, 0, IBV_MW_TYPE_1) == 0);
	first = bound(0, &key, WRITE);
	second = bound(0, &key, WRITE);
	expect_case("type 1: a bind picks a new key");
	EXPECT(first != second && first >> 8 == second >> 8);
	EXPECT_STATUS(write_to(address(), second), IBV_WC_SUCCESS);
	expect_case("type 1: the old key is dead");
	EXPECT_STATUS(write_to(address(), first), IBV_WC_REM_ACCESS_ERR);
	expect_case("type 1: the region is busy");
	EXPECT_EQ(ep_dereg(&far, key.index), EBUSY);
	EXPECT_STATUS(write_to(address(), second), IBV_WC_SUCCESS);
	expect_case("type 1: length 0 releases");
	CHECK(ep_bind(&far, 0, NULL, 0, 0, 0, &first) == 0);
	EXPECT_STATUS(far_done(IBV_WC_BIND_MW), IBV_WC_SUCCESS);
	EXPECT_STATUS(write_to(address(), second), IBV_WC_REM_ACCESS_ERR);
	EXPECT_EQ(ep_dereg(&far, key.index), 0);
	expect_case("type 1: no invalidation");
	key = region(BIND | LOCAL);
	first = bound(0, &key, WRITE);
	EXPECT_STATUS(local_inv(first), IBV_WC_MW_BIND_ERR);
	mend();
	EXPECT_STATUS(write_to(address(), first), IBV_WC_SUCCESS);
	expect_case("type 1: deallocated while bound");
	EXPECT_EQ(ep_window_free(&far, 0), 0);
	EXPECT_STATUS(write_to(address(), first), IBV_WC_REM_ACCESS_ERR);
	EXPECT_EQ(ep_dereg(&far, key.index), 0);
	close_pair();
}

/* Type 2B: bound once, invalidated by LOCAL_INV, then free for another bind. */
static void type_2_life(void)
{
	struct ep_key key;
	uint32_t first, second;

	open_pair(IBV_QPT_RC);
	key = region(BIND | LOCAL);
	CHECK(ep_window(&far, 0, IBV_MW_TYPE_2) == 0);
	first = bound(0, &key, WRITE);
	EXPECT_STATUS(write_to(address(), first), IBV_WC_SUCCESS);
	expect_case("type 2: not bound twice");
	CHECK(ep_bind(&far, 0, &key, AT, LENGTH, WRITE, &second) == 0);
	EXPECT_STATUS(far_done(IBV_WC_BIND_MW), IBV_WC_MW_BIND_ERR);
	mend();
	EXPECT_STATUS(write_to(address(), second), IBV_WC_REM_ACCESS_ERR);
	EXPECT_STATUS(write_to(address(), first), IBV_WC_SUCCESS);
	expect_case("type 2: wrong tag");
	EXPECT_STATUS(local_inv(second), IBV_WC_MW_BIND_ERR);
	mend();
	expect_case("type 2: LOCAL_INV");
	EXPECT_EQ(ep_dereg(&far, key.index), EBUSY);
	EXPECT_STATUS(local_inv(first), IBV_WC_SUCCESS);
	EXPECT_STATUS(write_to(address(), first), IBV_WC_REM_ACCESS_ERR);
	expect_case("type 2: a free window");
	EXPECT_STATUS(local_inv(first), IBV_WC_MW_BIND_ERR);
	mend();
	expect_case("type 2: bound again");
	second = bound(0, &key, WRITE);
	EXPECT_STATUS(write_to(address(), second), IBV_WC_SUCCESS);
	expect_case("type 2: deallocated while bound");
	EXPECT_EQ(ep_window_free(&far, 0), 0);
	EXPECT_STATUS(write_to(address(), second), IBV_WC_REM_ACCESS_ERR);
	EXPECT_EQ(ep_dereg(&far, key.index), 0);
	expect_case("LOCAL_INV of an ordinary region");
	key = region(LOCAL | WRITE);
	EXPECT_STATUS(local_inv(key.rkey), IBV_WC_MW_BIND_ERR);
	mend();
	EXPECT_STATUS(write_to(address(), key.rkey), IBV_WC_SUCCESS);
	expect_case("LOCAL_INV of no key");
	EXPECT_STATUS(local_inv(0x12345678), IBV_WC_MW_BIND_ERR);
	close_pair();
}

static int send_inv(uint32_t rkey)
{
	struct ibv_sge sge = ep_sge(&near, 0, 16);
	struct ibv_send_wr wr = ep_wr(IBV_WR_SEND_WITH_INV, 5, &sge, 1);
	struct ibv_sge into = ep_sge(&far, 0, 64);

	wr.invalidate_rkey = rkey;
	CHECK(ep_post_recv(&far, 6, &into, 1) == 0);
	return ep_post_send(&near, &wr);
}

/* ibv_poll_cq(3): the receive says which key died, and it is dead. */
static void remote_invalidate(void)
{
	struct ep_key key;
	uint32_t rkey;
	struct ibv_wc wc;

	open_pair(IBV_QPT_RC);
	key = region(BIND | LOCAL);
	CHECK(ep_window(&far, 0, IBV_MW_TYPE_2) == 0);
	rkey = bound(0, &key, WRITE);
	expect_case("SEND_WITH_INV");
	CHECK(send_inv(rkey) == 0);
	EXPECT_STATUS(ep_poll_one(&far, EP_RECV_CQ, &wc), IBV_WC_SUCCESS);
	EXPECT_EQ(wc.opcode, IBV_WC_RECV);
	EXPECT_EQ(wc.byte_len, 16);
	EXPECT_EQ(wc.wc_flags, IBV_WC_WITH_INV);
	EXPECT_EQ(wc.invalidated_rkey, rkey);
	EXPECT_STATUS(ep_poll_one(&near, EP_SEND_CQ, &wc), IBV_WC_SUCCESS);
	EXPECT_STATUS(write_to(address(), rkey), IBV_WC_REM_ACCESS_ERR);
	expect_case("SEND_WITH_INV of a dead key: an error here, silence there");
	CHECK(send_inv(rkey) == 0);
	EXPECT_STATUS(ep_poll_one(&far, EP_RECV_CQ, &wc), IBV_WC_MW_BIND_ERR);
	EXPECT_EQ(ep_state(&far), IBV_QPS_ERR);
	EXPECT_STATUS(ep_poll_one(&near, EP_SEND_CQ, &wc), IBV_WC_RETRY_EXC_ERR);
	mend();
	expect_case("SEND_WITH_INV of a region");
	CHECK(send_inv(key.rkey) == 0);
	EXPECT_STATUS(ep_poll_one(&far, EP_RECV_CQ, &wc), IBV_WC_MW_BIND_ERR);
	EXPECT_EQ(ep_dereg(&far, key.index), 0);
	close_pair();
}

static void zero_based(void)
{
	struct ep_key key;
	uint32_t rkey;

	open_pair(IBV_QPT_RC);
	key = region(BIND | LOCAL);
	CHECK(ep_window(&far, 0, IBV_MW_TYPE_2) == 0);
	rkey = bound(0, &key, WRITE | IBV_ACCESS_ZERO_BASED);
	expect_case("zero-based: the address is an offset");
	EXPECT_STATUS(write_to(100, rkey), IBV_WC_SUCCESS);
	EXPECT(ep_is_filled(&far, AT + 100, 0x5a, 64));
	EXPECT_STATUS(write_to(LENGTH - 64, rkey), IBV_WC_SUCCESS);
	EXPECT_STATUS(write_to(LENGTH - 63, rkey), IBV_WC_REM_ACCESS_ERR);
	EXPECT_STATUS(write_to(address(), rkey), IBV_WC_REM_ACCESS_ERR);
	close_pair();
}

/* Each gives MW_BIND_ERR, moves the queue pair to ERR and leaves no window behind. */
static void refused_binds(void)
{
	static const struct {
		const char *name;
		int region, window;
		bool other_pd;
		size_t offset, length;
	} rows[] = {
		{"region without MW_BIND", LOCAL | WRITE, WRITE, false, AT, LENGTH},
		{"writing, region without LOCAL_WRITE", BIND, WRITE, false, AT, LENGTH},
		{"atomics, region without LOCAL_WRITE", BIND, ATOMIC, false, AT, LENGTH},
		{"zero-based region", BIND | LOCAL | IBV_ACCESS_ZERO_BASED, WRITE, false, AT,
		 LENGTH},
		{"region of another domain", BIND | LOCAL, WRITE, true, AT, LENGTH},
		{"a byte too many", BIND | LOCAL, WRITE, false, AT, (1 << 16) - AT + 1},
		{"in front of the region", BIND | LOCAL, WRITE, false, (size_t)-1, 64},
		{"length 0", BIND | LOCAL, WRITE, false, AT, 0},
		{"a length that wraps", BIND | LOCAL, WRITE, false, AT, SIZE_MAX},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct ep_key key;
		uint32_t rkey;

		expect_case("refused bind: %s", rows[i].name);
		open_pair(IBV_QPT_RC);
		CHECK(ep_reg(&far, 0, far.config.buf_len, rows[i].region, rows[i].other_pd, &key) ==
		      0);
		CHECK(ep_window(&far, 0, IBV_MW_TYPE_2) == 0);
		CHECK(ep_bind(&far, 0, &key, rows[i].offset, rows[i].length, rows[i].window,
			      &rkey) == 0);
		EXPECT_STATUS(far_done(IBV_WC_BIND_MW), IBV_WC_MW_BIND_ERR);
		EXPECT_EQ(ep_state(&far), IBV_QPS_ERR);
		mend();
		EXPECT_STATUS(write_to(address(), rkey), IBV_WC_REM_ACCESS_ERR);
		EXPECT_EQ(ep_dereg(&far, key.index), 0);
		close_pair();
	}
}

/* The region may be gone when the bind's turn comes. */
static void region_gone(void)
{
	struct ep_key key;
	uint32_t rkey;

	expect_case("the region is deregistered before the bind is done");
	open_pair(IBV_QPT_RC);
	key = region(BIND | LOCAL);
	CHECK(ep_window(&far, 0, IBV_MW_TYPE_1) == 0);
	CHECK(ep_move(&far, IBV_QPS_SQD) == 0);
	CHECK(ep_bind(&far, 0, &key, AT, LENGTH, WRITE, &rkey) == 0);
	EXPECT_EQ(ep_dereg(&far, key.index), 0);
	CHECK(ep_move(&far, IBV_QPS_RTS) == 0);
	EXPECT_STATUS(far_done(IBV_WC_BIND_MW), IBV_WC_MW_BIND_ERR);
	close_pair();
}

/* ibv_bind_mw(3): a SEND behind the bind carries a key that works. */
static void send_after_bind(enum ibv_mw_type type)
{
	struct ep_key key;
	struct ibv_wc wc;
	struct ibv_sge from, into;
	struct ibv_send_wr wr;
	uint32_t rkey;

	open_pair(IBV_QPT_RC);
	from = ep_sge(&far, 0, 16);
	into = ep_sge(&near, 512, 64);
	wr = ep_wr(IBV_WR_SEND, 9, &from, 1);
	expect_case("type %d: a SEND behind the bind", (int)type);
	key = region(BIND | LOCAL);
	CHECK(ep_window(&far, 0, type) == 0);
	CHECK(ep_post_recv(&near, 1, &into, 1) == 0);
	CHECK(ep_bind(&far, 0, &key, AT, LENGTH, WRITE, &rkey) == 0);
	CHECK(ep_post_send(&far, &wr) == 0);
	EXPECT_STATUS(ep_poll_one(&near, EP_RECV_CQ, &wc), IBV_WC_SUCCESS);
	EXPECT_STATUS(write_to(address(), rkey), IBV_WC_SUCCESS);
	close_pair();
}

static void unreliable(void)
{
	struct ep_key key;
	uint32_t rkey;

	expect_case("UC: binds work, a dead key only loses the WRITE");
	open_pair(IBV_QPT_UC);
	key = region(BIND | LOCAL);
	CHECK(ep_window(&far, 0, IBV_MW_TYPE_2) == 0);
	rkey = bound(0, &key, WRITE);
	EXPECT_STATUS(write_to(address(), rkey), IBV_WC_SUCCESS);
	for (int i = 0; i < EP_WAIT_MS && !ep_is_filled(&far, AT, 0x5a, 64); i++)
		ep_poll_none(&far, EP_RECV_CQ);
	EXPECT(ep_is_filled(&far, AT, 0x5a, 64));
	EXPECT_STATUS(local_inv(rkey), IBV_WC_SUCCESS);
	ep_fill(&far, AT, 0, 64);
	EXPECT_STATUS(write_to(address(), rkey), IBV_WC_SUCCESS);
	ep_poll_none(&far, EP_RECV_CQ);
	EXPECT(ep_is_filled(&far, AT, 0, 64));
	close_pair();
}

/*
 * ibv_post_send(3): with a fence an invalidation waits until everything before it is done, here a
 * SEND without a receive.
 */
static void fenced(void)
{
	struct ibv_send_wr wr = ep_wr(IBV_WR_SEND, 7, NULL, 0);
	struct ep_key key;
	struct ibv_wc wc;
	uint32_t rkey;

	expect_case("a fenced LOCAL_INV waits");
	open_pair(IBV_QPT_RC);
	key = region(BIND | LOCAL);
	CHECK(ep_window(&far, 0, IBV_MW_TYPE_2) == 0);
	rkey = bound(0, &key, WRITE);
	CHECK(ep_post_send(&far, &wr) == 0);
	wr = ep_wr(IBV_WR_LOCAL_INV, 8, NULL, 0);
	wr.invalidate_rkey = rkey;
	wr.send_flags = IBV_SEND_SIGNALED | IBV_SEND_FENCE;
	CHECK(ep_post_send(&far, &wr) == 0);
	EXPECT_STATUS(write_to(address(), rkey), IBV_WC_SUCCESS);
	EXPECT_EQ(ep_poll_none(&far, EP_SEND_CQ), 0);
	CHECK(ep_post_recv(&near, 9, NULL, 0) == 0);
	EXPECT_STATUS(ep_poll_one(&far, EP_SEND_CQ, &wc), IBV_WC_SUCCESS);
	EXPECT_EQ(wc.wr_id, 7);
	EXPECT_STATUS(ep_poll_one(&far, EP_SEND_CQ, &wc), IBV_WC_SUCCESS);
	EXPECT_EQ(wc.wr_id, 8);
	EXPECT_STATUS(write_to(address(), rkey), IBV_WC_REM_ACCESS_ERR);
	close_pair();
}

/*
 * Windows of one queue pair end one by one, in whatever order; what is left of them goes with it.
 */
static void several(void)
{
	struct ep_key key;
	uint32_t rkey[3];

	expect_case("several windows on one queue pair");
	open_pair(IBV_QPT_RC);
	key = region(BIND | LOCAL);
	for (int i = 0; i < 3; i++) {
		CHECK(ep_window(&far, i, IBV_MW_TYPE_2) == 0);
		rkey[i] = bound(i, &key, WRITE);
	}
	EXPECT_STATUS(local_inv(rkey[0]), IBV_WC_SUCCESS);
	EXPECT_STATUS(write_to(address(), rkey[1]), IBV_WC_SUCCESS);
	EXPECT_STATUS(write_to(address(), rkey[2]), IBV_WC_SUCCESS);
	EXPECT_STATUS(local_inv(rkey[1]), IBV_WC_SUCCESS);
	EXPECT_STATUS(write_to(address(), rkey[2]), IBV_WC_SUCCESS);
	rkey[0] = bound(0, &key, WRITE);
	EXPECT_STATUS(local_inv(rkey[2]), IBV_WC_SUCCESS);
	EXPECT_STATUS(write_to(address(), rkey[0]), IBV_WC_SUCCESS);
	EXPECT_EQ(ep_dereg(&far, key.index), EBUSY);
	EXPECT_STATUS(local_inv(rkey[0]), IBV_WC_SUCCESS);
	EXPECT_EQ(ep_dereg(&far, key.index), 0);
	EXPECT_STATUS(write_to(address(), rkey[2]), IBV_WC_REM_ACCESS_ERR);
	close_pair();
}

int main(int argc, char **argv)
{
	place = ep_main(argc, argv);
	for (int type = IBV_MW_TYPE_1; type <= IBV_MW_TYPE_2; type++) {
		rights((enum ibv_mw_type)type);
		ranges((enum ibv_mw_type)type);
		send_after_bind((enum ibv_mw_type)type);
	}
	type_1_life();
	type_2_life();
	remote_invalidate();
	zero_based();
	refused_binds();
	region_gone();
	unreliable();
	fenced();
	several();
	return expect_done();
}
