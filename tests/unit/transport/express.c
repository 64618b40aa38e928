/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The short way of a SEND, and of a WRITE with immediate, leaves a queue pair as the long way does: two
 * queue pairs have the same random life, one of them by the short way wherever it is open.
 */
#include "stand.h"

#include <stdlib.h>
#include <string.h>

#include "transport/express.h"

#define STEPS 20000
#define BOTH  (VB_RUN_FIRST | VB_RUN_LAST)

static unsigned int shorts_out, shorts_in; /* how often the short way was taken, */
static unsigned int writes_out, writes_in; /* and by WRITEs */

/* What a link does with an entry: here the run goes into the stand's list. */
static bool entry_send(struct stand *s)
{
	struct vb_tqp *qp = &s->qp;
	struct vb_send_wqe *w = vb_tqp_wqe(qp, qp->req.cur);
	const struct vb_operation *op = vb_operation(w->opcode);
	struct vb_run run;

	if (!s->room || !vb_express_sends(qp) || !vb_express_takes(qp, w, op))
		return false;
	memset(&run, 0, sizeof(run));
	run.service = qp->service;
	run.op = op->op;
	run.flags = vb_express_flags(qp, w, op);
	run.pkey = qp->pkey;
	run.segments = 1;
	run.dest_qpn = qp->dest_qpn;
	run.src_qpn = qp->qpn;
	run.psn = qp->req.psn;
	run.length = (uint32_t)w->length;
	run.imm = w->imm;
	run.ack_psn = qp->resp.ack_psn;
	run.va = run.op == VB_OP_WRITE ? w->remote_addr : 0;
	run.rkey = run.op == VB_OP_WRITE ? w->rkey : 0;
	run.dma_length = run.op == VB_OP_WRITE ? run.length : 0;
	s->room--;
	s->sent[s->sents++] = run;
	vb_express_sent(qp, w);
	shorts_out++;
	writes_out += run.op == VB_OP_WRITE;
	return true;
}

static void post_short(struct stand *s)
{
	s->qp.sq_posted++;
	while (s->qp.req.cur != s->qp.sq_posted && entry_send(s))
		;
	vb_tqp_run(&s->qp);
}

/* Whether it is one that the short way is for. */
static bool is_short(const struct vb_tqp *qp, const struct vb_run *run)
{
	if (run->op == VB_OP_WRITE && (!(run->flags & VB_RUN_IMM) ||
				       run->dma_length != run->length || !vb_express_writes(qp)))
		return false;
	return run->op <= VB_OP_WRITE && run->segments == 1 && run->length <= qp->mtu &&
	       (run->flags & ~VB_EXPRESS_FLAGS) == BOTH && run->service == VB_SERVICE_RC &&
	       vb_express_receives(qp, run->src_qpn, run->psn, run->pkey);
}

/* The bytes of a WRITE; the stand's long way has them from stand_arrive(). */
static bool memory_fill(struct vb_tqp *qp, const struct vb_run *run)
{
	uint8_t payload[4096];

	for (uint32_t i = 0; i < run->length; i++)
		payload[i] = (uint8_t)(i * 3 + run->psn);
	if (run->length &&
	    qp->env->memory.remote_write(qp, run->rkey, run->va, payload, run->length))
		return false;
	vb_express_written(qp, run->va, run->rkey, run->length);
	return true;
}

/* As the link does; false: the packet goes the long way. */
static bool take_short(struct stand *s, const struct vb_run *run)
{
	struct vb_tqp *qp = &s->qp;
	struct vb_recv_done done = {.opcode = IBV_WC_RECV, .status = IBV_WC_SUCCESS};
	struct vb_recv_wqe *wqe;

	if (!is_short(qp, run))
		return false;
	if (run->flags & VB_RUN_ACKS && !vb_express_acks(qp, run->ack_psn))
		return false;
	wqe = qp->env->queue.recv_take(qp);
	if (!wqe)
		return false;
	if (run->op == VB_OP_WRITE ? !memory_fill(qp, run) : run->length > wqe->length) {
		qp->resp.recv = wqe;
		return false;
	}
	if (run->flags & VB_RUN_ACKS)
		vb_express_acked(qp, run->ack_psn);
	vb_express_received(qp, run->length);
	done.wqe = wqe;
	done.byte_len = run->length;
	if (run->op == VB_OP_WRITE)
		done.opcode = IBV_WC_RECV_RDMA_WITH_IMM;
	qp->env->queue.recv_done(qp, &done);
	shorts_in++;
	writes_in += run->op == VB_OP_WRITE;
	return true;
}

