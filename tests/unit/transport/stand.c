/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The test stand's environment. */
#include "stand.h"

#include <stdlib.h>
#include <string.h>

static struct stand *stand_of(struct vb_tqp *qp)
{
	return (struct stand *)(void *)qp;
}

static void *reserve(struct vb_tqp *qp, const struct vb_send_wqe *wqe, const struct vb_run *run)
{
	struct stand *s = stand_of(qp);

	(void)wqe;
	assert_true(run->flags & VB_RUN_LENT || run->length <= sizeof(s->buffer));
	return s->room ? s->buffer : NULL;
}

static void commit(struct vb_tqp *qp, const struct vb_send_wqe *wqe, const struct vb_run *run)
{
	struct stand *s = stand_of(qp);

	(void)wqe;
	assert_true(s->room > 0);
	assert_true(s->sents < STAND_RUNS);
	assert_true(run->segments >= 1);
	assert_true(run->length <= run->segments * qp->mtu);
	s->room--;
	s->sent[s->sents++] = *run;
	if (!(run->flags & VB_RUN_LENT))
		memcpy(s->payload, s->buffer, run->length);
}

static void timer(struct vb_tqp *qp, uint64_t delay_ns)
{
	struct stand *s = stand_of(qp);

	s->timer_ns = delay_ns;
	s->timers++;
}

static uint64_t now(struct vb_tqp *qp)
{
	return stand_of(qp)->now_ns;
}

static enum vb_reason gather_check(struct vb_tqp *qp, struct vb_send_wqe *wqe)
{
	(void)wqe;
	return stand_of(qp)->gather_fault;
}

static enum vb_reason gather(struct vb_tqp *qp, struct vb_send_wqe *wqe, uint64_t offset, void *dst,
			     uint32_t length)
{
	struct stand *s = stand_of(qp);

	assert_true(offset + length <= wqe->length);
	if (!s->gather_fault)
		memcpy(dst, s->local + offset, length);
	return s->gather_fault;
}

static enum vb_reason scatter_response(struct vb_tqp *qp, struct vb_send_wqe *wqe, uint64_t offset,
				       const void *src, uint32_t length)
{
	struct stand *s = stand_of(qp);

	assert_true(offset + length <= wqe->length);
	if (!s->scatter_fault)
		memcpy(s->local + offset, src, length);
	return s->scatter_fault;
}

static enum vb_direct direct(struct vb_tqp *qp, struct vb_send_wqe *wqe)
{
	(void)wqe;
	return stand_of(qp)->direct[stand_of(qp)->directs++ % 8];
}

static bool direct_waits(struct vb_tqp *qp, const struct vb_send_wqe *wqe, bool two_sided)
{
	struct stand *s = stand_of(qp);

	(void)wqe;
	s->waits_asked++;
	s->two_sided = two_sided;
	return s->waits;
}

static void send_done(struct vb_tqp *qp, struct vb_send_wqe *wqe, enum ibv_wc_status status,
		      enum vb_reason reason)
{
	struct stand *s = stand_of(qp);

	assert_true(s->dones < STAND_DONE);
	s->done[s->dones++] = (struct stand_done){wqe->wr_id, status, reason};
	memset(wqe, 0xee, STAND_WQE_BYTES);
}

static struct vb_recv_wqe *recv_take(struct vb_tqp *qp)
{
	struct stand *s = stand_of(qp);

	return s->recvs_taken < s->recvs ? &s->recv[s->recvs_taken++].wqe : NULL;
}

static void recv_untake(struct vb_tqp *qp, struct vb_recv_wqe *wqe)
{
	struct stand *s = stand_of(qp);

	assert_ptr_equal(wqe, &s->recv[s->recvs_taken - 1].wqe);
	s->recvs_taken--;
	s->untaken++;
}

