/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * ibv_alloc_mw(3), ibv_dealloc_mw(3), ibv_bind_mw(3): objects of another context, and what the
 * library itself refuses. ibv_bind_mw() is an inline function that a program brings along, perhaps
 * from an older header or none, so the library makes its checks as well. A refused bind posts
 * nothing, and the window keeps its key.
 */
#include <string.h>

#include <infiniband/verbs.h>

#include "support/check.h"
#include "support/endpoint.h"

static struct endpoint ep;
static struct ibv_mw *one, *two;
static struct ibv_mr *other_mr, *zero_mr, *null_mr;

static void open_all(enum ibv_qp_type type)
{
	struct ep_config config = ep_defaults(type);

	if (type == IBV_QPT_RC)
		config.send_ops = IBV_QP_EX_WITH_BIND_MW;
	config.mr_access |= IBV_ACCESS_MW_BIND;
	ep_open(&ep, &config, EP_HERE);
	ep_link(&ep, &ep);
	one = ibv_alloc_mw(ep.pd, IBV_MW_TYPE_1);
	two = ibv_alloc_mw(ep.pd, IBV_MW_TYPE_2);
	other_mr = ibv_reg_mr(ep.other_pd, ep.buffer, 4096,
			      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	zero_mr = ibv_reg_mr(ep.pd, ep.buffer, 4096,
			     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED);
	null_mr = ibv_alloc_null_mr(ep.pd);
	CHECK(one && two && other_mr && zero_mr && null_mr);
}

static void close_all(void)
{
	EXPECT_EQ(ibv_dealloc_mw(one), 0);
	EXPECT_EQ(ibv_dealloc_mw(two), 0);
	EXPECT_EQ(ibv_dereg_mr(other_mr), 0);
	EXPECT_EQ(ibv_dereg_mr(zero_mr), 0);
	EXPECT_EQ(ibv_dereg_mr(null_mr), 0);
	ep_close(&ep);
}

static struct ibv_mw_bind right(void)
{
	return (struct ibv_mw_bind){
		.wr_id = 5,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_info = {.mr = ep.mr,
			      .addr = ep.local.addr,
			      .length = 64,
			      .mw_access_flags = IBV_ACCESS_REMOTE_READ},
	};
}

/* Without the inline form. */
static int bind(struct ibv_mw *mw, struct ibv_mw_bind *b)
{
	return mw->context->ops.bind_mw(ep.qp, mw, b);
}

/* One thing wrong each. */
static void type_2(struct ibv_mw **mw, struct ibv_mw_bind *b)
{
	(void)b;
	*mw = two;
}

static void address_alone(struct ibv_mw **mw, struct ibv_mw_bind *b)
{
	(void)mw;
	b->bind_info.mr = NULL;
	b->bind_info.length = 0;
}

static void length_alone(struct ibv_mw **mw, struct ibv_mw_bind *b)
{
	(void)mw;
	b->bind_info.mr = NULL;
	b->bind_info.addr = 0;
}

static void other_domain(struct ibv_mw **mw, struct ibv_mw_bind *b)
{
	(void)mw;
	b->bind_info.mr = other_mr;
}

static void zero_based_region(struct ibv_mw **mw, struct ibv_mw_bind *b)
{
	(void)mw;
	b->bind_info.mr = zero_mr;
}

static void null_region(struct ibv_mw **mw, struct ibv_mw_bind *b)
{
	(void)mw;
	b->bind_info.mr = null_mr;
}

static const struct {
	const char *name;
	void (*spoil)(struct ibv_mw **mw, struct ibv_mw_bind *b);
	int err;
} wrongs[] = {
	{"a window of type 2", type_2, EINVAL},
	{"no region, but an address", address_alone, EINVAL},
	{"no region, but a length", length_alone, EINVAL},
	{"a region of another domain", other_domain, EPERM},
	{"a zero-based region", zero_based_region, EINVAL},
	{"the null region", null_region, EINVAL},
};

static void arguments(void)
{
	const uint32_t rights = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
				IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_LOCAL_WRITE |
				IBV_ACCESS_FLUSH_GLOBAL | IBV_ACCESS_FLUSH_PERSISTENT;
	uint32_t key[2] = {one->rkey, two->rkey};
	struct ibv_mw_bind b;

	for (size_t i = 0; i < sizeof(wrongs) / sizeof(wrongs[0]); i++) {
		struct ibv_mw *mw = one;

		expect_case("bind: %s", wrongs[i].name);
		b = right();
		wrongs[i].spoil(&mw, &b);
		EXPECT_REFUSED(bind(mw, &b), wrongs[i].err);
		EXPECT_EQ(ibv_bind_mw(ep.qp, mw, &b), wrongs[i].err);
	}
	for (int bit = 0; bit < 32; bit++) {
		if (rights & 1u << bit)
			continue;
		expect_case("bind: access flag bit %d", bit);
		b = right();
		b.bind_info.mw_access_flags = 1u << bit;
		EXPECT_REFUSED(bind(one, &b), EINVAL);
	}
	expect_case("nothing was posted");
	EXPECT(one->rkey == key[0] && two->rkey == key[1]);
	EXPECT_EQ(ep_poll_none(&ep, EP_SEND_CQ), 0);
	EXPECT_EQ(ep_state(&ep), IBV_QPS_RTS);
}

/* By a work request, as windows of type 2 are bound. */
static int post_bind(struct ibv_mw *mw)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr *bad;

	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	wr.bind_mw.bind_info = right().bind_info;
	return ibv_post_send(ep.qp, &wr, &bad);
}

