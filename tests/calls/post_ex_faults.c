/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * ibv_wr_post(3): wrong arguments, calls in the wrong order, setters that mean nothing, the last of several setters. A fault is
 * told by ibv_wr_complete() alone, the batch is gone with all that it would have done, and the next one works.
 */
#include <stdint.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "end.h"
#include "expect.h"

#define QUEUE  8
#define INLINE 64u

/* A queue pair of all operations that its type has, linked to itself, and two windows. */
static struct end end;
static struct ibv_qp_ex *ex;
static struct ibv_ah *ah;
static struct ibv_mw *mw;

static uint64_t operations(enum ibv_qp_type type)
{
	if (type == IBV_QPT_UD)
		return IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
	return IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_READ |
	       IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |
	       IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_FLUSH |
	       IBV_QP_EX_WITH_ATOMIC_WRITE;
}

static void open_end(enum ibv_qp_type type)
{
	struct end_config config = end_defaults(type);

	config.send_ops = operations(type);
	config.send_wr = QUEUE;
	config.send_sge = 2;
	config.inline_data = INLINE;
	config.mr_access |= IBV_ACCESS_MW_BIND | IBV_ACCESS_FLUSH_GLOBAL;
	config.qp_access |= IBV_ACCESS_FLUSH_GLOBAL;
	end_open(&end, &config, END_HERE);
	end_link(&end, &end);
	ex = ibv_qp_to_qp_ex(end.qp);
	ah = end_ah(&end, &end.info);
	mw = ibv_alloc_mw(end.pd, IBV_MW_TYPE_2);
	REQUIRE(ex && mw && end.info.max_send_sge == 2 && end.info.max_inline == INLINE &&
		end.info.max_send_wr == QUEUE);
}

static void close_end(void)
{
	EXPECT_EQ(ibv_dealloc_mw(mw), 0);
	EXPECT_EQ(ibv_destroy_ah(ah), 0);
	end_close(&end);
}

static void begin(uint64_t wr_id)
{
	ex->wr_id = wr_id;
	ex->wr_flags = IBV_SEND_SIGNALED;
}

/* A SEND of 8 bytes, complete. */
static void good_send(uint64_t wr_id)
{
	begin(wr_id);
	ibv_wr_send(ex);
	if (end.config.type == IBV_QPT_UD)
		ibv_wr_set_ud_addr(ex, ah, end.info.qpn, end.config.qkey);
	ibv_wr_set_sge(ex, end.info.lkey, end.info.addr, 8);
}

static void sent(uint64_t wr_id, enum ibv_wc_status status)
{
	struct ibv_wc wc;

	EXPECT_STATUS(end_poll_one(&end, END_SEND_CQ, &wc), status);
	EXPECT_EQ(wc.wr_id, wr_id);
}

/* What nobody has disturbed: one batch of one SEND comes through. */
static void still_works(void)
{
	struct ibv_sge into = end_sge(&end, 32768, 256);

	REQUIRE(end_post_recv(&end, 5, &into, 1) == 0);
	ibv_wr_start(ex);
	good_send(77);
	EXPECT_EQ(ibv_wr_complete(ex), 0);
	sent(77, IBV_WC_SUCCESS);
	EXPECT_EQ(end_poll(&end, END_RECV_CQ, &(struct ibv_wc){0}, 1, END_WAIT_MS), 1);
	EXPECT_EQ(end_state(&end), IBV_QPS_RTS);
}

static struct ibv_sge elements[3];
static uint8_t bytes[2 * INLINE];

static void sge_first(void)
{
	ibv_wr_set_sge(ex, end.info.lkey, end.info.addr, 8);
}

static void sge_list_first(void)
{
	ibv_wr_set_sge_list(ex, 1, elements);
}

static void inline_first(void)
{
	ibv_wr_set_inline_data(ex, bytes, 8);
}

static void inline_list_first(void)
{
	ibv_wr_set_inline_data_list(ex, 1, &(struct ibv_data_buf){bytes, 8});
}

static void address_first(void)
{
	ibv_wr_set_ud_addr(ex, ah, end.info.qpn, 1);
}

static void srqn_first(void)
{
	ibv_wr_set_xrc_srqn(ex, 1);
}

static void three_elements(void)
{
	ibv_wr_send(ex);
	ibv_wr_set_sge_list(ex, 3, elements);
}

static void all_elements(void)
{
	ibv_wr_send(ex);
	ibv_wr_set_sge_list(ex, SIZE_MAX, elements);
}

static void inline_one_more(void)
{
	ibv_wr_send(ex);
	ibv_wr_set_inline_data(ex, bytes, INLINE + 1);
}

