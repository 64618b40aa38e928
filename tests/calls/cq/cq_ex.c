/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ibv_create_cq_ex(3): refused arguments, the polling protocol and every reader. */
#include <arpa/inet.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "support/check.h"
#include "support/endpoint.h"
#include "support/qp_state.h"

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_mr *mr;
static char buffer[4096];

static void refused(void)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = 16};

	expect_case("cqe 0");
	attr.cqe = 0;
	EXPECT_NULL(ibv_create_cq_ex(ctx, &attr), EINVAL);
	attr.cqe = 16;
	expect_case("vector");
	attr.comp_vector = (uint32_t)ctx->num_comp_vectors;
	EXPECT_NULL(ibv_create_cq_ex(ctx, &attr), EINVAL);
	attr.comp_vector = 0;
	expect_case("comp_mask");
	attr.comp_mask = 1u << 31;
	EXPECT_NULL(ibv_create_cq_ex(ctx, &attr), EINVAL);
	attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
	expect_case("flags");
	attr.flags = 1u << 31;
	EXPECT_NULL(ibv_create_cq_ex(ctx, &attr), EINVAL);
	attr.comp_mask = 0;
	attr.flags = 0;
	expect_case("wc_flags");
	attr.wc_flags = 1ull << 40;
	EXPECT_NULL(ibv_create_cq_ex(ctx, &attr), EOPNOTSUPP);
}

/* An RC queue pair that talks to itself, both queues on one extended CQ. */
static struct ibv_qp *self_connected(struct ibv_cq_ex *cq)
{
	struct ibv_qp_init_attr init = {
		.send_cq = ibv_cq_ex_to_cq(cq),
		.recv_cq = ibv_cq_ex_to_cq(cq),
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1},
	};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);
	struct ibv_qp_attr attr;

	CHECK(qp);
	attr = qp_attr_within(ctx, qp->qp_num);
	attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
	attr.max_rd_atomic = attr.max_dest_rd_atomic = 1;
	CHECK(!qp_bring_to(qp, &attr, IBV_QPS_RTS));
	return qp;
}

static void send_imm(struct ibv_qp *qp, uint64_t wr_id, uint32_t imm, uint32_t length)
{
	struct ibv_sge sge = {(uintptr_t)buffer, length, mr->lkey};
	struct ibv_sge into = {(uintptr_t)buffer + 2048, 1024, mr->lkey};
	struct ibv_recv_wr recv = {.wr_id = wr_id + 1000, .sg_list = &into, .num_sge = 1};
	struct ibv_send_wr wr = {
		.wr_id = wr_id,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND_WITH_IMM,
		.imm_data = htonl(imm),
	};
	struct ibv_recv_wr *bad_recv;
	struct ibv_send_wr *bad;

	CHECK(!ibv_post_recv(qp, &recv, &bad_recv));
	CHECK(!ibv_post_send(qp, &wr, &bad));
}

static int start_poll(struct ibv_cq_ex *cq)
{
	struct ibv_poll_cq_attr none = {.comp_mask = 0};
	struct timespec begin, now;
	int rc;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	do {
		rc = ibv_start_poll(cq, &none);
		clock_gettime(CLOCK_MONOTONIC, &now);
		if (rc)
			sched_yield();
	} while (rc == ENOENT && now.tv_sec < begin.tv_sec + EP_WAIT_MS / 1000);
	return rc;
}

