/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * UC and UD, sender and receiver: messages that may be lost, and what must not happen when they
 * are.
 */
#include "stand.h"

#include <string.h>

#include "transport/grh.h"

#define BOTH (VB_RUN_FIRST | VB_RUN_LAST)

static struct stand *service(enum vb_service which)
{
	struct stand *s = stand_new(true);

	stand_service(s, which);
	return s;
}

static enum vb_reason last_drop(const struct stand *s)
{
	assert_true(s->dropped > 0);
	return s->drops[s->dropped - 1];
}

static void uc_sends_and_is_done(void **state)
{
	struct stand *s = service(VB_SERVICE_UC);

	(void)state;
	stand_request(s, IBV_WR_SEND_WITH_IMM, 9000);
	assert_int_equal(s->sents, 2);
	assert_int_equal(s->sent[0].flags, VB_RUN_FIRST);
	assert_int_equal(s->sent[1].flags, VB_RUN_LAST | VB_RUN_IMM); /* no answer is asked for */
	assert_int_equal(s->sent[1].psn, 108);
	assert_int_equal(s->done[0].status, IBV_WC_SUCCESS);
	assert_int_equal(s->timers, 0);
	stand_request(s, IBV_WR_RDMA_WRITE, 0);
	assert_int_equal(stand_last(s)->psn, 109);
	assert_int_equal(s->dones, 2);
	stand_free(s);
}

static void a_long_message_through_a_narrow_link(void **state)
{
	struct stand *s = service(VB_SERVICE_UC);

	(void)state;
	s->room = 1;
	assert_true(stand_request(s, IBV_WR_SEND, 20000));
	assert_int_equal(s->dones, 0);
	assert_true(vb_tqp_busy(&s->qp));
	s->room = 2;
	assert_false(vb_tqp_run(&s->qp));
	assert_int_equal(s->dones, 1);
	assert_false(vb_tqp_busy(&s->qp));
	stand_free(s);
}