static void arrive_short(struct stand *s, const struct vb_run *run)
{
	if (!take_short(s, run)) {
		stand_arrive(s, run);
		return;
	}
	vb_tqp_run(&s->qp);
}

/* All that the protocol remembers, but for where the stand keeps its rings and receives. */
static struct vb_tqp memory_of(const struct stand *s)
{
	struct vb_tqp qp;

	memcpy(&qp, &s->qp, sizeof(qp));
	qp.sq = NULL;
	qp.req.rd_end = NULL;
	qp.resp.res = NULL;
	qp.resp.recv = qp.resp.recv ? (void *)((char *)qp.resp.recv - (uintptr_t)s) : NULL;
	return qp;
}

static void expect_alike(const struct stand *a, const struct stand *b)
{
	struct vb_tqp left = memory_of(a), right = memory_of(b);

	assert_memory_equal(&left, &right, sizeof(left));
	assert_int_equal(a->sents, b->sents);
	for (unsigned int i = 0; i < a->sents; i++) {
		assert_int_equal(a->sent[i].op, b->sent[i].op);
		assert_int_equal(a->sent[i].flags, b->sent[i].flags);
		assert_int_equal(a->sent[i].psn, b->sent[i].psn);
		assert_int_equal(a->sent[i].length, b->sent[i].length);
		if (a->sent[i].flags & VB_RUN_ACKS)
			assert_int_equal(a->sent[i].ack_psn, b->sent[i].ack_psn);
		if (a->sent[i].op == VB_OP_WRITE && a->sent[i].flags & VB_RUN_FIRST) {
			assert_int_equal(a->sent[i].va, b->sent[i].va);
			assert_int_equal(a->sent[i].rkey, b->sent[i].rkey);
			assert_int_equal(a->sent[i].dma_length, b->sent[i].dma_length);
		}
	}
	assert_memory_equal(a->remote, b->remote, sizeof(a->remote));
	assert_int_equal(a->dones, b->dones);
	assert_int_equal(a->recv_dones, b->recv_dones);
	for (unsigned int i = 0; i < a->recv_dones; i++) {
		assert_int_equal(a->recv_done[i].opcode, b->recv_done[i].opcode);
		assert_int_equal(a->recv_done[i].status, b->recv_done[i].status);
		assert_int_equal(a->recv_done[i].byte_len, b->recv_done[i].byte_len);
	}
	assert_int_equal(a->recvs_taken, b->recvs_taken);
	assert_int_equal(a->told, b->told);
	assert_int_equal(a->events, b->events);
	assert_int_equal(a->dropped, b->dropped);
	assert_int_equal(a->state_changes, b->state_changes);
	assert_int_equal(a->timer_ns, b->timer_ns);
}

/* What the stands note is forgotten before it fills. */
static void notes_end(struct stand *s)
{
	stand_clear(s);
	s->dones = s->recv_dones = s->events = s->dropped = 0;
	if (s->recvs == s->recvs_taken && !s->qp.resp.recv)
		s->recvs = s->recvs_taken = 0;
}

static unsigned int below(unsigned int n)
{
	return (unsigned int)rand() % n;
}

static void post_both(struct stand *pair[2])
{
	static const enum ibv_wr_opcode opcodes[] = {IBV_WR_SEND,
						     IBV_WR_SEND,
						     IBV_WR_SEND_WITH_IMM,
						     IBV_WR_SEND_WITH_INV,
						     IBV_WR_RDMA_WRITE,
						     IBV_WR_RDMA_READ,
						     IBV_WR_RDMA_WRITE_WITH_IMM};
	enum ibv_wr_opcode opcode = opcodes[below(7)];
	uint32_t length = below(8) ? below(64) : below(3000);
	bool solicited = !below(3), fence = !below(8), fault = !below(200);
	uint64_t remote = below(1 << 20);

	if (pair[0]->qp.sq_posted - pair[0]->qp.req.head >= STAND_SQ)
		return;
	for (int i = 0; i < 2; i++) {
		struct vb_send_wqe *w = stand_wqe(pair[i], opcode, length);

		w->solicited = solicited;
		w->fence = fence;
		w->error = fault ? IBV_WC_LOC_QP_OP_ERR : 0;
		w->remote_addr = remote;
	}
	stand_post(pair[0]);
	post_short(pair[1]);
}