static enum vb_reason recv_scatter(struct vb_tqp *qp, struct vb_recv_wqe *wqe, uint64_t offset,
				   const void *src, uint32_t length)
{
	struct stand *s = stand_of(qp);

	assert_true(offset + length <= wqe->length);
	if (!s->recv_fault)
		memcpy(s->inbox + offset, src, length);
	return s->recv_fault;
}

static void recv_done(struct vb_tqp *qp, const struct vb_recv_done *done)
{
	struct stand *s = stand_of(qp);

	assert_true(s->recv_dones < STAND_DONE);
	s->recv_done[s->recv_dones++] = *done;
}

static void remote_done(struct vb_tqp *qp, uint8_t op, uint64_t bytes, bool ok)
{
	(void)op;
	(void)bytes;
	(void)ok;
	stand_of(qp)->told++;
}

static enum vb_reason remote_check(struct vb_tqp *qp, uint32_t rkey, uint64_t va, uint64_t length,
				   uint32_t need)
{
	struct stand *s = stand_of(qp);

	(void)need;
	assert_true(length > 0); /* an access of no bytes is not checked */
	if (rkey != STAND_RKEY)
		return VB_REASON_RKEY_UNKNOWN;
	return va > s->remote_length || length > s->remote_length - va ? VB_REASON_RKEY_RANGE
								       : VB_REASON_NONE;
}

static enum vb_reason remote_write(struct vb_tqp *qp, uint32_t rkey, uint64_t va, const void *src,
				   uint32_t length)
{
	struct stand *s = stand_of(qp);
	enum vb_reason reason = remote_check(qp, rkey, va, length, 0);

	if (!reason)
		reason = s->copy_fault;
	if (!reason)
		memcpy(s->remote + va, src, length);
	return reason;
}

static enum vb_reason remote_read(struct vb_tqp *qp, uint32_t rkey, uint64_t va, void *dst,
				  uint32_t length)
{
	struct stand *s = stand_of(qp);
	enum vb_reason reason = remote_check(qp, rkey, va, length, 0);

	if (!reason)
		reason = s->copy_fault;
	if (!reason)
		memcpy(dst, s->remote + va, length);
	return reason;
}

static enum vb_reason remote_atomic(struct vb_tqp *qp, uint32_t rkey, uint64_t va,
				    bool compare_swap, uint64_t swap_add, uint64_t compare,
				    uint64_t *original)
{
	struct stand *s = stand_of(qp);
	enum vb_reason reason = remote_check(qp, rkey, va, 8, 0);
	uint64_t value;

	if (reason)
		return reason;
	s->atomics++;
	memcpy(original, s->remote + va, 8);
	value = compare_swap ? *original == compare ? swap_add : *original : *original + swap_add;
	memcpy(s->remote + va, &value, 8);
	return VB_REASON_NONE;
}

static enum vb_reason remote_atomic_write(struct vb_tqp *qp, uint32_t rkey, uint64_t va,
					  const void *value)
{
	struct stand *s = stand_of(qp);
	enum vb_reason reason = remote_check(qp, rkey, va, 8, 0);

	if (reason)
		return reason;
	s->atomics++;
	memcpy(s->remote + va, value, 8);
	return VB_REASON_NONE;
}

static enum vb_reason remote_flush(struct vb_tqp *qp, uint32_t rkey, uint64_t va, uint64_t length,
				   uint32_t type, bool whole)
{
	struct stand *s = stand_of(qp);

	s->flushes++;
	s->flushed = type;
	return whole ? VB_REASON_NONE : remote_check(qp, rkey, va, length, 0);
}

static enum vb_reason invalidate(struct vb_tqp *qp, uint32_t key)
{
	(void)key;
	return stand_of(qp)->invalidate_fault;
}

static enum vb_reason bind(struct vb_tqp *qp, const struct vb_send_wqe *wqe)
{
	(void)wqe;
	stand_of(qp)->binds++;
	return stand_of(qp)->bind_fault;
}

static void event(struct vb_tqp *qp, enum ibv_event_type type)
{
	struct stand *s = stand_of(qp);

	assert_true(s->events < STAND_DONE);
	s->event[s->events++] = type;
}