static int build_bind(struct ibv_mw *mw)
{
	struct ibv_mw_bind_info info = right().bind_info;
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(ep.qp);

	ibv_wr_start(ex);
	ex->wr_id = 0;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_bind_mw(ex, mw, ibv_inc_rkey(mw->rkey), &info);
	return ibv_wr_complete(ex);
}

/* An adapter sees the key alone, so the completion says that there is no such window. */
static void posted_and_failed(int (*post)(struct ibv_mw *mw))
{
	uint32_t key = two->rkey;
	struct ibv_wc wc;

	EXPECT_EQ(post(two), 0);
	EXPECT_STATUS(ep_poll_one(&ep, EP_SEND_CQ, &wc), IBV_WC_MW_BIND_ERR);
	EXPECT_EQ(two->rkey, key);
	ep_relink(&ep, &ep);
}

static void handles(void)
{
	struct ibv_mw_bind b = right();
	uint32_t handle = one->handle;

	expect_case("a window, a queue pair, a domain that are not the context's");
	one->handle = 0xdeadbeef;
	EXPECT_REFUSED(ibv_bind_mw(ep.qp, one, &b), ENOENT);
	EXPECT_REFUSED(ibv_dealloc_mw(one), ENOENT);
	one->handle = handle;
	handle = two->handle;
	two->handle = 0xdeadbeef;
	EXPECT_REFUSED(ibv_bind_mw(ep.qp, two, &b), ENOENT);
	EXPECT_REFUSED(ibv_dealloc_mw(two), ENOENT);
	posted_and_failed(post_bind);
	posted_and_failed(build_bind);
	two->handle = handle;
	handle = ep.qp->handle;
	ep.qp->handle = 0xdeadbeef;
	EXPECT_REFUSED(ibv_bind_mw(ep.qp, one, &b), ENOENT);
	ep.qp->handle = handle;
	handle = ep.pd->handle;
	ep.pd->handle = 0xdeadbeef;
	EXPECT_NULL(ibv_alloc_mw(ep.pd, IBV_MW_TYPE_1), ENOENT);
	ep.pd->handle = handle;
}

/*
 * In every state in which nothing can be sent the bind is refused; where posting flushes, so does
 * it.
 */
static void states(void)
{
	static const struct {
		enum ibv_qp_state state;
		int err;
	} rows[] = {
		{IBV_QPS_RESET, EINVAL}, {IBV_QPS_INIT, EINVAL}, {IBV_QPS_RTR, EINVAL},
		{IBV_QPS_RTS, 0},        {IBV_QPS_ERR, 0},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct ibv_mw_bind b = right();
		uint32_t key = one->rkey;
		struct ibv_wc wc;

		expect_case("bind in state %d", (int)rows[i].state);
		CHECK(ep_move(&ep, IBV_QPS_RESET) == 0);
		if (rows[i].state != IBV_QPS_RESET)
			CHECK(ep_bring_to(&ep, &ep.local, rows[i].state) == 0);
		if (rows[i].err) {
			EXPECT_REFUSED(ibv_bind_mw(ep.qp, one, &b), rows[i].err);
			EXPECT_EQ(one->rkey, key);
			continue;
		}
		EXPECT_EQ(ibv_bind_mw(ep.qp, one, &b), 0);
		EXPECT(one->rkey != key && (one->rkey ^ key) < 256);
		EXPECT_STATUS(ep_poll_one(&ep, EP_SEND_CQ, &wc),
			      rows[i].state == IBV_QPS_RTS ? IBV_WC_SUCCESS : IBV_WC_WR_FLUSH_ERR);
		EXPECT_EQ(wc.wr_id, 5);
	}
}

/*
 * A type that has no windows takes the request and fails it, as it would through ibv_post_send(3).
 */
static void datagrams(void)
{
	struct ibv_mw_bind b = right();
	struct ibv_wc wc;

	expect_case("bind on a UD queue pair");
	EXPECT_EQ(ibv_bind_mw(ep.qp, one, &b), 0);
	EXPECT_STATUS(ep_poll_one(&ep, EP_SEND_CQ, &wc), IBV_WC_LOC_QP_OP_ERR);
	EXPECT_EQ(wc.wr_id, 5);
}

/* ibv_inc_rkey(3): of the key only the low 8 bits count, and they count round. */
static void keys(void)
{
	static const uint32_t rows[][2] = {
		{0, 1},
		{0xff, 0},
		{0x100, 0x101},
		{0xfffffffe, 0xffffffff},
		{0xffffffff, 0xffffff00},
		{0x1234567f, 0x12345680},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		expect_case("the key after %#x", rows[i][0]);
		EXPECT_EQ(ibv_inc_rkey(rows[i][0]), rows[i][1]);
	}
}

int main(int argc, char **argv)
{
	ep_main(argc, argv);
	open_all(IBV_QPT_RC);
	arguments();
	handles();
	states();
	close_all();
	open_all(IBV_QPT_UD);
	datagrams();
	close_all();
	keys();
	return expect_done();
}
