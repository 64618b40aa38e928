/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the protocol needs from a real device: the program's buffers, receives, completions, events.
 * The link is in qp/link.c, the peers' access to memory in env_remote.c.
 */
#include <stdio.h>
#include <string.h>

#include "base/reason.h"
#include "base/seldom.h"
#include "engine/count.h"
#include "engine/cq.h"
#include "qp/comp_cntr.h"
#include "qp/env.h"
#include "qp/link.h"
#include "memory/memory.h"
#include "memory/mw.h"
#include "process/names.h"
#include "qp/qp.h"
#include "engine/recv_queue.h"
#include "engine/schedule.h"
#include "engine/settle.h"
#include "engine/srq.h"

void vb_env_timer(struct vb_tqp *t, uint64_t delay_ns)
{
	struct vb_qp *qp = vb_qp_of_tqp(t);

	vb_engine_timer(qp->engine, qp, delay_ns);
}

uint64_t vb_env_now(struct vb_tqp *t)
{
	(void)t;
	return vb_clock_ns();
}

enum vb_reason vb_env_gather_check(struct vb_tqp *t, struct vb_send_wqe *wqe)
{
	struct vb_mem mem = vb_env_memory(vb_qp_of_tqp(t));

	if (wqe->is_inline)
		return VB_REASON_NONE;
	return vb_mem_check_list(&mem, vb_send_wqe_sge(wqe), wqe->num_sge, 0);
}

enum vb_reason vb_env_gather(struct vb_tqp *t, struct vb_send_wqe *wqe, uint64_t offset, void *dst,
			     uint32_t length)
{
	struct vb_mem mem = vb_env_memory(vb_qp_of_tqp(t));

	if (wqe->is_inline) {
		memcpy(dst, (char *)vb_send_wqe_inline(wqe) + offset, length);
		return VB_REASON_NONE;
	}
	return vb_mem_gather(&mem, vb_send_wqe_sge(wqe), wqe->num_sge, offset, dst, length);
}

enum vb_reason vb_env_scatter_response(struct vb_tqp *t, struct vb_send_wqe *wqe, uint64_t offset,
				       const void *src, uint32_t length)
{
	struct vb_mem mem = vb_env_memory(vb_qp_of_tqp(t));

	return vb_mem_scatter(&mem, vb_send_wqe_sge(wqe), wqe->num_sge, offset, src, length);
}

#define PSNS_TEXT 96

/* The queue has not moved on yet, so the PSNs sent are still known. */
static const char *psns(const struct vb_qp *qp, enum vb_reason reason, char text[PSNS_TEXT])
{
	const struct vb_requester *r = &qp->t.req;

	text[0] = '\0';
	if (reason == VB_REASON_PEER_PSN)
		snprintf(text, PSNS_TEXT, ": psn 0x%x was sent (sq_psn 0x%x), psn 0x%x is expected",
			 r->una, r->first_psn, r->peer_psn);
	return text;
}

static __attribute__((noinline)) void send_explain(const struct vb_qp *qp,
						   const struct vb_send_wqe *wqe,
						   enum ibv_wc_status status, enum vb_reason reason)
{
	char text[PSNS_TEXT];

	vb_note_failed(
		status, reason,
		"qp 0x%x -> 0x%x: %s wr_id 0x%llx, %llu bytes, remote 0x%llx rkey 0x%x: status %d (%s): %s%s",
		qp->t.qpn, wqe->remote_qpn ? wqe->remote_qpn : qp->t.dest_qpn,
		vb_wr_opcode_name(wqe->opcode), (unsigned long long)wqe->wr_id,
		(unsigned long long)wqe->length, (unsigned long long)wqe->remote_addr, wqe->rkey,
		(int)status, vb_wc_status_name(status), vb_reason_text(reason),
		psns(qp, reason, text));
}

void vb_env_send_done(struct vb_tqp *t, struct vb_send_wqe *wqe, enum ibv_wc_status status,
		      enum vb_reason reason)
{
	struct vb_qp *qp = vb_qp_of_tqp(t);
	uint32_t index = qp->sq_done++;

	if (qp->counted)
		vb_comp_cntr_count(qp, vb_comp_cntr_op(wqe->opcode), wqe->length,
				   status == IBV_WC_SUCCESS);
	if (status == IBV_WC_SUCCESS && !wqe->signaled)
		return;
	if (VB_SELDOM(status != IBV_WC_SUCCESS)) {
		vb_count_failure(qp->engine, true, status);
		send_explain(qp, wqe, status, reason);
	}
	struct vb_cqe *cqe = vb_cq_begin(qp->scq);

