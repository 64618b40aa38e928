/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Receive work queues: creation and end, states, posting, taking frames in. */
#include "raw/wq.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/reason.h"
#include "object/context.h"
#include "engine/cq.h"
#include "process/limits.h"
#include "memory/memory.h"
#include "process/names.h"
#include "object/pd.h"
#include "engine/recv_queue.h"
#include "raw/wq_private.h"
#include "host/node.h"
#include "transport/wqe.h"

static int create_check(struct ibv_context *ctx, const struct ibv_wq_init_attr *attr)
{
	if (attr->wq_type != IBV_WQT_RQ)
		return vb_refuse(EINVAL, VB_REASON_ARG, "create_wq: type %d", (int)attr->wq_type);
	if (!attr->max_wr || attr->max_wr > VB_MAX_QP_WR)
		return vb_refuse(EINVAL, VB_REASON_ARG_LIMIT,
				 "create_wq: max_wr %u is not in 1..%u", attr->max_wr,
				 VB_MAX_QP_WR);
	if (attr->max_sge > VB_MAX_SGE)
		return vb_refuse(EINVAL, VB_REASON_ARG_LIMIT, "create_wq: max_sge %u exceeds %u",
				 attr->max_sge, VB_MAX_SGE);
	return vb_context_check(ctx, VB_HANDLE_CQ, attr->cq->handle, attr->cq, "cq");
}

static void complete(struct vb_wq *w, const struct vb_recv_wqe *wqe, enum ibv_wc_status status,
		     enum vb_reason reason, uint32_t length, uint32_t flags,
		     const struct vb_cqe_more *more)
{
	struct vb_cqe cqe;

	memset(&cqe, 0, sizeof(cqe));
	cqe.wc.wr_id = wqe->wr_id;
	cqe.wc.status = status;
	cqe.wc.opcode = IBV_WC_RECV;
	cqe.wc.byte_len = length;
	cqe.wc.wc_flags = flags;
	cqe.wc.qp_num = w->wq.wq_num;
	cqe.wc.vendor_err = reason;
	cqe.owner = &w->completions;
	cqe.solicited = status != IBV_WC_SUCCESS;
	atomic_fetch_add_explicit(&w->rq.done, 1, memory_order_release);
	if (status != IBV_WC_SUCCESS)
		vb_note_failed(status, reason, "wq %u: receive wr_id 0x%llx: status %d (%s)",
			       w->wq.wq_num, (unsigned long long)wqe->wr_id, (int)status,
			       vb_wc_status_name(status));
	if (!vb_cq_push_more(w->cq, &cqe, more))
		w->broken = true;
}

/* Under the lock. */
static struct vb_recv_wqe *take(struct vb_wq *w)
{
	if (w->rq.taken == atomic_load_explicit(&w->rq.posted, memory_order_acquire))
		return NULL;
	return vb_recv_queue_entry(&w->rq, w->rq.taken++);
}

static void flush(struct vb_wq *w)
{
	struct vb_recv_wqe *wqe;

	while ((wqe = take(w)))
		complete(w, wqe, IBV_WC_WR_FLUSH_ERR, VB_REASON_FLUSHED, 0, 0, NULL);
}

/* The queue fails by itself: a completion did not fit, or a buffer could not be written. */
static void break_down(struct vb_wq *w)
{
	w->broken = false;
	if (w->state != IBV_WQS_RDY)
		return;
	w->state = IBV_WQS_ERR;
	flush(w);
	w->broken = false;
	vb_event_queue_raise(&vb_context_of(w->wq.context)->async, &w->fatal);
}

static int post_recv(struct ibv_wq *ibwq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	struct vb_wq *w = vb_wq_of(ibwq);
	int err = 0;

	vb_lock_take(&w->lock);
	if (w->state == IBV_WQS_RESET) {
		*bad_wr = wr;
		err = -vb_refuse(EINVAL, VB_REASON_QP_STATE, "post_wq_recv: wq %u is in RESET",
				 ibwq->wq_num);
	}
	for (; !err && wr; wr = wr->next) {
		err = vb_recv_queue_post(&w->rq, wr, "post_wq_recv", ibwq->wq_num);
		if (err)
			*bad_wr = wr;
	}
	if (w->state == IBV_WQS_ERR)
		flush(w);
	vb_lock_release(&w->lock);
	return err;
}