static void check_entry(struct ibv_cq_ex *cq, struct ibv_qp *qp, uint64_t wc_flags, uint64_t *last)
{
	bool receive = cq->wr_id >= 1000;

	expect_case("entry %llu", (unsigned long long)cq->wr_id);
	EXPECT_STATUS(cq->status, IBV_WC_SUCCESS);
	EXPECT_EQ(ibv_wc_read_opcode(cq), receive ? IBV_WC_RECV : IBV_WC_SEND);
	EXPECT_EQ(ibv_wc_read_vendor_err(cq), 0);
	EXPECT_EQ(ibv_wc_read_qp_num(cq), qp->qp_num);
	EXPECT_EQ(ibv_wc_read_wc_flags(cq), receive ? IBV_WC_WITH_IMM : 0);
	if (receive) {
		EXPECT_EQ(ibv_wc_read_byte_len(cq), 100);
		EXPECT_EQ(ntohl(ibv_wc_read_imm_data(cq)), 0xabc00000 + cq->wr_id - 1000);
		ibv_wc_read_src_qp(cq);
		ibv_wc_read_slid(cq);
		ibv_wc_read_sl(cq);
		ibv_wc_read_dlid_path_bits(cq);
	}
	if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP) {
		uint64_t stamp = ibv_wc_read_completion_ts(cq);

		EXPECT(stamp > 0);
		EXPECT(stamp >= *last);
		*last = stamp;
	}
	if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
		EXPECT(ibv_wc_read_completion_wallclock_ns(cq) > 0);
}

static void polling(uint64_t wc_flags, uint32_t flags)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 64,
		.wc_flags = wc_flags,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
		.flags = flags,
	};
	struct ibv_poll_cq_attr none = {.comp_mask = 0}, bad = {.comp_mask = 1};
	struct ibv_cq_ex *cq = ibv_create_cq_ex(ctx, &attr);
	int sent = 0, received = 0;
	uint64_t last = 0;
	struct ibv_qp *qp;

	expect_case("polling with wc_flags %#llx, flags %u", (unsigned long long)wc_flags, flags);
	CHECK(cq);
	EXPECT(cq->cqe >= 64);
	qp = self_connected(cq);
	expect_case("empty: ENOENT and no end_poll");
	EXPECT_EQ(ibv_start_poll(cq, &none), ENOENT);
	EXPECT_EQ(ibv_start_poll(cq, &none), ENOENT);
	expect_case("comp_mask of the poll");
	EXPECT_EQ(ibv_start_poll(cq, &bad), EINVAL);
	for (uint32_t i = 0; i < 8; i++)
		send_imm(qp, i, 0xabc00000 + i, 100);
	while (sent + received < 16) {
		int rc = start_poll(cq);

		if (!EXPECT_EQ(rc, 0))
			break;
		do {
			if (cq->wr_id >= 1000)
				EXPECT_EQ(cq->wr_id, 1000 + received++);
			else
				EXPECT_EQ(cq->wr_id, sent++);
			check_entry(cq, qp, wc_flags, &last);
			rc = ibv_next_poll(cq);
		} while (!rc);
		EXPECT_EQ(rc, ENOENT);
		ibv_end_poll(cq);
	}
	expect_case("plain poll of an extended queue");
	send_imm(qp, 5, 0xabc00005, 100);
	for (int i = 0; i < 2;) {
		struct ibv_wc wc;

		if (ibv_poll_cq(ibv_cq_ex_to_cq(cq), 1, &wc) == 1) {
			EXPECT_STATUS(wc.status, IBV_WC_SUCCESS);
			i++;
		} else {
			sched_yield();
		}
	}
	expect_case("destroy");
	EXPECT_REFUSED(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), EBUSY);
	EXPECT_EQ(ibv_destroy_qp(qp), 0);
	EXPECT_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

static void flags(uint32_t flag)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 8,
		.wc_flags = IBV_WC_STANDARD_FLAGS,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
		.flags = flag,
	};
	struct ibv_cq_ex *cq = ibv_create_cq_ex(ctx, &attr);

	expect_case("creation flag %#x", flag);
	if (EXPECT(cq != NULL))
		EXPECT_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

/*
 * Posts @n receives to a queue pair in ERR: as many flushed entries in its CQ, numbered from
 * @first.
 */
static void flush_entries(struct ibv_qp *qp, uint64_t first, uint64_t n)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_STATE));
	for (uint64_t i = first; i < first + n; i++) {
		struct ibv_recv_wr recv = {.wr_id = i}, *bad;

		CHECK(!ibv_post_recv(qp, &recv, &bad));
	}
}

