/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * ATOMIC WRITE: 8 bytes stored at once, by ibv_wr_atomic_write and by ibv_post_send; what it needs
 * and what it is refused for.
 */
#include <errno.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "support/check.h"
#include "support/endpoint.h"

static struct endpoint near, far;
static enum ep_place place;

static void open_pair(uint32_t far_qp_access, uint8_t rd_atomic, uint8_t dest_rd_atomic)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);

	config.send_ops = IBV_QP_EX_WITH_ATOMIC_WRITE | IBV_QP_EX_WITH_SEND;
	config.cap.max_inline_data = 0;
	config.max_rd_atomic = rd_atomic;
	config.max_dest_rd_atomic = dest_rd_atomic;
	config.qp_access_flags = far_qp_access;
	ep_pair(&near, &far, &config, &config, place);
}

static void open_default(void)
{
	open_pair(IBV_ACCESS_REMOTE_WRITE, 4, 4);
}

static void close_pair(void)
{
	ep_pair_close(&near, &far);
}

static int done(struct ibv_wc *wc)
{
	int status = ep_poll_one(&near, EP_SEND_CQ, wc);

	if (status != IBV_WC_SUCCESS)
		ep_relink(&near, &far);
	return status;
}

static int write_word(uint64_t addr, uint32_t rkey, uint64_t value)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(near.qp);
	struct ibv_wc wc;
	int status;

	ibv_wr_start(ex);
	ex->wr_id = 11;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_atomic_write(ex, rkey, addr, &value);
	value = 0; /* the call has taken it */
	CHECK(ibv_wr_complete(ex) == 0);
	status = done(&wc);
	EXPECT_EQ(wc.wr_id, 11);
	if (status == IBV_WC_SUCCESS)
		EXPECT_EQ(wc.opcode, IBV_WC_ATOMIC_WRITE);
	return status;
}

static uint64_t word_at(size_t offset)
{
	uint64_t value;

	ep_peek(&far, offset, &value, sizeof(value));
	return value;
}

static void stores(void)
{
	open_default();
	expect_case("8 bytes, and none beside them");
	ep_fill(&far, 4096, 0xcc, 24);
	EXPECT_STATUS(write_word(far.local.addr + 4104, far.local.rkey, 0x0102030405060708),
		      IBV_WC_SUCCESS);
	EXPECT(word_at(4104) == 0x0102030405060708);
	EXPECT(ep_is_filled(&far, 4096, 0xcc, 8) && ep_is_filled(&far, 4112, 0xcc, 8));
	expect_case("one after the other");
	for (uint64_t i = 1; i < 50; i++)
		EXPECT_STATUS(write_word(far.local.addr + 4104, far.local.rkey, i), IBV_WC_SUCCESS);
	EXPECT(word_at(4104) == 49);
	close_pair();
}

/* The old way of posting, from the program's memory or inline. */
static void posted(void)
{
	struct ibv_sge sge[2];
	struct ibv_send_wr wr;
	struct ibv_wc wc;

	open_default();
	expect_case("ibv_post_send, two elements");
	ep_fill(&near, 0, 0x31, 8);
	sge[0] = ep_sge(&near, 0, 3);
	sge[1] = ep_sge(&near, 3, 5);
	wr = ep_wr(IBV_WR_ATOMIC_WRITE, 11, sge, 2);
	wr.wr.rdma.remote_addr = far.local.addr;
	wr.wr.rdma.rkey = far.local.rkey;
	CHECK(ep_post_send(&near, &wr) == 0);
	EXPECT_STATUS(done(&wc), IBV_WC_SUCCESS);
	EXPECT_EQ(wc.opcode, IBV_WC_ATOMIC_WRITE);
	EXPECT(ep_is_filled(&far, 0, 0x31, 8));
	expect_case("not of 8 bytes: nothing is sent");
	sge[1].length = 6;
	CHECK(ep_post_send(&near, &wr) == 0);
	EXPECT_STATUS(ep_poll_one(&near, EP_SEND_CQ, &wc), IBV_WC_LOC_LEN_ERR);
	EXPECT_EQ(ep_state(&far), IBV_QPS_RTS);
	ep_relink(&near, &far);
	expect_case("bad local key");
	sge[1].length = 5;
	sge[1].lkey++;
	CHECK(ep_post_send(&near, &wr) == 0);
	EXPECT_STATUS(ep_poll_one(&near, EP_SEND_CQ, &wc), IBV_WC_LOC_PROT_ERR);
	EXPECT_EQ(ep_state(&far), IBV_QPS_RTS);
	close_pair();
}

