/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * ibv_wr_post(3): wrong arguments and calls in the wrong order. A fault is told by
 * ibv_wr_complete() alone, the batch is gone with all that it would have done, and the next one
 * works.
 */
#include <stdint.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "builders.h"
#include "support/check.h"
#include "support/endpoint.h"

static struct ibv_sge elements[EP_MAX_SGE + 1];
static uint8_t bytes[4096];

static void sge_first(void)
{
	ibv_wr_set_sge(ex, ep.lkey, ep.local.addr, 8);
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
	ibv_wr_set_ud_addr(ex, ah, ep.local.qpn, 1);
}

static void srqn_first(void)
{
	ibv_wr_set_xrc_srqn(ex, 1);
}

static void element_more(void)
{
	ibv_wr_send(ex);
	ibv_wr_set_sge_list(ex, ep.cap.max_send_sge + 1, elements);
}

static void all_elements(void)
{
	ibv_wr_send(ex);
	ibv_wr_set_sge_list(ex, SIZE_MAX, elements);
}

static void inline_one_more(void)
{
	ibv_wr_send(ex);
	ibv_wr_set_inline_data(ex, bytes, ep.cap.max_inline_data + 1);
}

static void inline_list_one_more(void)
{
	struct ibv_data_buf list[2] = {{bytes, ep.cap.max_inline_data}, {bytes, 1}};

	ibv_wr_send(ex);
	ibv_wr_set_inline_data_list(ex, 2, list);
}

/* The sum of the lengths is 8 if the carry is ignored. */
static void inline_list_wraps(void)
{
	struct ibv_data_buf list[2] = {{bytes, SIZE_MAX}, {bytes, 9}};

	ibv_wr_send(ex);
	ibv_wr_set_inline_data_list(ex, 2, list);
}

static void inline_list_wraps_later(void)
{
	struct ibv_data_buf list[2] = {{bytes, 9}, {bytes, SIZE_MAX}};

	ibv_wr_send(ex);
	ibv_wr_set_inline_data_list(ex, 2, list);
}

static void inline_read(void)
{
	ibv_wr_rdma_read(ex, ep.local.rkey, ep.local.addr);
	ibv_wr_set_inline_data(ex, bytes, 8);
}

static void inline_compare(void)
{
	ibv_wr_atomic_cmp_swp(ex, ep.local.rkey, ep.local.addr, 1, 2);
	ibv_wr_set_inline_data(ex, bytes, 8);
}

static void inline_add(void)
{
	ibv_wr_atomic_fetch_add(ex, ep.local.rkey, ep.local.addr, 1);
	ibv_wr_set_inline_data_list(ex, 1, &(struct ibv_data_buf){bytes, 8});
}

static void no_handle(void)
{
	ibv_wr_send(ex);
	ibv_wr_set_ud_addr(ex, NULL, ep.local.qpn, 1);
}

static void no_window(void)
{
	request_bind(NULL, IBV_ACCESS_REMOTE_READ);
}

static void no_range(void)
{
	ibv_wr_bind_mw(ex, mw, 1, NULL);
}

static void no_window_right(void)
{
	request_bind(mw, IBV_ACCESS_MW_BIND);
}

static void no_value(void)
{
	ibv_wr_atomic_write(ex, ep.local.rkey, ep.local.addr, NULL);
}

static void flush_no_type(void)
{
	ibv_wr_flush(ex, ep.local.rkey, ep.local.addr, 8, 0, IBV_FLUSH_RANGE);
}

static void flush_unknown_type(void)
{
	ibv_wr_flush(ex, ep.local.rkey, ep.local.addr, 8, IBV_FLUSH_GLOBAL | 4, IBV_FLUSH_RANGE);
}

static void flush_unknown_level(void)
{
	ibv_wr_flush(ex, ep.local.rkey, ep.local.addr, 8, IBV_FLUSH_GLOBAL, IBV_FLUSH_MR + 1);
}

static void too_many(void)
{
	for (uint64_t i = 0; i <= QUEUE; i++)
		request_send(i);
}