/* IGNORE_OVERRUN: the oldest entries are lost without a report (ibv_create_cq_ex(3)). */
static void ignore_overrun(void)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 4,
		.wc_flags = IBV_WC_STANDARD_FLAGS,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
		.flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN,
	};
	struct ibv_cq_ex *cq = ibv_create_cq_ex(ctx, &attr);
	struct pollfd poller = {.fd = ctx->async_fd, .events = POLLIN};
	struct ibv_qp *qp;
	uint64_t posted;

	expect_case("ignore overrun");
	CHECK(cq);
	qp = self_connected(cq);
	posted = (uint64_t)cq->cqe + 3;
	flush_entries(qp, 0, posted);
	for (uint64_t i = posted - (uint64_t)cq->cqe; i < posted; i++) {
		struct ibv_wc wc = {.wr_id = 999};
		int n = 0;

		for (int k = 0; !n && k < EP_WAIT_MS; k++) {
			n = ibv_poll_cq(ibv_cq_ex_to_cq(cq), 1, &wc);
			if (!n)
				usleep(1000);
		}
		EXPECT_EQ(n, 1);
		EXPECT_EQ(wc.wr_id, i);
	}
	EXPECT_EQ(poll(&poller, 1, EP_QUIET_MS), 0);
	EXPECT_EQ(ibv_destroy_qp(qp), 0);
	EXPECT_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

/*
 * Entries lost during an iteration stay lost: end_poll gives nothing back that was given back
 * already.
 */
static void overrun_in_iteration(void)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 4,
		.wc_flags = IBV_WC_STANDARD_FLAGS,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
		.flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN,
	};
	struct ibv_cq_ex *cq = ibv_create_cq_ex(ctx, &attr);
	struct ibv_wc wc;
	struct ibv_qp *qp;
	uint64_t lost;

	expect_case("ignore overrun inside an iteration");
	CHECK(cq);
	lost = (uint64_t)cq->cqe + 2;
	qp = self_connected(cq);
	flush_entries(qp, 0, 2);
	CHECK(start_poll(cq) == 0);
	EXPECT_EQ(cq->wr_id, 0);
	flush_entries(qp, 2, lost - 2 + (uint64_t)cq->cqe);
	EXPECT_EQ(ibv_next_poll(cq), 0);
	EXPECT_EQ(cq->wr_id, lost);
	ibv_end_poll(cq);
	for (uint64_t i = lost + 1; i < lost + (uint64_t)cq->cqe; i++) {
		EXPECT_EQ(ibv_poll_cq(ibv_cq_ex_to_cq(cq), 1, &wc), 1);
		EXPECT_EQ(wc.wr_id, i);
	}
	EXPECT_EQ(ibv_poll_cq(ibv_cq_ex_to_cq(cq), 1, &wc), 0);

	expect_case("ignore overrun between start and end");
	flush_entries(qp, 0, 2);
	CHECK(start_poll(cq) == 0);
	flush_entries(qp, 2, lost - 2 + (uint64_t)cq->cqe);
	ibv_end_poll(cq);
	for (uint64_t i = lost; i < lost + (uint64_t)cq->cqe; i++) {
		EXPECT_EQ(ibv_poll_cq(ibv_cq_ex_to_cq(cq), 1, &wc), 1);
		EXPECT_EQ(wc.wr_id, i);
	}
	EXPECT_EQ(ibv_poll_cq(ibv_cq_ex_to_cq(cq), 1, &wc), 0);
	EXPECT_EQ(ibv_destroy_qp(qp), 0);
	EXPECT_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

/*
 * Stamps count hca_core_clock, as ibv_query_rt_values_ex(3) does, and lie between two readings of
 * it.
 */
