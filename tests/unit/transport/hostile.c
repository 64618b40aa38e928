/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A peer may put anything into a run. The environment of the stand checks that nothing beyond a
 * receive, a request, the granted region or the payload is touched, and the sanitizers check the
 * rest. The queue pair can still be reset and used afterwards.
 */
#include "stand.h"

#include <stdlib.h>
#include <string.h>

#define LIVES 300
#define RUNS  60

static uint64_t seed = 1;

static uint32_t any(uint32_t below)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(seed >> 33) % below;
}

/* A PSN that means something, or one nearby, or any. */
static uint32_t some_psn(const struct stand *s)
{
	uint32_t bases[] = {s->qp.resp.epsn, s->qp.req.una, s->qp.req.psn, 0, 0x800000};
	uint32_t base = bases[any(5)];

	if (!any(8))
		return any(1u << 24);
	return vb_psn_add(base, any(2) ? any(20) : (0u - any(20)) & VB_PSN_MASK);
}

static struct vb_run some_run(const struct stand *s)
{
	static const uint8_t good_syndromes[] = {VB_AETH_ACK, VB_AETH_ACK, VB_AETH_NAK_SEQUENCE,
						 VB_AETH_RNR};
	struct vb_run run;

	memset(&run, 0, sizeof(run));
	run.service = any(20) ? s->qp.service : (uint8_t)any(256);
	run.op = any(30) ? (uint8_t)any(VB_OP_COUNT) : (uint8_t)any(256);
	run.flags = any(3) ? (uint8_t)any(64) : VB_RUN_FIRST | VB_RUN_LAST;
	run.syndrome = any(4) ? good_syndromes[any(4)] : (uint8_t)any(256);
	run.pkey = any(30) ? 0xffff : (uint16_t)any(0x10000);
	/* What a link guarantees: at least one packet, and as many bytes as it says. */
	run.segments = any(4) ? (uint16_t)(1 + any(8)) : (uint16_t)(1 + any(0xffff));
	switch (any(4)) {
	case 0:
		run.length = 0;
		break;
	case 1:
		run.length = any(9000);
		break;
	default:
		run.length = run.segments > 30 ? any(30000)
					       : run.segments * s->qp.mtu - any(3) % s->qp.mtu;
		break;
	}
	run.dest_qpn = STAND_QPN;
	run.src_qpn = any(20) ? STAND_PEER : any(3);
	run.psn = some_psn(s);
	run.imm = any(1u << 30);
	run.qkey = PROTOCOL_QKEY;
	run.rkey = any(10) ? STAND_RKEY : any(1u << 30);
	run.dma_length = any(3) ? run.length : any(2) ? any(20000) : any(0x7fffffff) * 2 + 1;
	run.va = any(3)   ? any(STAND_MEMORY) & ~7u
		 : any(2) ? UINT64_MAX - any(10)
			  : any(STAND_MEMORY + 100);
	run.swap_add = any(100);
	run.compare = any(100);
	run.original = any(100);
	return run;
}

static void refill(struct stand *s)
{
	stand_clear(s);
	s->room = any(6) ? STAND_RUNS : any(3);
	s->dones = s->recv_dones = s->events = 0;
	if (s->recvs < 8 && any(2))
		stand_recv(s, any(2) ? any(200) : 20000);
	if (vb_tqp_outstanding(&s->qp) < STAND_SQ && s->qp.state >= IBV_QPS_RTS && any(2)) {
		static const enum ibv_wr_opcode opcodes[] = {
			IBV_WR_SEND,      IBV_WR_RDMA_WRITE,           IBV_WR_RDMA_READ,
			IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_LOCAL_INV};
		enum ibv_wr_opcode opcode = opcodes[any(6)];

		stand_request(s, opcode, opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? 8 : any(20000));
	}
	if (s->timer_ns && !any(4))
		stand_expire(s);
}

static void one_life(enum vb_service service, bool reliable)
{
	struct stand *s = stand_new(reliable);

	s->qp.mtu = 256u << any(5);
	s->qp.max_run_bytes = s->qp.mtu * (1 + any(4));
	s->qp.window_packets = any(2) ? 0 : 1 + any(20);
	s->qp.max_read_bytes = any(2) ? 0 : s->qp.mtu * (1 + any(4));
	s->qp.read_window_packets = any(2) ? 0 : 1 + any(20);
	s->qp.max_dest_rd_atomic = (uint8_t)any(5);
	stand_service(s, service);
	if (!any(5))
		s->qp.state = (uint8_t)any(IBV_QPS_ERR + 1);
	for (int i = 0; i < RUNS; i++) {
		struct vb_run run;

		refill(s);
		run = some_run(s);
		stand_arrive(s, &run);
	}
	/* It is still a queue pair. */
	vb_tqp_to_error(&s->qp);
	assert_int_equal(vb_tqp_outstanding(&s->qp), 0);
	vb_tqp_reset(&s->qp);
	stand_service(s, service);
	stand_clear(s);
	s->dones = 0;
	s->gather_fault = VB_REASON_NONE;
	stand_request(s, IBV_WR_SEND, 10);
	assert_int_equal(s->sents, 1);
	if (service == VB_SERVICE_RC)
		stand_ack(s, 100, VB_AETH_ACK);
	assert_int_equal(s->dones, 1);
	assert_int_equal(s->done[0].status, IBV_WC_SUCCESS);
	stand_free(s);
}

static void rc(void **state)
{
	(void)state;
	for (int i = 0; i < LIVES; i++)
		one_life(VB_SERVICE_RC, i & 1);
}

static void uc(void **state)
{
	(void)state;
	for (int i = 0; i < LIVES; i++)
		one_life(VB_SERVICE_UC, i & 1);
}

static void ud(void **state)
{
	(void)state;
	for (int i = 0; i < LIVES; i++)
		one_life(VB_SERVICE_UD, i & 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rc),
		cmocka_unit_test(uc),
		cmocka_unit_test(ud),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