static void inline_list_one_more(void)
{
	struct ibv_data_buf list[2] = {{bytes, INLINE}, {bytes, 1}};

	ibv_wr_send(ex);
	ibv_wr_set_inline_data_list(ex, 2, list);
}

/* The sum of the lengths is 8, if nobody looks at the carry. */
static void inline_list_wraps(void)
{
	struct ibv_data_buf list[2] = {{bytes, SIZE_MAX}, {bytes, 9}};

	ibv_wr_send(ex);
	ibv_wr_set_inline_data_list(ex, 2, list);
}

static void inline_read(void)
{
	ibv_wr_rdma_read(ex, end.info.rkey, end.info.addr);
	ibv_wr_set_inline_data(ex, bytes, 8);
}

static void inline_compare(void)
{
	ibv_wr_atomic_cmp_swp(ex, end.info.rkey, end.info.addr, 1, 2);
	ibv_wr_set_inline_data(ex, bytes, 8);
}

static void inline_add(void)
{
	ibv_wr_atomic_fetch_add(ex, end.info.rkey, end.info.addr, 1);
	ibv_wr_set_inline_data_list(ex, 1, &(struct ibv_data_buf){bytes, 8});
}

static void no_handle(void)
{
	ibv_wr_send(ex);
	ibv_wr_set_ud_addr(ex, NULL, end.info.qpn, 1);
}

static void bind(struct ibv_mw *window, unsigned int access)
{
	struct ibv_mw_bind_info info = {
		.mr = end.mr, .addr = end.info.addr, .length = 64, .mw_access_flags = access};

	ibv_wr_bind_mw(ex, window, ibv_inc_rkey(mw->rkey), &info);
}

static void no_window(void)
{
	bind(NULL, IBV_ACCESS_REMOTE_READ);
}

static void no_range(void)
{
	ibv_wr_bind_mw(ex, mw, 1, NULL);
}

static void no_window_right(void)
{
	bind(mw, IBV_ACCESS_MW_BIND);
}

static void no_value(void)
{
	ibv_wr_atomic_write(ex, end.info.rkey, end.info.addr, NULL);
}

static void flush_no_type(void)
{
	ibv_wr_flush(ex, end.info.rkey, end.info.addr, 8, 0, IBV_FLUSH_RANGE);
}

static void flush_unknown_type(void)
{
	ibv_wr_flush(ex, end.info.rkey, end.info.addr, 8, IBV_FLUSH_GLOBAL | 4, IBV_FLUSH_RANGE);
}

static void flush_unknown_level(void)
{
	ibv_wr_flush(ex, end.info.rkey, end.info.addr, 8, IBV_FLUSH_GLOBAL, IBV_FLUSH_MR + 1);
}

static void too_many(void)
{
	for (uint64_t i = 0; i <= QUEUE; i++)
		good_send(i);
}

/* What is wrong before counts, not what would be right after. */
static void bind_then_fault(void)
{
	bind(mw, IBV_ACCESS_REMOTE_READ);
	good_send(1);
	ibv_wr_set_inline_data(ex, bytes, INLINE + 1);
	good_send(2);
}

static const struct {
	const char *name;
	void (*build)(void);
	uint32_t types;
	int err;
} faults[] = {
#define RC (1u << IBV_QPT_RC)
#define UD (1u << IBV_QPT_UD)
	{"set_sge before any request", sge_first, RC | UD, EINVAL},
	{"set_sge_list before any request", sge_list_first, RC | UD, EINVAL},
	{"set_inline_data before any request", inline_first, RC | UD, EINVAL},
	{"set_inline_data_list before any request", inline_list_first, RC | UD, EINVAL},
	{"set_ud_addr before any request", address_first, RC | UD, EINVAL},
	{"set_xrc_srqn before any request", srqn_first, RC | UD, EINVAL},
	{"an element more than max_send_sge", three_elements, RC | UD, EINVAL},
	{"SIZE_MAX elements", all_elements, RC | UD, EINVAL},
	{"a byte more than max_inline_data", inline_one_more, RC | UD, EINVAL},
	{"a byte more in a second buffer", inline_list_one_more, RC | UD, EINVAL},
	{"buffers whose lengths wrap", inline_list_wraps, RC | UD, EINVAL},
	{"inline READ", inline_read, RC, EINVAL},
	{"inline COMPARE_AND_SWAP", inline_compare, RC, EINVAL},
	{"inline FETCH_AND_ADD", inline_add, RC, EINVAL},
	{"no address handle", no_handle, UD, EINVAL},
	{"no window", no_window, RC, EINVAL},
	{"no range for the window", no_range, RC, EINVAL},
	{"a right that no window has", no_window_right, RC, EINVAL},
	{"no value for ATOMIC_WRITE", no_value, RC, EINVAL},
	{"FLUSH of no type", flush_no_type, RC, EINVAL},
	{"FLUSH of an unknown type", flush_unknown_type, RC, EINVAL},
	{"FLUSH of an unknown level", flush_unknown_level, RC, EINVAL},
	{"one request more than the queue takes", too_many, RC | UD, ENOMEM},
	{"a window, then a fault, then more", bind_then_fault, RC, EINVAL},
};