	if (!cqe) {
		qp->overrun = true;
		return;
	}
	*cqe = (struct vb_cqe){
		.wc.wr_id = wqe->wr_id,
		.wc.status = status,
		.wc.opcode = vb_operation(wqe->opcode)->wc_opcode,
		.wc.vendor_err = status == IBV_WC_SUCCESS ? 0 : reason,
		.wc.byte_len = (uint32_t)wqe->length,
		.wc.qp_num = qp->t.qpn,
		.owner = &qp->completions,
		.sq_index = index,
		.is_send = 1,
		.solicited = status != IBV_WC_SUCCESS,
	};
	vb_cq_end(qp->scq, cqe, NULL);
}

struct vb_recv_wqe *vb_env_recv_take(struct vb_tqp *t)
{
	struct vb_qp *qp = vb_qp_of_tqp(t);

	qp->recv_srq = qp->srq;
	if (qp->srq)
		return vb_srq_take(qp->srq);
	if (qp->rq.taken == atomic_load_explicit(&qp->rq.posted, memory_order_acquire))
		return NULL;
	return vb_recv_queue_entry(&qp->rq, qp->rq.taken++);
}

void vb_env_recv_untake(struct vb_tqp *t, struct vb_recv_wqe *wqe)
{
	struct vb_qp *qp = vb_qp_of_tqp(t);

	if (qp->recv_srq)
		vb_srq_untake(qp->recv_srq, wqe);
	else
		qp->rq.taken--;
}

enum vb_reason vb_env_recv_scatter(struct vb_tqp *t, struct vb_recv_wqe *wqe, uint64_t offset,
				   const void *src, uint32_t length)
{
	struct vb_qp *qp = vb_qp_of_tqp(t);
	struct vb_mem mem = vb_env_memory(qp);

	/* The keys of a shared receive are those of the SRQ's protection domain (IBA 10.2.9.4). */
	if (qp->recv_srq)
		mem.pd = qp->recv_srq->pd_id;
	return vb_mem_scatter(&mem, vb_recv_wqe_sge(wqe), wqe->num_sge, offset, src, length);
}

static void recv_release(struct vb_qp *qp, const struct vb_recv_done *done, uint32_t count)
{
	if (qp->recv_srq)
		vb_srq_release(qp->recv_srq, done, count);
	else
		atomic_store_explicit(&qp->rq.done,
				      atomic_load_explicit(&qp->rq.done, memory_order_relaxed) +
					      count,
				      memory_order_release);
}

static void recv_explain(const struct vb_qp *qp, const struct vb_recv_done *done)
{
	vb_note_failed(done->status, done->reason,
		       "qp 0x%x: receive wr_id 0x%llx (%llu bytes posted): status %d (%s): %s",
		       qp->t.qpn, (unsigned long long)done->wqe->wr_id,
		       (unsigned long long)done->wqe->length, (int)done->status,
		       vb_wc_status_name(done->status), vb_reason_text(done->reason));
}

/* XRC and tag-matching queues have a CQ of their own. */
static inline struct vb_cq *recv_cq(const struct vb_qp *qp)
{
	return qp->recv_srq && qp->recv_srq->cq ? qp->recv_srq->cq : qp->rcq;
}

static void recv_count(struct vb_qp *qp, const struct vb_recv_done *done)
{
	bool ok = done->status == IBV_WC_SUCCESS;

	if (!ok) {
		vb_count_failure(qp->engine, false, done->status);
		recv_explain(qp, done);
	}
	if (qp->counted)
		vb_comp_cntr_count(qp, IBV_QP_ATTACH_COMP_CNTR_OP_RECV, done->byte_len, ok);
}

/* Under the queue's lock. False: overrun. */
static inline bool recv_entry(struct vb_qp *qp, struct vb_cq *cq, const struct vb_recv_done *done,
			      uint64_t wr_id, const struct vb_cqe_more *more)
{
	bool ok = done->status == IBV_WC_SUCCESS;
	struct vb_cqe *cqe = vb_cq_place(cq);

	if (!cqe)
		return false;
	*cqe = (struct vb_cqe){
		.wc.wr_id = wr_id,
		.wc.status = done->status,
		.wc.opcode = done->opcode,
		.wc.vendor_err = ok ? 0 : done->reason,
		.wc.byte_len = done->byte_len,
		.wc.imm_data = done->imm,
		.wc.qp_num = qp->t.qpn,
		.wc.src_qp = done->src_qp,
		.wc.wc_flags = done->wc_flags,
		.wc.sl = done->header_kind, /* read by ibv_init_ah_from_wc(3) */
		.owner = &qp->completions,
		.solicited = !ok || done->solicited,
	};
	vb_cq_add(cq, cqe, more);
	return true;
}

/*
 * A program that has seen the entry may post again at once, so the receives are released before; what
 * they said is kept.
 */