/* The lock may be held for ever, and the memory need not be there. */
static int inherited_post_recv(struct ibv_wq *wq, struct ibv_recv_wr *wr,
			       struct ibv_recv_wr **bad_wr)
{
	*bad_wr = wr;
	return -vb_refuse(ENODEV, VB_REASON_FORKED, "post_wq_recv: wq %u is the parent process's",
			  wq->wq_num);
}

static void forked(void *object)
{
	((struct vb_wq *)object)->wq.post_recv = inherited_post_recv;
}

int vb_wq_create(struct ibv_context *ctx, struct ibv_wq_init_attr *attr, struct ibv_wq **wq)
{
	static _Atomic uint32_t last_number;
	int err = create_check(ctx, attr);
	struct vb_wq *w;

	if (!err)
		err = vb_pd_get(ctx, attr->pd);
	if (err)
		return err;
	w = calloc(1, sizeof(*w));
	if (!w) {
		err = vb_refuse(ENOMEM, VB_REASON_NO_MEMORY, "create_wq");
		goto put_pd;
	}
	err = vb_recv_queue_init(&w->rq, attr->pd, attr->max_wr, attr->max_sge);
	if (!err)
		err = vb_context_add(ctx, VB_HANDLE_WQ, w, &w->wq.handle);
	if (err)
		goto free_wq;
	w->cq = vb_cq_of(attr->cq);
	vb_cq_hold(w->cq);
	w->pd_id = vb_pd_of(attr->pd)->id;
	w->state = IBV_WQS_RESET;
	if (attr->comp_mask & IBV_WQ_INIT_ATTR_FLAGS)
		w->flags = attr->create_flags;
	w->wq.context = ctx;
	w->wq.pd = attr->pd;
	w->wq.cq = attr->cq;
	w->wq.wq_type = attr->wq_type;
	w->wq.wq_num = (atomic_fetch_add(&last_number, 1) + 1) & 0xffffff;
	w->wq.state = IBV_WQS_RESET;
	w->wq.post_recv = post_recv;
	w->fatal.type = IBV_EVENT_WQ_FATAL;
	w->fatal.object = &w->wq;
	w->fatal.got = &w->got.async;
	attr->max_sge = w->rq.max_sge;
	*wq = &w->wq;
	return 0;
free_wq:
	vb_recv_queue_fini(&w->rq);
	free(w);
put_pd:
	vb_pd_put(attr->pd);
	return err;
}

static bool transition_allowed(enum ibv_wq_state from, enum ibv_wq_state to)
{
	return to == from || to == IBV_WQS_RESET || (to == IBV_WQS_RDY && from == IBV_WQS_RESET) ||
	       (to == IBV_WQS_ERR && from == IBV_WQS_RDY);
}

static int modify_check(const struct vb_wq *w, const struct ibv_wq_attr *attr)
{
	uint32_t mask = attr->attr_mask;

	if ((mask & IBV_WQ_ATTR_CURR_STATE) && attr->curr_wq_state != w->state)
		return vb_refuse(EINVAL, VB_REASON_QP_STATE,
				 "modify_wq: wq %u is in state %d, not %d", w->wq.wq_num,
				 (int)w->state, (int)attr->curr_wq_state);
	if ((mask & IBV_WQ_ATTR_STATE) && (unsigned int)attr->wq_state > IBV_WQS_ERR)
		return vb_refuse(EINVAL, VB_REASON_ARG, "modify_wq: state %d", (int)attr->wq_state);
	if ((mask & IBV_WQ_ATTR_STATE) && !transition_allowed(w->state, attr->wq_state))
		return vb_refuse(EINVAL, VB_REASON_QP_TRANSITION,
				 "modify_wq: wq %u: state %d to %d", w->wq.wq_num, (int)w->state,
				 (int)attr->wq_state);
	return 0;
}