/* What is wrong before counts, not what would be right after. */
static void bind_then_fault(void)
{
	request_bind(mw, IBV_ACCESS_REMOTE_READ);
	request_send(1);
	ibv_wr_set_inline_data(ex, bytes, ep.cap.max_inline_data + 1);
	request_send(2);
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
	{"an element more than max_send_sge", element_more, RC | UD, EINVAL},
	{"SIZE_MAX elements", all_elements, RC | UD, EINVAL},
	{"a byte more than max_inline_data", inline_one_more, RC | UD, EINVAL},
	{"a byte more in a second buffer", inline_list_one_more, RC | UD, EINVAL},
	{"buffers whose lengths wrap", inline_list_wraps, RC | UD, EINVAL},
	{"buffers whose lengths wrap with the second", inline_list_wraps_later, RC | UD, EINVAL},
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

	builders_open(type);
	key = mw->rkey;
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		if (!(faults[i].types & 1u << type))
			continue;
		expect_case("type %d: %s", (int)type, faults[i].name);
		ibv_wr_start(ex);
		request_begin(1);
		faults[i].build();
		EXPECT_EQ(ibv_wr_complete(ex), faults[i].err);
		EXPECT_EQ(mw->rkey, key);
		/* The next batch knows nothing of it. */
		ibv_wr_start(ex);
		EXPECT_EQ(ibv_wr_complete(ex), 0);
	}
	expect_case("type %d: nothing of all that was posted", (int)type);
	EXPECT_EQ(ep_poll_none(&ep, EP_SEND_CQ), 0);
	builders_work();
	builders_close();
}

/* Complete and abort belong to a start; between batches requests and setters belong to nothing. */
static void outside(void)
{
	struct ibv_sge into;

	expect_case("no batch: complete, abort, requests and setters");
	builders_open(IBV_QPT_RC);
	into = ep_sge(&ep, 32768, 256);
	EXPECT_EQ(ibv_wr_complete(ex), EINVAL);
	ibv_wr_abort(ex);
	request_send(1);
	EXPECT_EQ(ibv_wr_complete(ex), EINVAL);
	builders_work();
	EXPECT_EQ(ibv_wr_complete(ex), EINVAL);
	/* A setter that comes too late changes nothing of what was posted. */
	ep_fill(&ep, 0, 0x11, 8);
	ep_fill(&ep, 512, 0x22, 8);
	CHECK(ep_move(&ep, IBV_QPS_SQD) == 0);
	CHECK(ep_post_recv(&ep, 5, &into, 1) == 0);
	ibv_wr_start(ex);
	request_send(2);
	EXPECT_EQ(ibv_wr_complete(ex), 0);
	ibv_wr_set_sge(ex, ep.lkey, ep.local.addr + 512, 8);
	ibv_wr_abort(ex);
	CHECK(ep_move(&ep, IBV_QPS_RTS) == 0);
	request_sent(2, IBV_WC_SUCCESS);
	EXPECT_EQ(ep_poll(&ep, EP_RECV_CQ, &(struct ibv_wc){0}, 1, EP_WAIT_MS), 1);
	EXPECT(ep_is_filled(&ep, 32768, 0x11, 8));
	builders_close();
}

/* RESET empties the queue that the batch was being built in, whatever the state is afterwards. */
static void reset_meanwhile(void)
{
	uint32_t key;

	expect_case("the queue pair is reset, and made ready again, within a batch");
	builders_open(IBV_QPT_RC);
	builders_work();
	key = mw->rkey;
	ibv_wr_start(ex);
	request_send(3);
	request_bind(mw, IBV_ACCESS_REMOTE_READ);
	CHECK(ep_move(&ep, IBV_QPS_RESET) == 0);
	ep_link(&ep, &ep);
	request_send(4);
	EXPECT_EQ(ibv_wr_complete(ex), EINVAL);
	EXPECT_EQ(mw->rkey, key);
	EXPECT_EQ(ep_poll_none(&ep, EP_SEND_CQ), 0);
	builders_work();
	builders_close();
}

int main(int argc, char **argv)
{
	ep_main(argc, argv);
	table(IBV_QPT_RC);
	table(IBV_QPT_UD);
	outside();
	reset_meanwhile();
	return expect_done();
}