static inline void recv_finish(struct vb_qp *qp, const struct vb_recv_done *done, uint32_t count,
			       const struct vb_cqe_more *more)
{
	struct vb_cq *cq = recv_cq(qp);
	uint64_t wr_id[VB_RECV_DONE_MOST];

	for (uint32_t i = 0; i < count; i++) {
		wr_id[i] = done[i].wqe->wr_id;
		recv_count(qp, &done[i]);
	}
	recv_release(qp, done, count);
	vb_lock_take(&cq->lock);
	for (uint32_t i = 0; i < count; i++) {
		if (!recv_entry(qp, cq, &done[i], wr_id[i], more))
			qp->overrun = true;
	}
	vb_lock_release(&cq->lock);
}

void vb_env_recv_done_more(struct vb_tqp *t, const struct vb_recv_done *done,
			   const struct vb_cqe_more *more)
{
	recv_finish(vb_qp_of_tqp(t), done, 1, more);
}

void vb_env_recv_done_many(struct vb_tqp *t, const struct vb_recv_done *done, uint32_t count)
{
	recv_finish(vb_qp_of_tqp(t), done, count, NULL);
}

void vb_env_recv_done(struct vb_tqp *t, const struct vb_recv_done *done)
{
	vb_env_recv_done_more(t, done, NULL);
}

enum vb_reason vb_env_invalidate(struct vb_tqp *t, uint32_t key)
{
	return vb_mw_invalidate(&vb_qp_of_tqp(t)->windows, key);
}

enum vb_reason vb_env_bind(struct vb_tqp *t, const struct vb_send_wqe *wqe)
{
	struct vb_qp *qp = vb_qp_of_tqp(t);
	struct vb_mw_place on = {.list = &qp->windows, .qpn = t->qpn, .pd_id = qp->pd_id};

	return vb_mw_bind(&on, wqe);
}

void vb_env_event(struct vb_tqp *t, enum ibv_event_type type)
{
	vb_qp_event(vb_qp_of_tqp(t), type);
	/* The first packet in RTR was seen: direct access cannot hide it any more. */
	if (type == IBV_EVENT_COMM_EST)
		vb_qp_publish(vb_qp_of_tqp(t));
}

void vb_env_state_changed(struct vb_tqp *t)
{
	struct vb_qp *qp = vb_qp_of_tqp(t);

	vb_qp_publish(qp);
	if (t->state == IBV_QPS_ERR)
		vb_qp_entered_error(qp);
}

void vb_env_count(struct vb_tqp *t, enum vb_count what)
{
	vb_count_event(vb_qp_of_tqp(t)->engine, what);
}

void vb_env_drop(struct vb_tqp *t, enum vb_reason reason, const struct vb_run *run)
{
	vb_count_fault(vb_qp_of_tqp(t)->engine, reason);
	if (reason == VB_REASON_DROP_PSN)
		vb_note(reason,
			"qp 0x%x: dropped %s from qp 0x%x: psn 0x%x has come, psn 0x%x is expected "
			"(rq_psn 0x%x): %s",
			t->qpn, vb_run_op_name(run->op), run->src_qpn, run->psn, t->resp.epsn,
			t->resp.first_psn, vb_reason_text(reason));
	else
		vb_note(reason, "qp 0x%x: dropped %s psn 0x%x from qp 0x%x: %s", t->qpn,
			vb_run_op_name(run->op), run->psn, run->src_qpn, vb_reason_text(reason));
}

void vb_env_explain(struct vb_tqp *t, enum vb_reason reason, const struct vb_run *run)
{
	bool remote = run->op == VB_OP_WRITE || run->op == VB_OP_READ_REQUEST ||
		      run->op == VB_OP_ATOMIC_WRITE || run->op == VB_OP_FLUSH;

	vb_count_fault(vb_qp_of_tqp(t)->engine, reason);
	/* Only operations with a remote address in their first packet have one to show. */
	if (remote && (run->flags & VB_RUN_FIRST))
		vb_note_request(
			reason,
			"qp 0x%x refuses %s psn 0x%x of qp 0x%x: rkey 0x%x range 0x%llx+%u: %s",
			t->qpn, vb_run_op_name(run->op), run->psn, run->src_qpn, run->rkey,
			(unsigned long long)run->va, run->dma_length, vb_reason_text(reason));
	else
		vb_note_request(reason, "qp 0x%x refuses %s psn 0x%x of qp 0x%x, %u bytes: %s",
				t->qpn, vb_run_op_name(run->op), run->psn, run->src_qpn,
				run->length, vb_reason_text(reason));
}

const struct vb_env vb_qp_env = {
	.link = {VB_ENV_LINK},
	.memory = {VB_ENV_MEMORY, .scatter_response = vb_env_scatter_response},
	.queue =
		{
			VB_ENV_QUEUE,
			.send_done = vb_env_send_done,
			.recv_take = vb_env_recv_take,
			.recv_untake = vb_env_recv_untake,
			.recv_scatter = vb_env_recv_scatter,
			.recv_done = vb_env_recv_done,
		},
};