/* Some WRITEs have no immediate, a wrong key, a range that is too long, or another length. */
static void become_write(struct vb_run *run)
{
	run->op = VB_OP_WRITE;
	run->flags &= (uint8_t)~VB_RUN_INV;
	run->flags |= below(16) ? VB_RUN_IMM : 0;
	run->va = below(STAND_MEMORY - 4096);
	if (!below(400))
		run->rkey++;
	if (!below(400))
		run->va = STAND_MEMORY;
	if (!below(400))
		run->dma_length++;
}

static void arrive_both(struct stand *pair[2])
{
	static const uint8_t more[] = {0, VB_RUN_IMM, VB_RUN_SOLICITED, VB_RUN_INV};
	const struct vb_tqp *qp = &pair[0]->qp;
	uint32_t flight = (uint32_t)vb_psn_diff(qp->req.max_psn, qp->req.una);
	uint32_t length = below(8) ? below(64) : below(1500);
	struct vb_run run;

	run = stand_run(pair[0], VB_OP_SEND, BOTH | VB_RUN_ACK_REQ | more[below(4)],
			qp->resp.epsn + (below(16) ? 0 : below(3) - 1), length);
	if (below(2))
		become_write(&run);
	if (below(3)) {
		run.flags |= VB_RUN_ACKS;
		run.ack_psn = vb_psn_add(qp->req.una, below(flight + 2));
	}
	if (!below(40))
		run.pkey = 0x7fff;
	if (!below(40))
		run.src_qpn++;
	stand_arrive(pair[0], &run);
	arrive_short(pair[1], &run);
}

static void answer_both(struct stand *pair[2])
{
	static const uint8_t syndromes[] = {VB_AETH_ACK, VB_AETH_ACK, VB_AETH_ACK, VB_AETH_RNR | 1,
					    VB_AETH_NAK_SEQUENCE};
	const struct vb_requester *r = &pair[0]->qp.req;
	uint32_t psn = vb_psn_add(r->una, below((uint32_t)vb_psn_diff(r->max_psn, r->una) + 1));
	uint8_t syndrome = syndromes[below(5)];

	for (int i = 0; i < 2; i++)
		stand_ack(pair[i], psn, syndrome);
}

static void step_both(struct stand *pair[2])
{
	unsigned int room = below(20) ? STAND_RUNS : below(2), what = below(16);

	for (int i = 0; i < 2; i++) {
		notes_end(pair[i]);
		pair[i]->room = room;
	}
	if (below(2) && pair[0]->recvs < 8) {
		stand_recv(pair[0], what < 12 ? 64 : 2000);
		stand_recv(pair[1], what < 12 ? 64 : 2000);
	}
	if (what < 6)
		post_both(pair);
	else if (what < 12)
		arrive_both(pair);
	else if (what < 15)
		answer_both(pair);
	else if (pair[0]->timer_ns)
		for (int i = 0; i < 2; i++)
			stand_expire(pair[i]);
	expect_alike(pair[0], pair[1]);
}

static void pair_make(struct stand *pair[2])
{
	unsigned int fate = below(20); /* a few take no WRITEs, or tell of them */

	for (int i = 0; i < 2; i++) {
		pair[i] = stand_new(true);
		pair[i]->qp.acks_ride = true;
		pair[i]->qp.rnr_retry = 7;
		pair[i]->qp.pkey = 0xffff;
		if (!fate)
			pair[i]->qp.access &= ~(uint32_t)IBV_ACCESS_REMOTE_WRITE;
		pair[i]->qp.tells = fate == 1;
	}
}

static void same_memory(void **state)
{
	struct stand *pair[2];

	(void)state;
	srand(1);
	pair_make(pair);
	for (int i = 0; i < STEPS; i++) {
		step_both(pair);
		if (pair[0]->qp.state == IBV_QPS_RTS)
			continue;
		stand_free(pair[0]);
		stand_free(pair[1]);
		pair_make(pair);
	}
	stand_free(pair[0]);
	stand_free(pair[1]);
	assert_true(shorts_out > STEPS / 40);
	assert_true(shorts_in > STEPS / 20);
	assert_true(writes_out > STEPS / 200);
	assert_true(writes_in > STEPS / 40);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(same_memory)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