static void faults_stop_sending_only(void **state)
{
	struct stand *s = service(VB_SERVICE_UC);

	(void)state;
	stand_recv(s, 100);
	s->gather_fault = VB_REASON_LKEY_UNKNOWN;
	stand_request(s, IBV_WR_SEND, 10);
	assert_int_equal(s->done[0].status, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(s->qp.state, IBV_QPS_SQE);
	assert_int_equal(s->state_changes, 1);
	stand_request(s, IBV_WR_SEND, 10);
	assert_int_equal(s->done[1].status, IBV_WC_WR_FLUSH_ERR);
	stand_in(s, VB_OP_SEND, BOTH, 200, 10); /* the receiving half goes on */
	assert_int_equal(s->recv_done[0].status, IBV_WC_SUCCESS);
	s->gather_fault = VB_REASON_NONE;
	s->qp.state = IBV_QPS_RTS; /* as ibv_modify_qp(3) does */
	stand_request(s, IBV_WR_SEND, 10);
	assert_int_equal(s->done[2].status, IBV_WC_SUCCESS);
	assert_int_equal(s->sents, 1);
	stand_free(s);
}

static void operations_they_lack(void **state)
{
	static const struct {
		enum vb_service service;
		enum ibv_wr_opcode opcode;
	} table[] = {
		{VB_SERVICE_UC, IBV_WR_RDMA_READ},     {VB_SERVICE_UC, IBV_WR_ATOMIC_CMP_AND_SWP},
		{VB_SERVICE_UC, IBV_WR_SEND_WITH_INV}, {VB_SERVICE_UD, IBV_WR_RDMA_WRITE},
		{VB_SERVICE_UD, IBV_WR_RDMA_READ},     {VB_SERVICE_UD, IBV_WR_LOCAL_INV},
		{VB_SERVICE_UD, IBV_WR_SEND_WITH_INV}, {VB_SERVICE_UD, IBV_WR_RDMA_WRITE_WITH_IMM},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct stand *s = service(table[i].service);

		stand_request(s, table[i].opcode, 8);
		assert_int_equal(s->done[0].status, IBV_WC_LOC_QP_OP_ERR);
		assert_int_equal(s->done[0].reason, VB_REASON_OPCODE);
		assert_int_equal(s->qp.state, IBV_QPS_SQE);
		assert_int_equal(s->sents, 0);
		stand_free(s);
	}
}

static void uc_receives(void **state)
{
	struct stand *s = service(VB_SERVICE_UC);

	(void)state;
	stand_recv(s, 5000);
	stand_in(s, VB_OP_SEND, VB_RUN_FIRST, 200, 2048);
	stand_in(s, VB_OP_SEND, VB_RUN_LAST | VB_RUN_SOLICITED, 202, 7);
	assert_int_equal(s->recv_done[0].byte_len, 2055);
	assert_int_equal(s->recv_done[0].wc_flags, 0);
	assert_true(s->recv_done[0].solicited);
	assert_int_equal(s->sents, 0); /* never an answer */
	stand_free(s);
}

static void a_lost_packet_loses_its_message(void **state)
{
	struct stand *s = service(VB_SERVICE_UC);

	(void)state;
	stand_recv(s, 5000);
	stand_in(s, VB_OP_SEND, VB_RUN_FIRST, 200, 1024);
	stand_in(s, VB_OP_SEND, VB_RUN_LAST, 202, 7);
	assert_int_equal(last_drop(s), VB_REASON_DROP_SEQUENCE);
	assert_int_equal(s->untaken, 1);
	stand_in(s, VB_OP_SEND, 0, 203,
		 1024); /* the middle and end of a message without beginning */
	stand_in(s, VB_OP_SEND, VB_RUN_LAST, 204, 1);
	assert_int_equal(s->recv_dones, 0);
	stand_in(s, VB_OP_SEND, BOTH, 300, 9); /* the next message, whatever its PSN */
	assert_int_equal(s->recv_dones, 1);
	assert_int_equal(s->recv_done[0].byte_len, 9);
	assert_int_equal(s->qp.state, IBV_QPS_RTS);
	stand_free(s);
}

static void a_message_cut_short_by_the_next(void **state)
{
	struct stand *s = service(VB_SERVICE_UC);

	(void)state;
	stand_recv(s, 5000);
	stand_in(s, VB_OP_SEND, VB_RUN_FIRST, 200, 1024);
	stand_in(s, VB_OP_SEND, BOTH, 205, 9);
	assert_int_equal(s->recv_dones, 1);
	assert_int_equal(s->recv_done[0].byte_len, 9);
	stand_free(s);
}

static void uc_drops(void **state)
{
	struct stand *s = service(VB_SERVICE_UC);
	struct vb_run run;

	(void)state;
	stand_in(s, VB_OP_SEND, BOTH, 200, 9);
	assert_int_equal(last_drop(s), VB_REASON_DROP_NO_RECEIVE);
	stand_recv(s, 5);
	stand_in(s, VB_OP_SEND, BOTH, 201, 9);
	assert_int_equal(last_drop(s), VB_REASON_DROP_TOO_LONG);
	run = stand_run(s, VB_OP_WRITE, BOTH, 202, 9);
	run.rkey = 0xbad;
	stand_arrive(s, &run);
	assert_int_equal(last_drop(s), VB_REASON_DROP_ACCESS);
	run.rkey = STAND_RKEY;
	run.dma_length = 10;
	stand_arrive(s, &run);
	assert_int_equal(last_drop(s), VB_REASON_DROP_MALFORMED);
	run.dma_length = 0x80000001;
	stand_arrive(s, &run);
	assert_int_equal(last_drop(s), VB_REASON_DROP_ACCESS);
	s->qp.access = 0;
	run.dma_length = 9;
	stand_arrive(s, &run);
	assert_int_equal(last_drop(s), VB_REASON_DROP_ACCESS);
	stand_in(s, VB_OP_READ_REQUEST, BOTH, 204, 9);
	assert_int_equal(last_drop(s), VB_REASON_DROP_MALFORMED);
	stand_in(s, VB_OP_SEND, VB_RUN_FIRST, 205, 1000);
	assert_int_equal(last_drop(s), VB_REASON_DROP_MALFORMED);
	stand_in(s, VB_OP_ACK, BOTH, 100, 0);
	assert_int_equal(last_drop(s), VB_REASON_DROP_TYPE);
	assert_int_equal(s->recv_dones, 0);
	assert_int_equal(s->events, 0);
	assert_int_equal(s->qp.state, IBV_QPS_RTS);
	assert_int_equal(s->sents, 0);
	assert_int_equal(s->remote[0], 3);
	stand_in(s, VB_OP_SEND, BOTH, 206, 5); /* and the receive serves the next that fits */
	assert_int_equal(s->recv_dones, 1);
	stand_free(s);
}

static void uc_writes(void **state)
{
	struct stand *s = service(VB_SERVICE_UC);
	struct vb_run run = stand_run(s, VB_OP_WRITE, VB_RUN_FIRST, 200, 1024);

	(void)state;
	stand_recv(s, 0);
	run.dma_length = 1030;
	run.va = 10;
	stand_arrive(s, &run);
	stand_in(s, VB_OP_WRITE, VB_RUN_LAST | VB_RUN_IMM, 201, 6);
	assert_int_equal(s->remote[10], (uint8_t)200);
	assert_int_equal(s->remote[1034], (uint8_t)201);
	assert_int_equal(s->recv_done[0].opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	assert_int_equal(s->recv_done[0].byte_len, 1030);
	stand_in(s, VB_OP_WRITE, BOTH | VB_RUN_IMM, 202, 6); /* no receive for the immediate */
	assert_int_equal(last_drop(s), VB_REASON_DROP_NO_RECEIVE);
	stand_free(s);
}

static void a_bad_receive_is_the_receivers_fault(void **state)
{
	static const enum vb_service services[] = {VB_SERVICE_UC, VB_SERVICE_UD};

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct stand *s = service(services[i]);

		stand_recv(s, 500);
		s->recv_fault = VB_REASON_LKEY_RANGE;
		stand_in(s, VB_OP_SEND, BOTH, 200, 9);
		assert_int_equal(s->recv_done[0].status, IBV_WC_LOC_PROT_ERR);
		assert_int_equal(s->qp.state, IBV_QPS_ERR);
		assert_int_equal(s->sents, 0);
		stand_free(s);
	}
}

static void ud_sends(void **state)
{
	struct stand *s = service(VB_SERVICE_UD);
	struct vb_send_wqe *w = stand_wqe(s, IBV_WR_SEND_WITH_IMM, 1024);

	(void)state;
	w->remote_qpn = 0xff000033; /* only 24 bits count */
	w->remote_qkey = 0x55;
	w->path.hop_limit = 9;
	stand_post(s);
	assert_int_equal(stand_last(s)->dest_qpn, 0x33);
	assert_int_equal(stand_last(s)->qkey, 0x55);
	assert_int_equal(stand_last(s)->flags, BOTH | VB_RUN_IMM);
	assert_int_equal(stand_last(s)->path.hop_limit, 9);
	assert_int_equal(s->done[0].status, IBV_WC_SUCCESS);
	w = stand_wqe(s, IBV_WR_SEND, 0);
	w->remote_qkey = 0x80000000; /* "my own" */
	stand_post(s);
	assert_int_equal(stand_last(s)->qkey, PROTOCOL_QKEY);
	assert_int_equal(stand_last(s)->psn, 101);
	stand_request(s, IBV_WR_SEND, 1025);
	assert_int_equal(s->done[2].status, IBV_WC_LOC_LEN_ERR);
	assert_int_equal(s->qp.state, IBV_QPS_SQE);
	assert_int_equal(s->sents, 2);
	stand_free(s);
}

static void ud_receives(void **state)
{
	struct stand *s = service(VB_SERVICE_UD);
	struct vb_run run = stand_run(s, VB_OP_SEND, BOTH | VB_RUN_IMM, 7000, 11);

	(void)state;
	stand_recv(s, 51);
	run.src_qpn = 0x77;
	stand_arrive(s, &run);
	assert_int_equal(s->recv_dones, 1);
	assert_int_equal(s->recv_done[0].byte_len, 51);
	assert_int_equal(s->recv_done[0].wc_flags, IBV_WC_GRH | IBV_WC_WITH_IMM);
	assert_int_equal(s->recv_done[0].src_qp, 0x77);
	assert_int_equal(s->recv_done[0].header_kind, VB_GRH_KIND_IPV6);
	assert_int_equal(s->inbox[40], (uint8_t)7000);
	assert_int_equal(s->events, 0);
	/* The completion tells which header the first 40 bytes hold. */
	run.path.dgid[10] = run.path.dgid[11] = 0xff;
	stand_recv(s, 51);
	stand_arrive(s, &run);
	assert_int_equal(s->recv_dones, 2);
	assert_int_equal(s->recv_done[1].header_kind, VB_GRH_KIND_IPV4);
	stand_free(s);
}

static void ud_drops(void **state)
{
	struct stand *s = service(VB_SERVICE_UD);
	struct vb_run run = stand_run(s, VB_OP_SEND, BOTH, 1, 11);

	(void)state;
	stand_arrive(s, &run);
	assert_int_equal(last_drop(s), VB_REASON_DROP_NO_RECEIVE);
	stand_recv(s, 50);
	stand_arrive(s, &run);
	assert_int_equal(last_drop(s), VB_REASON_DROP_TOO_LONG);
	run.length = 10;
	run.qkey = 0x1235;
	stand_arrive(s, &run);
	assert_int_equal(last_drop(s), VB_REASON_DROP_QKEY);
	run.qkey = PROTOCOL_QKEY;
	run.flags = VB_RUN_FIRST;
	stand_arrive(s, &run);
	assert_int_equal(last_drop(s), VB_REASON_DROP_MALFORMED);
	run.flags = BOTH;
	run.segments = 2;
	stand_arrive(s, &run);
	assert_int_equal(last_drop(s), VB_REASON_DROP_MALFORMED);
	run.segments = 1;
	run.op = VB_OP_WRITE;
	stand_arrive(s, &run);
	assert_int_equal(last_drop(s), VB_REASON_DROP_MALFORMED);
	run.op = VB_OP_SEND;
	run.service = VB_SERVICE_RC;
	stand_arrive(s, &run);
	assert_int_equal(last_drop(s), VB_REASON_DROP_TYPE);
	assert_int_equal(s->recv_dones, 0);
	run.service = VB_SERVICE_UD;
	stand_arrive(s, &run); /* the receive stayed for this one */
	assert_int_equal(s->recv_dones, 1);
	stand_free(s);
}

static void nowhere_to_go(void **state)
{
	static const enum vb_service services[] = {VB_SERVICE_UC, VB_SERVICE_UD};

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct stand *s = service(services[i]);

		s->room = 0;
		assert_true(stand_request(s, IBV_WR_SEND, 10));
		stand_request(s, IBV_WR_SEND, 10);
		vb_tqp_unreachable(&s->qp, VB_REASON_DROP_UNREACHABLE);
		assert_int_equal(s->dones, 1);
		assert_int_equal(s->done[0].status, IBV_WC_SUCCESS); /* the loss cannot be known */
		s->room = 1;
		assert_false(vb_tqp_run(&s->qp));
		assert_int_equal(s->dones, 2);
		assert_int_equal(stand_last(s)->psn, 101);
		stand_free(s);
	}
}