/* REMOTE_WRITE is the right that it needs, of the queue pair and of the region. */
static void refused(void)
{
	struct ep_event event;
	struct ep_key key;

	open_default();
	expect_case("misaligned: judged before the key");
	ep_fill(&far, 0, 0x55, 64);
	EXPECT_STATUS(write_word(far.local.addr + 4, far.local.rkey + 1, 1),
		      IBV_WC_REM_INV_REQ_ERR);
	EXPECT(ep_event(&far, &event, EP_WAIT_MS) && event.type == IBV_EVENT_QP_REQ_ERR);
	expect_case("unknown key");
	EXPECT_STATUS(write_word(far.local.addr, far.local.rkey + 1, 1), IBV_WC_REM_ACCESS_ERR);
	EXPECT(ep_event(&far, &event, EP_WAIT_MS) && event.type == IBV_EVENT_QP_ACCESS_ERR);
	expect_case("outside the region");
	EXPECT_STATUS(write_word(far.local.addr + far.config.buf_len, far.local.rkey, 1),
		      IBV_WC_REM_ACCESS_ERR);
	expect_case("a region of atomics, not of writing");
	CHECK(ep_reg(&far, 0, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC, false,
		     &key) == 0);
	EXPECT_STATUS(write_word(far.local.addr, key.rkey, 1), IBV_WC_REM_ACCESS_ERR);
	EXPECT(ep_is_filled(&far, 0, 0x55, 64));
	close_pair();
	expect_case("a queue pair that may not be written through");
	open_pair(IBV_ACCESS_REMOTE_ATOMIC, 4, 4);
	EXPECT_STATUS(write_word(far.local.addr, far.local.rkey, 1), IBV_WC_REM_INV_REQ_ERR);
	close_pair();
	expect_case("no request with an answer may start");
	open_pair(IBV_ACCESS_REMOTE_WRITE, 0, 4);
	EXPECT_STATUS(write_word(far.local.addr, far.local.rkey, 1), IBV_WC_LOC_QP_OP_ERR);
	close_pair();
	expect_case("no request with an answer is taken");
	open_pair(IBV_ACCESS_REMOTE_WRITE, 4, 0);
	EXPECT_STATUS(write_word(far.local.addr, far.local.rkey, 1), IBV_WC_REM_INV_REQ_ERR);
	close_pair();
}

/* In the order of the queue, more of them than may be under way. */
static void in_order(void)
{
	struct ibv_qp_ex *ex;
	struct ibv_wc wc;
	uint64_t value;

	open_pair(IBV_ACCESS_REMOTE_WRITE, 2, 2);
	ex = ibv_qp_to_qp_ex(near.qp);
	expect_case("a batch of 40");
	ibv_wr_start(ex);
	for (value = 1; value <= 40; value++) {
		ex->wr_id = value;
		ex->wr_flags = IBV_SEND_SIGNALED;
		ibv_wr_atomic_write(ex, far.local.rkey, far.local.addr + 8 * (value % 2), &value);
	}
	CHECK(ibv_wr_complete(ex) == 0);
	for (value = 1; value <= 40; value++) {
		EXPECT_STATUS(ep_poll_one(&near, EP_SEND_CQ, &wc), IBV_WC_SUCCESS);
		EXPECT_EQ(wc.wr_id, value);
	}
	EXPECT(word_at(0) == 40 && word_at(8) == 39);
	close_pair();
}

static void other_services(void)
{
	static const enum ibv_qp_type types[] = {IBV_QPT_UC, IBV_QPT_UD};

	for (size_t i = 0; i < 2; i++) {
		struct ep_config config = ep_defaults(types[i]);
		struct ibv_qp_init_attr_ex attr = {
			.qp_type = types[i],
			.cap = {.max_send_wr = 1, .max_send_sge = 1},
			.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
			.send_ops_flags = IBV_QP_EX_WITH_ATOMIC_WRITE,
		};
		struct endpoint ep;

		expect_case("type %d", (int)types[i]);
		ep_open(&ep, &config, EP_HERE);
		attr.send_cq = ep.cq[0];
		attr.recv_cq = ep.cq[1];
		attr.pd = ep.pd;
		EXPECT_NULL(ibv_create_qp_ex(ep.context, &attr), EOPNOTSUPP);
		attr.send_ops_flags = IBV_QP_EX_WITH_FLUSH;
		EXPECT_NULL(ibv_create_qp_ex(ep.context, &attr), EOPNOTSUPP);
		ep_close(&ep);
	}
}

int main(int argc, char **argv)
{
	place = ep_main(argc, argv);
	stores();
	posted();
	refused();
	in_order();
	other_services();
	return expect_done();
}
