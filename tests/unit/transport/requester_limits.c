/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The RC requester: when a request waits (windows, fences, draining, direct access), and how it
 * ends.
 */
#include "stand.h"

static void reads_in_flight_are_limited(void **state)
{
	struct stand *s = stand_new(true);
	struct vb_run run;

	(void)state;
	s->qp.max_rd_atomic = 2;
	for (int i = 0; i < 3; i++)
		stand_request(s, i == 1 ? IBV_WR_ATOMIC_FETCH_AND_ADD : IBV_WR_RDMA_READ, 8);
	assert_int_equal(s->sents, 2);
	run = stand_response(s, 100, 8);
	stand_arrive(s, &run);
	assert_int_equal(s->sents, 3);
	stand_free(s);
}

static void a_fence_waits_for_reads(void **state)
{
	struct stand *s = stand_new(true);
	struct vb_run run;

	(void)state;
	stand_request(s, IBV_WR_SEND, 1);
	stand_wqe(s, IBV_WR_SEND, 1)->fence = 1;
	stand_post(s);
	assert_int_equal(s->sents, 2); /* SENDs are not waited for */
	stand_request(s, IBV_WR_RDMA_READ, 8);
	stand_wqe(s, IBV_WR_SEND, 1)->fence = 1;
	stand_post(s);
	assert_int_equal(s->sents, 3);
	run = stand_response(s, 102, 8);
	stand_arrive(s, &run);
	assert_int_equal(s->sents, 4);
	stand_free(s);
}

/* A READ in parts: their bounds stay where they are when one is repeated. */
static void a_read_in_parts(void **state)
{
	struct stand *s = stand_new(false);
	struct vb_run run;

	(void)state;
	s->qp.max_read_bytes = 4096;
	s->qp.max_rd_atomic = 2;
	stand_request(s, IBV_WR_RDMA_READ, 10000);
	assert_int_equal(s->sents, 2);
	assert_int_equal(s->sent[0].dma_length, 4096);
	assert_int_equal(s->sent[1].psn, 104);
	assert_int_equal(s->sent[1].va, 4096);
	assert_int_equal(s->sent[1].dma_length, 4096);
	run = stand_response(s, 100, 2048);
	stand_arrive(s, &run);
	stand_clear(s);
	stand_ack(s, 102, VB_AETH_NAK_SEQUENCE);
	assert_int_equal(s->sents, 2);
	assert_int_equal(s->sent[0].psn, 102);
	assert_int_equal(s->sent[0].dma_length, 2048);
	assert_int_equal(s->sent[1].psn, 104);
	assert_int_equal(s->sent[1].dma_length, 4096);
	run = stand_response(s, 102, 2048);
	stand_arrive(s, &run);
	assert_int_equal(stand_last(s)->psn, 108);
	assert_int_equal(stand_last(s)->dma_length, 10000 - 8192);
	stand_free(s);
}

/* Parts of READs are bounded by the window of READs: other requests by their own. */
static void the_window_of_reads(void **state)
{
	struct stand *s = stand_new(false);
	struct vb_run run;

	(void)state;
	s->qp.window_packets = 2;
	s->qp.read_window_packets = 6;
	s->qp.max_read_bytes = 4096;
	s->qp.max_rd_atomic = 4;
	stand_request(s, IBV_WR_RDMA_READ, 10000);
	assert_int_equal(s->sents, 1); /* a second part would make 8 packets */
	assert_int_equal(stand_last(s)->dma_length, 4096);
	run = stand_response(s, 100, 1024);
	stand_arrive(s, &run);
	assert_int_equal(s->sents, 1);
	run = stand_response(s, 101, 1024);
	stand_arrive(s, &run);
	assert_int_equal(s->sents, 2);
	assert_int_equal(stand_last(s)->psn, 104);
	stand_request(s, IBV_WR_RDMA_WRITE, 1024);
	run = stand_response(s, 102, 6144);
	stand_arrive(s, &run);
	assert_int_equal(s->sents, 3);
	assert_int_equal(stand_last(s)->psn, 108);
	assert_int_equal(stand_last(s)->op, VB_OP_READ_REQUEST);
	run = stand_response(s, 108, 1024);
	stand_arrive(s, &run);
	assert_int_equal(s->sents, 4);
	assert_int_equal(stand_last(s)->op, VB_OP_WRITE);
	stand_free(s);
}

static void the_window(void **state)
{
	struct stand *s = stand_new(false);

	(void)state;
	s->qp.window_packets = 4;
	stand_request(s, IBV_WR_RDMA_WRITE, 7000);
	assert_int_equal(s->sents, 1);
	assert_int_equal(stand_last(s)->segments, 4);
	assert_true(stand_last(s)->flags & VB_RUN_ACK_REQ); /* else nothing would ever open it */
	stand_ack(s, 101, VB_AETH_ACK);
	assert_int_equal(stand_last(s)->psn, 104);
	assert_int_equal(stand_last(s)->segments, 2);
	stand_ack(s, 105, VB_AETH_ACK);
	assert_int_equal(stand_last(s)->psn, 106);
	assert_true(stand_last(s)->flags & VB_RUN_LAST);
	stand_free(s);
}

