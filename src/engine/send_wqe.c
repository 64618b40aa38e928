/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Send queue entries: room, common fields, faults, and handing them to the protocol. */
#include "engine/send_wqe.h"

#include <errno.h>
#include <string.h>

#include "base/reason.h"
#include "engine/drive.h"
#include "engine/engine_channel.h"
#include "engine/engines.h"
#include "object/pd.h"
#include "transport/qp_state.h"

struct vb_send_wqe *vb_send_wqe_full(const struct vb_qp *qp)
{
	vb_note_refused(
		ENOMEM, VB_REASON_QUEUE_FULL,
		"post_send: qp 0x%x: %u requests are posted whose completion was not polled",
		qp->t.qpn, qp->sq_max);
	return NULL;
}

void vb_send_wqe_fault(struct vb_send_wqe *wqe, enum ibv_wc_status status, enum vb_reason reason)
{
	wqe->error = (uint8_t)status;
	wqe->reason = (uint16_t)reason;
}

int vb_send_wqe_list_refuse(const struct vb_qp *qp, uint64_t num_sge, const char *call)
{
	return -vb_refuse(EINVAL, VB_REASON_SGE_COUNT,
			  "%s: qp 0x%x: %llu elements, the queue takes %u", call, qp->t.qpn,
			  (unsigned long long)num_sge, qp->max_sge);
}

int vb_send_wqe_inline_refuse(const struct vb_qp *qp, const struct vb_send_wqe *wqe,
			      uint64_t length, const char *call)
{
	if (!(vb_operation(wqe->opcode)->carries & VB_CARRIES_INLINE))
		return -vb_refuse(EINVAL, VB_REASON_ARG,
				  "%s: qp 0x%x: a READ or ATOMIC cannot be inline", call,
				  qp->t.qpn);
	return -vb_refuse(EINVAL, VB_REASON_INLINE_LENGTH,
			  "%s: qp 0x%x: %llu bytes, the queue takes %u", call, qp->t.qpn,
			  (unsigned long long)length, qp->max_inline);
}

void vb_send_wqe_address(struct vb_qp *qp, struct vb_send_wqe *wqe, const struct vb_ah *ah,
			 uint32_t qpn, uint32_t qkey)
{
	wqe->remote_qpn = qpn & VB_QPN_MASK;
	wqe->remote_qkey = qkey;
	wqe->path = ah->path;
	wqe->peer_hint = ah->local ? VB_HINT_LOCAL : VB_HINT_REMOTE;
	if (vb_pd_of(ah->ah.pd)->id != qp->pd_id)
		vb_send_wqe_fault(wqe, IBV_WC_LOC_QP_OP_ERR, VB_REASON_AH_PD);
}

/*
 * Under the engine's lock. Entries from before a reset lie where the queue does not look any more.
 */
static int judge(const struct vb_qp *qp, const struct vb_send_batch *batch)
{
	if (qp->t.state < IBV_QPS_RTS)
		return -vb_refuse(EINVAL, VB_REASON_QP_STATE, "post_send: qp 0x%x is in %s",
				  qp->t.qpn, vb_qp_state_name(qp->t.state));
	if (qp->t.sq_posted != batch->first)
		return -vb_refuse(EINVAL, VB_REASON_QP_STATE,
				  "post_send: qp 0x%x was reset meanwhile", qp->t.qpn);
	return 0;
}

void vb_send_wqe_bind(struct vb_send_wqe *wqe, struct ibv_mw *mw, struct vb_send_batch *batch)
{
	memcpy(vb_send_wqe_inline(wqe), &mw, sizeof(mw));
	batch->binds = true;
}

/* Only entries that are handed over give their windows the new keys. */
static void windows_tell(struct vb_qp *qp, const struct vb_send_batch *batch)
{
	struct ibv_mw *mw;

	for (uint32_t i = 0; i < batch->count; i++) {
		struct vb_send_wqe *wqe = vb_tqp_wqe(&qp->t, batch->first + i);

		if (wqe->opcode != IBV_WR_BIND_MW || wqe->error)
			continue;
		memcpy(&mw, vb_send_wqe_inline(wqe), sizeof(mw));
		mw->rkey = wqe->rkey;
	}
}

int vb_send_hand_over(struct vb_qp *qp, const struct vb_send_batch *batch)
{
	struct vb_engine *e = qp->engine;
	int err;

	vb_engine_take(e);
	err = judge(qp, batch);
	if (!err && batch->binds)
		windows_tell(qp, batch);
	if (!err && batch->count) {
		vb_tqp_posted_set(&qp->t, batch->first + batch->count);
		if (!qp->link->express || !qp->link->express(qp))
			vb_engine_posted(e, qp);
		if (e->pushed)
			vb_engine_flush(e);
	}
	vb_lock_release(&e->lock);
	return err;
}