static void state_changed(struct vb_tqp *qp)
{
	stand_of(qp)->state_changes++;
}

static void drop(struct vb_tqp *qp, enum vb_reason reason, const struct vb_run *run)
{
	struct stand *s = stand_of(qp);

	(void)run;
	s->drops[s->dropped++ % STAND_RUNS] = reason;
}

static void explain(struct vb_tqp *qp, enum vb_reason reason, const struct vb_run *run)
{
	(void)run;
	assert_true(reason != VB_REASON_NONE);
	stand_of(qp)->explained++;
}

#define ENVIRONMENT                                                                             \
	.link.reserve = reserve, .link.commit = commit, .queue.timer = timer, .queue.now = now, \
	.memory.gather_check = gather_check, .memory.gather = gather,                           \
	.memory.scatter_response = scatter_response, .queue.send_done = send_done,              \
	.queue.recv_take = recv_take, .queue.recv_untake = recv_untake,                         \
	.queue.recv_scatter = recv_scatter, .queue.recv_done = recv_done,                       \
	.memory.remote_check = remote_check, .memory.remote_write = remote_write,               \
	.memory.remote_read = remote_read, .memory.remote_atomic = remote_atomic,               \
	.memory.remote_atomic_write = remote_atomic_write, .memory.remote_flush = remote_flush, \
	.memory.invalidate = invalidate, .memory.bind = bind, .queue.event = event,             \
	.queue.state_changed = state_changed, .queue.drop = drop, .queue.explain = explain,     \
	.queue.remote_done = remote_done

static const struct vb_env env = {ENVIRONMENT};
static const struct vb_env env_direct = {ENVIRONMENT, .link.direct = direct,
					 .link.direct_waits = direct_waits};

struct stand *stand_new(bool reliable)
{
	struct stand *s = aligned_alloc(_Alignof(struct stand), sizeof(*s));
	struct vb_tqp *qp;

	assert_non_null(s);
	memset(s, 0, sizeof(*s));
	qp = &s->qp;
	qp->env = &env;
	qp->qpn = STAND_QPN;
	qp->dest_qpn = STAND_PEER;
	qp->access = PROTOCOL_ACCESS;
	qp->mtu = 1024;
	qp->timeout = 14;
	qp->retry_cnt = 3;
	qp->rnr_retry = 2;
	qp->min_rnr_timer = 12;
	qp->max_rd_atomic = 4;
	qp->max_dest_rd_atomic = 4;
	protocol_rings(qp, s->res, s->rd_end);
	qp->link_reliable = reliable;
	qp->max_run_bytes = 8192;
	protocol_send_queue(qp, s->sq, STAND_SQ, STAND_WQE_BYTES);
	s->room = STAND_RUNS;
	s->remote_length = sizeof(s->remote);
	for (size_t i = 0; i < sizeof(s->local); i++) {
		s->local[i] = (uint8_t)(i * 7 + 1);
		s->remote[i] = (uint8_t)(i * 5 + 3);
	}
	vb_tqp_reset(qp);
	stand_service(s, VB_SERVICE_RC);
	return s;
}

void stand_service(struct stand *s, enum vb_service service)
{
	protocol_service(&s->qp, service);
	protocol_walk(&s->qp, IBV_QPS_RTS, 200, 100);
}

void stand_with_direct(struct stand *s)
{
	s->qp.env = &env_direct;
}

void stand_free(struct stand *s)
{
	free(s);
}

struct vb_send_wqe *stand_wqe(struct stand *s, enum ibv_wr_opcode opcode, uint32_t length)
{
	struct vb_send_wqe *w = vb_tqp_wqe(&s->qp, s->qp.sq_posted);

	memset(w, 0, STAND_WQE_BYTES);
	w->wr_id = s->qp.sq_posted;
	w->opcode = (uint8_t)opcode;
	w->length = length;
	w->rkey = STAND_RKEY;
	w->remote_qpn = STAND_PEER;
	w->imm = 0x01020304;
	return w;
}