static void enter(struct vb_wq *w, enum ibv_wq_state to)
{
	w->state = to;
	w->wq.state = to;
	if (to == IBV_WQS_ERR)
		flush(w);
	if (to == IBV_WQS_RESET) {
		vb_recv_queue_clear(&w->rq);
		vb_cq_remove(w->cq, &w->completions);
	}
}

int vb_wq_modify(struct ibv_wq *wq, const struct ibv_wq_attr *attr)
{
	struct vb_wq *w = vb_wq_of(wq);
	int err = vb_context_check(wq->context, VB_HANDLE_WQ, wq->handle, w, "wq");

	if (err)
		return err;
	vb_lock_take(&w->lock);
	err = modify_check(w, attr);
	if (!err && (attr->attr_mask & IBV_WQ_ATTR_FLAGS))
		w->flags = (w->flags & ~attr->flags_mask) | (attr->flags & attr->flags_mask);
	if (!err && (attr->attr_mask & IBV_WQ_ATTR_STATE))
		enter(w, attr->wq_state);
	vb_lock_release(&w->lock);
	return err;
}

int vb_wq_retire(struct ibv_wq *wq, struct vb_events_got *got)
{
	struct vb_wq *w = vb_wq_of(wq);
	int err = vb_context_check(wq->context, VB_HANDLE_WQ, wq->handle, w, "wq");

	if (err)
		return err;
	if (atomic_load(&w->tables))
		return vb_refuse(EBUSY, VB_REASON_BUSY, "destroy_wq: %u tables hold it",
				 atomic_load(&w->tables));
	err = vb_context_remove(wq->context, VB_HANDLE_WQ, wq->handle, w);
	if (err)
		return err;
	vb_cq_remove(w->cq, &w->completions);
	vb_event_queue_drop(&vb_context_of(wq->context)->async, &w->fatal);
	*got = w->got;
	return 0;
}

void vb_wq_free(struct ibv_wq *wq)
{
	struct vb_wq *w = vb_wq_of(wq);

	vb_cq_unhold(w->cq);
	struct ibv_pd *pd = wq->pd;

	vb_recv_queue_fini(&w->rq); /* calls the parent domain's free() */
	vb_pd_put(pd);
	free(w);
}

bool vb_wq_receive(struct vb_wq *w, const struct vb_keyring *keys, const void *data,
		   uint32_t length, uint32_t flags, const struct vb_cqe_more *more)
{
	struct vb_mem mem = {.keys = keys, .pd = w->pd_id, .qpn = w->wq.wq_num};
	enum vb_reason dropped = VB_REASON_NONE;
	struct vb_recv_wqe *wqe = NULL;

	vb_lock_take(&w->lock);
	if (w->state != IBV_WQS_RDY) {
		dropped = VB_REASON_DROP_STATE;
	} else {
		wqe = take(w);
		if (!wqe)
			dropped = VB_REASON_DROP_NO_RECEIVE;
	}
	if (wqe && wqe->length < length) {
		w->rq.taken--;
		dropped = VB_REASON_DROP_TOO_LONG;
	}
	if (!dropped) {
		enum vb_reason reason =
			vb_mem_scatter(&mem, vb_recv_wqe_sge(wqe), wqe->num_sge, 0, data, length);

		complete(w, wqe, reason ? IBV_WC_LOC_PROT_ERR : IBV_WC_SUCCESS, reason, length,
			 reason ? 0 : flags, more);
		if (reason || w->broken)
			break_down(w);
	}
	vb_lock_release(&w->lock);
	if (dropped)
		vb_note(dropped, "wq %u: frame of %u bytes: %s", w->wq.wq_num, length,
			vb_reason_text(dropped));
	return !dropped;
}

const struct vb_object_type vb_wq_type = {
	.name = "wq",
	.limit = VB_MAX_WQ,
	.forked = forked,
};