static void a_dead_peer(void **state)
{
	struct stand *s = service(VB_SERVICE_UC);

	(void)state;
	s->room = 0;
	stand_request(s, IBV_WR_SEND, 10);
	vb_tqp_peer_dead(&s->qp);
	stand_request(s, IBV_WR_SEND, 10);
	assert_int_equal(s->dones, 2);
	assert_int_equal(s->done[1].status, IBV_WC_SUCCESS);
	assert_int_equal(s->qp.state, IBV_QPS_RTS);
	stand_free(s);
}

static unsigned int sum16(const uint8_t *header)
{
	unsigned int sum = 0;

	for (int i = 0; i < 20; i += 2)
		sum += (unsigned int)header[i] * 256 + header[i + 1];
	return (sum & 0xffff) + (sum >> 16);
}

static void headers_of_ipv4(void **state)
{
	static const uint8_t zeros[20];
	struct vb_path path = {
		.sgid = {[10] = 0xff, 0xff, 10, 0, 0, 1},
		.dgid = {[10] = 0xff, 0xff, 10, 0, 0, 2},
		.traffic_class = 0xb8,
		.hop_limit = 61,
	};
	uint8_t grh[VB_GRH_BYTES];

	(void)state;
	vb_grh_build(&path, 13, true, grh);
	assert_memory_equal(grh, zeros, 20); /* else ibv_init_ah_from_wc(3) guesses IPv6 */
	assert_int_equal(grh[20], 0x45);
	assert_int_equal(grh[21], 0xb8);
	assert_int_equal(grh[22] * 256 + grh[23], 20 + 8 + 12 + 8 + 4 + 16 + 4);
	assert_int_equal(grh[28], 61);
	assert_int_equal(grh[29], 17);
	assert_memory_equal(grh + 32, path.sgid + 12, 4);
	assert_memory_equal(grh + 36, path.dgid + 12, 4);
	assert_int_equal(sum16(grh + 20), 0xffff);
}