static void table(enum ibv_qp_type type)
{
	uint32_t key;

	open_end(type);
	key = mw->rkey;
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		if (!(faults[i].types & 1u << type))
			continue;
		expect_case("type %d: %s", (int)type, faults[i].name);
		ibv_wr_start(ex);
		begin(1);
		faults[i].build();
		EXPECT_EQ(ibv_wr_complete(ex), faults[i].err);
		EXPECT_EQ(mw->rkey, key);
		/* The next batch knows nothing of it. */
		ibv_wr_start(ex);
		EXPECT_EQ(ibv_wr_complete(ex), 0);
	}
	expect_case("type %d: nothing of all that was posted", (int)type);
	EXPECT_EQ(end_poll_none(&end, END_SEND_CQ), 0);
	still_works();
	close_end();
}

/* Complete and abort belong to a start; between batches requests and setters belong to nothing. */
static void outside(void)
{
	struct ibv_sge into;

	expect_case("no batch: complete, abort, requests and setters");
	open_end(IBV_QPT_RC);
	into = end_sge(&end, 32768, 256);
	EXPECT_EQ(ibv_wr_complete(ex), EINVAL);
	ibv_wr_abort(ex);
	good_send(1);
	EXPECT_EQ(ibv_wr_complete(ex), EINVAL);
	still_works();
	EXPECT_EQ(ibv_wr_complete(ex), EINVAL);
	/* A setter that comes too late changes nothing of what was posted. */
	end_fill(&end, 0, 0x11, 8);
	end_fill(&end, 512, 0x22, 8);
	REQUIRE(end_move(&end, IBV_QPS_SQD) == 0);
	REQUIRE(end_post_recv(&end, 5, &into, 1) == 0);
	ibv_wr_start(ex);
	good_send(2);
	EXPECT_EQ(ibv_wr_complete(ex), 0);
	ibv_wr_set_sge(ex, end.info.lkey, end.info.addr + 512, 8);
	ibv_wr_abort(ex);
	REQUIRE(end_move(&end, IBV_QPS_RTS) == 0);
	sent(2, IBV_WC_SUCCESS);
	EXPECT_EQ(end_poll(&end, END_RECV_CQ, &(struct ibv_wc){0}, 1, END_WAIT_MS), 1);
	EXPECT(end_is_filled(&end, 32768, 0x11, 8));
	close_end();
}

/* A window shows the new key when its bind has been posted, and not when the batch was given up. */
static void windows(void)
{
	uint32_t key;

	expect_case("a window of an aborted batch keeps its key");
	open_end(IBV_QPT_RC);
	key = mw->rkey;
	ibv_wr_start(ex);
	begin(1);
	bind(mw, IBV_ACCESS_REMOTE_READ);
	ibv_wr_abort(ex);
	EXPECT_EQ(mw->rkey, key);
	expect_case("a window of a batch that is too late keeps its key");
	REQUIRE(end_move(&end, IBV_QPS_RESET) == 0);
	ibv_wr_start(ex);
	bind(mw, IBV_ACCESS_REMOTE_READ);
	EXPECT_EQ(ibv_wr_complete(ex), EINVAL);
	EXPECT_EQ(mw->rkey, key);
	expect_case(
		"a window of a batch that was posted shows its new key; data means nothing to a bind");
	end_link(&end, &end);
	ibv_wr_start(ex);
	bind(mw, IBV_ACCESS_REMOTE_READ);
	ibv_wr_set_sge(ex, 0xdeadbeef, 1, 100000);
	ibv_wr_set_inline_data(ex, bytes, INLINE);
	EXPECT_EQ(ibv_wr_complete(ex), 0);
	EXPECT_EQ(mw->rkey, ibv_inc_rkey(key));
	sent(1, IBV_WC_SUCCESS);
	close_end();
}

