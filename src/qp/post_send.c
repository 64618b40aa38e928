/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * ibv_post_send(3): a list of work requests becomes entries. The first bad request is named; the
 * requests before it are posted.
 */
#include <errno.h>
#include <string.h>

#include "base/copy_small.h"
#include "base/reason.h"
#include "base/seldom.h"
#include "engine/fastpath.h"
#include "engine/send_wqe.h"
#include "qp/mw_post.h"

static int refuse(const struct vb_qp *qp, int err, enum vb_reason reason, const char *what,
		  uint64_t value)
{
	return -vb_refuse(err, reason, "post_send: qp 0x%x: %s (%llu)", qp->t.qpn, what,
			  (unsigned long long)value);
}

/* The enumeration has a gap. */
static bool is_opcode(unsigned int opcode)
{
	return opcode <= IBV_WR_DRIVER1 || opcode == IBV_WR_FLUSH || opcode == IBV_WR_ATOMIC_WRITE;
}

/*
 * Only such a request has wr.ud. In a request that its type does not have, a remote address is in
 * the handle's place.
 */
static bool is_datagram(const struct vb_qp *qp, const struct ibv_send_wr *wr)
{
	return qp->t.service == VB_SERVICE_UD && !qp->kind->frames &&
	       (wr->opcode == IBV_WR_SEND || wr->opcode == IBV_WR_SEND_WITH_IMM);
}

static int inline_copy(struct vb_qp *qp, struct vb_send_wqe *wqe, const struct ibv_send_wr *wr)
{
	char *to = vb_send_wqe_inline(wqe);
	uint64_t length = 0;
	int err;

	for (int i = 0; i < wr->num_sge; i++)
		length += wr->sg_list[i].length;
	err = vb_send_wqe_may_inline(qp, wqe, length, "post_send");
	if (err)
		return err;
	for (int i = 0; i < wr->num_sge; i++) {
		const struct ibv_sge *sge = &wr->sg_list[i];

		if (sge->length <= VB_COPY_SMALL)
			vb_copy_small(to, (const void *)(uintptr_t)sge->addr, sge->length);
		else
			memcpy(to, (const void *)(uintptr_t)sge->addr, sge->length);
		to += sge->length;
	}
	wqe->is_inline = 1;
	wqe->length = length;
	return 0;
}

static int data_fill(struct vb_qp *qp, struct vb_send_wqe *wqe, const struct ibv_send_wr *wr,
		     uint8_t carries)
{
	int err;

	if (!(carries & VB_CARRIES_MEMORY))
		return 0;
	/* Inline data may come from any number of them. */
	if (wr->num_sge >= 0 && wr->send_flags & IBV_SEND_INLINE)
		return inline_copy(qp, wqe, wr);
	err = vb_send_wqe_may_list(qp, (unsigned int)wr->num_sge, "post_send");
	if (err)
		return err;
	wqe->num_sge = (uint32_t)wr->num_sge;
	wqe->length = vb_sge_copy(vb_send_wqe_sge(wqe), wr->sg_list, wqe->num_sge);
	return 0;
}

static void remote_fill(struct vb_send_wqe *wqe, const struct ibv_send_wr *wr, uint8_t carries)
{
	if (carries & VB_CARRIES_OPERANDS) {
		wqe->remote_addr = wr->wr.atomic.remote_addr;
		wqe->rkey = wr->wr.atomic.rkey;
		wqe->compare_add = wr->wr.atomic.compare_add;
		wqe->swap = wr->wr.atomic.swap;
	} else if (carries & VB_CARRIES_REMOTE) {
		wqe->remote_addr = wr->wr.rdma.remote_addr;
		wqe->rkey = wr->wr.rdma.rkey;
	}
	if (carries & VB_CARRIES_IMMEDIATE)
		wqe->imm = wr->imm_data;
	else if (carries & VB_CARRIES_INVALIDATE)
		wqe->invalidate_key = wr->invalidate_rkey;
}

static int entry_fill(struct vb_qp *qp, struct vb_send_wqe *wqe, const struct ibv_send_wr *wr,
		      struct vb_send_batch *batch)
{
	if (!is_opcode((unsigned int)wr->opcode))
		return refuse(qp, EINVAL, VB_REASON_OPCODE, "no such opcode", wr->opcode);
	if (wr->opcode == IBV_WR_FLUSH)
		return refuse(qp, EINVAL, VB_REASON_OPCODE,
			      "only ibv_wr_flush(3) can say what to flush", wr->opcode);
	vb_send_wqe_begin(qp, wqe, wr->wr_id, (uint8_t)wr->opcode, wr->send_flags);
	uint8_t carries = vb_operation((uint8_t)wr->opcode)->carries;
	int err = data_fill(qp, wqe, wr, carries);

	if (err)
		return err;
	if (carries & ~(VB_CARRIES_MEMORY | VB_CARRIES_INLINE))
		remote_fill(wqe, wr, carries);
	if (VB_SELDOM(qp->t.service != VB_SERVICE_RC))
		wqe->srqn = wr->qp_type.xrc.remote_srqn & VB_SRQN_MASK; /* read for XRC only */
	if (wr->opcode == IBV_WR_BIND_MW && qp->t.service != VB_SERVICE_UD) {
		err = -vb_mw_fill(wqe, wr->bind_mw.mw, wr->bind_mw.rkey, &wr->bind_mw.bind_info);
		if (err)
			return err;
		vb_send_wqe_bind(wqe, wr->bind_mw.mw, batch);
	}
	if (is_datagram(qp, wr)) {
		if (!wr->wr.ud.ah)
			return refuse(qp, EINVAL, VB_REASON_ARG, "no address handle", 0);
		vb_send_wqe_address(qp, wqe, vb_ah_of(wr->wr.ud.ah), wr->wr.ud.remote_qpn,
				    wr->wr.ud.remote_qkey);
	}
	return 0;
}

/*
 * The list may point to itself. It ends where the queue is full, so it is never walked beforehand.
 */
static int list_fill(struct vb_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr,
		     struct vb_send_batch *batch)
{
	int err = 0;

	for (; wr; wr = wr->next) {
		struct vb_send_wqe *wqe = vb_send_wqe_next(qp, batch);

		err = wqe ? entry_fill(qp, wqe, wr, batch) : ENOMEM;
		if (err) {
			*bad_wr = wr;
			break;
		}
		batch->count++;
	}
	return err;
}

int vb_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	struct vb_qp *qp = vb_qp_of(ibqp);
	struct vb_send_batch batch = {.count = 0};
	int err, refused;

	vb_lock_take(&qp->wr_lock);
	batch.first = vb_tqp_posted(&qp->t);
	err = list_fill(qp, wr, bad_wr, &batch);
	refused = vb_send_hand_over(qp, &batch);
	vb_lock_release(&qp->wr_lock);
	if (!refused)
		return err;
	*bad_wr = wr;
	return refused;
}