static void headers_of_ipv6(void **state)
{
	struct vb_path path = {
		.sgid = {0xfe, 0x80, [15] = 1},
		.dgid = {0xfe, 0x80, [15] = 2},
		.traffic_class = 0xb8,
		.flow_label = 0xabcde,
		.hop_limit = 61,
	};
	uint8_t grh[VB_GRH_BYTES];

	(void)state;
	vb_grh_build(&path, 0, false, grh);
	assert_int_equal(grh[0], 0x6b);
	assert_int_equal(grh[1], 0x8a);
	assert_int_equal(grh[2], 0xbc);
	assert_int_equal(grh[3], 0xde);
	assert_int_equal(grh[4] * 256 + grh[5], 8 + 12 + 8 + 4);
	assert_int_equal(grh[6], 17);
	assert_int_equal(grh[7], 61);
	assert_memory_equal(grh + 8, path.sgid, 16);
	assert_memory_equal(grh + 24, path.dgid, 16);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(uc_sends_and_is_done),
		cmocka_unit_test(a_long_message_through_a_narrow_link),
		cmocka_unit_test(faults_stop_sending_only),
		cmocka_unit_test(operations_they_lack),
		cmocka_unit_test(uc_receives),
		cmocka_unit_test(a_lost_packet_loses_its_message),
		cmocka_unit_test(a_message_cut_short_by_the_next),
		cmocka_unit_test(uc_drops),
		cmocka_unit_test(uc_writes),
		cmocka_unit_test(a_bad_receive_is_the_receivers_fault),
		cmocka_unit_test(ud_sends),
		cmocka_unit_test(ud_receives),
		cmocka_unit_test(ud_drops),
		cmocka_unit_test(nowhere_to_go),
		cmocka_unit_test(a_dead_peer),
		cmocka_unit_test(headers_of_ipv4),
		cmocka_unit_test(headers_of_ipv6),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