bool stand_post(struct stand *s)
{
	s->qp.sq_posted++;
	return vb_tqp_run(&s->qp);
}

bool stand_request(struct stand *s, enum ibv_wr_opcode opcode, uint32_t length)
{
	stand_wqe(s, opcode, length);
	return stand_post(s);
}

void stand_recv(struct stand *s, uint32_t length)
{
	struct vb_recv_wqe *w = &s->recv[s->recvs].wqe;

	assert_true(s->recvs < 8);
	w->wr_id = 1000 + s->recvs++;
	w->length = length;
	w->num_sge = 1;
}

struct vb_run stand_run(const struct stand *s, enum vb_op op, uint8_t flags, uint32_t psn,
			uint32_t length)
{
	struct vb_run run;

	memset(&run, 0, sizeof(run));
	run.service = s->qp.service;
	run.op = (uint8_t)op;
	run.flags = flags;
	run.pkey = 0xffff;
	run.segments = length ? (uint16_t)((length + s->qp.mtu - 1) / s->qp.mtu) : 1;
	run.dest_qpn = STAND_QPN;
	run.src_qpn = STAND_PEER;
	run.psn = psn & VB_PSN_MASK;
	run.length = op == VB_OP_READ_REQUEST ? 0 : length;
	run.dma_length = length;
	run.rkey = STAND_RKEY;
	run.qkey = PROTOCOL_QKEY;
	if (op == VB_OP_READ_REQUEST)
		run.segments = 1;
	return run;
}

void stand_arrive(struct stand *s, const struct vb_run *run)
{
	/*
	 * Exactly as many bytes as the link promises, so that a sanitizer sees one read too many.
	 */
	uint8_t *payload = malloc(run->length ? run->length : 1);

	assert_non_null(payload);
	for (uint32_t i = 0; i < run->length; i++)
		payload[i] = (uint8_t)(i * 3 + run->psn);
	vb_tqp_receive(&s->qp, run, payload);
	free(payload);
	vb_tqp_run(&s->qp);
}

void stand_ack(struct stand *s, uint32_t psn, uint8_t syndrome)
{
	struct vb_run run = stand_run(s, VB_OP_ACK, VB_RUN_FIRST | VB_RUN_LAST, psn, 0);

	run.syndrome = syndrome;
	stand_arrive(s, &run);
}

void stand_expire(struct stand *s)
{
	assert_true(s->timer_ns != 0);
	s->now_ns += s->timer_ns;
	s->timer_ns = 0;
	vb_tqp_timer(&s->qp);
	vb_tqp_run(&s->qp);
}

const struct vb_run *stand_last(const struct stand *s)
{
	assert_true(s->sents > 0);
	return &s->sent[s->sents - 1];
}

void stand_clear(struct stand *s)
{
	s->sents = 0;
	s->room = STAND_RUNS;
}

void stand_in(struct stand *s, enum vb_op op, uint8_t flags, uint32_t psn, uint32_t length)
{
	struct vb_run run = stand_run(s, op, flags, psn, length);

	stand_arrive(s, &run);
}

struct vb_run stand_response(const struct stand *s, uint32_t psn, uint32_t length)
{
	return stand_run(s, VB_OP_READ_RESPONSE, VB_RUN_FIRST | VB_RUN_LAST, psn, length);
}

void stand_expect_ack(const struct stand *s, uint8_t syndrome, uint32_t psn)
{
	const struct vb_run *run = stand_last(s);

	assert_int_equal(run->op, VB_OP_ACK);
	assert_int_equal(run->syndrome, syndrome);
	assert_int_equal(run->psn, psn);
	assert_int_equal(run->dest_qpn, STAND_PEER);
}

void stand_expect_done(const struct stand *s, unsigned int n, enum ibv_wc_status status)
{
	assert_true(s->dones > n);
	assert_int_equal(s->done[n].wr_id, n);
	assert_int_equal(s->done[n].status, status);
}