/* ibv_wr_post(3): the last of several setters counts, whichever kinds they are. */
static void last_setter(void)
{
	struct ibv_sge into;

	expect_case("elements after inline data");
	open_end(IBV_QPT_RC);
	into = end_sge(&end, 32768, 8192);
	end_fill(&end, 0, 0x33, 4096);
	memset(bytes, 0x44, sizeof(bytes));
	REQUIRE(end_post_recv(&end, 5, &into, 1) == 0);
	ibv_wr_start(ex);
	begin(1);
	ibv_wr_send(ex);
	ibv_wr_set_inline_data(ex, bytes, INLINE);
	ibv_wr_set_sge(ex, end.info.lkey, end.info.addr, 4096);
	EXPECT_EQ(ibv_wr_complete(ex), 0);
	sent(1, IBV_WC_SUCCESS);
	EXPECT_EQ(end_poll(&end, END_RECV_CQ, &(struct ibv_wc){0}, 1, END_WAIT_MS), 1);
	EXPECT(end_is_filled(&end, 32768, 0x33, 4096));
	expect_case("inline data, exactly max_inline_data, after elements");
	end_fill(&end, 32768, 0, 8192);
	REQUIRE(end_post_recv(&end, 5, &into, 1) == 0);
	ibv_wr_start(ex);
	ibv_wr_send(ex);
	ibv_wr_set_sge_list(ex, 2, (struct ibv_sge[2]){end_sge(&end, 0, 9), end_sge(&end, 9, 9)});
	ibv_wr_set_inline_data(ex, bytes, INLINE);
	EXPECT_EQ(ibv_wr_complete(ex), 0);
	sent(1, IBV_WC_SUCCESS);
	EXPECT_EQ(end_poll(&end, END_RECV_CQ, &(struct ibv_wc){0}, 1, END_WAIT_MS), 1);
	EXPECT(end_is_filled(&end, 32768, 0x44, INLINE));
	EXPECT(end_is_filled(&end, 32768 + INLINE, 0, 64));
	close_end();
}

/* FLUSH has a range but no local memory: elements given to it change nothing, neither now nor for what follows. */
static void flush_with_data(void)
{
	expect_case("data means nothing to a FLUSH");
	open_end(IBV_QPT_RC);
	ibv_wr_start(ex);
	begin(1);
	ibv_wr_flush(ex, end.info.rkey, end.info.addr, 8, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE);
	ibv_wr_set_sge(ex, 0xdeadbeef, 1, 0xffffffff);
	EXPECT_EQ(ibv_wr_complete(ex), 0);
	sent(1, IBV_WC_SUCCESS);
	still_works();
	close_end();
}

/* No queue pair has TSO: the call completes as IBV_WR_TSO does. */
static void segmentation(enum ibv_qp_type type)
{
	expect_case("type %d: TSO", (int)type);
	open_end(type);
	ibv_wr_start(ex);
	begin(4);
	ibv_wr_send_tso(ex, bytes, 14, 100);
	EXPECT_EQ(ibv_wr_complete(ex), 0);
	sent(4, IBV_WC_LOC_QP_OP_ERR);
	close_end();
}

/* A frame has no place for an immediate, whoever asks (without CAP_NET_RAW there is nobody). */
static void frames(void)
{
	struct end_config config = end_defaults(IBV_QPT_RC);
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_RAW_PACKET,
		.cap = {.max_send_wr = 2, .max_send_sge = 1},
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
	};
	static const enum ibv_qp_state way[] = {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS};
	struct ibv_qp *qp;

	expect_case("RAW_PACKET: SEND_WITH_IMM");
	end_open(&end, &config, END_HERE);
	attr.pd = end.pd;
	attr.send_cq = attr.recv_cq = end.cq[END_SEND_CQ];
	qp = ibv_create_qp_ex(end.ctx, &attr);
	if (qp) {
		for (int i = 0; i < 3; i++) {
			struct ibv_qp_attr to = {.qp_state = way[i], .port_num = 1};

			REQUIRE(!ibv_modify_qp(qp, &to, IBV_QP_STATE | (i ? 0 : IBV_QP_PORT)));
		}
		ex = ibv_qp_to_qp_ex(qp);
		ibv_wr_start(ex);
		begin(6);
		ibv_wr_send_imm(ex, 1);
		ibv_wr_set_sge(ex, end.info.lkey, end.info.addr, 60);
		EXPECT_EQ(ibv_wr_complete(ex), 0);
		sent(6, IBV_WC_LOC_QP_OP_ERR);
		EXPECT_EQ(ibv_destroy_qp(qp), 0);
	}
	end_close(&end);
}

int main(int argc, char **argv)
{
	end_main(argc, argv);
	table(IBV_QPT_RC);
	table(IBV_QPT_UD);
	outside();
	windows();
	last_setter();
	flush_with_data();
	segmentation(IBV_QPT_RC);
	segmentation(IBV_QPT_UD);
	frames();
	return expect_done();
}