static void clocks(void)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 4,
		.wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
			    IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK,
	};
	struct ibv_values_ex before = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK}, after = before;
	struct ibv_values_ex none = {.comp_mask = 0}, bad = {.comp_mask = 1u << 31};
	struct ibv_device_attr_ex device;
	struct timespec begin, ep;
	struct ibv_cq_ex *cq = ibv_create_cq_ex(ctx, &attr);
	struct ibv_qp *qp;
	uint64_t wall;

	expect_case("clocks");
	CHECK(cq);
	CHECK(ibv_query_device_ex(ctx, NULL, &device) == 0);
	EXPECT(device.hca_core_clock > 0 && device.completion_timestamp_mask != 0);
	qp = self_connected(cq);
	EXPECT_EQ(ibv_query_rt_values_ex(ctx, &before), 0);
	EXPECT_EQ(before.comp_mask, IBV_VALUES_MASK_RAW_CLOCK);
	clock_gettime(CLOCK_REALTIME, &begin);
	flush_entries(qp, 0, 1);
	CHECK(start_poll(cq) == 0);
	EXPECT_EQ(ibv_query_rt_values_ex(ctx, &after), 0);
	clock_gettime(CLOCK_REALTIME, &ep);
	EXPECT(ibv_wc_read_completion_ts(cq) >= (uint64_t)before.raw_clock.tv_nsec);
	EXPECT(ibv_wc_read_completion_ts(cq) <= (uint64_t)after.raw_clock.tv_nsec);
	wall = ibv_wc_read_completion_wallclock_ns(cq);
	/* The two clocks of the system run apart by what it adjusts them; a second is far more. */
	EXPECT(wall + 1000000000ull > (uint64_t)begin.tv_sec * 1000000000ull);
	EXPECT(wall < ((uint64_t)ep.tv_sec + 2) * 1000000000ull);
	ibv_end_poll(cq);
	expect_case("ibv_query_rt_values_ex: masks");
	EXPECT_EQ(ibv_query_rt_values_ex(ctx, &none), 0);
	EXPECT_EQ(none.comp_mask, 0);
	EXPECT_REFUSED(ibv_query_rt_values_ex(ctx, &bad), EINVAL);
	EXPECT_EQ(ibv_destroy_qp(qp), 0);
	EXPECT_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

/* Every field may be asked for, alone; what a message does not have reads as 0. */
static void every_field(void)
{
	for (int bit = 0; (1u << bit) & IBV_CREATE_CQ_SUP_WC_FLAGS; bit++) {
		struct ibv_cq_init_attr_ex attr = {.cqe = 4, .wc_flags = 1u << bit};
		struct ibv_cq_ex *cq = ibv_create_cq_ex(ctx, &attr);
		struct ibv_wc_tm_info info = {1, 1};
		struct ibv_qp *qp;

		expect_case("wc_flags %#x", 1u << bit);
		CHECK(cq);
		qp = self_connected(cq);
		flush_entries(qp, 7, 1);
		CHECK(start_poll(cq) == 0);
		EXPECT_EQ(cq->wr_id, 7);
		EXPECT_EQ(ibv_wc_read_cvlan(cq), 0);
		EXPECT_EQ(ibv_wc_read_flow_tag(cq), 0);
		ibv_wc_read_tm_info(cq, &info);
		EXPECT(info.tag == 0 && info.priv == 0);
		ibv_end_poll(cq);
		EXPECT_EQ(ibv_destroy_qp(qp), 0);
		EXPECT_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	}
}

int main(int argc, char **argv)
{
	ep_main(argc, argv);
	ctx = device_open();
	pd = ibv_alloc_pd(ctx);
	CHECK(pd);
	mr = ibv_reg_mr(pd, buffer, sizeof(buffer), IBV_ACCESS_LOCAL_WRITE);
	CHECK(mr);
	refused();
	polling(IBV_WC_STANDARD_FLAGS, 0);
	polling(IBV_WC_STANDARD_FLAGS, IBV_CREATE_CQ_ATTR_SINGLE_THREADED);
	polling(IBV_WC_STANDARD_FLAGS, IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN);
	polling(IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP, 0);
	polling(IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK,
		IBV_CREATE_CQ_ATTR_SINGLE_THREADED);
	flags(0);
	flags(IBV_CREATE_CQ_ATTR_SINGLE_THREADED);
	flags(IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN);
	ignore_overrun();
	overrun_in_iteration();
	clocks();
	every_field();
	EXPECT_EQ(ibv_dereg_mr(mr), 0);
	EXPECT_EQ(ibv_dealloc_pd(pd), 0);
	EXPECT_EQ(ibv_close_device(ctx), 0);
	return expect_done();
}