static void a_full_link(void **state)
{
	struct stand *s = stand_new(true);

	(void)state;
	s->room = 1;
	assert_true(stand_request(s, IBV_WR_RDMA_WRITE, 20000));
	assert_int_equal(s->sents, 1);
	s->room = 9;
	assert_false(vb_tqp_run(&s->qp));
	assert_int_equal(s->sents, 3);
	assert_int_equal(s->sent[2].psn, 116);
	stand_free(s);
}

static void draining(void **state)
{
	struct stand *s = stand_new(true);

	(void)state;
	s->room = 1;
	stand_request(s, IBV_WR_RDMA_WRITE, 20000);
	stand_request(s, IBV_WR_SEND, 1);
	s->qp.state = IBV_QPS_SQD;
	s->room = 9;
	assert_false(vb_tqp_run(&s->qp));
	assert_int_equal(s->sents, 3); /* the WRITE goes on, the SEND does not start */
	assert_true(vb_tqp_busy(&s->qp));
	stand_ack(s, 119, VB_AETH_ACK);
	assert_int_equal(s->dones, 1);
	assert_false(vb_tqp_busy(&s->qp));
	assert_int_equal(s->sents, 3);
	s->qp.state = IBV_QPS_RTS;
	vb_tqp_run(&s->qp);
	assert_int_equal(s->sents, 4);
	stand_free(s);
}

static void local_invalidate(void **state)
{
	struct stand *s = stand_new(true);

	(void)state;
	stand_request(s, IBV_WR_LOCAL_INV, 0);
	stand_expect_done(s, 0, IBV_WC_SUCCESS);
	stand_request(s, IBV_WR_SEND, 1);
	stand_request(s, IBV_WR_LOCAL_INV, 0);
	stand_request(s, IBV_WR_SEND, 1);
	assert_int_equal(s->sents, 2);
	assert_int_equal(s->dones, 1);
	stand_ack(s, 100, VB_AETH_ACK);
	assert_int_equal(s->dones, 3); /* with the SEND before it */
	s->invalidate_fault = VB_REASON_INVALIDATE;
	stand_wqe(s, IBV_WR_LOCAL_INV, 0)->fence = 1; /* waits for everything */
	stand_post(s);
	assert_int_equal(s->dones, 3);
	stand_ack(s, 101, VB_AETH_ACK);
	stand_expect_done(s, 3, IBV_WC_SUCCESS);
	stand_expect_done(s, 4, IBV_WC_MW_BIND_ERR);
	stand_free(s);
}

/*
 * ibv_bind_mw(3): a bind acts before any later request, and completes when everything before it is
 * complete.
 */
static void bind_window(void **state)
{
	struct stand *s = stand_new(true);

	(void)state;
	stand_request(s, IBV_WR_SEND, 1);
	stand_request(s, IBV_WR_BIND_MW, 0);
	assert_int_equal(s->binds, 1);
	assert_int_equal(s->dones, 0);
	stand_request(s, IBV_WR_SEND, 1);
	assert_int_equal(s->sents, 2);
	stand_ack(s, 100, VB_AETH_ACK);
	stand_expect_done(s, 1, IBV_WC_SUCCESS);
	vb_requester_go_back(&s->qp);
	vb_tqp_run(&s->qp);
	assert_int_equal(s->binds, 1); /* never repeated */
	s->bind_fault = VB_REASON_BIND_RANGE;
	stand_request(s, IBV_WR_BIND_MW, 0);
	stand_request(s, IBV_WR_SEND, 1);
	assert_int_equal(s->dones, 2);
	stand_ack(s, 101, VB_AETH_ACK);
	stand_expect_done(s, 3, IBV_WC_MW_BIND_ERR);
	assert_int_equal(s->done[3].reason, VB_REASON_BIND_RANGE);
	stand_expect_done(s, 4, IBV_WC_WR_FLUSH_ERR);
	stand_free(s);
}

static void direct_access(void **state)
{
	struct stand *s = stand_new(true);

	(void)state;
	stand_with_direct(s);
	s->direct[0] = VB_DIRECT_DONE;
	s->direct[1] = VB_DIRECT_MORE;
	s->direct[2] = VB_DIRECT_MORE;
	s->direct[3] = VB_DIRECT_DONE;
	s->direct[4] = VB_DIRECT_DECLINED;
	assert_false(stand_request(s, IBV_WR_RDMA_WRITE, 100));
	stand_expect_done(s, 0, IBV_WC_SUCCESS);
	assert_int_equal(vb_tqp_sq_psn(&s->qp), 100); /* no PSN is used */
	assert_true(stand_request(s, IBV_WR_RDMA_READ, 100));
	assert_true(vb_tqp_busy(&s->qp));
	s->qp.state = IBV_QPS_SQD; /* started work goes on while draining */
	assert_true(vb_tqp_run(&s->qp));
	assert_false(vb_tqp_run(&s->qp));
	stand_expect_done(s, 1, IBV_WC_SUCCESS);
	s->qp.state = IBV_QPS_RTS;
	stand_request(s, IBV_WR_ATOMIC_CMP_AND_SWP, 8);
	assert_int_equal(s->sents, 1); /* declined: sent */
	stand_request(s, IBV_WR_RDMA_WRITE, 8);
	assert_int_equal(s->sents, 2);
	assert_int_equal(s->directs, 5); /* something is in flight: not even asked */
	stand_free(s);
}

static void waiting_for_direct_access(void **state)
{
	struct stand *s = stand_new(true);

	(void)state;
	stand_with_direct(s);
	s->direct[0] = VB_DIRECT_DECLINED;
	s->direct[1] = VB_DIRECT_DONE;
	stand_request(s, IBV_WR_RDMA_WRITE, 8);
	stand_request(s, IBV_WR_RDMA_WRITE, 8); /* not worth it: sent behind the first */
	assert_int_equal(s->sents, 2);
	assert_int_equal(s->waits_asked, 1);
	assert_false(s->two_sided);
	stand_request(s, IBV_WR_SEND, 8);
	s->waits = true;
	assert_false(stand_request(s, IBV_WR_RDMA_WRITE, 8));
	assert_true(s->two_sided);
	assert_int_equal(s->sents, 3);
	stand_ack(s, 101, VB_AETH_ACK);
	assert_int_equal(s->dones, 2);
	stand_ack(s, 102, VB_AETH_ACK); /* its turn */
	assert_int_equal(s->dones, 4);
	assert_int_equal(s->sents, 3);
	stand_free(s);
}

static void not_for_direct_access(void **state)
{
	struct stand *s = stand_new(true);

	(void)state;
	stand_with_direct(s);
	s->direct[0] = VB_DIRECT_DONE;
	stand_request(s, IBV_WR_RDMA_WRITE_WITH_IMM, 100);
	stand_ack(s, 100, VB_AETH_ACK);
	stand_request(s, IBV_WR_SEND, 100);
	assert_int_equal(s->directs, 0);
	assert_int_equal(s->sents, 2);
	stand_free(s);
}

/* The queue pair can be used again after a reset as if nothing had been. */
static void reset_forgets(void **state)
{
	struct stand *s = stand_new(false);

	(void)state;
	for (int i = 0; i < 5; i++)
		stand_request(s, IBV_WR_RDMA_READ, 8);
	assert_true(s->timer_ns != 0);
	vb_tqp_reset(&s->qp);
	assert_int_equal(s->timer_ns, 0);
	assert_int_equal(s->dones, 0);
	assert_int_equal(vb_tqp_outstanding(&s->qp), 0);
	assert_false(vb_tqp_busy(&s->qp));
	stand_service(s, VB_SERVICE_RC);
	stand_clear(s);
	stand_request(s, IBV_WR_SEND, 1);
	assert_int_equal(stand_last(s)->psn, 100);
	stand_ack(s, 100, VB_AETH_ACK);
	stand_expect_done(s, 0, IBV_WC_SUCCESS);
	stand_free(s);
}

static void to_error_flushes_in_order(void **state)
{
	struct stand *s = stand_new(true);

	(void)state;
	for (int i = 0; i < 3; i++)
		stand_request(s, IBV_WR_SEND, 1);
	vb_tqp_to_error(&s->qp);
	for (unsigned int i = 0; i < 3; i++)
		stand_expect_done(s, i, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(s->state_changes, 0);
	stand_ack(s, 101, VB_AETH_ACK); /* too late */
	assert_int_equal(s->dones, 3);
	stand_free(s);
}

/* 2 GiB at the smallest MTU: as many PSNs as half of their space. */
static void the_longest_message(void **state)
{
	struct stand *s = stand_new(true);

	(void)state;
	s->qp.mtu = 256;
	s->qp.max_run_bytes = 8192;
	stand_request(s, IBV_WR_RDMA_READ, 0x80000000);
	assert_int_equal(vb_tqp_sq_psn(&s->qp), 100 + (1u << 23));
	assert_int_equal(stand_last(s)->dma_length, 0x40000000); /* in parts that compare safely */
	assert_int_equal(s->sents, 1);
	stand_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_in_flight_are_limited),
		cmocka_unit_test(a_fence_waits_for_reads),
		cmocka_unit_test(a_read_in_parts),
		cmocka_unit_test(the_window),
		cmocka_unit_test(the_window_of_reads),
		cmocka_unit_test(a_full_link),
		cmocka_unit_test(draining),
		cmocka_unit_test(local_invalidate),
		cmocka_unit_test(bind_window),
		cmocka_unit_test(direct_access),
		cmocka_unit_test(waiting_for_direct_access),
		cmocka_unit_test(not_for_direct_access),
		cmocka_unit_test(reset_forgets),
		cmocka_unit_test(to_error_flushes_in_order),
		cmocka_unit_test(the_longest_message),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
